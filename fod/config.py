"""The parameters of FOD, their defaults, and checks of given values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Literal

from syncheck import Monitor, RagPrompt, Report, RiskControlledThreshold, SentenceScore
from syncheck.errors import InputError, NotReadyError, WrongTypeError

ABSTENTION = "The passages do not let me say more."
"""Text that an abstaining answer ends with, or consists of."""

Threshold = float | Literal["calibrated"]
"""A score in [0, 1], or that of ``syncheck calibrate --risk``, which the monitor was saved with."""


@dataclass(frozen=True, slots=True)
class RetryRequest:
    """The state of an answer that a caller is asked to continue.

    Attributes
    ----------
    prompt : RagPrompt
        The prompt under which nothing passed.
    report : Report
        The answer so far, all of which has been released.
    rejected : tuple of SentenceScore
        The last samples, which did not reach tau_2.
    attempt : int
        How often this answer has been handed over before.
    """

    prompt: RagPrompt
    report: Report
    rejected: tuple[SentenceScore, ...]
    attempt: int


OnExhausted = Literal["stop", "abstain", "annotate"] | Callable[[RetryRequest], RagPrompt | str | None]
"""``stop``: the answer ends with what has passed. ``abstain``: it ends with a message. ``annotate``: the best of the
round is kept, marked, and decoding continues. A callable returns a prompt, with new passages, from which the answer
continues; a text that ends it, which is not scored; or None, which stops."""


def check_share(value: object, name: str) -> None:
    """Refuse what is not a number in [0, 1]."""
    if not 0.0 <= _number(value, name) <= 1.0:
        raise InputError(f"{name} must be in [0, 1]; found {value}")


def check_threshold(value: Threshold | None, name: str) -> None:
    """Refuse what is neither a number in [0, 1] nor ``"calibrated"`` nor None; errors as :func:`check_share`."""
    if isinstance(value, str) and value != "calibrated":
        raise InputError(f"{name} must be a number in [0, 1], 'calibrated' or None; found {value!r}")
    if value is not None and value != "calibrated":
        check_share(value, name)


def check_count(value: object, name: str, *, least: int = 1) -> None:
    """Refuse what is not a whole number of at least ``least``; errors as :func:`check_share`."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise WrongTypeError(f"{name} must be a whole number; found {value!r}")
    if value < least:
        raise InputError(f"{name} must be at least {least}; found {value}")


def check_strength(value: object, name: str) -> None:
    """Refuse what is not a finite number of 0 or more; errors as :func:`check_share`."""
    if not 0 <= _number(value, name) < math.inf:
        raise InputError(f"{name} must be finite and at least 0; found {value}")


def check_sampling(*, temperature: object, top_p: object) -> None:
    """Refuse a temperature that is not above 0 and finite, and a nucleus not in (0, 1]; errors as above."""
    if not 0 < _number(temperature, "temperature") < math.inf or not 0 < _number(top_p, "top_p") <= 1:
        raise InputError(
            f"temperature must be finite and above 0, and top_p in (0, 1]; found {temperature} and {top_p}"
        )


def _number(value: object, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise WrongTypeError(f"{name} must be a number; found {value!r}")
    return float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class FODConfig:
    """Parameters of Algorithm 1, and the action where it comes to no end.

    Raises
    ------
    InputError
        If a value is outside its range.
    WrongTypeError
        If one is not a number.
    """

    propose: Literal["sample", "branch"] = "sample"
    """Response to a greedy sentence below tau_1. ``sample``: the paper's search over sampled sentences, to the end.
    ``branch``: the sentence is rewritten from its least certain tokens, or hidden; then greedy again. It is not
    random, and tau_1 holds for all sentences; see :func:`fod.repair`."""
    backtrack_threshold: Threshold | None = None
    """tau_1: the first greedy sentence below it is taken back. None takes the monitor's own, ``"calibrated"`` the score
    that ``syncheck calibrate --risk`` chose; no sentence is then released below it. What this guarantees, and that the
    search of stage 2 is outside the guarantee, is at :class:`fod.Thresholds`."""
    prune_threshold: Threshold | None = None
    """tau_2: a sampled sentence below it is dropped; likewise."""
    beam_size: int = 2
    """K: beams kept after each round (paper, Table 2)."""
    samples_per_step: int = 6
    """S: sentences sampled a round; each beam gets ceil(S / K) (paper, Table 2)."""
    share_samples: bool = False
    """Divide S among the beams there are, where the paper gives ceil(S / K) to each: a round of one beam, as the first
    one is, then samples S sentences."""
    temperature: float = 0.9
    """Sampling temperature of stage 2 (published code; the paper gives none)."""
    top_p: float = 0.95
    """Nucleus of stage 2 (published code)."""
    sample_first: bool = False
    """Sample the sentences that the paper decodes greedily as well: those of stage 1, and with ``branch`` all but the
    branches; by ``temperature`` and ``top_p``."""
    until: Literal["any", "all"] = "any"
    """Stop when any kept beam has ended (the paper's choice) or when all have."""
    alpha: float = 0.25
    """With ``branch``: how much the context's influence on tokens is amplified, 0 for not at all (Shi et al., 2024,
    "Trusting your evidence", section 4). Scores are of the raw logits."""
    plausibility: float = 0.02
    """With ``branch``: tokens less likely with the context than this share of the likeliest are excluded."""
    branches: int = 4
    """With ``branch``: how many tokens of a sentence are replaced, each in a copy of it."""
    max_skips: int = 2
    """With ``branch``: how many sentences of an answer may be hidden, in the model's memory only."""
    exact_names: bool | None = None
    """Also take back, and never take, a sentence with a name that is nearly but not quite one of the passages; see
    :func:`fod.altered_names`. None: with ``branch`` alone, since Algorithm 1 knows scores only."""
    max_sentences: int = 32
    """Most sentences of an answer."""
    on_exhausted: OnExhausted = "stop"
    """Action when no sample of a round reaches tau_2, where Algorithm 1 stops."""
    message: str = ABSTENTION
    """Text that an abstaining answer ends with."""
    max_retries: int = 4
    """Times that one answer may ask ``on_exhausted`` for another prompt, where that is a callable."""

    def __post_init__(self) -> None:
        for name in ("backtrack_threshold", "prune_threshold"):
            check_threshold(getattr(self, name), name)
        for name in ("beam_size", "samples_per_step", "branches", "max_sentences", "max_retries"):
            check_count(getattr(self, name), name)
        check_count(self.max_skips, "max_skips", least=0)
        check_sampling(temperature=self.temperature, top_p=self.top_p)
        check_strength(self.alpha, "alpha")
        check_share(self.plausibility, "plausibility")
        if self.propose not in ("sample", "branch"):
            raise InputError(f"propose must be 'sample' or 'branch'; found {self.propose!r}")
        if self.propose == "branch" and self.prune_threshold is not None:
            raise InputError(
                "with propose='branch', backtrack_threshold applies to all sentences; found prune_threshold="
                f"{self.prune_threshold}. Leave it out"
            )
        if self.until not in ("any", "all"):
            raise InputError(f"until must be 'any' or 'all'; found {self.until!r}")
        if not callable(self.on_exhausted) and self.on_exhausted not in ("stop", "abstain", "annotate"):
            raise InputError(
                f"on_exhausted must be 'stop', 'abstain', 'annotate' or a callable; found {self.on_exhausted!r}"
            )

    @property
    def keeps_names(self) -> bool:
        """True if a sentence with an altered name does not pass."""
        return self.propose == "branch" if self.exact_names is None else self.exact_names

    def samples_per_beam(self, beams: int) -> int:
        """Sentences to sample for each of so many beams: ceil(S / K), or ceil(S / beams) where samples are shared."""
        return -(-self.samples_per_step // (beams if self.share_samples else self.beam_size))


DEFAULTS = FODConfig()
"""The paper's values; its thresholds are those of a :class:`syncheck.MonitorConfig`."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The scores that released sentences of a decoder reach.

    Attributes
    ----------
    backtrack : float
        tau_1 in [0, 1], of greedy sentences; of all sentences where the decoder has but one threshold.
    prune : float or None
        tau_2 in [0, 1], of sampled sentences, tau_1 of branches; None where there are neither: an answer ends where
        stage 1 backtracks.
    guarantee : RiskControlledThreshold or None
        The guarantee for the score requested by ``"calibrated"``; None where it was not requested. Both thresholds
        are then at least ``guarantee.threshold``.

    Notes
    -----
    The guarantee is for sentences like those of the calibration, released one by one, each because its own score
    reaches the threshold: at most ``guarantee.risk`` of them are unfaithful, with ``guarantee.confidence``. Without
    ``guarantee.one_per_question`` it assumes that the calibration's sentences were independent of each other. Decoders
    that stop choose further. Backtracking releases only sentences before the first lower one, abstention only those of
    answers that have none at all; these are some of the sentences that the guarantee counts, and of some of them by
    themselves it says nothing. The search of FOD's stage 2 is outside the guarantee: it samples several sentences and
    keeps the best, and the more are tried, the more reach the threshold by luck; so are branches. Sentences that claim
    nothing have no score and pass everywhere. A stream with ``reveal="immediate"`` shows sentences before they are
    scored; released are those that it does not retract.
    """

    backtrack: float
    prune: float | None = None
    guarantee: RiskControlledThreshold | None = None


def search_thresholds(monitor: Monitor, config: FODConfig) -> Thresholds:
    """Find tau_1 and tau_2 of a search.

    As soon as one is ``"calibrated"`` every released sentence reaches the guaranteed score: the monitor's own is raised
    to it where it is lower, and a lower number is refused.
    """
    asked, saved = (config.backtrack_threshold, config.prune_threshold), monitor.config
    guarantee = _guarantee_of(monitor) if "calibrated" in asked else None
    if guarantee is not None and config.on_exhausted == "annotate":
        raise InputError(
            "on_exhausted='annotate' keeps sentences below the thresholds, but 'calibrated' guarantees that there are "
            "none; choose another on_exhausted, or pass numbers as thresholds"
        )
    tau_1 = _chosen("backtrack_threshold", config.backtrack_threshold, saved.backtrack_threshold, guarantee)
    if config.propose == "branch":
        return Thresholds(tau_1, tau_1, guarantee)
    return Thresholds(
        tau_1, _chosen("prune_threshold", config.prune_threshold, saved.prune_threshold, guarantee), guarantee
    )


def single_threshold(monitor: Monitor, *, threshold: Threshold | None) -> Thresholds:
    """Find the one threshold of a decoder that samples nothing, as :func:`search_thresholds` does."""
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
