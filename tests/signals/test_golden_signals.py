"""Values per token and features against an independent float64 implementation; see tests/golden/signals."""

import numpy as np
import pytest

COUNTS = {"large_kl_pos"}


@pytest.fixture(scope="module")
def reports(golden, make_monitor):
    monitor = make_monitor(golden, schema="paper.v1", formula=None)
    return [
        (record, monitor.score(golden.prompt(record), sentences=[s["text"] for s in record["sentences"]]))
        for record in golden.records
    ]


def test_ids_are_those_of_the_tokenizer(golden, reports):
    for record, report in reports:
        assert list(report.prompt.with_context_ids) == record["prompt_token_ids"]
        assert list(report.prompt.without_context_ids) == record["prompt_without_context_token_ids"]
        assert report.tokens.token_ids.tolist() == record["response_token_ids"]
        assert report.response == record["response"]


@pytest.mark.parametrize("name", ["log_prob", "log_prob_without_context", "entropy", "kl"])
def test_token_values(reports, name):
    for record, report in reports:
        np.testing.assert_allclose(getattr(report.tokens, name), record[name], rtol=0, atol=1e-3)


def test_sentences(reports):
    for record, report in reports:
        assert [s.token_end - s.token_start for s in report.sentences] == [s["n_tokens"] for s in record["sentences"]]
        assert [s.text for s in report.sentences] == [s["text"].strip() for s in record["sentences"]]
        assert {s.status for s in report.sentences} == {"no_aggregator"}


def test_features(reports):
    for record, report in reports:
        for expected, sentence in zip(record["sentences"], report.sentences, strict=True):
            for name, value in expected["features"].items():
                tolerance = 0 if name in COUNTS else 1e-3
                assert sentence.features[name] == pytest.approx(value, rel=tolerance, abs=0), name


def test_every_feature_but_support_has_a_reference(golden, reports):
    (names,) = {tuple(s["features"]) for record, _ in reports for s in record["sentences"]}
    assert set(reports[0][1].sentences[0].features) - set(names) == {"align_score"}
