"""Every default of faithfulness-oriented decoding, once, with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fod.ranges import check_count, check_sampling, check_share
from syncheck import InputError

__all__ = ["DEFAULTS", "FODConfig"]


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
    max_handovers: int = 4
    """How often one answer may ask the caller for another prompt when nothing passes."""

    def __post_init__(self) -> None:
        for name in ("backtrack_threshold", "prune_threshold"):
            check_share(getattr(self, name), name)
        for name in ("beam_size", "samples_per_step", "max_sentences", "max_handovers"):
            check_count(getattr(self, name), name)
        check_sampling(temperature=self.temperature, top_p=self.top_p)
        if self.until not in ("any", "all"):
            raise InputError(f"until must be 'any' or 'all'; found {self.until!r}")

    def samples_per_beam(self, beams: int) -> int:
        """Sentences to sample for each of so many beams: ceil(S / K), or ceil(S / beams) where samples are shared."""
        return -(-self.samples_per_step // (beams if self.share_samples else self.beam_size))


DEFAULTS = FODConfig()
"""The paper's values."""
