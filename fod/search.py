"""Search: Algorithm 1 of the paper as a function of a callable that proposes sentences, and its trace as a tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Sequence
from typing import Protocol

from fod.config import FODConfig, Thresholds
from fod.types import Beam, Candidate, Handle, Progress, Round, SearchResult, StopReason, drain
from syncheck import SentenceScore
from syncheck.results import TraceNode
from syncheck.results.types import WITHOUT_CLAIM

Handles = tuple[Handle, ...]


class Propose(Protocol):
    """Protocol: proposes continuations of beams, of one sentence each."""

    def __call__(self, beams: Sequence[Beam], *, samples: int | None, waiting: Sequence[Beam] = ()) -> list[Candidate]:
        """Propose continuations.

        Parameters
        ----------
        beams
            Beams to continue: those of the last call extended by its candidates or, for backtracking, the beams of the
            last call themselves.
        samples
            Number of samples for each beam; None asks for the greedy continuation.
        waiting
            Beams that have ended and may still be the answer. Candidates that belong neither to them nor to ``beams``
            can be forgotten.

        Returns
        -------
        list of Candidate
            Without duplicates for the same beam.
        """
        ...


def search(propose: Propose, config: FODConfig, thresholds: Thresholds) -> SearchResult:
    """Decode greedily until a sentence falls below tau_1, then search over sentences.

    Parameters
    ----------
    config
        Numbers of beams and samples, limits, and the action when nothing passes; its thresholds are not read.
    thresholds
        tau_1 and tau_2.

    Returns
    -------
    SearchResult

    Notes
    -----
    Pruning by tau_2 comes before the cut to K beams, and a round in which nothing passes returns the beams of the round
    before. Beams are ranked by the mean score of all their sentences; of equals, the one proposed earlier wins. A
    candidate of several sentences passes if each of them does.

    Where the paper (section 3.3, Algorithm 1) and its published code (``decoding/decode.py``) differ:

    =============  ============================  ===================================  ===============================
    .              paper                         code                                 here
    =============  ============================  ===================================  ===============================
    tau_1, tau_2   0.7, 0.85 (under Table 2)     0.7, 0.7; its README has 0.8, 0.7    the paper's; a monitor's own
    stage 1 keeps  f >= tau_1                    f > tau_1                            f >= tau_1
    temperature    none given                    0.9; its README has 0.7              0.9, lacking the paper's
    samples        ceil(S / K) for each beam     S // K                               ceil(S / K)
    end, stage 1   line 12: stage 2 not entered  stage 2 continues after the text     the answer has ended
    ended sample   a beam that has ended stops   ends when a sample has no text: the  a sample that has ended is scored
                   the search, all beams may     round is thrown away, whatever had   and ranked like any other; the
                   be waited for                 passed in it, and the best beam of   search stops when one is kept,
                                                 the round before is the answer       or with until="all" when all are
    same samples   all S are candidates, so that a sentence that a beam has had       identical samples of a beam, by
                   a sentence can take several   before in the round is skipped       tokens and end, are dropped but
                   of the K places                                                    for the first
    beam's mean    over all its sentences: each  over all: what cannot be measured    over the sentences that have a
                   has a score                   counts as 0 and is scored all the    score; those that claim nothing,
                                                 same                                 or are kept unscored (annotate),
                                                                                      are skipped; -1 if none has one
    =============  ============================  ===================================  ===============================

    A sample that ends the text at once has no sentence: it adds nothing that could be unfaithful, so it passes and
    leaves its beam's mean as it is. A beam that has ended and waits (``until="all"``) can still be overtaken.
    """
    return drain(walk(propose, config, thresholds))


def walk(propose: Propose, config: FODConfig, thresholds: Thresholds) -> Generator[Progress, None, SearchResult]:
    """Search as :func:`search` does, and yield after each step which beams are kept.

    Sentences that all beams of a :class:`fod.Progress` share are part of every answer that is still possible.
    Parameters and returned value are those of :func:`search`.
    """
    greedy, dropped, stop = yield from _greedy(propose, config, thresholds.backtrack)
    tau_2, annotate = thresholds.prune, config.on_exhausted == "annotate"
    if stop is not None or tau_2 is None:
        return SearchResult(greedy, stop or "backtracked", bool(dropped), dropped, (), greedy)
    beams: tuple[Beam, ...] = (greedy,)
    rounds: list[Round] = []
    while True:
        # Beams that have ended wait for the others when all have to end.
        open_beams = [b for b in beams if b.stop is None]
        ended = [b for b in beams if b.stop is not None]
        candidates = propose(open_beams, samples=config.samples_per_beam(len(open_beams)), waiting=ended)
        passed = [c for c in candidates if may_stay(c, tau_2)]
        pool = ended + [_extended(open_beams, c, tau_2) for c in passed or (candidates if annotate else ())]
        is_over = not passed and not annotate
        kept = beams if is_over else tuple(sorted(pool, key=lambda b: -b.faithfulness)[: config.beam_size])
        rounds.append(Round(tuple(candidates), tuple(passed), kept))
        beams = kept
        yield Progress(beams)
        reason: StopReason | None = "nothing_passed" if is_over else _finished(beams, config)
        if reason is not None:
            return SearchResult(best_of(beams), reason, True, dropped, tuple(rounds), greedy)


def trace_of(result: SearchResult, config: FODConfig, thresholds: Thresholds) -> tuple[TraceNode, ...]:
    """Draw a search as a tree.

    Parameters
    ----------
    config, thresholds
        Its parameters, which the reasons in the tree name.

    Returns
    -------
    tuple of TraceNode
        The continuations that were tried first. The greedy sentences are a chain, followed by the sentence that stage 1
        took back and by the samples.
    """
    behind: dict[Handles, list[tuple[Candidate, Round]]] = defaultdict(list)
    parents: tuple[Beam, ...] = (result.greedy,)
    for step in result.rounds:
        open_beams = [beam for beam in parents if beam.stop is None]
        for candidate in step.candidates:
            behind[open_beams[candidate.parent].handles].append((candidate, step))
        parents = step.beams

    def nodes(handles: Handles) -> tuple[TraceNode, ...]:
        return tuple(
            _node(candidate, step, result, config, thresholds, nodes((*handles, candidate.handle)))
            for candidate, step in behind[handles]
        )

    dropped = [
        TraceNode(s.text, s.score, "taken_back", f"greedy, τ₁ is {thresholds.backtrack:.2f}") for s in result.dropped
    ]
    tree = (*dropped, *nodes(result.greedy.handles))
    for sentence in reversed(result.greedy.sentences):
        tree = (TraceNode(sentence.text, sentence.score, "answer", "greedy", tree),)
    return tree


def passes(sentence: SentenceScore, threshold: float) -> bool:
    """Tell whether a sentence may stay: it claims nothing, or its score reaches the threshold."""
    if sentence.status in WITHOUT_CLAIM:
        return True
    return sentence.score is not None and sentence.score >= threshold


def may_stay(candidate: Candidate, threshold: float) -> bool:
    """Tell whether all sentences of a candidate may stay and it has no fault.

    A text that broke off because no token could be chosen may not stay, even without a sentence.
    """
    is_whole = candidate.stop != "not_finite" and not candidate.fault
    is_true = candidate.absent is None or candidate.absent >= threshold
    return is_whole and is_true and all(passes(s, threshold) for s in candidate.sentences)


def _greedy(
    propose: Propose, config: FODConfig, tau_1: float
) -> Generator[Progress, None, tuple[Beam, tuple[SentenceScore, ...], StopReason | None]]:
    """Run stage 1; return the answer so far, the sentences taken back, and the reason if the answer has ended."""
    beam = Beam()
    while len(beam.sentences) < config.max_sentences:
        (candidate,) = propose([beam], samples=None)
        if not may_stay(candidate, tau_1):
            yield Progress((beam,), beam.extended(candidate))
            return beam, candidate.sentences, None
        beam = beam.extended(candidate)
        yield Progress((beam,))
        if beam.stop is not None:
            return beam, (), beam.stop
    return beam, (), "max_sentences"


def _extended(beams: Sequence[Beam], candidate: Candidate, tau_2: float) -> Beam:
    failing = [s for s in candidate.sentences if candidate.fault or not passes(s, tau_2)]
    return beams[candidate.parent].extended(candidate, failing=failing)


def _finished(beams: Sequence[Beam], config: FODConfig) -> StopReason | None:
    over = [b.stop for b in beams if b.stop is not None]
    if over and (config.until == "any" or len(over) == len(beams)):
        return best_of(beams).stop or "other_beam_ended"
    if any(len(b.sentences) >= config.max_sentences for b in beams):
        return "max_sentences"
    return None


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
    text = " ".join(sentence.text for sentence in candidate.sentences)
    passed = any(candidate.handle == other.handle for other in step.passed)
    kept = any(beam.handles and beam.handles[-1] == candidate.handle for beam in step.beams)
    threshold = candidate.fault or f"τ₂ is {thresholds.prune:.2f}"
    if candidate.handle in result.beam.handles:
        if passed:
            return TraceNode(text, candidate.lowest, "answer", "in the answer", children)
        return TraceNode(text, candidate.lowest, "marked", f"in the answer, marked: {threshold}", children)
    if kept:
        return TraceNode(text, candidate.lowest, "kept", "kept, then another beam was better", children)
    if passed:
        return TraceNode(text, candidate.lowest, "outranked", f"passed, but {config.beam_size} were better", children)
    return TraceNode(text, candidate.lowest, "pruned", threshold, children)
