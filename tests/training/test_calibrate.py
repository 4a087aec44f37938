"""A monitor, calibrated on held-out answers: what it says, keeps and refuses."""

from dataclasses import replace

import numpy as np
import pytest
from doubles import LAYERS

from syncheck import Aggregator, Monitor, MonitorConfig, feature_schema
from syncheck.aggregators import fit_calibration
from syncheck.errors import InputError, InsufficientDataError
from syncheck.evaluation import cross_fitted_calibration, expected_calibration_error
from syncheck.labelling import LabelledResponse, LabelledSentence, UnfaithfulSpan
from syncheck.testing import WordAligner
from syncheck.training import (
    MeasuredSentences,
    calibrate_monitor,
    choose_risk_controlled_threshold,
    measure,
    question_digests,
    read_parquet,
    write_parquet,
)

SCHEMA = feature_schema("paper-no-lid.v1", ())
COUNT = 600


def overconfident(monitor_schema=SCHEMA):
    """Two sentences of each of 300 questions; P(faithful) is 0.5 + 0.5 score, the score being align_score."""
    rng = np.random.default_rng(0)
    scores = rng.random(COUNT)
    y = rng.random(COUNT) < 0.5 + 0.5 * scores
    values = np.zeros((COUNT, len(monitor_schema.names)))
    values[:, monitor_schema.names.index("align_score")] = scores
    records = [
        LabelledResponse(
            f"r{i}",
            f"q{i}?",
            ("p",),
            "One. Two.",
            f"g{i}",
            "m",
            sentences=(LabelledSentence(0, 4, bool(y[2 * i])), LabelledSentence(5, 9, bool(y[2 * i + 1]))),
        )
        for i in range(COUNT // 2)
    ]
    measured = MeasuredSentences(
        schema=monitor_schema,
        values=values,
        activations={},
        bounds=np.tile([[0, 4], [5, 9]], (COUNT // 2, 1)),
        texts=("One.", "Two.") * (COUNT // 2),
        owners=np.repeat(np.arange(COUNT // 2), 2),
        records=tuple(records),
        left_out={},
    )
    return measured, scores, y.astype(int)


@pytest.fixture(scope="module")
def monitor(llama):
    return Monitor(
        llama.model,
        llama.tokenizer,
        config=MonitorConfig(schema="paper-no-lid.v1", backtrack_threshold=0.3, prune_threshold=0.6),
        aggregator=Aggregator.from_signal("align_score", schema=SCHEMA),
        aligner=WordAligner(),
        trained_on=["a"],
    )


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_what_it_finds_is_what_its_parts_say(monitor, method):
    measured, scores, y = overconfident()
    found = calibrate_monitor(monitor, measured, method=method, risk=0.2, confidence=0.9, every_sentence=True)
    calibration = fit_calibration(scores, y, method=method)
    assert found.monitor.aggregator.calibration == calibration
    assert found.threshold == choose_risk_controlled_threshold(
        calibration.probability(scores), y, groups=None, risk=0.2
    )
    assert found.ece_before == expected_calibration_error(scores, y)
    held_out = cross_fitted_calibration(scores, y, measured.groups, method=method)
    assert found.ece_after == expected_calibration_error(held_out, y)
    assert found.ece_before > 0.2 > 0.1 > found.ece_after


def test_the_decoder_decides_as_before(monitor):
    measured, scores, _ = overconfident()
    found = calibrate_monitor(monitor, measured, risk=0.2).monitor
    calibrated = found.aggregator.score(measured.values)
    for name, before in (("backtrack_threshold", 0.3), ("prune_threshold", 0.6)):
        after = getattr(found.config, name)
        assert after != before
        np.testing.assert_array_equal(calibrated < after, scores < before)


def test_calibrating_again_replaces_the_calibration(monitor):
    measured, _, _ = overconfident()
    once = calibrate_monitor(monitor, measured, risk=0.2).monitor
    unseen = Monitor(once.model, once.tokenizer, config=once.config, aggregator=once.aggregator, aligner=once.aligner)
    twice = calibrate_monitor(unseen, measured, risk=0.2).monitor
    assert twice.aggregator.calibration == once.aggregator.calibration
    assert twice.config.backtrack_threshold == pytest.approx(once.config.backtrack_threshold, abs=1e-12)


def test_records_it_has_seen_are_refused(monitor):
    measured, _, _ = overconfident()
    found = calibrate_monitor(monitor, measured, risk=0.2).monitor
    assert found.trained_on == {"a"} | question_digests(measured.records)
    with pytest.raises(InputError, match="on the questions of 300 of these 300 records"):
        calibrate_monitor(found, measured, risk=0.2)


def test_sentences_without_a_letter_or_digit_do_not_count(monitor):
    measured, scores, y = overconfident()
    measured = replace(measured, texts=("One.", "22.") * 250 + ("One.", "***") * 50)
    found = calibrate_monitor(monitor, measured, risk=0.2)
    kept = (np.arange(COUNT) < 500) | (np.arange(COUNT) % 2 == 0)
    np.testing.assert_array_equal(found.raw, scores[kept])
    np.testing.assert_array_equal(found.y, y[kept])
    assert calibrate_monitor(monitor, measured, risk=0.2, every_sentence=True).threshold.sentences == 550


@pytest.mark.parametrize("rule", ["overlap", "paper"])
def test_labels_are_by_the_rule_that_is_asked_for(monitor, rule):
    """Where both sentences are unfaithful one span crosses into both; by the paper's rule it makes neither so."""
    measured, _, y = overconfident()
    spans = {(1, 1): (), (0, 1): ((0, 4),), (1, 0): ((5, 9),), (0, 0): ((2, 7),)}
    records = [
        replace(record, sentences=None, spans=tuple(UnfaithfulSpan(*span) for span in spans[pair]))
        for record, pair in zip(measured.records, map(tuple, y.reshape(-1, 2).tolist()), strict=True)
    ]
    both = np.repeat((y.reshape(-1, 2) == 0).all(axis=1), 2)
    expected = y if rule == "overlap" else np.where(both, 1, y)
    found = calibrate_monitor(monitor, replace(measured, records=tuple(records)), rule=rule, risk=0.2)
    np.testing.assert_array_equal(found.y, expected)


def test_the_folds_follow_the_seed(monitor):
    measured, scores, y = overconfident()
    found = [calibrate_monitor(monitor, measured, risk=0.2, seed=seed).out_of_fold for seed in (0, 3)]
    for seed, scored in zip((0, 3), found, strict=True):
        np.testing.assert_array_equal(
            scored, cross_fitted_calibration(scores, y, measured.groups, method="isotonic", seed=seed)
        )
    assert not np.array_equal(*found)


def test_what_else_the_monitor_has_is_kept(llama):
    schema = feature_schema("paper.v1", LAYERS)
    given = Monitor(
        llama.model,
        llama.tokenizer,
        config=MonitorConfig(schema="paper.v1", layers=LAYERS),
        aggregator=Aggregator.from_signal("align_score", schema=schema),
        lid_references=llama.lid_references,
        aligner=WordAligner(),
    )
    found = calibrate_monitor(given, overconfident(schema)[0], risk=0.2).monitor
    assert (found.lid_references, found.aligner, found.schema) == (given.lid_references, given.aligner, given.schema)


@pytest.mark.parametrize("has_bank", [True, False])
def test_lid_of_a_file_made_without_the_monitor_is_by_the_monitors_references(llama, tmp_path, has_bank):
    """The scores that are calibrated are those that the monitor gives, whatever references the file was made with."""
    schema = feature_schema("paper.v1", LAYERS)
    source = np.random.default_rng(0)
    X = source.normal(20, 20, size=(200, len(schema.names)))
    y = X[:, schema.names.index("lid_layer_3")] + source.normal(0, 20, size=200) > 20
    by_lid = Aggregator.fit(X, y, schema=schema, kind="lr")
    config = MonitorConfig(schema="paper.v1", layers=LAYERS)
    parts = {"config": config, "aggregator": by_lid, "aligner": WordAligner()}
    banks = (llama.lid_references, None) if has_bank else (None, llama.lid_references)
    served, other = (
        Monitor(llama.model, llama.tokenizer, lid_references=lid_references, **parts) for lid_references in banks
    )
    words = "He is a player. She has wings. Scott grew up on farms. Nobody knew the club".split(". ")
    records, scores = [], []
    for i in range(12):
        record = LabelledResponse(f"r{i}", f"{i}?", (f"Scott is {i}.",), f" {words[i % 4]} {i}.", f"g{i}", "m", ())
        prompt = served.prompt(question=record.question, context=record.passages)
        (sentence,) = served.score(prompt, record.response).sentences
        records.append(record)
        scores.append(sentence.score)
    low = (UnfaithfulSpan(0, 4),)
    records = [replace(r, spans=low if s < np.median(scores) else ()) for r, s in zip(records, scores, strict=True)]
    write_parquet(measure(other, records), tmp_path / "held-out.parquet")
    found = calibrate_monitor(served, read_parquet(tmp_path / "held-out.parquet"), risk=None)
    assert found.raw == pytest.approx(scores, abs=1e-6) and np.ptp(scores) > 1e-3


def test_the_promise_is_by_question_unless_told_otherwise(monitor):
    measured, scores, y = overconfident()
    found = calibrate_monitor(monitor, measured, risk=0.2, seed=5)
    assert (found.threshold.sentences, found.threshold.one_per_question) == (300, True)
    calibrated = fit_calibration(scores, y).probability(scores)
    assert found.threshold == choose_risk_controlled_threshold(calibrated, y, groups=measured.groups, risk=0.2, seed=5)
    every = calibrate_monitor(monitor, measured, risk=0.2, seed=5, every_sentence=True).threshold
    assert (every.sentences, every.one_per_question) == (600, False)


def test_what_the_data_cannot_support_is_refused_with_the_way_out(monitor):
    measured, _, _ = overconfident()
    with pytest.raises(InsufficientDataError, match=r"calibrate without a threshold \(risk=None, --risk none\)") as own:
        calibrate_monitor(monitor, measured, risk=0.001)
    calibrated = calibrate_monitor(monitor, measured, risk=None)
    scores = calibrated.monitor.aggregator.score(measured.values)
    with pytest.raises(InsufficientDataError) as bare:
        choose_risk_controlled_threshold(scores, calibrated.y, groups=measured.groups, risk=0.001)
    assert own.value.more_needed == bare.value.more_needed


def test_calibration_alone(monitor):
    measured, scores, y = overconfident()
    promised = calibrate_monitor(monitor, measured, risk=0.2)
    alone = calibrate_monitor(monitor, measured, risk=None)
    assert alone.threshold is None and alone.monitor.aggregator.calibrated_threshold is None
    assert alone.monitor.aggregator.calibration == fit_calibration(scores, y)
    assert alone.monitor.config == promised.monitor.config
    assert (alone.ece_before, alone.ece_after) == (promised.ece_before, promised.ece_after)


def test_a_monitor_without_scores_is_refused(llama):
    measured, _, _ = overconfident()
    bare = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
    with pytest.raises(InputError, match="no aggregator"):
        calibrate_monitor(bare, measured)


def test_saved_is_loaded(monitor, llama, tmp_path):
    measured, _, _ = overconfident()
    found = calibrate_monitor(monitor, measured, risk=0.2).monitor
    found.save_pretrained(tmp_path)
    loaded = Monitor.from_pretrained(tmp_path, model=llama.model, tokenizer=llama.tokenizer, aligner=WordAligner())
    assert (loaded.config, loaded.trained_on) == (found.config, found.trained_on)
    assert loaded.aggregator.calibrated_threshold == found.aggregator.calibrated_threshold
    np.testing.assert_array_equal(loaded.aggregator.score(measured.values), found.aggregator.score(measured.values))
