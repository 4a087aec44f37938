"""Cross-validation by groups, and metrics of scores on all sentences and on each bootstrap resample of their groups.

Functions with ``draws`` also take ``scores`` (R, N), one row for each repeat, labels ``y`` (N,), 1 for faithful, and
``chosen`` (N,), True for sentences that count. They return the mean over the repeats, and the values on the D
resamples, (D,); NaN if a label that they need is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.aggregators import CalibrationMethod, fit_calibration
from syncheck.aggregators.kinds import GivenKind, fit_model
from syncheck.base.checks import check_both_labels, real_numbers, scores_with_labels
from syncheck.base.errors import InputError
from syncheck.results.types import Floats

FoldFeatures = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""Function from indices of training sentences to the features (N, F) of all sentences."""


class Folding(TypedDict, total=False):
    """Options of :func:`fold_numbers`, with its defaults."""

    folds: int
    repeats: int
    seed: int
    same_folds: bool


def cross_validate(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    aggregator: GivenKind = "mlp",
    numbers: NDArray[np.int64] | None = None,
    names: Sequence[str] = (),
    **folding: Unpack[Folding],
) -> NDArray[np.float64]:
    """Train on all folds but one and score that one, for each fold and each shuffle of the groups.

    The result is P(faithful) of each sentence, (repeats, N) float64. Features ``X`` (N, F), NaN if not measured, may be
    a function of a fold's training sentences, for those that depend on them, such as LID. ``y`` (N,) is 1 for faithful
    and 0 for unfaithful, and ``groups`` (N,) are in practice questions, none of which is on both sides. ``numbers``
    (repeats, N) are the folds, None for those of :func:`fold_numbers`; ``names`` of the features are for kinds that
    take directions from them. Repeat ``r`` uses ``seed + r`` for the classifier too.

    Shapes that do not fit, a missing label, and too few groups raise InputError.
    """
    labels = real_numbers(y, "labels")
    if numbers is None:
        numbers = fold_numbers(labels, groups, **folding)
    scores, seed, features_for = np.full(numbers.shape, np.nan), folding.get("seed", 0), fold_features(X)
    for repeat, number in enumerate(numbers):
        for left_out in np.unique(number):
            train, test = np.flatnonzero(number != left_out), np.flatnonzero(number == left_out)
            rows = features_for(train)
            model = fit_model(rows[train], labels[train], kind=aggregator, seed=seed + repeat, names=names)
            scores[repeat, test] = model.probability(rows[test])
    return scores


def fold_numbers(
    y: ArrayLike, groups: ArrayLike, *, folds: int = 5, repeats: int = 5, seed: int = 0, same_folds: bool = False
) -> NDArray[np.int64]:
    """Assign each sentence to a fold in each repeat, (repeats, N).

    Groups are divided into ``folds`` parts with about the same share of unfaithful sentences; repeat ``r`` shuffles
    with ``seed + r``, but ``same_folds`` gives all repeats the folds of the first. Fewer groups, or fewer sentences of
    a label, than folds raise InputError.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    if folds < 2 or repeats < 1:
        raise InputError(f"folds must be at least 2 and repeats at least 1; found {folds} and {repeats}")
    labels, names = real_numbers(y, "labels"), np.asarray(groups)
    check_both_labels(labels, "folds need sentences")
    sizes = len(np.unique(names)), int((labels == 1).sum()), int((labels == 0).sum())
    if min(sizes) < folds:
        raise InputError(
            f"{folds} folds need at least {folds} groups, faithful and unfaithful sentences, but there are {sizes[0]}, "
            f"{sizes[1]} and {sizes[2]}; use fewer folds or more data"
        )
    numbers = np.empty((repeats, len(labels)), np.int64)
    for repeat in range(repeats):
        splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed if same_folds else seed + repeat)
        for number, (_, test) in enumerate(splitter.split(labels, labels, names)):
            numbers[repeat, test] = number
    return numbers


def fold_features(X: ArrayLike | FoldFeatures) -> FoldFeatures:
    """Make features a function of the training sentences, even if they do not depend on them."""
    if callable(X):
        return X
    rows = real_numbers(X, "features").astype(np.float64)
    return lambda train: rows


Labels = NDArray[np.int64]
Flags = NDArray[np.bool_]

BINS = 10
"""Number of equally wide bins for the expected calibration error (Guo et al., 2017, use 15 for more data)."""
DRAWS_AT_ONCE = 128
"""Number of resamples whose precision is computed together; it limits memory and does not change the result."""


@dataclass(frozen=True, slots=True)
class BootstrapSamples:
    """Bootstrap resamples of G groups with replacement, shared by all systems, so that differences are paired."""

    group: NDArray[np.int64]
    """Group of each sentence, (N,), 0 to G - 1."""
    counts: Floats
    """Number of times that each group is in each resample, (D, G)."""

    @classmethod
    def of(cls, groups: NDArray[np.generic], *, draws: int, seed: int) -> BootstrapSamples:
        """Draw resamples of the groups to which sentences belong."""
        names, group = np.unique(groups, return_inverse=True)
        size = len(names)
        counts = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=draws)
        return cls(group.astype(np.int64), counts.astype(np.float64))

    def sums(self, chosen: NDArray[Any], weights: Floats | None = None) -> Floats:
        """Count the chosen sentences, or sum their weights, by group, (G,)."""
        return np.bincount(self.group[chosen], weights, minlength=self.counts.shape[1]).astype(np.float64)

    def auroc(self, scores: Floats, y: NDArray[np.int64], chosen: NDArray[np.bool_]) -> tuple[float, Floats]:
        """Compute the AUROC of the chosen sentences, as :func:`auroc` does, and that on each resample.

        The latter is NaN if a label occurs in only one group, which says nothing about others.
        """
        good, bad = chosen & (y == 1), chosen & (y == 0)
        goods, bads = self.sums(good), self.sums(bad)
        wins = np.mean([self._wins(row, good, bad) for row in scores], axis=0)
        drawn = ((self.counts @ wins) * self.counts).sum(axis=1)
        pairs = (self.counts @ goods) * (self.counts @ bads)
        known = (pairs > 0) & (min(np.count_nonzero(goods), np.count_nonzero(bads)) > 1)
        resampled = np.divide(drawn, pairs, out=np.full(len(drawn), np.nan), where=known)
        total = goods.sum() * bads.sum()
        return (float(wins.sum() / total) if total else float("nan")), resampled

    def _wins(self, scores: Floats, good: NDArray[np.bool_], bad: NDArray[np.bool_]) -> Floats:
        """Count pairs of a faithful sentence above an unfaithful one, by the groups (G, G) of the two.

        The AUROC on any resample is a quadratic form of this matrix, so that resamples need not be ranked.
        """
        wins = np.zeros((self.counts.shape[1],) * 2)
        for unfaithful in np.unique(self.group[bad]):
            below = np.sort(scores[bad & (self.group == unfaithful)])
            left, right = (np.searchsorted(below, scores[good], side=side) for side in ("left", "right"))
            wins[:, unfaithful] = self.sums(good, (left + right) / 2)
        return wins


def auroc(scores: Floats, y: NDArray[np.int64]) -> float:
    """Compute P(a faithful sentence scores above an unfaithful one), ties counted half; NaN if a label is missing."""
    from scipy.stats import rankdata

    goods, bads = int((y == 1).sum()), int((y == 0).sum())
    if not goods or not bads:
        return float("nan")
    return float((rankdata(scores)[y == 1].sum() - goods * (goods + 1) / 2) / (goods * bads))


def deviation(scores: Floats, y: NDArray[np.int64]) -> float:
    """Compute the sample standard deviation of the AUROC over the rows of scores (R, N); NaN for one row."""
    return float(np.std([auroc(row, y) for row in scores], ddof=1)) if len(scores) > 1 else float("nan")


def bootstrap_interval(resampled: Floats) -> tuple[float, float]:
    """Compute the 95 % percentile interval of resampled values, without those that are NaN."""
    values = resampled[~np.isnan(resampled)]
    if not len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(values, [(1 - 0.95) / 2, (1 + 0.95) / 2])
    return float(low), float(high)


def with_interval(value: float, low: float, high: float, spec: str = ".3f") -> str:
    """Write a value with its interval: ``-`` for a NaN value, ``[no interval]`` for a NaN interval."""
    if math.isnan(value):
        return "-"
    return f"{value:{spec}} [no interval]" if math.isnan(low) else f"{value:{spec}} [{low:{spec}}, {high:{spec}}]"


def json_number(value: object) -> object:
    """Convert a value to one that JSON can represent: NaN becomes None."""
    return None if isinstance(value, float) and math.isnan(value) else value


def auprc(draws: BootstrapSamples, scores: Floats, y: Labels, chosen: Flags) -> tuple[float, Floats]:
    """Compute the average precision, in [0, 1], of finding unfaithful sentences by their low scores.

    Sentences with equal scores count together, as in scikit-learn's ``average_precision_score``.
    """
    kept = np.flatnonzero(chosen)
    bad = (y[kept] == 0).astype(np.float64)
    weights = np.vstack([np.ones(len(kept)), draws.counts[:, draws.group[kept]]])  # (1 + D, n)
    blocks = [weights[first : first + DRAWS_AT_ONCE] for first in range(0, len(weights), DRAWS_AT_ONCE)]
    precisions = []
    for row in scores[:, kept]:
        order = np.argsort(row, kind="stable")
        ends = np.flatnonzero(np.append(np.diff(row[order]) != 0, True)) if len(row) else np.empty(0, np.int64)
        precisions.append(np.concatenate([_average_precision(block[:, order], bad[order], ends) for block in blocks]))
    whole, *resampled = np.mean(precisions, axis=0)
    known = np.count_nonzero(draws.sums(kept[bad == 1])) > 1
    return float(whole), np.array(resampled) if known else np.full(len(resampled), np.nan)


def balanced_accuracy(
    draws: BootstrapSamples, scores: Floats, thresholds: Floats, y: Labels, chosen: Flags
) -> tuple[float, Floats]:
    """Average the recalls of faithful and unfaithful sentences, in [0, 1].

    A sentence counts as faithful if its score is at least its threshold; thresholds are (R, N), as ``scores``.
    """
    good, bad = chosen & (y == 1), chosen & (y == 0)
    called = (scores >= thresholds).mean(axis=0)
    (faithful, good_drawn), (unfaithful, bad_drawn) = _share(draws, called, good), _share(draws, 1 - called, bad)
    return (faithful + unfaithful) / 2, (good_drawn + bad_drawn) / 2


def calibration_error(draws: BootstrapSamples, scores: Floats, y: Labels, chosen: Flags) -> tuple[float, Floats]:
    """Compute the :func:`expected_calibration_error` over ten bins; NaN if a score is outside [0, 1]."""
    kept = np.flatnonzero(chosen)
    values, groups = scores[:, kept], draws.counts.shape[1]
    if not len(kept) or values.min() < 0 or values.max() > 1:
        return float("nan"), np.full(len(draws.counts), np.nan)
    drawn = draws.counts @ draws.sums(kept)
    whole, resampled = [], []
    for row in values:
        places = np.minimum((row * BINS).astype(np.int64), BINS - 1) * groups + draws.group[kept]
        gaps = np.bincount(places, weights=y[kept] - row, minlength=BINS * groups).reshape(BINS, groups)
        whole.append(np.abs(gaps.sum(axis=1)).sum() / len(kept))
        distance = np.abs(draws.counts @ gaps.T).sum(axis=1)
        resampled.append(np.divide(distance, drawn, out=np.full(len(drawn), np.nan), where=drawn > 0))
    return float(np.mean(whole)), np.mean(resampled, axis=0)


def held_out_thresholds(scores: Floats, y: Labels, folds: NDArray[np.int64]) -> Floats:
    """Choose thresholds (R, N) with the best balanced accuracy, the lowest of equals, for each fold on the other folds.

    ``scores`` are out of fold, (R, N), or (1, N) for all repeats of a system without training; ``folds``, (R, N), are
    those of :func:`fold_numbers`. No label of a fold is used to choose its threshold, although the models that scored
    the other folds had it in their training data.
    """
    rows = np.broadcast_to(scores, folds.shape)
    thresholds = np.empty(folds.shape)
    for row, numbers, chosen in zip(rows, folds, thresholds, strict=True):
        for fold in np.unique(numbers):
            chosen[numbers == fold] = best_threshold(row[numbers != fold], y[numbers != fold])
    return thresholds


def best_threshold(scores: Floats, y: Labels) -> float:
    """Choose the score with the best balanced accuracy as a threshold; of equals, the lowest."""
    order = np.argsort(scores, kind="stable")
    values, good = scores[order], (y[order] == 1).astype(np.float64)
    starts = np.flatnonzero(np.append(True, np.diff(values) != 0))
    below_good = np.append(0, np.cumsum(good))[starts] / max(good.sum(), 1)
    below_bad = np.append(0, np.cumsum(1 - good))[starts] / max((1 - good).sum(), 1)
    return float(values[starts[np.argmax(below_bad - below_good)]])


def _average_precision(weights: Floats, bad: Floats, ends: NDArray[np.int64]) -> Floats:
    """Compute the average precision for each row of weights (D, n); NaN without an unfaithful sentence."""
    caught = np.cumsum(weights * bad, axis=1)[:, ends]
    seen = np.cumsum(weights, axis=1)[:, ends]
    precision = np.divide(caught, seen, out=np.zeros_like(caught), where=seen > 0)
    summed = (np.diff(caught, axis=1, prepend=0.0) * precision).sum(axis=1)
    total = caught[:, -1] if len(ends) else np.zeros(len(weights))
    return np.asarray(np.divide(summed, total, out=np.full(len(weights), np.nan), where=total > 0))


def _share(draws: BootstrapSamples, right: Floats, chosen: Flags) -> tuple[float, Floats]:
    """Average ``right``, (N,) in [0, 1], over the chosen sentences and over each resample; NaN for one group."""
    sizes, hits = draws.sums(chosen), draws.sums(chosen, right[chosen])
    drawn = draws.counts @ sizes
    known = (drawn > 0) & (np.count_nonzero(sizes) > 1)
    resampled = np.divide(draws.counts @ hits, drawn, out=np.full(len(drawn), np.nan), where=known)
    return (float(hits.sum() / sizes.sum()) if sizes.sum() else float("nan")), resampled


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Bin of sentences with a score in [low, high), or [low, high] for the last bin; ``faithful`` is a share."""

    low: float
    high: float
    sentences: int
    mean_score: float
    faithful: float


def reliability_bins(scores: ArrayLike, y: ArrayLike, *, bins: int = BINS) -> tuple[ReliabilityBin, ...]:
    """Compute the mean score and the share of faithful sentences in bins of equal width, without empty bins.

    Scores (N,) are P(faithful) in [0, 1], and labels (N,) 1 for faithful and 0 for unfaithful, or InputError is raised.
    """
    values, labels = scores_with_labels(scores, y)
    if not len(values) or bins < 1:
        raise InputError(f"bins and sentences must be 1 or more; found {bins} and {len(values)}")
    places = np.minimum((values * bins).astype(np.int64), bins - 1)
    filled = [(place, places == place) for place in np.unique(places).tolist()]
    return tuple(
        ReliabilityBin(
            place / bins, (place + 1) / bins, int(own.sum()), float(values[own].mean()), float(labels[own].mean())
        )
        for place, own in filled
    )


def expected_calibration_error(scores: ArrayLike, y: ArrayLike, *, bins: int = BINS) -> float:
    """Compute the expected calibration error, in [0, 1] (Naeini et al., 2015; Guo et al., 2017).

    It is the mean over sentences of the distance between mean score and share of faithful ones in their
    :func:`reliability_bins`, whose parameters and errors it has.
    """
    filled = reliability_bins(scores, y, bins=bins)
    total = sum(b.sentences for b in filled)
    return sum(b.sentences * abs(b.mean_score - b.faithful) for b in filled) / total


def cross_fitted_calibration(
    scores: ArrayLike, y: ArrayLike, groups: ArrayLike, *, method: CalibrationMethod, folds: int = 5, seed: int = 0
) -> Floats:
    """Calibrate scores, (N,) float64, each with a map that was fitted without the sentence's group.

    ``scores``, ``y`` and ``groups``, (N,) each, are the raw P(faithful) of held-out sentences, their labels and, in
    practice, their questions; ``method`` is as in :func:`syncheck.aggregators.fit_calibration`.
    """
    raw, labels = np.asarray(scores, np.float64), np.asarray(y)
    (numbers,) = fold_numbers(labels, groups, folds=folds, repeats=1, seed=seed)
    calibrated = np.empty(len(raw))
    for fold in range(folds):
        own = numbers == fold
        calibrated[own] = fit_calibration(raw[~own], labels[~own], method=method).probability(raw[own])
    return calibrated
