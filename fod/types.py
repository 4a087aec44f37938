"""Types that pass between the search and the proposers of sentences."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from syncheck import SentenceScore

Handle = tuple[int, int]
"""A proposer's own key for a candidate: round and row."""

CandidateStop = Literal["end_of_text", "length", "not_finite"]
"""Reason that a text cannot continue; ``not_finite``: there were no scores to choose a token from, and the last
sentence is ``failed``."""

StopReason = Literal[CandidateStop, "nothing_passed", "max_sentences", "other_beam_ended", "backtracked"]
"""Reason that the search stopped; ``nothing_passed``: no sample of a round reached tau_2; ``other_beam_ended``: another
beam than the answer's came to its end, which stops the search with ``until="any"``; ``backtracked``: a greedy sentence
fell below tau_1 and there is no stage 2."""


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
        Tokens appended to the beam, without an end-of-text token.
    stop : CandidateStop or None
        Set when the text cannot continue.
    handle : Handle
    text : str
        Text appended to the beam's, with the white space between sentences.
    log_prob : float
        Of its tokens with the context, nats; where branches are compared by it.
    altered : tuple of str
        Its names that are nearly names of the passages, with ``exact_names``; see :func:`fod.altered_names`.
    """

    parent: int
    sentences: tuple[SentenceScore, ...]
    token_ids: tuple[int, ...]
    stop: CandidateStop | None
    handle: Handle
    text: str = ""
    log_prob: float = 0.0
    altered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Beam:
    """A partial answer.

    ``handles`` are those of the candidates it is made of, in order; ``marked`` are the indices of sentences that were
    kept although they did not pass; ``text`` holds the sentences and the white space between them; ``skipped`` are
    those handles whose text is hidden.
    """

    sentences: tuple[SentenceScore, ...] = ()
    token_ids: tuple[int, ...] = ()
    stop: CandidateStop | None = None
    handles: tuple[Handle, ...] = ()
    marked: tuple[int, ...] = ()
    text: str = ""
    skipped: tuple[Handle, ...] = ()

    @property
    def faithfulness(self) -> float:
        """Mean score over the sentences that have one, in [0, 1]; -1 when none has (paper, section 3.3)."""
        scores = [s.score for s in self.sentences if s.score is not None]
        return sum(scores) / len(scores) if scores else -1.0

    def extended(self, candidate: Candidate, *, failing: Collection[SentenceScore] = ()) -> Beam:
        """Return this beam with a candidate appended, those of its sentences marked that are failing."""
        first = len(self.sentences)
        return Beam(
            self.sentences + candidate.sentences,
            self.token_ids + candidate.token_ids,
            candidate.stop,
            (*self.handles, candidate.handle),
            (*self.marked, *(first + i for i, sentence in enumerate(candidate.sentences) if sentence in failing)),
            self.text + candidate.text,
            self.skipped,
        )

    def hiding(self, candidate: Candidate) -> Beam:
        """Return this beam gone on after a candidate that is hidden."""
        return replace(self, handles=(*self.handles, candidate.handle), skipped=(*self.skipped, candidate.handle))


@dataclass(frozen=True, slots=True)
class Round:
    """One step of stage 2: what was sampled, which samples passed tau_2, and the beams kept.

    With ``propose="branch"`` one sentence: the greedy one and its branches, what passed, and the answer after it.
    """

    candidates: tuple[Candidate, ...]
    passed: tuple[Candidate, ...]
    beams: tuple[Beam, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """Beams that are kept after a step of the search.

    Attributes
    ----------
    beams : tuple of Beam
        One in stage 1, at most K in stage 2.
    tried : Beam or None
        The greedy answer with the sentence that stage 1 has just taken back.
    reason : str
        Why it was taken back.
    """

    beams: tuple[Beam, ...]
    tried: Beam | None = None
    reason: str = "below the threshold"


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
        What stage 1 took back, or what was replaced or hidden.
    rounds : tuple of Round
        Stage 2, empty when it was not needed; with ``propose="branch"`` all sentences.
    greedy : Beam
        What stage 1 kept, where stage 2 began.
    """

    beam: Beam
    stop: StopReason
    backtracked: bool
    dropped: tuple[SentenceScore, ...]
    rounds: tuple[Round, ...]
    greedy: Beam = Beam()
