"""Thresholds of verdicts by a named precision, and where the labels do not give it."""

import numpy as np
import pytest

from syncheck import MonitorConfig
from syncheck.base.errors import InputError
from syncheck.training import choose_thresholds, choose_verdict_thresholds
from syncheck.training.sets import thresholds_of


def test_supported_is_the_lowest_score_with_the_precision():
    # From the top: twelve faithful, then u f u u. Of the first 14, 13 are faithful; of all 16 too.
    y = np.array([0, 0, 1, 0, *[1] * 12])
    scores = np.arange(16) / 16
    for precision, share, place in ((0.95, 1.0, 4), (0.92, 13 / 14, 2), (0.5, 13 / 16, 0)):
        found = choose_verdict_thresholds(scores, y, precision=precision)
        midway = (scores[place] + scores[max(place - 1, 0)]) / 2
        assert (found.supported, found.precision) == (midway, pytest.approx(share))
    # Fewest errors below: u u | f u ... has one (the u above); so has u u f u |; the lowest counts.
    assert choose_verdict_thresholds(scores, y).unsupported == (scores[1] + scores[2]) / 2
    assert choose_verdict_thresholds(scores, y, precision=0.5).unsupported == scores[0]  # at most as high


def test_equal_scores_are_on_one_side():
    scores = np.array([0.2] * 10 + [0.8] * 20)
    y = np.array([0] * 9 + [1] + [1] * 19 + [0])
    found = choose_verdict_thresholds(scores, y)
    assert (found.unsupported, found.supported, found.precision) == (0.5, 0.5, 0.95)


def test_ten_sentences_must_reach_it():
    scores = np.arange(20) / 20
    y = np.array([1, 0] * 6 + [0] + [1] * 7)  # seven at the top are all faithful; of the top ten, 8 are
    found = choose_verdict_thresholds(scores, y)
    assert found.supported is None and found.precision == pytest.approx(0.8)


def test_few_faithful_labels_call_nothing_supported_that_is_not(caplog):
    """The decoder's thresholds are low where few sentences are faithful; the verdicts do not follow them."""
    rng = np.random.default_rng(0)
    y = (np.arange(200) % 4 == 0).astype(int)
    scores = np.clip(rng.normal(0.15 + 0.1 * y, 0.1), 0, 1)
    assert choose_thresholds(scores, y).prune < 0.3
    found = thresholds_of(scores, y)
    config = MonitorConfig(schema="syncheck.v5", **found)
    assert (config.backtrack_threshold, config.prune_threshold) == (
        choose_thresholds(scores, y).backtrack,
        choose_thresholds(scores, y).prune,
    )
    assert config.supported_threshold == 1.0 and "no sentence will be called supported" in caplog.text
    assert "name a lower precision (--precision)" in caplog.text
    lower = thresholds_of(scores, y, precision=0.6)["supported_threshold"]
    assert y[scores >= lower].mean() >= 0.6 and y[scores >= lower].sum() < y.sum()


@pytest.mark.parametrize("precision", [0.0, 1.1])
def test_a_precision_outside_its_range_is_refused(precision):
    with pytest.raises(InputError, match="precision"):
        choose_verdict_thresholds([0.1, 0.9], [0, 1], precision=precision)


def test_verdicts_follow_the_decoder_where_a_config_has_none_of_their_own():
    config = MonitorConfig(schema="syncheck.v5", backtrack_threshold=0.4, prune_threshold=0.3)
    assert config.verdict_thresholds == (0.3, 0.4)
    own = MonitorConfig(schema="syncheck.v5", supported_threshold=0.9, unsupported_threshold=0.2)
    assert own.verdict_thresholds == (0.2, 0.9)
    with pytest.raises(InputError, match="supported_threshold"):
        MonitorConfig(schema="syncheck.v5", supported_threshold=1.2)


def test_the_share_of_faithful_sentences_kept_is_named():
    scores, y = np.arange(40) / 40, np.array([0, 1] * 20)
    for kept, first, second in ((0.9, 2, 5), (0.8, 4, 10), (1.0, 0, 0), (0.6, 8, 19), (0.1, 18, 19)):
        found = choose_thresholds(scores, y, kept=kept)
        assert found == (scores[2 * first + 1], scores[2 * second + 1])
    assert thresholds_of(scores, y, kept=0.8)["backtrack_threshold"] == scores[9]
    for kept in (0.0, 1.1):
        with pytest.raises(InputError, match="kept"):
            choose_thresholds(scores, y, kept=kept)
