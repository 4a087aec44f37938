import numpy as np
import pytest

from syncheck.aggregators import fit_calibration
from syncheck.base.errors import InputError
from syncheck.evaluation import ReliabilityBin, cross_fitted_calibration, expected_calibration_error, reliability_bins


def test_bins_by_hand():
    found = reliability_bins([0.12, 0.18, 0.9, 1.0], [0, 1, 1, 1])
    assert found == (
        ReliabilityBin(low=0.1, high=0.2, sentences=2, mean_score=pytest.approx(0.15), faithful=0.5),
        ReliabilityBin(low=0.9, high=1.0, sentences=2, mean_score=0.95, faithful=1.0),
    )
    # (2 * |0.15 - 0.5| + 2 * |0.95 - 1|) / 4
    assert expected_calibration_error([0.12, 0.18, 0.9, 1.0], [0, 1, 1, 1]) == pytest.approx(0.2, abs=1e-12)


@pytest.mark.parametrize(("bins", "expected"), [(1, 0.0), (2, 0.5)])
def test_more_bins_see_more(bins, expected):
    assert expected_calibration_error([0.0, 1.0, 0.0, 1.0], [0, 1, 1, 0], bins=bins) == expected


@pytest.mark.parametrize(("y", "expected"), [([1, 1], 0.0), ([0, 0], 1.0)])
def test_certain_scores(y, expected):
    assert expected_calibration_error([1.0, 1.0], y) == expected


@pytest.mark.parametrize(
    ("scores", "y", "message"),
    [([], [], "bins"), ([0.5], [1, 0], "both"), ([1.5], [1], "outside"), ([np.nan], [1], "NaN")],
)
def test_unusable_scores_are_refused(scores, y, message):
    with pytest.raises(InputError, match=message):
        expected_calibration_error(scores, y)


def test_no_sentence_is_calibrated_by_its_own_group():
    """Each sentence gets what a map fitted to the other groups alone would give it."""
    from sklearn.model_selection import StratifiedGroupKFold

    rng = np.random.default_rng(0)
    raw = rng.random(200)
    y = (rng.random(200) < raw).astype(int)
    groups = rng.integers(0, 40, 200)
    found = cross_fitted_calibration(raw, y, groups, method="platt", folds=4, seed=3)
    for train, test in StratifiedGroupKFold(4, shuffle=True, random_state=3).split(raw, y, groups):
        assert not set(groups[train]) & set(groups[test])
        expected = fit_calibration(raw[train], y[train], method="platt").probability(raw[test])
        np.testing.assert_array_equal(found[test], expected)


def test_too_few_groups_are_refused():
    with pytest.raises(InputError, match="folds"):
        cross_fitted_calibration([0.1, 0.9, 0.5] * 4, [0, 1] * 6, [0, 1, 2] * 4, method="platt")
