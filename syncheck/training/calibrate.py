"""A trained monitor and held-out labelled sentences -> the same monitor, calibrated, with a release threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators import Aggregator, CalibrationMethod, ReleaseThreshold, fit_calibration
from syncheck.errors import InputError
from syncheck.monitor import Monitor
from syncheck.training.labels import Rule
from syncheck.training.measured import MeasuredSentences
from syncheck.training.measured_by import check_measured_by
from syncheck.training.reliability import cross_fitted_calibration, expected_calibration_error
from syncheck.training.risk import choose_release_threshold, one_of_each_group

__all__ = ["Calibrated", "calibrate_monitor", "refuse_seen"]


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A calibrated monitor, and what held-out sentences say of it.

    Attributes
    ----------
    monitor : Monitor
        Its aggregator has ``calibration`` and ``release``; FOD's thresholds were carried to the calibrated scale.
    raw, out_of_fold : ndarray of shape (N,), float64
        Scores before calibration; and after, each by a map fitted without the sentence's question.
    y : ndarray of shape (N,), int64
        1 faithful, 0 unfaithful.
    """

    monitor: Monitor
    raw: NDArray[np.float64]
    out_of_fold: NDArray[np.float64]
    y: NDArray[np.int64]

    @property
    def release(self) -> ReleaseThreshold:
        """The threshold with its promise."""
        assert self.monitor.aggregator is not None and self.monitor.aggregator.release is not None
        return self.monitor.aggregator.release

    @property
    def ece_before(self) -> float:
        """Expected calibration error of the raw scores."""
        return expected_calibration_error(self.raw, self.y)

    @property
    def ece_after(self) -> float:
        """That of calibrated scores, each by a map that was fitted without its question."""
        return expected_calibration_error(self.out_of_fold, self.y)


def calibrate_monitor(
    monitor: Monitor,
    measured: MeasuredSentences,
    *,
    method: CalibrationMethod = "isotonic",
    risk: float = 0.05,
    confidence: float = 0.9,
    rule: Rule = "overlap",
    one_per_question: np.random.Generator | None = None,
    seed: int = 0,
) -> Calibrated:
    """Calibrate a monitor on sentences it was not trained on, and choose the score from which it may release.

    Parameters
    ----------
    monitor
        With an aggregator; a calibration it has already is replaced.
    measured
        Held-out sentences as this monitor measured them; those without a letter or digit, or without a context, which
        get no score, do not count.
    method
        See :func:`syncheck.aggregators.fit_calibration`.
    risk, confidence
        See :func:`choose_release_threshold`.
    rule
        How spans become sentence labels.
    one_per_question
        Draws one sentence of each question for the threshold; None takes all, which are not independent.
    seed
        Of the folds that the calibration error is measured on.

    Returns
    -------
    Calibrated
        Its monitor counts these records among those it has seen.

    Raises
    ------
    InputError
        If the monitor has no aggregator or has seen a record, or calibration is not possible.
    InsufficientDataError
        If the sentences do not support the promise.
    MismatchError
        If they were measured by another model or aligner, or otherwise.
    """
    aggregator = monitor.aggregator
    if aggregator is None:
        raise InputError("the monitor has no aggregator, so it has no scores to calibrate; train it first")
    ids = [record.id for record in measured.records]
    refuse_seen(monitor, ids)
    check_measured_by(measured, monitor)
    used = np.flatnonzero(measured.checkable)
    y, groups = measured.labels(rule=rule)[used], measured.groups[used]
    raw = replace(aggregator, calibration=None, release=None).score(measured.values[used])
    calibration = fit_calibration(raw, y, method=method)
    scores = calibration.probability(raw)
    chosen = np.arange(len(y)) if one_per_question is None else one_of_each_group(groups, generator=one_per_question)
    release = choose_release_threshold(scores[chosen], y[chosen], risk=risk, confidence=confidence)
    calibrated = replace(aggregator, calibration=calibration, release=release)
    carried = _carried(aggregator, calibrated, (monitor.config.backtrack_threshold, monitor.config.prune_threshold))
    return Calibrated(
        Monitor(
            monitor.model,
            monitor.tokenizer,
            config=replace(monitor.config, backtrack_threshold=carried[0], prune_threshold=carried[1]),
            aggregator=calibrated,
            bank=monitor.bank,
            aligner=monitor.aligner,
            trained_on=[*monitor.trained_on, *ids],
        ),
        raw=raw,
        out_of_fold=cross_fitted_calibration(raw, y, groups, method=method, seed=seed),
        y=y,
    )


def refuse_seen(monitor: Monitor, ids: list[str]) -> None:
    """Raise InputError if a monitor was trained, or calibrated, on one of these records."""
    seen = sorted(monitor.trained_on.intersection(ids))
    if seen:
        raise InputError(
            f"the monitor was trained or calibrated on {len(seen)} of these {len(ids)} records ({', '.join(seen[:3])}"
            f"{', ...' if len(seen) > 3 else ''}), and a calibration needs held-out ones; pass other data"
        )


def _carried(before: Aggregator, after: Aggregator, thresholds: tuple[float, ...]) -> list[float]:
    """Carry thresholds on the old scores to the new scale, so that they part the same sentences."""
    assert after.calibration is not None
    raw = np.array(thresholds) if before.calibration is None else before.calibration.raw(thresholds)
    return [float(value) for value in after.calibration.probability(raw)]
