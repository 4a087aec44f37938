"""Search: Algorithm 1 of the paper as a function of a callable that proposes sentences; its types and its trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Literal, Protocol, TypeVar

from fod.config import FODConfig, Thresholds
from syncheck import SentenceScore
from syncheck.results import TraceNode
from syncheck.results.types import WITHOUT_CLAIM

Handle = tuple[int, int]
"""Key of a candidate for its proposer: round and row."""

CandidateStop = Literal["end_of_text", "stop_string", "length", "criteria", "not_finite"]
"""Why a text cannot continue; ``not_finite``: no token could be chosen, and the last sentence is ``failed``."""

StopReason = Literal[CandidateStop, "nothing_passed", "max_sentences", "other_beam_ended", "backtracked", "budget"]
"""Why the search stopped. ``nothing_passed``: no sample of a round reached tau_2. ``other_beam_ended``: a beam other
than the answer's ended, which stops the search with ``until="any"``. ``backtracked``: a greedy sentence fell below
tau_1, and there is no stage 2. ``budget``: no more continuations could be asked for."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed continuation of one beam, normally one sentence."""

    parent: int
    """Index of the beam that it continues."""
    sentences: tuple[SentenceScore, ...]
    """Empty if the text ended at once; more than one if the end of the text closed several."""
    token_ids: tuple[int, ...]
    """Tokens appended to the beam, without an end-of-text token; none before a server, which tells only text."""
    stop: CandidateStop | None
    """Why the text cannot continue; None if it can."""
    handle: Handle
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
    """The sentence that the limit on tokens cut off, with ``guards`` in repair; not in its text and tokens."""
    flaw: str = ""
    """Why it may not stand in place of a greedy sentence, with ``guards``; empty if it may."""
    absent: float | None = None
    """P(faithful), in [0, 1], of what a refusal says that the passages lack, with ``guards``; it has to reach the
    threshold too. None if it is no refusal, or nothing judges it."""
    relevance: float | None = None
    """How likely it answers what was asked, in [0, 1], with ``guards``; None for a refusal and without a question."""
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
        altered = f"a name altered: {', '.join(self.altered)}" if self.altered else ""
        loose = f"a pronoun without its noun: {self.loose}" if self.loose else ""
        return self.flaw or altered or loose


@dataclass(frozen=True, slots=True)
class Beam:
    """A partial answer of the search."""

    sentences: tuple[SentenceScore, ...] = ()
    token_ids: tuple[int, ...] = ()
    stop: CandidateStop | None = None
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

    def hiding_rest(self, later: Beam) -> Beam:
        """Copy this beam, continued as a later one is, with all that the later one adds hidden."""
        added = later.handles[len(self.handles) :]
        return replace(self, handles=later.handles, skipped=(*self.skipped, *added), stop=later.stop)


@dataclass(frozen=True, slots=True)
class Round:
    """One step of stage 2: the samples, those of them that passed tau_2, and the beams that are kept.

    In repair: a greedy sentence and its branches, those that passed, and the answer so far.
    """

    candidates: tuple[Candidate, ...]
    passed: tuple[Candidate, ...]
    beams: tuple[Beam, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """The beams that are kept after a step of the search."""

    beams: tuple[Beam, ...]
    waiting: int = 0
    """How many sentences at the end may still be left out, since they announce what may not come."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Continuations that a search waits for: the arguments of :class:`fod.Propose`."""

    beams: tuple[Beam, ...]
    samples: int | None = None
    waiting: tuple[Beam, ...] = ()
    in_place: bool = False
    """True, in repair, for sentences in place of the last greedy one."""


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
    """The rounds of stage 2; in repair, one for each sentence."""
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


Steps = Generator[Progress | Wanted, Sequence[Candidate] | None, SearchResult]
"""A search that does nothing but decide: whoever runs it sends the candidates for each :class:`Wanted`, or None to end
it, and None after a :class:`Progress`."""


def proposed(steps: Steps, propose: Callable[[Wanted], Sequence[Candidate]]) -> Generator[Progress, None, SearchResult]:
    """Run a search with a callable that proposes what it wants; yield its progress and return its result."""
    reply: Sequence[Candidate] | None = None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration as ended:
            result: SearchResult = ended.value
            return result
        reply = propose(step) if isinstance(step, Wanted) else (yield step)


def drain(steps: Generator[object, None, R]) -> R:
    """Run a generator to its end and return its return value."""
    kept = Returning(steps)
    for _ in kept:
        pass
    return kept.value


class Propose(Protocol):
    """Protocol: proposes continuations of beams, of one sentence each."""

    def __call__(self, beams: Sequence[Beam], *, samples: int | None, waiting: Sequence[Beam] = ()) -> list[Candidate]:
        """Propose ``samples`` continuations of each beam, without duplicates, or its greedy one alone if None.

        ``beams`` are those of the last call, extended by its candidates or, for backtracking, as they were. ``waiting``
        are beams that have ended and may still be the answer: candidates of none of these can be forgotten.
        """
        ...


def search(propose: Propose, config: FODConfig, thresholds: Thresholds) -> SearchResult:
    """Decode greedily until a sentence falls below tau_1, then search over sentences.

    tau_1 and tau_2 are those of ``thresholds``; those of ``config`` are not read.

    Notes
    -----
    Pruning by tau_2 comes before the cut to K beams, and a round in which nothing passes returns the beams of the round
    before. Of beams with equal means, the one proposed earlier wins. A candidate passes if each of its sentences does.

    Where the paper (section 3.3, Algorithm 1), its published code (``decoding/decode.py``) and this function differ:

    - tau_1, tau_2. Paper: 0.7, 0.85 (under Table 2). Code: 0.7, 0.7; its README has 0.8, 0.7. Here: the paper's, or a
      monitor's own.
    - What stage 1 keeps. Paper and here: f >= tau_1. Code: f > tau_1.
    - Temperature. Paper: none given. Code and here: 0.9; the code's README has 0.7.
    - Samples of a beam. Paper and here: ceil(S / K). Code: S // K.
    - The end in stage 1. Paper: line 12, stage 2 is not entered. Code: stage 2 continues after the text. Here: the
      answer has ended.
    - A sample that ends the text. Paper: a beam that has ended stops the search, or all may be waited for. Code: the
      search ends when a sample has no text; its round is thrown away, whatever had passed in it, and the best beam of
      the round before is the answer. Here: it is scored and ranked like any other; the search stops when one is kept,
      or with ``until="all"`` when all have ended.
    - Identical samples. Paper: all S are candidates, so that a sentence can take several of the K places. Code: a
      sentence that a beam has had before in the round is skipped. Here: of identical samples of a beam, by tokens and
      end, the first is a candidate.
    - A beam's mean. Paper: over all its sentences, which all have a score. Code: what cannot be measured counts as 0,
      and is scored all the same. Here: over the sentences that have a score, and those that claim nothing, as tau_2;
      unscored ones (``annotate``) are skipped; -1 if there is none.

    A sample that ends the text at once has no sentence: it adds nothing that could be unfaithful, so it passes and
    leaves its beam's mean as it is. A beam that has ended and waits (``until="all"``) can still be overtaken.
    """
    return drain(walk(propose, config, thresholds))


def walk(propose: Propose, config: FODConfig, thresholds: Thresholds) -> Generator[Progress, None, SearchResult]:
    """Search as :func:`search` does, and yield after each step which beams are kept.

    Sentences that all of them share are part of every answer that is still possible.
    """
    return proposed(
        search_steps(config, thresholds),
        lambda wanted: propose(wanted.beams, samples=wanted.samples, waiting=wanted.waiting),
    )


def search_steps(config: FODConfig, thresholds: Thresholds) -> Steps:
    """Decide as :func:`search` does; whoever runs it proposes the continuations, whether at once or later."""
    greedy, dropped, stop = yield from _greedy(config, thresholds.backtrack)
    tau_2, annotate = thresholds.prune, config.on_exhausted == "annotate"
    if stop is not None or tau_2 is None:
        return SearchResult(greedy, stop or "backtracked", bool(dropped), dropped, (), greedy)
    beams: tuple[Beam, ...] = (greedy,)
    rounds: list[Round] = []
    while True:
        open_beams = tuple(b for b in beams if b.stop is None)
        ended = tuple(b for b in beams if b.stop is not None)  # they wait if all have to end
        candidates = yield Wanted(open_beams, config.samples_per_beam, ended)
        if candidates is None:
            return SearchResult(best_of(beams), "budget", True, dropped, tuple(rounds), greedy)
        passed = [c for c in candidates if may_stay(c, tau_2)]
        pool = list(ended)
        for c in passed or (candidates if annotate else ()):
            failing = [s for s in c.sentences if c.fault or not passes(s, tau_2)]
            pool.append(open_beams[c.parent].extended(c, failing=failing))
        is_over = not passed and not (annotate and candidates)
        kept = beams if is_over else tuple(sorted(pool, key=lambda b: -_worth(b, tau_2))[: config.beam_size])
        rounds.append(Round(tuple(candidates), tuple(passed), kept))
        beams = kept
        yield Progress(beams)
        reason: StopReason | None = "nothing_passed" if is_over else _finished(beams, config)
        if reason is not None:
            return SearchResult(best_of(beams), reason, True, dropped, tuple(rounds), greedy)


def trace_of(result: SearchResult, config: FODConfig, thresholds: Thresholds) -> tuple[TraceNode, ...]:
    """Draw a search, with its config and thresholds, as a tree of the continuations that were tried first.

    The greedy sentences are a chain, followed by the sentence that stage 1 took back and by the samples.
    """
    behind: dict[tuple[Handle, ...], list[tuple[Candidate, Round]]] = defaultdict(list)
    parents: tuple[Beam, ...] = (result.greedy,)
    for step in result.rounds:
        open_beams = [beam for beam in parents if beam.stop is None]
        for candidate in step.candidates:
            behind[open_beams[candidate.parent].handles].append((candidate, step))
        parents = step.beams

    def nodes(handles: tuple[Handle, ...]) -> tuple[TraceNode, ...]:
        return tuple(
            _node(candidate, step, result, config, thresholds, nodes((*handles, candidate.handle)))
            for candidate, step in behind[handles]
        )

    why = f"greedy, τ₁ is {thresholds.backtrack:.2f}"
    dropped = [TraceNode(s.text, s.score, "taken_back", why) for s in result.dropped]
    tree = (*dropped, *nodes(result.greedy.handles))
    for sentence in reversed(result.greedy.sentences):
        tree = (TraceNode(sentence.text, sentence.score, "answer", "greedy", tree),)
    return tree


def passes(sentence: SentenceScore, threshold: float) -> bool:
    """Tell whether a sentence may stay: it claims nothing, or its score reaches the threshold."""
    return sentence.status in WITHOUT_CLAIM or (sentence.score is not None and sentence.score >= threshold)


def _worth(beam: Beam, tau_2: float) -> float:
    """Compute the mean score of a beam; a sentence that claims nothing counts as tau_2."""
    worth = [tau_2 if s.status in WITHOUT_CLAIM else s.score for s in beam.sentences]
    known = [score for score in worth if score is not None]
    return sum(known) / len(known) if known else -1.0


def may_stay(candidate: Candidate, threshold: float) -> bool:
    """Tell whether all sentences of a candidate may stay, it has no fault, and a token could always be chosen."""
    is_whole = candidate.stop != "not_finite" and not candidate.fault
    is_true = candidate.absent is None or candidate.absent >= threshold
    return is_whole and is_true and all(passes(s, threshold) for s in candidate.sentences)


def _greedy(
    config: FODConfig, tau_1: float
) -> Generator[
    Progress | Wanted, Sequence[Candidate] | None, tuple[Beam, tuple[SentenceScore, ...], StopReason | None]
]:
    """Run stage 1; return the answer so far, the sentences taken back, and the reason if the answer has ended."""
    beam = Beam()
    while len(beam.sentences) < config.max_sentences:
        candidates = yield Wanted((beam,))
        if candidates is None:
            return beam, (), "budget"
        (candidate,) = candidates
        if not may_stay(candidate, tau_1):
            return beam, candidate.sentences, None
        beam = beam.extended(candidate)
        yield Progress((beam,))
        if beam.stop is not None:
            return beam, (), beam.stop
    return beam, (), "max_sentences"


def _finished(beams: Sequence[Beam], config: FODConfig) -> StopReason | None:
    if (any if config.until == "any" else all)(beam.stop is not None for beam in beams):
        return best_of(beams).stop or "other_beam_ended"
    return "max_sentences" if any(len(beam.sentences) >= config.max_sentences for beam in beams) else None


def best_of(beams: Sequence[Beam]) -> Beam:
    """Find the most faithful beam; of equals, the first."""
    return max(beams, key=lambda b: b.faithfulness)


def _node(
    candidate: Candidate,
    step: Round,
    result: SearchResult,
    config: FODConfig,
    thresholds: Thresholds,
    children: tuple[TraceNode, ...],
) -> TraceNode:
    drawn = partial(TraceNode, " ".join(sentence.text for sentence in candidate.sentences), candidate.lowest)
    passed = any(candidate.handle == other.handle for other in step.passed)
    threshold = candidate.fault or f"τ₂ is {thresholds.prune:.2f}"
    if candidate.handle in result.beam.handles:
        if passed:
            return drawn("answer", "in the answer", children)
        return drawn("marked", f"in the answer, marked: {threshold}", children)
    if any(candidate.handle in beam.handles[-1:] for beam in step.beams):
        return drawn("kept", "kept, then another beam was better", children)
    if passed:
        return drawn("outranked", f"passed, but {config.beam_size} were better", children)
    return drawn("pruned", threshold, children)
