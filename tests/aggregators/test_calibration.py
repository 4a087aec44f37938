"""Calibration maps: exact values, order kept, saved = loaded, old files still read."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import IsotonicRegression

from syncheck.aggregators import (
    Aggregator,
    IsotonicCalibration,
    PlattCalibration,
    RiskControlledThreshold,
    fit_calibration,
)
from syncheck.base.errors import CheckpointError, InputError
from syncheck.results.types import FeatureSchema

SCHEMA = FeatureSchema("test.v1", ("min_prob", "align_score"), ("", ""), (1, 1))
METHODS = ("isotonic", "platt")
PROMISE = RiskControlledThreshold(
    0.8, risk=0.05, confidence=0.9, sentences=300, released=200, unfaithful=3, bound=0.033
)


def overconfident(count=2000, seed=0):
    """P(faithful) is 0.3 + 0.4 of the score."""
    rng = np.random.default_rng(seed)
    scores = rng.random(count)
    return scores, (rng.random(count) < 0.3 + 0.4 * scores).astype(int)


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(1)
    y = (rng.random(200) < 0.7).astype(int)
    X = rng.normal(size=(200, 2)) + y[:, None]
    return Aggregator.fit(X, y, schema=SCHEMA, kind="lr"), X, y


def test_isotonic_by_hand():
    """Of 0.2, 0.4 one in two is faithful, of 0.6, 0.8 both; a thousandth of the score is mixed in."""
    calibration = fit_calibration([0.2, 0.4, 0.6, 0.8], [1, 0, 1, 1])
    assert calibration.scores == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    expected = 0.999 * np.array([0.5, 0.5, 0.5, 1, 1, 1]) + 0.001 * np.array(calibration.scores)
    np.testing.assert_allclose(calibration.probabilities, expected, atol=1e-15)
    assert calibration.probability(0.5) == pytest.approx(0.999 * 0.75 + 0.0005, abs=1e-15)


def test_isotonic_is_that_of_scikit_learn_but_for_the_raw_share():
    scores, y = overconfident()
    new = np.random.default_rng(5).random(500)
    expected = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores, y).predict(new)
    found = fit_calibration(scores, y).probability(new)
    np.testing.assert_allclose(found, 0.999 * expected + 0.001 * new, atol=1e-5)  # knots are rounded


def test_platt_is_that_of_scikit_learn():
    scores, y = overconfident()
    odds = np.log(scores / (1 - scores))
    a, b = _sigmoid_calibration(odds, y)  # P = 1 / (1 + exp(a f + b))
    found = fit_calibration(scores, y, method="platt")
    assert (found.slope, found.intercept) == pytest.approx((-a, -b), abs=1e-4)
    np.testing.assert_allclose(found.probability(scores), 1 / (1 + np.exp(a * odds + b)), atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_calibrated_scores_are_near_the_truth(method):
    scores, y = overconfident(20_000)
    new = np.linspace(0.05, 0.95, 50)
    truth = 0.3 + 0.4 * new
    assert np.abs(fit_calibration(scores, y, method=method).probability(new) - truth).mean() < 0.03
    assert np.abs(new - truth).mean() > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_sentences_stays(method):
    scores, y = overconfident(300)
    rising = np.linspace(0.001, 0.999, 5000)
    assert (np.diff(fit_calibration(scores, y, method=method).probability(rising)) > 0).all()


def test_scores_next_to_each_other_make_a_map():
    scores = np.concatenate([1 - np.arange(1, 40) * 1e-16, np.linspace(0, 0.9, 40)])
    y = np.where(scores > 0.95, np.arange(79) % 3 > 0, np.arange(79) % 3 == 0)
    calibration = fit_calibration(scores, y.astype(int))
    assert (np.diff(calibration.probability([0.0, 0.5, 1.0])) > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_raw_undoes_probability(method):
    scores, y = overconfident(300)
    calibration = fit_calibration(scores, y, method=method)
    raw = np.linspace(0.01, 0.99, 99)
    np.testing.assert_allclose(calibration.raw(calibration.probability(raw)), raw, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_scores_the_wrong_way_round_are_refused(method):
    scores, y = overconfident(300)
    with pytest.raises(InputError, match="rise"):
        fit_calibration(1 - scores, y, method=method)


@pytest.mark.parametrize(
    ("scores", "y", "method", "message"),
    [
        ([0.1, 0.9], [0, 1], "beta", "beta"),
        ([0.1, 0.9], [0, 1, 1], "platt", r"\(N,\)"),
        ([0.1, 1.1], [0, 1], "platt", "outside"),
        ([0.1, np.nan], [0, 1], "isotonic", "NaN"),
        ([0.1, 0.9], [1, 1], "isotonic", "held-out"),
        ([0.1, 0.9], [0, 2], "isotonic", r"\[0, 2\]"),
    ],
)
def test_unusable_sentences_are_refused(scores, y, method, message):
    with pytest.raises(InputError, match=message):
        fit_calibration(scores, y, method=method)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: IsotonicCalibration((0.0, 1.0), (0.5, 0.5)), "rise"),
        (lambda: IsotonicCalibration((0.0, 1.0), (0.5, 1.5)), "rise"),
        (lambda: IsotonicCalibration((0.0, 1.0), (0.5,)), "knots"),
        (lambda: PlattCalibration(-1.0, 0.0), "slope"),
        (lambda: PlattCalibration(1.0, float("nan")), "slope"),
    ],
)
def test_maps_that_do_not_rise_are_refused(make, word):
    with pytest.raises(InputError, match=word):
        make()


@pytest.mark.parametrize("method", METHODS)
def test_a_calibrated_aggregator_saved_is_loaded(method, trained, tmp_path):
    aggregator, X, y = trained
    calibration = fit_calibration(aggregator.score(X), y, method=method)
    calibrated = replace(aggregator, calibration=calibration, calibrated_threshold=PROMISE)
    np.testing.assert_array_equal(calibrated.score(X), calibration.probability(aggregator.score(X)))
    assert not np.allclose(calibrated.score(X), aggregator.score(X))
    calibrated.save(tmp_path)
    loaded = Aggregator.load(tmp_path)
    np.testing.assert_array_equal(loaded.score(X), calibrated.score(X))
    assert (loaded.calibration, loaded.calibrated_threshold) == (calibration, PROMISE)
    assert loaded.calibrated_threshold.observed == 3 / 200


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("calibration", {"method": "beta"}, "beta"),
        ("calibration", {"method": "platt", "slope": 1.0}, "intercept"),
        ("calibration", {"method": "isotonic", "scores": [0, 1], "probabilities": [1, 0]}, "rise"),
        ("calibrated_threshold", {"threshold": 0.5}, "risk.*missing"),
        ("calibrated_threshold", asdict(PROMISE) | {"released": "many"}, "released.*a whole number"),
        ("calibrated_threshold", asdict(PROMISE) | {"bound": 0.2}, "risk"),
        ("calibrated_threshold", asdict(PROMISE) | {"one_per_question": "no"}, "one_per_question"),
    ],
)
def test_damaged_fields_are_refused(field, value, message, trained, tmp_path):
    trained[0].save(tmp_path)
    path = tmp_path / "aggregator.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(CheckpointError, match=message):
        Aggregator.load(tmp_path)


def test_a_risk_controlled_threshold_says_what_it_was_chosen_on():
    by_question = replace(PROMISE, one_per_question=True)
    assert RiskControlledThreshold.from_dict(asdict(by_question)) == by_question


def test_a_risk_controlled_threshold_that_breaks_its_guarantee_is_refused():
    with pytest.raises(InputError, match="risk"):
        replace(PROMISE, bound=0.06)
    with pytest.raises(InputError, match="released"):
        replace(PROMISE, released=301)


def test_a_shift_keeps_the_slope_and_meets_the_share():
    scores, y = np.full(6, 0.9), [1, 1, 0, 0, 0, 0]
    found = fit_calibration(scores, y, method="shift")
    # The targets are (2 + 1) / (2 + 2) for two sentences and 1 / (4 + 2) for four.
    share = (2 * 3 / 4 + 4 / 6) / 6
    assert found.slope == 1.0
    assert found.probability([0.9])[0] == pytest.approx(share)
    assert found.intercept == pytest.approx(np.log(share / (1 - share)) - np.log(9))
