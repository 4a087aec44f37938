"""Parameters of the search and of repair with their defaults, and checks of given values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal

from syncheck import RagPrompt, Report, SentenceScore
from syncheck.base.errors import InputError, WrongTypeError

ABSTENTION = "The passages do not let me say more."
"""Text of an answer in which no sentence passed, and end of one that abstains from more."""

Threshold = float | Literal["calibrated"]
"""A score in [0, 1], or ``"calibrated"`` for the one that ``syncheck calibrate --risk`` chose and saved with the
monitor."""


@dataclass(frozen=True, slots=True)
class RetryRequest:
    """State of an answer that cannot continue, for a callable ``on_exhausted``."""

    prompt: RagPrompt
    """The prompt under which nothing passed."""
    report: Report
    """The answer so far, all of which has been released."""
    rejected: tuple[SentenceScore, ...]
    """The sentences of the last round, which did not pass."""
    attempt: int
    """Number of earlier requests for the same answer."""


OnExhausted = Literal["stop", "abstain", "annotate"] | Callable[[RetryRequest], RagPrompt | str | None]
"""Action when no continuation passes. ``stop``: the answer ends after its last passing sentence. ``abstain``: it ends
with a message. ``annotate``: the best continuation of the round is kept and marked, and decoding continues. A callable
returns a prompt with new passages, from which the answer continues; a text that ends the answer and is not scored; or
None, which stops."""


def check_share(value: object, name: str) -> None:
    """Refuse anything but a number (WrongTypeError) in [0, 1] (InputError)."""
    if not 0.0 <= _number(value, name) <= 1.0:
        raise InputError(f"{name} must be in [0, 1]; found {value}")


def check_threshold(value: Threshold | None, name: str) -> None:
    """Refuse anything but a number in [0, 1], ``"calibrated"`` or None; errors as in :func:`check_share`."""
    if isinstance(value, str) and value != "calibrated":
        raise InputError(f"{name} must be a number in [0, 1], 'calibrated' or None; found {value!r}")
    if value is not None and value != "calibrated":
        check_share(value, name)


def check_count(value: object, name: str, *, least: int = 1) -> None:
    """Refuse anything but a whole number of at least ``least``; errors as in :func:`check_share`."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise WrongTypeError(f"{name} must be a whole number; found {value!r}")
    if value < least:
        raise InputError(f"{name} must be at least {least}; found {value}")


def check_strength(value: object, name: str) -> None:
    """Refuse anything but a finite number of at least 0; errors as in :func:`check_share`."""
    if not 0 <= _number(value, name) < math.inf:
        raise InputError(f"{name} must be finite and at least 0; found {value}")


def check_sampling(*, temperature: object, top_p: object) -> None:
    """Refuse a temperature that is not finite and above 0, and a nucleus outside (0, 1]; errors as above."""
    if not 0 < _number(temperature, "temperature") < math.inf or not 0 < _number(top_p, "top_p") <= 1:
        raise InputError(
            f"temperature must be finite and above 0, and top_p in (0, 1]; found {temperature} and {top_p}"
        )


def _number(value: object, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise WrongTypeError(f"{name} must be a number; found {value!r}")
    return float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """Parameters that the search and repair share.

    Raises
    ------
    InputError
        If a value is outside its range.
    WrongTypeError
        If a value is not a number where one is expected.
    """

    backtrack_threshold: Threshold | None = None
    """tau_1 in [0, 1]: a greedy sentence that scores lower is taken back. None takes the monitor's own,
    ``"calibrated"`` the score that ``syncheck calibrate --risk`` chose, below which no sentence is then released. See
    :class:`fod.Thresholds` for what this guarantees, and why samples and branches are outside the guarantee."""
    prune_threshold: Threshold | None = None
    """tau_2 in [0, 1]: a sampled sentence or a branch that scores lower is dropped. None and ``"calibrated"`` as for
    tau_1; in repair, None takes tau_1 if that is higher. A tau_2 below tau_1 is allowed, since Algorithm 1 compares
    each with other sentences (the README of the published code has 0.8 and 0.7): what replaces a rejected sentence may
    then score lower than the greedy sentences before it, and even than the rejected one."""
    sample_first: bool = False
    """True also samples the sentences that are otherwise greedy, with ``temperature`` and ``top_p``: those of stage 1,
    and in repair all but the branches."""
    temperature: float = 0.9
    """Temperature of sampled sentences, above 0 (published code; the paper gives none)."""
    top_p: float = 0.95
    """Nucleus of sampled sentences, in (0, 1] (published code)."""
    exact_names: bool = False
    """True also rejects sentences with a name that is nearly, but not quite, a name of the passages; see
    :func:`fod.altered_names`. False in the search, since Algorithm 1 decides by scores alone; True in repair."""
    guards: bool = False
    """True also rejects sampled sentences and branches, whatever their score, that are cut off at the limit of tokens,
    repeat the content of an earlier sentence, or, in place of a greedy sentence that claims something, claim nothing
    or refuse to answer; a refusal passes if it is judged that the passages lack the answer. False in the search, since
    Algorithm 1 decides by scores alone; True in repair, where an answer also ends with its last complete sentence."""
    lookup: int = 16
    """Largest number of tokens that are drafted from the passages and read in one forward pass; 0 turns this off. It
    saves time and does not change what is decoded; see :class:`syncheck.decoding.PromptLookup`."""
    max_sentences: int = 32
    """Largest number of sentences in an answer."""
    on_exhausted: OnExhausted = "stop"
    """Action when no continuation of a round passes; Algorithm 1 stops there."""
    message: str = ABSTENTION
    """Text of an answer in which no sentence passed, and end of one that abstains from more; it is whole even
    beyond ``max_new_tokens``. An empty string leaves the answer as it is."""
    max_retries: int = 4
    """How often one answer may ask a callable ``on_exhausted`` for another prompt."""

    def __post_init__(self) -> None:
        for name in ("backtrack_threshold", "prune_threshold"):
            check_threshold(getattr(self, name), name)
        for name in ("max_sentences", "max_retries"):
            check_count(getattr(self, name), name)
        check_count(self.lookup, "lookup", least=0)
        check_sampling(temperature=self.temperature, top_p=self.top_p)
        if not callable(self.on_exhausted) and self.on_exhausted not in ("stop", "abstain", "annotate"):
            raise InputError(
                f"on_exhausted must be 'stop', 'abstain', 'annotate' or a callable; found {self.on_exhausted!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FODConfig(DecoderConfig):
    """Parameters of Algorithm 1 (paper, section 3.3): the sentences after the first failing one are searched for."""

    beam_size: int = 2
    """K: number of beams kept after each round (paper, Table 2)."""
    samples_per_step: int = 6
    """S: number of sentences sampled in a round; each beam gets ceil(S / K) (paper, Table 2)."""
    share_samples: bool = False
    """True divides S among the beams of the round, instead of giving ceil(S / K) to each as in the paper: a round with
    one beam, such as the first, then samples S sentences."""
    until: Literal["any", "all"] = "any"
    """Stop when any kept beam has ended (the paper's choice), or when all have."""

    def __post_init__(self) -> None:
        DecoderConfig.__post_init__(self)  # super() fails in a dataclass with slots
        for name in ("beam_size", "samples_per_step"):
            check_count(getattr(self, name), name)
        if self.until not in ("any", "all"):
            raise InputError(f"until must be 'any' or 'all'; found {self.until!r}")

    def samples_per_beam(self, beams: int) -> int:
        """Count the samples for each beam of a round: ceil(S / K), or ceil(S / beams) if they are divided."""
        return -(-self.samples_per_step // (beams if self.share_samples else self.beam_size))


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairConfig(DecoderConfig):
    """Parameters of repair by branching: a failing sentence is rewritten from its least certain tokens, or hidden.

    Decoding is greedy again after it, not random; see :func:`fod.repair`.
    """

    exact_names: bool = True
    """As in the search, but True."""
    guards: bool = True
    """As in the search, but True."""
    alpha: float = 0.25
    """Strength, at least 0, with which the context's influence on tokens is amplified; 0 turns it off (Shi et al.,
    2024, "Trusting your evidence", section 4). Scores are those of the raw logits."""
    plausibility: float = 0.02
    """Share, in [0, 1], of the likeliest token's probability with the context; tokens below it are excluded, unless
    processors of ``generate`` exclude all the others."""
    branches: int = 4
    """Number of tokens of a sentence that are replaced, each in a copy of it, besides the first."""
    cuts: int = 2
    """Number of further tokens at which the sentence is cut short, where a full stop is plausible."""
    repair_from: float = 0.25
    """Geometric mean, in [0, 1], of the probabilities of a greedy sentence's tokens below which no branches are tried:
    the model guesses there, and the sentence is hidden at once. 0 always tries them."""
    max_skips: int = 2
    """Number of sentences of an answer that may be hidden: the model continues after them, but they are left out of
    the answer."""
    clear_pronouns: bool = True
    """True also rejects sentences that open with a pronoun whose noun is hidden; see :func:`fod.loose_pronoun`."""

    def __post_init__(self) -> None:
        DecoderConfig.__post_init__(self)
        check_count(self.branches, "branches")
        for name in ("cuts", "max_skips"):
            check_count(getattr(self, name), name, least=0)
        check_strength(self.alpha, "alpha")
        check_share(self.plausibility, "plausibility")
        check_share(self.repair_from, "repair_from")


SEARCH, REPAIR = FODConfig(), RepairConfig()
"""The default parameters; the default thresholds are those of :class:`syncheck.MonitorConfig`."""
