"""The defaults of FOD, and checks of numbers that are given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal

from syncheck.errors import InputError, WrongTypeError

__all__ = ["DEFAULTS", "FODConfig", "check_count", "check_sampling", "check_share", "check_strength"]


def check_share(value: object, name: str) -> None:
    """Refuse what is no number in [0, 1].

    Raises
    ------
    InputError
        If it is outside, or NaN.
    WrongTypeError
        If it is no number.
    """
    if not 0.0 <= _number(value, name) <= 1.0:
        raise InputError(f"{name} must be in [0, 1]; found {value}")


def check_count(value: object, name: str) -> None:
    """Refuse what is no whole number of at least 1; errors as :func:`check_share`."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise WrongTypeError(f"{name} must be a whole number; found {value!r}")
    if value < 1:
        raise InputError(f"{name} must be at least 1; found {value}")


def check_strength(value: object, name: str) -> None:
    """Refuse what is no finite number of 0 or more; errors as :func:`check_share`."""
    if not 0 <= _number(value, name) < math.inf:
        raise InputError(f"{name} must be 0 or more, and finite; found {value}")


def check_sampling(*, temperature: object, top_p: object) -> None:
    """Refuse a temperature that is not above 0 and finite, and a nucleus not in (0, 1]; errors as above."""
    if not 0 < _number(temperature, "temperature") < math.inf or not 0 < _number(top_p, "top_p") <= 1:
        raise InputError(f"temperature must be above 0, finite, and top_p in (0, 1]; found {temperature} and {top_p}")


def _number(value: object, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise WrongTypeError(f"{name} must be a number; found {value!r}")
    return float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class FODConfig:
    """Parameters of Algorithm 1.

    Raises
    ------
    InputError
        If a value is outside its range.
    WrongTypeError
        If one is no number.
    """

    backtrack_threshold: float = 0.7
    """tau_1: the first greedy sentence below it is taken back (paper, note under Table 2)."""
    prune_threshold: float = 0.85
    """tau_2: a sampled sentence below it is dropped (paper, note under Table 2)."""
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
    until: Literal["any", "all"] = "any"
    """Stop when any kept beam has ended (the paper's choice) or when all have."""
    max_sentences: int = 32
    """Most sentences of an answer."""
    beam_search: bool = True
    """False ends the answer where stage 1 backtracks: FOD (BT) of the paper's Table 2."""
    annotate: bool = False
    """Go on with the best of a round in which nothing reaches tau_2, marked, where Algorithm 1 stops."""
    max_retries: int = 4
    """How often one answer may ask the caller for another prompt when nothing passes."""

    def __post_init__(self) -> None:
        for name in ("backtrack_threshold", "prune_threshold"):
            check_share(getattr(self, name), name)
        for name in ("beam_size", "samples_per_step", "max_sentences", "max_retries"):
            check_count(getattr(self, name), name)
        check_sampling(temperature=self.temperature, top_p=self.top_p)
        if self.until not in ("any", "all"):
            raise InputError(f"until must be 'any' or 'all'; found {self.until!r}")

    def samples_per_beam(self, beams: int) -> int:
        """Sentences to sample for each of so many beams: ceil(S / K), or ceil(S / beams) where samples are shared."""
        return -(-self.samples_per_step // (beams if self.share_samples else self.beam_size))


DEFAULTS = FODConfig()
"""The paper's values."""
