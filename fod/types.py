"""Types that pass between the search and the proposers, and generators that return a value."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

from syncheck import SentenceScore

Handle = tuple[int, int]
"""Key of a candidate for its proposer: round and row."""

CandidateStop = Literal["end_of_text", "length", "not_finite"]
"""Why a text cannot continue; ``not_finite``: there were no scores from which a token could be chosen, and the last
sentence is ``failed``."""

StopReason = Literal[CandidateStop, "nothing_passed", "max_sentences", "other_beam_ended", "backtracked"]
"""Why the search stopped. ``nothing_passed``: no sample of a round reached tau_2. ``other_beam_ended``: a beam other
than the answer's ended, which stops the search with ``until="any"``. ``backtracked``: a greedy sentence fell below
tau_1, and there is no stage 2."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed continuation of one beam, normally one sentence."""

    parent: int
    """Index of the beam that it continues."""
    sentences: tuple[SentenceScore, ...]
    """Empty if the text ended at once; more than one if the end of the text closed several."""
    token_ids: tuple[int, ...]
    """Tokens appended to the beam, without an end-of-text token."""
    stop: CandidateStop | None
    """Why the text cannot continue; None if it can."""
    handle: Handle
    """The proposer's key for it: round and row."""
    text: str = ""
    """Text appended to that of the beam, white space included."""
    log_prob: float = 0.0
    """Log-probability of its tokens with the context, in nats, by which branches are compared; 0 elsewhere."""
    altered: tuple[str, ...] = ()
    """Names in it that are nearly names of the passages, with ``exact_names``; see :func:`fod.altered_names`."""
    loose: str | None = None
    """The pronoun that it opens with, if its noun is hidden, with ``clear_pronouns``; see :func:`fod.loose_pronoun`."""
    is_cut: bool = False
    """True for a branch that cuts the sentence short."""
    unfinished: tuple[SentenceScore, ...] = ()
    """The sentence at its end that the limit on tokens cut off, with ``guards`` in repair; its text and tokens leave it
    out."""
    flaw: str = ""
    """Why it may not stand in place of a greedy sentence, with ``guards``; empty if it may."""
    absent: float | None = None
    """P(faithful), in [0, 1], of what a refusal says that the passages lack, with ``guards``, which has to reach the
    threshold too; None if it is no refusal, or nothing judges it."""
    keeps_subject: bool = False
    """True for a branch with the subject or most content words of the sentence that it replaces, with ``guards``."""

    @property
    def lowest(self) -> float | None:
        """The lowest of its sentences' scores and of ``absent``; None if there is none."""
        scores = (self.absent, *(s.score for s in self.sentences))
        return min((score for score in scores if score is not None), default=None)

    @property
    def fault(self) -> str:
        """Fault because of which it does not pass whatever its score; empty if there is none."""
        if self.flaw:
            return self.flaw
        if self.altered:
            return f"a name altered: {', '.join(self.altered)}"
        return f"a pronoun without its noun: {self.loose}" if self.loose else ""


@dataclass(frozen=True, slots=True)
class Beam:
    """A partial answer of the search."""

    sentences: tuple[SentenceScore, ...] = ()
    token_ids: tuple[int, ...] = ()
    stop: CandidateStop | None = None
    """Why it cannot continue; None if it can."""
    handles: tuple[Handle, ...] = ()
    """Keys of the candidates it consists of, in order."""
    marked: tuple[int, ...] = ()
    """Indices of sentences that were kept although they did not pass."""
    text: str = ""
    """The sentences with the white space between them."""
    skipped: tuple[Handle, ...] = ()
    """The handles whose text is hidden."""

    @property
    def faithfulness(self) -> float:
        """Mean score, in [0, 1], of the sentences that have one; -1 if none has (paper, section 3.3)."""
        scores = [s.score for s in self.sentences if s.score is not None]
        return sum(scores) / len(scores) if scores else -1.0

    def extended(self, candidate: Candidate, *, failing: Collection[SentenceScore] = ()) -> Beam:
        """Copy this beam with a candidate appended, whose failing sentences are marked."""
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
        """Copy this beam, continued after a candidate that is hidden."""
        return replace(self, handles=(*self.handles, candidate.handle), skipped=(*self.skipped, candidate.handle))


@dataclass(frozen=True, slots=True)
class Round:
    """One step of stage 2: the samples, those of them that passed tau_2, and the beams that are kept.

    In repair, one sentence: the greedy one and its branches, those that passed, and the answer so far.
    """

    candidates: tuple[Candidate, ...]
    passed: tuple[Candidate, ...]
    beams: tuple[Beam, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """The beams that are kept after a step of the search."""

    beams: tuple[Beam, ...]
    """One in stage 1, at most K in stage 2."""
    tried: Beam | None = None
    """The greedy answer with a sentence that has just been taken back; None if none has."""
    reason: str = "below the threshold"
    """Why the sentence was taken back."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer of a search and how it came about."""

    beam: Beam
    """The most faithful beam."""
    stop: StopReason
    """Why the search stopped."""
    backtracked: bool
    """True if a greedy sentence was taken back."""
    dropped: tuple[SentenceScore, ...]
    """Sentences that stage 1 took back; in repair, those that were replaced, hidden or cut off."""
    rounds: tuple[Round, ...]
    """The rounds of stage 2, empty if it was not needed; in repair, one for each sentence."""
    greedy: Beam = Beam()
    """The answer of stage 1, from which stage 2 began."""


S = TypeVar("S")
R = TypeVar("R")


class Returning(Generic[S, R]):
    """Iterator over a generator that keeps the generator's return value as ``value``."""

    value: R

    def __init__(self, steps: Generator[S, None, R]) -> None:
        self._steps = steps

    def __iter__(self) -> Iterator[S]:
        self.value = yield from self._steps


def drain(steps: Generator[object, None, R]) -> R:
    """Run a generator to its end and return its return value."""
    kept = Returning(steps)
    for _ in kept:
        pass
    return kept.value
