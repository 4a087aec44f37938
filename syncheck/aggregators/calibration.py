"""Calibration: maps an aggregator's raw score to the share of such sentences that are faithful.

Both maps are strictly increasing (Platt's between 1e-6 and 1 - 1e-6): a calibrated score ranks sentences as the raw one
does, and thresholds can be carried from one scale to the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from syncheck.base.checks import check_both_labels, check_choice, scores_with_labels
from syncheck.base.errors import InputError
from syncheck.base.records import Record
from syncheck.results.types import Floats

CalibrationMethod = Literal["isotonic", "platt", "shift"]

RAW_SHARE = 1e-3
"""Share of the raw score in an isotonic map, which keeps sentences on its steps from getting equal scores."""

KNOT_DECIMALS = 9
"""Number of decimals to which knots that agree are merged: between them, the raw share would be lost in rounding."""
MOST_SHIFT = 60.0
"""Largest shift that is searched, in nats: more than the log-odds of any score and target."""
SMALLEST_SCORE = 1e-6
"""Least distance of raw scores from 0 and 1 when Platt's map takes their log-odds."""


@dataclass(frozen=True, slots=True)
class IsotonicCalibration:
    """Piecewise linear map between knots, strictly increasing from raw score 0 to 1."""

    method: ClassVar[CalibrationMethod] = "isotonic"
    scores: tuple[float, ...]
    """Raw scores of the knots, in [0, 1]."""
    probabilities: tuple[float, ...]
    """P(faithful) at the knots, in [0, 1]."""

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.probabilities) or len(self.scores) < 2:
            raise InputError(
                f"an isotonic map needs at least two knots, each with a probability; found {len(self.scores)} scores "
                f"and {len(self.probabilities)} probabilities"
            )
        for name in ("scores", "probabilities"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if not (np.diff(values) > 0).all() or values[0] < 0 or values[-1] > 1:
                raise InputError(f"{name} of an isotonic map must rise strictly within [0, 1]; found {list(values)}")

    def probability(self, raw: ArrayLike) -> Floats:
        """Calibrate raw scores to P(faithful), of the same shape."""
        return np.asarray(np.interp(np.asarray(raw, np.float64), self.scores, self.probabilities))

    def raw(self, probability: ArrayLike) -> Floats:
        """Invert the calibration; beyond the knots, the raw score of the nearest knot is taken."""
        return np.asarray(np.interp(np.asarray(probability, np.float64), self.probabilities, self.scores))


@dataclass(frozen=True, slots=True)
class PlattCalibration:
    """Logistic map of the log-odds: ``expit(slope * logit(raw) + intercept)``."""

    method: ClassVar[CalibrationMethod] = "platt"
    slope: float
    """Above 0; below 1 for an overconfident aggregator."""
    intercept: float

    def __post_init__(self) -> None:
        if not (np.isfinite([self.slope, self.intercept]).all() and self.slope > 0):
            found = f"{self.slope} and {self.intercept}"
            raise InputError(f"Platt's map needs a slope above 0 and an intercept, both finite; found {found}")

    def probability(self, raw: ArrayLike) -> Floats:
        """Calibrate raw scores to P(faithful), of the same shape."""
        from scipy.special import expit

        return np.asarray(expit(self.slope * _log_odds(raw) + self.intercept))

    def raw(self, probability: ArrayLike) -> Floats:
        """Invert the calibration, to raw scores in [1e-6, 1 - 1e-6]."""
        from scipy.special import expit, logit

        calibrated = expit((logit(np.asarray(probability, np.float64)) - self.intercept) / self.slope)
        return np.asarray(np.clip(calibrated, SMALLEST_SCORE, 1 - SMALLEST_SCORE))


Calibration = IsotonicCalibration | PlattCalibration


def fit_calibration(scores: ArrayLike, y: ArrayLike, *, method: CalibrationMethod = "isotonic") -> Calibration:
    """Fit a calibration to held-out sentences: raw P(faithful) in [0, 1], (N,), and labels, (N,), 1 for faithful.

    ``isotonic`` takes any increasing shape and needs a few hundred sentences of each label; ``platt`` has two
    parameters, for fewer; ``shift`` is Platt's map with slope 1, for about ten with similar scores. A value outside its
    range, one label alone, and scores that do not rise with faithfulness raise InputError.

    Notes
    -----
    The isotonic map is that of scikit-learn, which makes whole ranges of sentences equal, joined by straight lines,
    with one thousandth of the raw score mixed in. Platt's targets are smoothed as he proposes (1999): (n + 1) / (n + 2)
    for n faithful sentences and 1 / (m + 2) for m unfaithful ones.
    """
    check_choice(method, "method", CalibrationMethod)
    raw, labels = scores_with_labels(scores, y)
    check_both_labels(labels, "calibration needs held-out sentences")
    faithful = int(labels.sum())
    targets = np.where(labels == 1, (faithful + 1) / (faithful + 2), 1 / (len(labels) - faithful + 2))
    if method == "shift":
        return _shift(_log_odds(raw), targets)
    from sklearn.metrics import roc_auc_score

    if (area := roc_auc_score(labels, raw)) <= 0.5:
        raise _no_rise(f"their AUROC is {area:.3f}")
    if method == "platt":
        return _platt(_log_odds(raw), targets)
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(raw, labels)
    knots = np.unique([0.0, *fitted.X_thresholds_.round(KNOT_DECIMALS), 1.0])
    probabilities = (1 - RAW_SHARE) * fitted.predict(knots) + RAW_SHARE * knots
    return IsotonicCalibration(tuple(knots.tolist()), tuple(probabilities.tolist()))


def calibration_from_dict(stored: Mapping[str, Any]) -> Calibration:
    """Rebuild a calibration from its method and ``dataclasses.asdict``; or raise InputError, KeyError or TypeError."""
    if stored["method"] == "isotonic":
        return IsotonicCalibration(tuple(map(float, stored["scores"])), tuple(map(float, stored["probabilities"])))
    if stored["method"] == "platt":
        return PlattCalibration(float(stored["slope"]), float(stored["intercept"]))
    raise InputError(f"method must be one of {', '.join(get_args(CalibrationMethod))}; found {stored['method']!r}")


def _shift(odds: Floats, targets: Floats) -> PlattCalibration:
    """Fit the map of slope 1 whose probabilities have the same mean as the targets."""
    from scipy.optimize import brentq
    from scipy.special import expit

    offset = brentq(lambda shift: float((expit(odds + shift) - targets).sum()), -MOST_SHIFT, MOST_SHIFT)
    return PlattCalibration(1.0, float(offset))


def _platt(odds: Floats, targets: Floats) -> PlattCalibration:
    from scipy.optimize import minimize
    from scipy.special import expit

    def loss(parameters: Floats) -> tuple[float, Floats]:
        """Compute the cross-entropy, mean over sentences in nats, and its gradient."""
        logits = parameters[0] * odds + parameters[1]
        error = expit(logits) - targets
        gradient = np.array([error @ odds, error.sum()]) / len(odds)
        return float(np.mean(np.logaddexp(0, logits) - targets * logits)), gradient

    fitted = minimize(loss, np.array([1.0, 0.0]), jac=True, method="BFGS")
    slope, intercept = fitted.x.tolist()
    if slope <= 0:
        raise _no_rise(f"the slope that fits best is {slope:.3g}")
    return PlattCalibration(slope, intercept)


def _no_rise(trend: str) -> InputError:
    return InputError(
        f"expected scores that rise with faithfulness, but {trend}; check that label 1 means faithful and that the "
        "sentences are of the kind the aggregator was trained for"
    )


def _log_odds(raw: ArrayLike) -> Floats:
    from scipy.special import logit

    return np.asarray(logit(np.clip(np.asarray(raw, np.float64), SMALLEST_SCORE, 1 - SMALLEST_SCORE)))


@dataclass(frozen=True, slots=True)
class RiskControlledThreshold:
    """Threshold with a guarantee: of the sentences that reach it, at most ``risk`` are unfaithful, with ``confidence``.

    Values that contradict each other, and a share outside its range, raise InputError.
    """

    threshold: float
    """A score in [0, 1] of the aggregator that it is stored with, calibrated if that is."""
    risk: float
    """Largest share of released sentences that may be unfaithful, in (0, 1)."""
    confidence: float
    """Probability, over the choice of the held-out sentences, that the guarantee holds; in (0, 1)."""
    sentences: int
    released: int
    unfaithful: int
    """Numbers of held-out sentences that it was chosen on, of those that reach it, and of the unfaithful of these."""
    bound: float
    """Clopper-Pearson upper bound, at ``confidence``, on the share of unfaithful sentences among the released."""
    one_per_question: bool = False
    """True if it was chosen on one random sentence of each question; otherwise the guarantee assumes that sentences are
    independent, which those of one question are not, and may fail more often than stated."""

    def __post_init__(self) -> None:
        if not (0 < self.risk < 1 and 0 < self.confidence < 1 and math.isfinite(self.threshold) and self.released):
            raise InputError(
                "a risk-controlled threshold needs a finite threshold, released sentences, and a risk and a confidence "
                f"between 0 and 1; found {self.threshold}, {self.released}, {self.risk} and {self.confidence}"
            )
        if not 0 <= self.unfaithful <= self.released <= self.sentences or not 0 <= self.bound <= self.risk:
            raise InputError(
                "a risk-controlled threshold needs unfaithful <= released <= sentences and a bound of at most its "
                f"risk; found {self.unfaithful}, {self.released}, {self.sentences} and a bound of {self.bound} for "
                f"{self.risk}"
            )

    @property
    def observed(self) -> float:
        """Share of unfaithful sentences among the released held-out ones."""
        return self.unfaithful / self.released

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> RiskControlledThreshold:
        """Rebuild from ``dataclasses.asdict``, or raise InputError."""
        return Record(stored).of(cls)
