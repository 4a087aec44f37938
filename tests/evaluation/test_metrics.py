"""AUPRC, balanced accuracy and calibration error against scikit-learn, by hand, and on a plain bootstrap."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, balanced_accuracy_score

from syncheck.evaluation.metrics import (
    BootstrapSamples,
    auprc,
    auroc,
    balanced_accuracy,
    calibration_error,
    held_out_thresholds,
)


def benchmark(size=90, groups=9):
    rng = np.random.default_rng(3)
    y = (rng.random(size) < 0.7).astype(int)
    scores = np.clip(rng.normal(0.4 + 0.3 * y, 0.2, size=(2, size)), 0, 1).round(1)  # makes ties
    return scores, y, rng.integers(0, groups, size)


def ten_bins(scores, y):
    """The definition, bin by bin."""
    distance = 0.0
    for low in range(10):
        inside = (scores >= low / 10) & ((scores < (low + 1) / 10) | (low == 9))
        if inside.any():
            distance += inside.mean() * abs(y[inside].mean() - scores[inside].mean())
    return distance


def accuracy(scores, y):
    return balanced_accuracy_score(y, scores >= 0.6)


MEASURES = {
    "auprc": (
        lambda draws, s, y, chosen: auprc(draws, s, y, chosen),
        lambda s, y: average_precision_score(1 - y, -s),
    ),
    "balanced accuracy": (
        lambda draws, s, y, chosen: balanced_accuracy(draws, s, np.full(s.shape, 0.6), y, chosen),
        accuracy,
    ),
    "calibration error": (
        lambda draws, s, y, chosen: calibration_error(draws, s / 1.000001, y, chosen),
        lambda s, y: ten_bins(s / 1.000001, y),
    ),
}


@pytest.mark.parametrize("name", MEASURES)
def test_values_and_resamples_are_those_of_a_plain_bootstrap(name):
    measure, reference = MEASURES[name]
    scores, y, groups = benchmark()
    chosen = np.arange(len(y)) % 5 != 0
    draws = BootstrapSamples.of(groups, draws=40, seed=7)
    value, resampled = measure(draws, scores, y, chosen)
    assert value == pytest.approx(np.mean([reference(row[chosen], y[chosen]) for row in scores]), abs=1e-12)
    expected = []
    for count in draws.counts:
        rows = np.repeat(np.arange(len(y)), count[draws.group].astype(int) * chosen)
        expected.append(np.mean([reference(row[rows], y[rows]) for row in scores]))
    np.testing.assert_allclose(resampled, expected, atol=1e-12)


def test_auprc_by_hand():
    # least faithful first: 0 | 1 | 0 | 1: precision 1 at the first, 2/3 at the second
    draws = BootstrapSamples.of(np.arange(4), draws=5, seed=0)
    value, _ = auprc(draws, np.array([[0.1, 0.3, 0.5, 0.9]]), np.array([0, 1, 0, 1]), np.ones(4, bool))
    assert value == pytest.approx((1 + 2 / 3) / 2)


def test_calibration_error_by_hand():
    # bin [0.2, 0.3): 0 of 2 faithful at 0.25; bin [0.9, 1]: 1 of 2 faithful at 0.95 and 1
    draws = BootstrapSamples.of(np.arange(4), draws=5, seed=0)
    value, _ = calibration_error(draws, np.array([[0.25, 0.25, 0.95, 1.0]]), np.array([0, 0, 1, 0]), np.ones(4, bool))
    assert value == pytest.approx(0.5 * 0.25 + 0.5 * 0.475)


def test_scores_that_are_no_probability_have_no_calibration_error():
    draws = BootstrapSamples.of(np.arange(2), draws=5, seed=0)
    value, resampled = calibration_error(draws, np.array([[0.5, 1.5]]), np.array([0, 1]), np.ones(2, bool))
    assert np.isnan(value) and np.isnan(resampled).all()


def test_what_needs_a_label_is_nan_without_it():
    scores, y, chosen = np.array([[0.2, 0.8, 0.9]]), np.array([1, 1, 1]), np.ones(3, bool)
    draws = BootstrapSamples.of(np.arange(3), draws=5, seed=0)
    for value, resampled in (
        auprc(draws, scores, y, chosen),
        balanced_accuracy(draws, scores, np.full((1, 3), 0.5), y, chosen),
    ):
        assert np.isnan(value) and np.isnan(resampled).all()
    assert np.isnan(auroc(scores[0], y))


def test_a_label_in_one_group_has_no_resamples():
    draws = BootstrapSamples.of(np.array([0, 0, 1, 2]), draws=5, seed=0)
    scores, y, chosen = np.array([[0.1, 0.2, 0.8, 0.9]]), np.array([0, 0, 1, 1]), np.ones(4, bool)
    value, resampled = auprc(draws, scores, y, chosen)
    assert value == 1.0 and np.isnan(resampled).all()
    value, resampled = balanced_accuracy(draws, scores, np.full((1, 4), 0.5), y, chosen)
    assert value == 1.0 and np.isnan(resampled).all()


class TestThresholds:
    def test_are_the_best_of_the_other_folds(self):
        scores = np.array([[0.1, 0.4, 0.6, 0.9, 0.2, 0.3, 0.5, 0.7]])
        y = np.array([0, 0, 1, 1, 0, 1, 1, 1])
        folds = np.array([[0, 0, 0, 0, 1, 1, 1, 1]])
        # on the second four: 0.3 parts them; on the first four: 0.6 does
        assert held_out_thresholds(scores, y, folds).tolist() == [[0.3] * 4 + [0.6] * 4]

    def test_no_label_of_the_fold_counts(self):
        scores, y, _ = benchmark()
        folds = np.stack([np.arange(len(y)) % 3, np.arange(len(y)) // 30])
        before = held_out_thresholds(scores, y, folds)
        for repeat in range(2):
            own = folds[repeat] == 1
            after = held_out_thresholds(scores, np.where(own, 1 - y, y), folds)
            np.testing.assert_array_equal(after[repeat, own], before[repeat, own])
            assert not np.array_equal(after[repeat], before[repeat])

    def test_one_row_serves_all_repeats(self):
        scores, y, _ = benchmark()
        folds = np.stack([np.arange(len(y)) % 3, np.arange(len(y)) // 30])
        np.testing.assert_array_equal(
            held_out_thresholds(scores[:1], y, folds), held_out_thresholds(scores[[0, 0]], y, folds)
        )
