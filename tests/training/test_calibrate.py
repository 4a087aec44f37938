"""Calibration on held-out answers, and the risk-controlled threshold: exact bounds, the search, its guarantee."""

import re
from dataclasses import replace

import numpy as np
import pytest
from doubles import LAYERS
from scipy.stats import binom

from syncheck import Aggregator, Monitor, MonitorConfig, feature_schema
from syncheck.aggregators import fit_calibration
from syncheck.base.errors import InputError, InsufficientDataError
from syncheck.evaluation import cross_fitted_calibration, expected_calibration_error
from syncheck.labelling import LabelledResponse, LabelledSentence, UnfaithfulSpan
from syncheck.testing import WordAligner
from syncheck.training import (
    MeasuredSentences,
    calibrate_monitor,
    choose_risk_controlled_threshold,
    choose_thresholds,
    measure,
    one_of_each_group,
    question_digests,
    read_parquet,
    release_curve,
    unfaithful_bound,
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
    with pytest.raises(InputError, match="300"):
        calibrate_monitor(found, measured, risk=0.2)


def test_one_question_is_not_enough(monitor):
    measured, _, _ = overconfident()
    alike = replace(measured, records=tuple(replace(record, group="g") for record in measured.records))
    with pytest.raises(InputError, match="questions"):
        calibrate_monitor(monitor, alike, risk=None)


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


def test_the_guarantee_is_by_question_unless_told_otherwise(monitor):
    measured, scores, y = overconfident()
    found = calibrate_monitor(monitor, measured, risk=0.2, seed=5)
    assert (found.threshold.sentences, found.threshold.one_per_question) == (300, True)
    calibrated = fit_calibration(scores, y).probability(scores)
    assert found.threshold == choose_risk_controlled_threshold(calibrated, y, groups=measured.groups, risk=0.2, seed=5)
    every = calibrate_monitor(monitor, measured, risk=0.2, seed=5, every_sentence=True).threshold
    assert (every.sentences, every.one_per_question) == (600, False)


def test_what_the_data_cannot_support_is_refused_with_the_way_out(monitor):
    measured, _, _ = overconfident()
    with pytest.raises(InsufficientDataError, match="--risk") as own:
        calibrate_monitor(monitor, measured, risk=0.001)
    calibrated = calibrate_monitor(monitor, measured, risk=None)
    scores = calibrated.monitor.aggregator.score(measured.values)
    with pytest.raises(InsufficientDataError) as bare:
        choose_risk_controlled_threshold(scores, calibrated.y, groups=measured.groups, risk=0.001)
    assert str(own.value).startswith(f"{bare.value}; or calibrate without")


def test_calibration_alone(monitor):
    measured, scores, y = overconfident()
    guaranteed = calibrate_monitor(monitor, measured, risk=0.2)
    alone = calibrate_monitor(monitor, measured, risk=None)
    assert alone.threshold is None and alone.monitor.aggregator.calibrated_threshold is None
    assert alone.monitor.aggregator.calibration == fit_calibration(scores, y)
    assert alone.monitor.config == guaranteed.monitor.config
    assert (alone.ece_before, alone.ece_after) == (guaranteed.ece_before, guaranteed.ece_after)


def test_a_monitor_without_scores_is_refused(llama):
    measured, _, _ = overconfident()
    bare = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
    with pytest.raises(InputError, match="aggregator"):
        calibrate_monitor(bare, measured)


def test_saved_is_loaded(monitor, llama, tmp_path):
    measured, _, _ = overconfident()
    found = calibrate_monitor(monitor, measured, risk=0.2).monitor
    found.save_pretrained(tmp_path)
    loaded = Monitor.from_pretrained(tmp_path, model=llama.model, tokenizer=llama.tokenizer, aligner=WordAligner())
    assert (loaded.config, loaded.trained_on) == (found.config, found.trained_on)
    assert loaded.aggregator.calibrated_threshold == found.aggregator.calibrated_threshold
    np.testing.assert_array_equal(loaded.aggregator.score(measured.values), found.aggregator.score(measured.values))


RISK, CONFIDENCE = 0.05, 0.9


def independent_threshold(scores, y, **options):
    return choose_risk_controlled_threshold(scores, y, groups=None, **options)


def risk_above(threshold):
    """Share of unfaithful sentences above a threshold when P(unfaithful) = 0.2 (1 - score), scores even on [0, 1]."""
    return 0.1 * (1 - threshold)


def draw(rng, count):
    scores = rng.random(count)
    return scores, (rng.random(count) >= 0.2 * (1 - scores)).astype(int)


def too_lax(scores, y):
    """The threshold that a plain look at the data suggests: the lowest with an observed share within the risk."""
    order = np.argsort(-scores)
    shares = np.cumsum(y[order] == 0) / np.arange(1, len(y) + 1)
    return scores[order][np.flatnonzero(shares <= RISK)[-1]]


def broken_guarantees(choose, draws=600, count=600):
    rng = np.random.default_rng(7)
    return sum(risk_above(choose(*draw(rng, count))) > RISK for _ in range(draws)) / draws


def test_the_guarantee_holds():
    """Three standard deviations of 600 draws above 10 % are 13.7 %."""

    def choose(scores, y):
        try:
            return independent_threshold(scores, y, risk=RISK, confidence=CONFIDENCE).threshold
        except InsufficientDataError:
            return 1.0  # nothing is released, so nothing is broken

    assert broken_guarantees(choose) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 600)


def test_a_rule_that_is_too_lax_breaks_it():
    assert broken_guarantees(too_lax) > 0.3


def test_the_guarantee_is_not_bought_by_releasing_nothing():
    """Half of the sentences could be released; with 20,000 to choose on nearly all of them are."""
    scores, y = draw(np.random.default_rng(0), 20_000)
    chosen = independent_threshold(scores, y)
    assert 0.4 < chosen.released / chosen.sentences < 0.55
    assert chosen.bound <= RISK
    assert (chosen.sentences, chosen.risk, chosen.confidence) == (20_000, RISK, CONFIDENCE)


@pytest.mark.parametrize(("unfaithful", "released"), [(0, 45), (2, 105), (7, 100), (99, 100)])
def test_the_bound_is_where_so_few_become_improbable(unfaithful, released):
    bound = unfaithful_bound(unfaithful, released, confidence=0.9)
    assert binom.cdf(unfaithful, released, bound) == pytest.approx(0.1, abs=1e-9)


def test_bounds_in_closed_form():
    assert unfaithful_bound(0, 45, confidence=0.9) == pytest.approx(1 - 0.1 ** (1 / 45), abs=1e-12)
    assert unfaithful_bound(3, 3, confidence=0.9) == 1.0
    assert unfaithful_bound(0, 0, confidence=0.9) == 1.0


def test_what_was_tested_is_what_is_released():
    scores, y = draw(np.random.default_rng(3), 3000)
    chosen = independent_threshold(scores, y)
    kept = scores >= chosen.threshold
    assert (kept.sum(), (y[kept] == 0).sum()) == (chosen.released, chosen.unfaithful)
    assert chosen.bound == unfaithful_bound(chosen.unfaithful, chosen.released, confidence=0.9)
    # the threshold lies just above the first score that is not released
    assert chosen.threshold == np.nextafter(scores[~kept].max(), 1)


def test_all_are_released_when_all_may_be():
    chosen = independent_threshold(np.linspace(0, 1, 200), np.ones(200))
    assert (chosen.threshold, chosen.released, chosen.unfaithful) == (0.0, 200, 0)


def test_a_bound_equal_to_the_risk_keeps_the_guarantee():
    y = np.ones(500)
    y[:10] = 0
    risk = unfaithful_bound(10, 500, confidence=CONFIDENCE)
    chosen = independent_threshold(np.full(500, 0.5), y, risk=risk)
    assert (chosen.released, chosen.unfaithful, chosen.bound) == (500, 10, risk)


def test_two_unfaithful_sentences_at_the_top_stop_nothing_three_do():
    scores = np.linspace(1, 0, 1000)
    y = np.ones(1000)
    y[:2] = 0
    assert independent_threshold(scores, y).released == 1000
    y[2] = 0
    with pytest.raises(InsufficientDataError, match="105"):
        independent_threshold(scores, y)


def test_the_search_ends_at_the_first_failure():
    """Unfaithful sentences come at ranks 200 to 219; by rank 1000 their share would be small again."""
    scores = np.linspace(1, 0, 1000)
    y = np.ones(1000)
    y[200:220] = 0
    chosen = independent_threshold(scores, y)
    # candidates release 105, 115, ...; 205 with 5 unfaithful pass, 215 with 15 do not
    assert (chosen.released, chosen.unfaithful) == (205, 5)


def test_labels_do_not_move_the_candidates():
    """Where all labels say faithful all is released; the candidates before that are seen by failing right after."""
    scores = np.random.default_rng(2).random(1000)
    falling = np.argsort(-scores)
    seen = []
    for rank in (150, 151, 152, 160):
        y = np.ones(1000)
        y[falling[rank : rank + 40]] = 0
        seen.append(independent_threshold(scores, y).released)
    assert all((released - 105) % 10 == 0 for released in seen)


def test_sentences_of_equal_score_go_together():
    scores = np.repeat([1.0, 0.5, 0.0], [300, 300, 300])
    y = np.repeat([1, 1, 0], [300, 300, 300])
    chosen = independent_threshold(scores, y)
    assert chosen.released == 600
    assert 0.0 < chosen.threshold <= 0.5


def test_only_the_order_of_the_scores_counts():
    scores, y = draw(np.random.default_rng(4), 2000)
    straight, bent = independent_threshold(scores, y), independent_threshold(scores**3, y)
    assert (straight.released, straight.unfaithful) == (bent.released, bent.unfaithful)
    np.testing.assert_array_equal(scores >= straight.threshold, scores**3 >= bent.threshold)


@pytest.mark.parametrize("count", [0, 10, 44])
def test_too_few_sentences_are_refused_with_how_many_are_needed(count):
    """With none unfaithful 45 are needed: 0.95 ** 45 is the first power below 0.1."""
    with pytest.raises(
        InsufficientDataError,
        match=f"of the {count} held-out sentences .*, 0 are unfaithful; with 0 unfaithful it needs 45",
    ):
        independent_threshold(np.linspace(0, 1, count), np.ones(count))


def test_how_many_are_needed_is_enough():
    y = np.ones(100)
    y[[10, 40, 70]] = 0
    with pytest.raises(InsufficientDataError, match="out of 100, 3 are unfaithful") as caught:
        independent_threshold(np.linspace(1, 0, 100), y)
    needed = int(re.search(r"needs (\d+)", str(caught.value))[1])
    bounds = [unfaithful_bound(3, count, confidence=CONFIDENCE) for count in (needed - 1, needed)]
    assert bounds[1] <= RISK < bounds[0]


def test_a_rate_above_the_risk_is_refused():
    for y in (np.arange(500) % 2, np.zeros(500)):
        with pytest.raises(InsufficientDataError, match="higher risk"):
            independent_threshold(np.linspace(1, 0, 500), y)


@pytest.mark.parametrize(
    ("scores", "y", "options", "message"),
    [
        ([0.1, 0.9], [1], {}, r"\(N,\)"),
        ([0.1, 1.9], [1, 1], {}, "outside"),
        ([0.1, np.nan], [1, 1], {}, "NaN"),
        ([0.1, 0.9], [1, 3], {}, r"\[1, 3\]"),
        ([0.1, 0.9], [1, 1], {"risk": 0.0}, "risk"),
        ([0.1, 0.9], [1, 1], {"confidence": 1.0}, "confidence"),
    ],
)
def test_unusable_values_are_refused(scores, y, options, message):
    with pytest.raises(InputError, match=message):
        independent_threshold(scores, y, **options)


def test_one_sentence_of_each_group():
    groups = np.array(list("bbbbaaaac"))
    found = {tuple(one_of_each_group(groups, seed=seed)) for seed in range(200)}
    assert found == {(b, a, 8) for b in range(4) for a in range(4, 8)}


@pytest.mark.parametrize(("groups", "one"), [(None, False), (np.repeat(np.arange(300), 2), True)])
def test_the_threshold_says_what_it_was_chosen_on(groups, one):
    chosen = choose_risk_controlled_threshold(np.linspace(0, 1, 600), np.ones(600), groups=groups)
    assert (chosen.one_per_question, chosen.sentences) == (one, 300 if one else 600)


def test_one_sentence_of_each_question_is_drawn_by_the_seed():
    scores, y = draw(np.random.default_rng(6), 2000)
    groups = np.repeat(np.arange(1000), 2)
    for seed in (0, 1):
        one = one_of_each_group(groups, seed=seed)
        expected = replace(independent_threshold(scores[one], y[one]), one_per_question=True)
        assert choose_risk_controlled_threshold(scores, y, groups=groups, seed=seed) == expected


def test_too_few_questions_are_refused_with_how_many_are_needed():
    """Ten sentences each say nothing more: with none unfaithful 45 questions are needed."""
    with pytest.raises(
        InsufficientDataError, match="out of 40, one of each question, 0 are unfaithful; with 0 unfaithful it needs 45"
    ):
        choose_risk_controlled_threshold(np.linspace(0, 1, 400), np.ones(400), groups=np.repeat(np.arange(40), 10))


def test_groups_must_be_one_for_each_sentence():
    with pytest.raises(InputError, match="groups"):
        choose_risk_controlled_threshold([0.1, 0.2, 0.3], [1, 1, 1], groups=["a", "b"])


@pytest.mark.slow
def test_the_guarantee_holds_for_dependent_sentences_by_question_alone():
    """Sentences of a question share their fate: ten copies are no ten times the evidence."""
    rng = np.random.default_rng(11)
    every = by_question = 0
    for number in range(300):
        scores, y = draw(rng, 400)
        groups = np.repeat(np.arange(400), 10)
        copies, labels = np.repeat(scores, 10), np.repeat(y, 10)
        every += _broken(copies, labels, groups=None)
        by_question += _broken(copies, labels, groups=groups, seed=number)
    assert every / 300 > 0.1 + 3 * np.sqrt(0.1 * 0.9 / 300)
    assert by_question / 300 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 300)


def _broken(scores, y, **options):
    try:
        return risk_above(choose_risk_controlled_threshold(scores, y, **options).threshold) > RISK
    except InsufficientDataError:
        return False


def half_labelled():
    """As overconfident(), with labels of the first sentences only."""
    measured, scores, y = overconfident()
    records = tuple(
        replace(r, sentences=(r.sentences[0], replace(r.sentences[1], faithful=None))) for r in measured.records
    )
    return replace(measured, records=records), scores, y


def test_sentences_without_a_label_count_as_expected(monitor):
    measured, scores, y = half_labelled()
    assert measured.labelled.tolist() == [True, False] * (COUNT // 2)
    found = calibrate_monitor(monitor, measured, method="platt", risk=None, thresholds="chosen")
    assert found.y.tolist() == y[::2].tolist()
    calibration = fit_calibration(scores[::2], y[::2], method="platt")
    assert found.monitor.aggregator.calibration == calibration
    expected = calibration.probability(scores)
    expected[::2] = y[::2]
    assert found.monitor.aggregator.base_rate == pytest.approx(expected.mean())
    thresholds = choose_thresholds(calibration.probability(scores), expected)
    config = found.monitor.config
    assert (config.backtrack_threshold, config.prune_threshold) == (thresholds.backtrack, thresholds.prune)


def test_no_guarantee_from_labels_of_chosen_sentences(monitor):
    measured, _, _ = half_labelled()
    with pytest.raises(InputError, match="600"):
        calibrate_monitor(monitor, measured, risk=0.2)
    with pytest.raises(InputError, match="600"):
        calibrate_monitor(monitor, measured, risk=None, good_share=0.8)


def test_thresholds_are_carried_or_chosen(monitor):
    measured, _, _ = overconfident()
    with pytest.raises(InputError, match="chosen"):
        calibrate_monitor(monitor, measured, risk=None, thresholds="kept")


def test_what_is_released_from_each_score_up():
    curve = release_curve([0.9, 0.2, 0.9, 0.5, 0.7], [1, 0, 1, 0, 1])
    assert curve.thresholds.tolist() == [0.2, 0.5, 0.7, 0.9]
    assert curve.good.tolist() == pytest.approx([3 / 5, 3 / 4, 1, 1])
    assert curve.kept.tolist() == pytest.approx([1, 4 / 5, 3 / 5, 2 / 5])
    assert [curve.threshold_for(share) for share in (0.5, 0.75, 0.9)] == [0.2, 0.5, 0.7]
    with pytest.raises(InputError, match="share"):
        curve.threshold_for(0)
    with pytest.raises(InsufficientDataError, match="smaller"):
        release_curve([0.9, 0.5], [0, 1]).threshold_for(0.9)


def test_the_thresholds_of_the_share_wanted(monitor):
    measured, _, _ = overconfident()
    found = calibrate_monitor(monitor, measured, method="platt", risk=None, good_share=0.8)
    config, tau = found.monitor.config, found.curve.threshold_for(0.8)
    assert config.backtrack_threshold == tau <= config.prune_threshold
    scores = found.monitor.aggregator.calibration.probability(found.raw)
    assert found.y[scores >= tau].mean() >= 0.8 > found.y.mean()
