"""A trained monitor and held-out labelled sentences -> the same monitor, calibrated, with a threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators import Aggregator, CalibrationMethod, RiskControlledThreshold, fit_calibration
from syncheck.errors import InputError, InsufficientDataError
from syncheck.evaluation.reliability import cross_fitted_calibration, expected_calibration_error
from syncheck.labelling.labels import Rule
from syncheck.monitor import Monitor
from syncheck.training.measured import MeasuredSentences, against_references, check_measured_by
from syncheck.training.risk import choose_risk_controlled_threshold
from syncheck.training.seen import question_digests, refuse_seen

__all__ = ["Calibrated", "calibrate_monitor"]


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A calibrated monitor, and what held-out sentences say of it.

    Attributes
    ----------
    monitor : Monitor
        Its aggregator has ``calibration`` and, where one was asked for, ``calibrated_threshold``; FOD's thresholds were
        carried to the calibrated scale.
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
    def threshold(self) -> RiskControlledThreshold | None:
        """The threshold with its promise; None if none was asked for."""
        assert self.monitor.aggregator is not None
        return self.monitor.aggregator.calibrated_threshold

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
    risk: float | None = 0.05,
    confidence: float = 0.9,
    every_sentence: bool = False,
    rule: Rule = "overlap",
    seed: int = 0,
) -> Calibrated:
    """Calibrate a monitor on questions it was not trained on, and choose the score from which sentences may be shown.

    Parameters
    ----------
    monitor
        With an aggregator; a calibration it has already is replaced.
    measured
        Held-out sentences as this monitor measured them, LID by whatever references: the monitor's own replace them.
        Those without a letter or digit, or without a context, which get no score, do not count.
    method
        See :func:`syncheck.aggregators.fit_calibration`.
    risk, confidence
        See :func:`choose_risk_controlled_threshold`; a risk of None calibrates without a threshold.
    every_sentence
        Chooses the threshold on all sentences. This assumes that they are independent of each other; those of one
        question are not, and the promise may then be broken more often than stated. Without it one random sentence of
        each question counts, and the promise is for a random sentence of a random question. The calibration itself is
        fitted to all of them either way.
    rule
        How spans become sentence labels.
    seed
        Of the draw from each question, and of the folds that the calibration error is measured on.

    Returns
    -------
    Calibrated
        Its monitor counts these questions among those it has seen.

    Raises
    ------
    InputError
        If the monitor has no aggregator or has seen a question (:func:`seen_records`), or calibration is not possible.
    InsufficientDataError
        If the sentences do not support the promise; with a risk of None they are calibrated nonetheless.
    MismatchError
        If they were measured by another model or aligner, or otherwise.
    """
    aggregator = monitor.aggregator
    if aggregator is None:
        raise InputError("the monitor has no aggregator, so it has no scores to calibrate; train it first")
    refuse_seen(monitor, measured.records)
    check_measured_by(measured, monitor)
    measured = against_references(measured, monitor)
    used = np.flatnonzero(measured.checkable)
    y, groups = measured.labels(rule=rule)[used], measured.groups[used]
    raw = replace(aggregator, calibration=None, calibrated_threshold=None).score(measured.values[used])
    calibration = fit_calibration(raw, y, method=method)
    scores = calibration.probability(raw)
    threshold = None
    if risk is not None:
        questions = None if every_sentence else groups
        try:
            threshold = choose_risk_controlled_threshold(
                scores, y, groups=questions, risk=risk, confidence=confidence, seed=seed
            )
        except InsufficientDataError as error:
            raise InsufficientDataError(
                f"{error}; or calibrate without a threshold (risk=None, --risk none)", more_needed=error.more_needed
            ) from error
    calibrated = replace(aggregator, calibration=calibration, calibrated_threshold=threshold)
    carried = _carried(aggregator, calibrated, (monitor.config.backtrack_threshold, monitor.config.prune_threshold))
    return Calibrated(
        Monitor(
            monitor.model,
            monitor.tokenizer,
            config=replace(monitor.config, backtrack_threshold=carried[0], prune_threshold=carried[1]),
            aggregator=calibrated,
            lid_references=monitor.lid_references,
            aligner=monitor.aligner,
            trained_on=monitor.trained_on | question_digests(measured.records),
        ),
        raw=raw,
        out_of_fold=cross_fitted_calibration(raw, y, groups, method=method, seed=seed),
        y=y,
    )


def _carried(before: Aggregator, after: Aggregator, thresholds: tuple[float, ...]) -> list[float]:
    """Carry thresholds on the old scores to the new scale, so that they part the same sentences."""
    assert after.calibration is not None
    raw = np.array(thresholds) if before.calibration is None else before.calibration.raw(thresholds)
    return [float(value) for value in after.calibration.probability(raw)]
