"""Reliability of probabilities: calibration error, cross-fitted calibration, reliability diagram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from syncheck.aggregators import CalibrationMethod, fit_calibration
from syncheck.base.checks import scores_with_labels
from syncheck.base.errors import InputError
from syncheck.evaluation.crossval import fold_numbers
from syncheck.results.types import Floats

BINS = 10


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

    Scores (N,) are P(faithful) in [0, 1], and labels (N,) are 1 for faithful and 0 for unfaithful; other values raise
    InputError.
    """
    values, labels = scores_with_labels(scores, y)
    if not len(values) or bins < 1:
        raise InputError(f"bins and sentences must be 1 or more; found {bins} and {len(values)}")
    places = np.minimum((values * bins).astype(np.int64), bins - 1)
    found = []
    for place in np.unique(places):
        own = places == place
        found.append(
            ReliabilityBin(
                low=float(place / bins),
                high=float((place + 1) / bins),
                sentences=int(own.sum()),
                mean_score=float(values[own].mean()),
                faithful=float((labels[own] == 1).mean()),
            )
        )
    return tuple(found)


def expected_calibration_error(scores: ArrayLike, y: ArrayLike, *, bins: int = BINS) -> float:
    """Compute the expected calibration error, in [0, 1] (Naeini et al., 2015; Guo et al., 2017).

    It is the mean over sentences of the distance between the mean score and the share of faithful sentences in the
    sentence's bin. Parameters and errors are those of :func:`reliability_bins`.
    """
    found = reliability_bins(scores, y, bins=bins)
    total = sum(b.sentences for b in found)
    return sum(b.sentences * abs(b.mean_score - b.faithful) for b in found) / total


def cross_fitted_calibration(
    scores: ArrayLike, y: ArrayLike, groups: ArrayLike, *, method: CalibrationMethod, folds: int = 5, seed: int = 0
) -> Floats:
    """Calibrate scores, (N,) float64, each with a map that was fitted without the sentence's group.

    ``scores``, ``y`` and ``groups``, (N,) each, are the raw P(faithful) of held-out sentences, their labels and, in
    practice, their questions; ``method`` is as in :func:`syncheck.aggregators.fit_calibration`.
    """
    raw, labels = np.asarray(scores, dtype=np.float64), np.asarray(y)
    (numbers,) = fold_numbers(labels, groups, folds=folds, repeats=1, seed=seed)
    calibrated = np.empty(len(raw))
    for fold in range(folds):
        own = numbers == fold
        calibrated[own] = fit_calibration(raw[~own], labels[~own], method=method).probability(raw[own])
    return calibrated
