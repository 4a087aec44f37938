"""Certified scores: intervals that contain the score, given bounds of the features."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators.aggregator import Aggregator
from syncheck.aggregators.models import Column, Ensemble, Network, log_odds_below
from syncheck.aggregators.trees import NO_CHILD, NODES, Arrays, Forest
from syncheck.base.errors import InputError
from syncheck.results.types import Bounds, Floats

Ends = tuple[Floats, Floats]

_ROUNDING = 1e-9
"""Relative change of a sum by rounding, when its terms are not added in the order of the exact score."""
_SINGLE = 2.0**-22
"""Largest rounding error of XGBoost's probabilities, which are float32."""


def score_bounds(aggregator: Aggregator, features: Bounds) -> Bounds:
    """Turn bounds of features into bounds of P(faithful).

    ``features`` are (N, F), columns as in the aggregator's schema; a feature of which nothing is known (-inf to inf)
    may also be missing. The result is (N,) in [0, 1]: exact, and equal to :meth:`Aggregator.score`, where all features
    are exact or missing. A wrong shape, and a bound that is infinite on one side only, raise InputError.

    Logistic regression: interval arithmetic, which is tight. Trees: sums of the lowest and of the highest leaf of each
    tree that the features can reach. MLP: interval arithmetic layer by layer. Ensemble: mean of its members' bounds of
    the log-odds.
    """
    low, high = features.low, features.high
    names = aggregator.schema.names
    if low.ndim != 2 or low.shape[1] != len(names):
        raise InputError(f"bounds of features must be (N, {len(names)}); found the shape {low.shape}")
    if (np.isinf(low) | np.isinf(high)).any() and not np.array_equal(np.isneginf(low), np.isposinf(high)):
        raise InputError("a bound is infinite on one side; give a finite bound, or -inf and inf for an unknown value")
    model = aggregator.model
    if isinstance(model, Column):
        unknown = np.isneginf(low)
        low_of, high_of = np.where(unknown, 0.0, low), np.where(unknown, 1.0, high)
        model.probability((low_of + high_of) / 2)  # refuses what was not measured
        ends = (np.clip(low_of[:, model.index], 0.0, 1.0), np.clip(high_of[:, model.index], 0.0, 1.0))
    else:
        from scipy.special import expit

        single = 0.0 if isinstance(model, Network) else _SINGLE
        lowest, highest = _log_odds(model, low, high)
        ends = np.maximum(expit(lowest) - single, 0.0), np.minimum(expit(highest) + single, 1.0)
    if aggregator.calibration is not None:
        ends = (aggregator.calibration.probability(ends[0]), aggregator.calibration.probability(ends[1]))
    lower, upper = (aggregator.at_prior(end) for end in ends)
    known = (features.kinds == "exact") | np.isnan(low)
    exact = known.all(axis=1)
    if exact.any():
        lower, upper = lower.copy(), upper.copy()
        lower[exact] = upper[exact] = aggregator.score(low[exact])
    return Bounds(lower, np.maximum(lower, upper))


def _log_odds(model: Network | Forest | Ensemble, low: Floats, high: Floats) -> Ends:
    if isinstance(model, Ensemble):
        members = [_log_odds(member, low, high) for member in model.members.values()]
        lower, upper = (np.mean(ends, axis=0) for ends in zip(*members, strict=True))
        return lower, upper
    if isinstance(model, Forest):
        return _forest(model.arrays(), low, high)
    return _network(model, low, high)


def _network(model: Network, low: Floats, high: Floats) -> Ends:
    """Impute, flag and scale, then apply the layers; an unknown value may be missing, so its flag may be 0 or 1."""
    missing, unknown = np.isnan(low), np.isneginf(low)
    lower, upper = (
        (np.concatenate([np.where(missing, model.fill, end), flag[:, model.flagged]], axis=1) - model.mean)
        / model.scale
        for end, flag in ((low, missing), (high, missing | unknown))
    )
    last = len(model.weights) - 1
    for place, (weight, bias) in enumerate(zip(model.weights, model.biases, strict=True)):
        lower, upper = _layer(weight, bias, lower, upper)
        if place < last:
            lower, upper = np.maximum(lower, 0.0), np.maximum(upper, 0.0)
    return log_odds_below(lower[:, 0], model.ceiling(high)), log_odds_below(upper[:, 0], model.ceiling(low))


def _layer(weight: Floats, bias: Floats, low: Floats, high: Floats) -> Ends:
    """Apply one layer in interval arithmetic: (N, I) to (N, H); a weight of 0 passes on no uncertainty."""
    with np.errstate(invalid="ignore"):
        products = [np.where(weight == 0, 0.0, end[:, :, None] * weight) for end in (low, high)]  # (N, I, H)
        lower, upper = (end.sum(axis=1) + bias for end in (np.minimum(*products), np.maximum(*products)))
        slack = _ROUNDING * (1.0 + np.maximum(*map(np.abs, products)).sum(axis=1) + np.abs(bias))
    return np.where(np.isneginf(lower), lower, lower - slack), np.where(np.isposinf(upper), upper, upper + slack)


def _forest(trees: Arrays, low: Floats, high: Floats) -> Ends:
    """Sum the lowest and the highest leaf of each tree within reach; comparisons are in float32, as in XGBoost."""
    from scipy.special import logit

    singles = low.astype(np.float32), high.astype(np.float32)
    ends, reach, stops = np.zeros((2, len(low))), np.zeros(len(low)), np.cumsum(trees["sizes"]).tolist()
    for start, stop in pairwise([0, *stops]):
        least, most = _leaves({name: trees[name][start:stop] for name in NODES}, *singles)
        ends += least, most
        reach += np.maximum(np.abs(least), np.abs(most))
    base = float(logit(np.float64(trees["base"][0])))
    slack = np.finfo(np.float32).eps * (len(stops) + 2) * (reach + abs(base))
    return ends[0] + base - slack, ends[1] + base + slack


def _leaves(tree: Arrays, low: NDArray[np.float32], high: NDArray[np.float32]) -> Ends:
    """Find the lowest and the highest leaf of one tree that each row can reach, from the leaves up to the root."""
    left, right, value, missing_left = tree["left"], tree["right"], tree["value"], tree["missing_left"]
    ends: dict[int, Ends] = {}
    for node in reversed(range(len(left))):  # children come after their parent
        if left[node] == NO_CHILD:
            leaf = np.full(len(low), value[node], np.float64)
            ends[node] = leaf, leaf
            continue
        lowest, highest = low[:, tree["feature"][node]], high[:, tree["feature"][node]]
        absent, unknown = np.isnan(lowest), np.isneginf(lowest)
        goes_left = np.where(absent, missing_left[node] == 1, lowest < value[node]) | unknown
        goes_right = np.where(absent, missing_left[node] == 0, highest >= value[node]) | unknown
        both, children = goes_left & goes_right, zip(ends.pop(int(left[node])), ends.pop(int(right[node])), strict=True)
        least, most = (
            np.where(both, best(*sides), np.where(goes_left, *sides))
            for best, sides in zip((np.minimum, np.maximum), children, strict=True)
        )
        ends[node] = least, most
    return ends[0]
