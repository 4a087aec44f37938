"""The exact score lies within the bounds of the score, whatever the features are within theirs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncheck.aggregators import Aggregator, score_bounds
from syncheck.aggregators.calibration import IsotonicCalibration, PlattCalibration
from syncheck.base.errors import InputError
from syncheck.results.types import Bounds, FeatureSchema

NAMES = ("a", "b", "c", "d", "e")
SCHEMA = FeatureSchema("test.v1", NAMES, ("probability, [0, 1]",) * 5, (1, 1, -1, 0, 0))
WITH_CEILING = FeatureSchema("test.v1", (*NAMES[:4], "contrast_e"), SCHEMA.units, SCHEMA.directions)
KINDS = ("lr", "monotone", "xgb", "mlp", "ensemble")


def rows(seed, count=400):
    source = np.random.default_rng(seed)
    X = source.normal(size=(count, 5)) * (1, 0.1, 3, 1, 1)
    X[source.random(X.shape) < 0.1] = np.nan
    return X, (np.nan_to_num(X[:, 0] - X[:, 2]) + source.normal(size=count) > 0).astype(int)


@pytest.fixture(scope="module", params=[*KINDS, "ceiling"])
def aggregator(request):
    if request.param == "ceiling":
        return Aggregator.fit(*rows(0), schema=WITH_CEILING, kind="monotone")
    return Aggregator.fit(*rows(0), schema=SCHEMA, kind=request.param)


def around(X, source):
    """Bounds that hold X: exact, narrow, wide, or nothing known."""
    below, above = source.exponential(source.choice([0.0, 0.01, 1.0], X.shape), size=(2, *X.shape))
    unknown = source.random(X.shape) < 0.1
    return Bounds(np.where(unknown, -np.inf, X - below), np.where(unknown, np.inf, X + above))


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_the_exact_score_lies_within(aggregator, seed):
    X, _ = rows(seed, 50)
    found = score_bounds(aggregator, around(X, np.random.default_rng(seed)))
    exact = aggregator.score(X)
    assert (found.low <= exact).all() and (exact <= found.high).all()


def test_exact_features_have_an_exact_score(aggregator):
    X, _ = rows(1, 50)
    found = score_bounds(aggregator, Bounds.exact(X))
    np.testing.assert_array_equal(found.low, aggregator.score(X))
    assert (found.kinds == "exact").all()


def test_wider_features_have_wider_scores(aggregator):
    X, _ = rows(2, 50)
    narrow, wide = (score_bounds(aggregator, Bounds(X - by, X + by)) for by in (0.01, 1.0))
    assert (wide.low <= narrow.low).all() and (narrow.high <= wide.high).all()
    assert (narrow.high - narrow.low).mean() < (wide.high - wide.low).mean()


@pytest.mark.parametrize("kind", ["lr", "monotone"])
def test_bounds_of_logistic_regression_are_reached(kind):
    aggregator = Aggregator.fit(*rows(0), schema=SCHEMA, kind=kind)
    X = np.nan_to_num(rows(3, 50)[0])
    found = score_bounds(aggregator, Bounds(X - 0.5, X + 0.5))
    corners = X[:, None] + (np.indices((2,) * 5).reshape(5, -1).T - 0.5)  # (N, 32, F)
    scores = aggregator.score(corners.reshape(-1, 5)).reshape(len(X), -1)
    np.testing.assert_allclose(found.low, scores.min(axis=1), atol=1e-8)
    np.testing.assert_allclose(found.high, scores.max(axis=1), atol=1e-8)


@pytest.mark.parametrize(
    "calibration", [PlattCalibration(0.5, -1.0), IsotonicCalibration((0.0, 0.4, 1.0), (0.1, 0.5, 0.9))]
)
def test_calibration_and_prior_are_kept(aggregator, calibration):
    shifted = Aggregator(
        SCHEMA, aggregator.kind, aggregator.medians, aggregator.model, calibration, base_rate=0.5, prior=0.9
    )
    X, _ = rows(4, 50)
    found = score_bounds(shifted, around(X, np.random.default_rng(4)))
    assert (found.low <= shifted.score(X)).all() and (shifted.score(X) <= found.high).all()


def test_nothing_known_of_a_signal_that_is_the_score():
    aggregator = Aggregator.from_signal("a", schema=SCHEMA)
    low, high = np.full((2, 5), 0.5), np.full((2, 5), 0.75)
    low[1], high[1] = -np.inf, np.inf
    found = score_bounds(aggregator, Bounds(low, high))
    assert (found.low.tolist(), found.high.tolist()) == ([0.5, 0.0], [0.75, 1.0])
    low[1] = high[1] = np.nan
    with pytest.raises(InputError, match="not measured"):
        score_bounds(aggregator, Bounds(low, high))


@pytest.mark.parametrize(
    ("low", "high"), [(np.zeros((1, 4)), np.ones((1, 4))), (np.zeros((1, 5)), np.full((1, 5), np.inf))]
)
def test_bounds_that_do_not_fit_are_refused(aggregator, low, high):
    with pytest.raises(InputError):
        score_bounds(aggregator, Bounds(low, high))
