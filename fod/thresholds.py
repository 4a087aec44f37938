"""Thresholds of released sentences: those of the caller, of the monitor, or of a calibration with a guarantee."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fod.config import FODConfig, RepairConfig, Threshold, check_threshold
from syncheck import Monitor, RiskControlledThreshold
from syncheck.base.errors import InputError, NotReadyError


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Scores that the released sentences of a decoder must reach.

    Notes
    -----
    The guarantee is for sentences like those of the calibration, released one by one, each because its own score
    reaches the threshold: with probability ``guarantee.confidence``, at most ``guarantee.risk`` of them are unfaithful.
    Without ``guarantee.one_per_question``, it assumes that the sentences of the calibration were independent of each
    other. Decoders that stop early select further: backtracking releases only sentences before the first lower one, and
    abstention only those of answers without any lower one. These are subsets of the sentences that the guarantee is
    about, and it says nothing about a subset alone. The search of FOD's stage 2 is outside the guarantee, since it
    samples several sentences and keeps the best: the more are tried, the more reach the threshold by luck. So are
    branches. Sentences that claim nothing have no score and always pass. A stream with ``reveal="immediate"`` shows
    sentences before they are scored; only those that it does not retract count as released.
    """

    backtrack: float
    """tau_1 in [0, 1], for greedy sentences; for all sentences if the decoder has only one threshold."""
    prune: float | None = None
    """tau_2 in [0, 1], for sampled sentences and branches. None if the decoder has neither: an answer then ends where
    stage 1 backtracks."""
    guarantee: RiskControlledThreshold | None = None
    """The guarantee of a threshold requested as ``"calibrated"``; both thresholds are then at least
    ``guarantee.threshold``. None if none was requested."""


def decoder_thresholds(monitor: Monitor, config: FODConfig | RepairConfig) -> Thresholds:
    """Choose tau_1 and tau_2 of a search or of repair.

    If either is ``"calibrated"``, every released sentence must reach the guaranteed score: a lower threshold of the
    monitor is raised to it, and a lower number raises InputError.
    """
    asked, saved = (config.backtrack_threshold, config.prune_threshold), monitor.config
    guarantee = _guarantee_of(monitor) if "calibrated" in asked else None
    if guarantee is not None and config.on_exhausted == "annotate":
        raise InputError(
            "on_exhausted='annotate' keeps sentences below the thresholds, but 'calibrated' guarantees that there are "
            "none; choose another on_exhausted, or pass numbers as thresholds"
        )
    tau_1 = _chosen("backtrack_threshold", config.backtrack_threshold, saved.backtrack_threshold, guarantee)
    tau_2 = _chosen("prune_threshold", config.prune_threshold, saved.prune_threshold, guarantee)
    if isinstance(config, RepairConfig) and config.prune_threshold is None:
        tau_2 = max(tau_1, tau_2)
    return Thresholds(tau_1, tau_2, guarantee)


def single_threshold(monitor: Monitor, *, threshold: Threshold | None) -> Thresholds:
    """Choose the single threshold of a decoder that samples nothing, as :func:`decoder_thresholds` does."""
    check_threshold(threshold, "threshold")
    guarantee = _guarantee_of(monitor) if threshold == "calibrated" else None
    return Thresholds(_chosen("threshold", threshold, monitor.config.backtrack_threshold, guarantee), None, guarantee)


def _guarantee_of(monitor: Monitor) -> RiskControlledThreshold:
    aggregator = monitor.aggregator
    guarantee = None if aggregator is None else aggregator.calibrated_threshold
    if aggregator is None or guarantee is None:
        raise NotReadyError(
            "the monitor has no calibrated threshold: it was not calibrated, or with a risk of none; run `syncheck "
            "calibrate --risk R --confidence C --output DIR` on held-out data and use the monitor that it saves, or "
            "pass a number"
        )
    return replace(guarantee, threshold=float(aggregator.at_prior(guarantee.threshold)))


def _chosen(name: str, given: Threshold | None, saved: float, guarantee: RiskControlledThreshold | None) -> float:
    if guarantee is None:
        return saved if given is None else float(given)
    if given == "calibrated":
        return guarantee.threshold
    if given is None:
        return max(saved, guarantee.threshold)
    if float(given) < guarantee.threshold:
        raise InputError(
            f"with a threshold of 'calibrated' every sentence must reach {guarantee.threshold}; found {name}={given}. "
            "Leave it out, raise it, or pass 'calibrated' for both"
        )
    return float(given)
