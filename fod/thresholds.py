"""From which score a decoder releases a sentence: a number, the monitor's own, or that of a calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fod.config import FODConfig, Threshold, check_threshold
from syncheck import Monitor, RiskControlledThreshold
from syncheck.errors import InputError, NotReadyError

__all__ = ["Thresholds", "search_thresholds", "single_threshold"]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The scores that what a decoder releases reaches.

    Attributes
    ----------
    backtrack : float
        tau_1 in [0, 1], of greedy sentences; of all sentences where the decoder has but one threshold.
    prune : float or None
        tau_2 in [0, 1], of sampled sentences, tau_1 of branches; None where there are neither: an answer ends where
        stage 1 backtracks.
    promise : RiskControlledThreshold or None
        What was promised for the score asked for by ``"calibrated"``; None where nothing was asked for. Both thresholds
        are then at least ``promise.threshold``.

    Notes
    -----
    The promise is for sentences like those of the calibration that are released one by one, each because its own score
    reaches the threshold: at most ``promise.risk`` of them are unfaithful, with ``promise.confidence``. Without
    ``promise.one_per_question`` it assumes that the calibration's sentences were independent of each other. Decoders
    that stop choose further. Backtracking releases only sentences before the first lower one, abstention only those of
    answers that have none at all; these are some of the sentences that the promise counts, and of some of them by
    themselves it says nothing. The search of FOD's stage 2 is outside the promise: it samples several sentences and
    keeps the best, and the more are tried, the more reach the threshold by luck; so are branches. Sentences that claim
    nothing have no score and pass everywhere. A stream with ``reveal="immediate"`` shows sentences before they are
    scored; released are those that it does not retract.
    """

    backtrack: float
    prune: float | None = None
    promise: RiskControlledThreshold | None = None


def search_thresholds(monitor: Monitor, config: FODConfig) -> Thresholds:
    """Find tau_1 and tau_2 of a search.

    As soon as one is ``"calibrated"`` every released sentence reaches the promised score: the monitor's own is raised
    to it where it is lower, and a lower number is refused.

    Parameters
    ----------
    monitor
        A trained monitor.
    config
        What is asked for.

    Raises
    ------
    NotReadyError
        If ``"calibrated"`` is asked for and the monitor has no such threshold.
    InputError
        If a threshold is lower than the promise that the other one asks for, or ``on_exhausted="annotate"`` would
        release sentences below it.
    """
    asked, saved = (config.backtrack_threshold, config.prune_threshold), monitor.config
    promise = _promise_of(monitor) if "calibrated" in asked else None
    if promise is not None and config.on_exhausted == "annotate":
        raise InputError(
            "on_exhausted='annotate' keeps sentences below the thresholds, and 'calibrated' promises that there are "
            "none; choose another on_exhausted, or pass numbers as thresholds"
        )
    tau_1 = _chosen("backtrack_threshold", config.backtrack_threshold, saved.backtrack_threshold, promise)
    if config.propose == "branch":
        return Thresholds(tau_1, tau_1, promise)
    return Thresholds(
        tau_1,
        _chosen("prune_threshold", config.prune_threshold, saved.prune_threshold, promise),
        promise,
    )


def single_threshold(monitor: Monitor, *, threshold: Threshold | None) -> Thresholds:
    """Find the one threshold of a decoder that samples nothing, as :func:`search_thresholds` does.

    Raises
    ------
    NotReadyError
        If ``"calibrated"`` is asked for and the monitor has no such threshold.
    InputError
        If it is another word, or outside [0, 1].
    WrongTypeError
        If it is neither a word nor a number.
    """
    check_threshold(threshold, "threshold")
    promise = _promise_of(monitor) if threshold == "calibrated" else None
    return Thresholds(_chosen("threshold", threshold, monitor.config.backtrack_threshold, promise), None, promise)


def _promise_of(monitor: Monitor) -> RiskControlledThreshold:
    aggregator = monitor.aggregator
    promise = None if aggregator is None else aggregator.calibrated_threshold
    if aggregator is None or promise is None:
        raise NotReadyError(
            "the monitor has no calibrated threshold: it was not calibrated, or with a risk of none; run `syncheck "
            "calibrate --risk R --confidence C --output DIR` on held-out data and take the monitor that it saves, or "
            "pass a number"
        )
    return replace(promise, threshold=float(aggregator.at_prior(promise.threshold)))


def _chosen(name: str, given: Threshold | None, saved: float, promise: RiskControlledThreshold | None) -> float:
    if promise is None:
        return saved if given is None else float(given)
    if given == "calibrated":
        return promise.threshold
    if given is None:
        return max(saved, promise.threshold)
    if float(given) < promise.threshold:
        raise InputError(
            f"with a threshold of 'calibrated' every sentence must reach {promise.threshold}; found {name}={given}. "
            "Leave it out, raise it, or pass 'calibrated' for both"
        )
    return float(given)
