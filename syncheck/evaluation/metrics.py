"""Measures of scores other than AUROC, on all sentences and on each resample of their groups.

Every function takes ``scores`` (R, N), one row per repeat, the labels ``y`` (N,), 1 faithful, and ``chosen`` (N,), the
sentences that count. It returns the value, averaged over the repeats, and those of the D resamples, (D,); NaN where a
label that it needs is absent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from syncheck.stats import BootstrapSamples

__all__ = ["auprc", "balanced_accuracy", "best_threshold", "calibration_error", "held_out_thresholds"]


Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Flags = NDArray[np.bool_]

BINS = 10
"""Bins of equal width that the expected calibration error compares (Guo et al., 2017, use 15 for more data)."""

DRAWS_AT_ONCE = 128
"""Resamples whose precision is computed together; bounds the memory, not the result."""


def auprc(draws: BootstrapSamples, scores: Floats, y: Labels, chosen: Flags) -> tuple[float, Floats]:
    """Return the average precision of finding the unfaithful sentences, the least faithful first; in [0, 1].

    Sentences of equal score count together, as in scikit-learn's ``average_precision_score``. At random it is the share
    of unfaithful sentences.
    """
    kept = np.flatnonzero(chosen)
    bad = (y[kept] == 0).astype(np.float64)
    weights = np.vstack([np.ones(len(kept)), draws.counts[:, draws.group[kept]]])  # (1 + D, n)
    blocks = [weights[first : first + DRAWS_AT_ONCE] for first in range(0, len(weights), DRAWS_AT_ONCE)]
    found = []
    for row in scores[:, kept]:
        order = np.argsort(row, kind="stable")
        ends = np.flatnonzero(np.append(np.diff(row[order]) != 0, True)) if len(row) else np.empty(0, np.int64)
        found.append(np.concatenate([_average_precision(block[:, order], bad[order], ends) for block in blocks]))
    whole, *resampled = np.mean(found, axis=0)
    return float(whole), _known(draws, np.array(resampled), kept[bad == 1])


def balanced_accuracy(
    draws: BootstrapSamples, scores: Floats, thresholds: Floats, y: Labels, chosen: Flags
) -> tuple[float, Floats]:
    """Return the mean recall of faithful and unfaithful sentences; in [0, 1].

    A sentence is called faithful if its score is at least its threshold, (R, N) as ``scores``.
    """
    good, bad = chosen & (y == 1), chosen & (y == 0)
    called = scores >= thresholds  # (R, N)
    faithful, resampled_faithful = _share(draws, called.mean(axis=0), good)
    unfaithful, resampled_unfaithful = _share(draws, 1 - called.mean(axis=0), bad)
    resampled = _known(draws, (resampled_faithful + resampled_unfaithful) / 2, np.flatnonzero(bad))
    return (faithful + unfaithful) / 2, _known(draws, resampled, np.flatnonzero(good))


def calibration_error(draws: BootstrapSamples, scores: Floats, y: Labels, chosen: Flags) -> tuple[float, Floats]:
    """Return the expected calibration error over ten bins of equal width (Guo et al., 2017); in [0, 1].

    NaN throughout if a score is not in [0, 1], and so no probability.
    """
    kept = np.flatnonzero(chosen)
    values, groups = scores[:, kept], draws.counts.shape[1]
    if not len(kept) or values.min() < 0 or values.max() > 1:
        return float("nan"), np.full(len(draws.counts), np.nan)
    sizes = np.bincount(draws.group[kept], minlength=groups).astype(np.float64)
    drawn = draws.counts @ sizes
    whole, resampled = [], []
    for row in values:
        places = np.minimum((row * BINS).astype(np.int64), BINS - 1) * groups + draws.group[kept]
        gaps = np.bincount(places, weights=y[kept] - row, minlength=BINS * groups).reshape(BINS, groups)
        whole.append(np.abs(gaps.sum(axis=1)).sum() / len(kept))
        distance = np.abs(draws.counts @ gaps.T).sum(axis=1)
        resampled.append(np.divide(distance, drawn, out=np.full(len(drawn), np.nan), where=drawn > 0))
    return float(np.mean(whole)), np.mean(resampled, axis=0)


def held_out_thresholds(scores: Floats, y: Labels, folds: NDArray[np.int64]) -> Floats:
    """Choose each sentence's threshold on the other folds: the one with the best balanced accuracy there.

    Parameters
    ----------
    scores : ndarray of shape (R, N) or (1, N), float64
        Out of fold; one row serves all repeats, for a system that is not trained.
    y : ndarray of shape (N,)
    folds : ndarray of shape (R, N), int64
        From :func:`~syncheck.evaluation.crossval.fold_numbers`.

    Returns
    -------
    ndarray of shape (R, N), float64
        The same for all sentences of a fold; the lowest of equally good thresholds.

    Notes
    -----
    No label of a fold is used to choose its threshold. The scores of the other folds are spread as new ones are, being
    out of fold themselves; the models that gave them had this fold among their training data.
    """
    rows = np.broadcast_to(scores, folds.shape)
    thresholds = np.empty(folds.shape)
    for row, numbers, chosen in zip(rows, folds, thresholds, strict=True):
        for fold in np.unique(numbers):
            chosen[numbers == fold] = best_threshold(row[numbers != fold], y[numbers != fold])
    return thresholds


def best_threshold(scores: Floats, y: Labels) -> float:
    """Return the score with the best balanced accuracy as a threshold; the lowest of equals."""
    order = np.argsort(scores, kind="stable")
    values, good = scores[order], (y[order] == 1).astype(np.float64)
    starts = np.flatnonzero(np.append(True, np.diff(values) != 0))
    below_good = np.append(0, np.cumsum(good))[starts] / max(good.sum(), 1)
    below_bad = np.append(0, np.cumsum(1 - good))[starts] / max((1 - good).sum(), 1)
    return float(values[starts[np.argmax(below_bad - below_good)]])


def _average_precision(weights: Floats, bad: Floats, ends: NDArray[np.int64]) -> Floats:
    """Return the average precision for each row of weights (D, n); NaN without an unfaithful sentence."""
    found = np.cumsum(weights * bad, axis=1)[:, ends]
    seen = np.cumsum(weights, axis=1)[:, ends]
    precision = np.divide(found, seen, out=np.zeros_like(found), where=seen > 0)
    summed = (np.diff(found, axis=1, prepend=0.0) * precision).sum(axis=1)
    total = found[:, -1] if len(ends) else np.zeros(len(weights))
    precisions: Floats = np.divide(summed, total, out=np.full(len(weights), np.nan), where=total > 0)
    return precisions


def _share(draws: BootstrapSamples, right: Floats, chosen: Flags) -> tuple[float, Floats]:
    """Return the share of the chosen that are told right, and that of each resample; ``right`` (N,) is in [0, 1]."""
    groups = draws.counts.shape[1]
    sizes = np.bincount(draws.group[chosen], minlength=groups).astype(np.float64)
    hits = np.bincount(draws.group[chosen], weights=right[chosen], minlength=groups)
    drawn = draws.counts @ sizes
    resampled = np.divide(draws.counts @ hits, drawn, out=np.full(len(drawn), np.nan), where=drawn > 0)
    return (float(hits.sum() / sizes.sum()) if sizes.sum() else float("nan")), resampled


def _known(draws: BootstrapSamples, resampled: Floats, needed: NDArray[np.int64]) -> Floats:
    """Return NaN if the sentences needed are all in one group, which says nothing of other groups."""
    return resampled if len(np.unique(draws.group[needed])) > 1 else np.full_like(resampled, np.nan)
