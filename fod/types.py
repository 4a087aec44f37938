"""What passes between the search and whatever proposes sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from syncheck import SentenceScore

__all__ = ["Beam", "Candidate", "Round", "SearchResult", "StopReason"]

StopReason = Literal["end_of_text", "length", "nothing_passed", "max_sentences", "other_beam_ended"]
"""Why the search stopped; ``nothing_passed``: no sample of a round reached tau_2; ``other_beam_ended``: another beam
than the answer's came to its end, which stops the search with ``until="any"``."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed continuation of one beam, as a rule one sentence.

    Attributes
    ----------
    parent : int
        Index of the beam it continues.
    sentences : tuple of SentenceScore
        Empty when the text ended at once; more than one when the end of the text closed several.
    token_ids : tuple of int
        What is appended to the beam, without an end-of-text token.
    stop : {"end_of_text", "length"} or None
        Set when the text cannot go on.
    handle : tuple of int
        The proposer's own key for this candidate: round and row.
    """

    parent: int
    sentences: tuple[SentenceScore, ...]
    token_ids: tuple[int, ...]
    stop: Literal["end_of_text", "length"] | None
    handle: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Beam:
    """A partial answer; ``handles`` are those of the candidates it is made of, in order."""

    sentences: tuple[SentenceScore, ...] = ()
    token_ids: tuple[int, ...] = ()
    stop: Literal["end_of_text", "length"] | None = None
    handles: tuple[tuple[int, int], ...] = ()

    @property
    def faithfulness(self) -> float:
        """Mean score over the sentences that have one, in [0, 1]; -1 when none has (paper, section 3.3)."""
        scores = [s.score for s in self.sentences if s.score is not None]
        return sum(scores) / len(scores) if scores else -1.0

    def extended(self, candidate: Candidate) -> Beam:
        """Return this beam with a candidate appended."""
        return Beam(
            self.sentences + candidate.sentences,
            self.token_ids + candidate.token_ids,
            candidate.stop,
            (*self.handles, candidate.handle),
        )


@dataclass(frozen=True, slots=True)
class Round:
    """One step of stage 2: what was sampled, which of it passed tau_2, and the beams kept."""

    candidates: tuple[Candidate, ...]
    passed: tuple[Candidate, ...]
    beams: tuple[Beam, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer and how it came about.

    Attributes
    ----------
    beam : Beam
        The most faithful beam.
    stop : StopReason
    backtracked : bool
        Whether stage 1 met a sentence below tau_1.
    dropped : tuple of SentenceScore
        What stage 1 took back.
    rounds : tuple of Round
        Stage 2, empty when it was not needed.
    """

    beam: Beam
    stop: StopReason
    backtracked: bool
    dropped: tuple[SentenceScore, ...]
    rounds: tuple[Round, ...]
