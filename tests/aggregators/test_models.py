"""One signal as the score: AlignScore alone, FLARE."""

from dataclasses import replace

import numpy as np
import pytest
from doubles import PASSAGES, QUESTION

from syncheck import Aggregator, Monitor, MonitorConfig, feature_schema
from syncheck.aggregators import PlattCalibration
from syncheck.base.errors import InputError
from syncheck.testing import WordAligner

SCHEMA = feature_schema("paper-no-lid.v1", ())
CONFIG = MonitorConfig(schema="paper-no-lid.v1")
RESPONSE = "Angus Scott is a rugby player. He grew up on a farm in 1982."


def rows(**columns):
    X = np.zeros((2, len(SCHEMA.names)))
    for name, values in columns.items():
        X[:, SCHEMA.names.index(name)] = values
    return X


@pytest.mark.parametrize("name", ["align_score", "min_prob"])
def test_the_signal_is_the_score(name):
    aggregator = Aggregator.from_signal(name, schema=SCHEMA)
    np.testing.assert_array_equal(aggregator.score(rows(**{name: [0.25, 0.75]})), [0.25, 0.75])


def test_a_signal_that_was_not_measured():
    X = rows(align_score=[0.25, np.nan])
    with pytest.raises(InputError, match="measured"):
        Aggregator.from_signal("align_score", schema=SCHEMA).score(X)


@pytest.mark.parametrize("name", ["max_entropy", "mean_contrastive_kl", "content_overlap"])
def test_what_is_no_score_is_refused(name):
    with pytest.raises(InputError, match=name):
        Aggregator.from_signal(name, schema=SCHEMA)


def test_values_out_of_range_are_refused():
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        Aggregator.from_signal("min_prob", schema=SCHEMA).score(rows(min_prob=[0.5, 1.5]))


def test_attribution_is_the_score_itself():
    attribution = Aggregator.from_signal("align_score", schema=SCHEMA).attribution(rows(align_score=0.75)[0])
    assert attribution == {name: 0.75 if name == "align_score" else 0.0 for name in SCHEMA.names}


@pytest.mark.parametrize("calibration", [None, PlattCalibration(2.0, -1.0)])
def test_saved_is_loaded(calibration, tmp_path):
    before = replace(Aggregator.from_signal("align_score", schema=SCHEMA), calibration=calibration)
    before.save(tmp_path)
    after = Aggregator.load(tmp_path, schema=SCHEMA)
    X = rows(align_score=[0.25, 0.5])
    np.testing.assert_array_equal(after.score(X), before.score(X))
    assert (after.kind, after.model, after.calibration) == ("signal", before.model, calibration)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aggregator.json", "aggregator.safetensors"]


def test_a_monitor_scores_by_its_aligner_alone(llama, tmp_path):
    aggregator = Aggregator.from_signal("align_score", schema=SCHEMA)
    monitor = Monitor(llama.model, llama.tokenizer, config=CONFIG, aggregator=aggregator, aligner=WordAligner())
    report = monitor.score(monitor.prompt(question=QUESTION, context=PASSAGES), RESPONSE)
    # "He grew up on a farm in 1982": seven of its eight words are in the passages
    assert [s.score for s in report.sentences] == [1.0, 7 / 8]
    monitor.save_pretrained(tmp_path)
    loaded = Monitor.from_pretrained(tmp_path, model=llama.model, tokenizer=llama.tokenizer, aligner=WordAligner())
    again = loaded.score(loaded.prompt(question=QUESTION, context=PASSAGES), RESPONSE)
    assert [s.score for s in again.sentences] == [1.0, 7 / 8]


def test_flare_is_the_least_probable_token(llama):
    aggregator = Aggregator.from_signal("min_prob", schema=SCHEMA)
    monitor = Monitor(llama.model, llama.tokenizer, config=CONFIG, aggregator=aggregator)
    report = monitor.score(monitor.prompt(question=QUESTION, context=PASSAGES), RESPONSE)
    for sentence in report.sentences:
        least = report.tokens.log_prob[sentence.token_start : sentence.token_end].min()
        assert sentence.score == pytest.approx(np.exp(np.float64(least)), rel=1e-6)
