"""A search as a tree: what was tried behind what, and what became of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fod.config import FODConfig
from fod.thresholds import Thresholds
from fod.types import Beam, Candidate, Round, SearchResult
from syncheck import SentenceScore
from syncheck.report import TraceNode

__all__ = ["trace_of"]

Handles = tuple[tuple[int, int], ...]


def trace_of(result: SearchResult, config: FODConfig, thresholds: Thresholds) -> tuple[TraceNode, ...]:
    """Draw a search as a tree.

    Parameters
    ----------
    result
        The search.
    config, thresholds
        Its parameters, for the reasons.

    Returns
    -------
    tuple of TraceNode
        What was tried first. The greedy sentences are a chain; behind it is what stage 1 took back, then the samples.
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
    found = (*dropped, *nodes(result.greedy.handles))
    for sentence in reversed(result.greedy.sentences):
        found = (TraceNode(sentence.text, sentence.score, "answer", "greedy", found),)
    return found


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
    score = _lowest(candidate.sentences)
    threshold = f"τ₂ is {thresholds.prune:.2f}"
    if candidate.handle in result.beam.handles:
        if passed:
            return TraceNode(text, score, "answer", "in the answer", children)
        return TraceNode(text, score, "marked", f"in the answer, marked: {threshold}", children)
    if kept:
        return TraceNode(text, score, "kept", "kept, then another beam was better", children)
    if passed:
        return TraceNode(text, score, "outranked", f"passed, but {config.beam_size} were better", children)
    return TraceNode(text, score, "pruned", threshold, children)


def _lowest(sentences: Sequence[SentenceScore]) -> float | None:
    return min((s.score for s in sentences if s.score is not None), default=None)
