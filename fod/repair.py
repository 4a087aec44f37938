"""Repair: rewrites or hides greedy sentences that fail, as a function of a callable that proposes them; its trace."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import Protocol

from fod.config import RepairConfig, Thresholds, announces
from fod.guards import BESIDE, CUT_OFF, is_near_repeat
from fod.search import (
    Beam,
    Candidate,
    Progress,
    Round,
    SearchResult,
    Steps,
    StopReason,
    Wanted,
    may_stay,
    passes,
    proposed,
)
from syncheck import SentenceScore
from syncheck.results import TraceNode

_NOTHING_FOLLOWS = "what it announces does not follow"


class ProposeBranches(Protocol):
    """Protocol: proposes the next sentence of an answer, and others in its place."""

    def greedy(self, beam: Beam) -> Candidate:
        """Propose the next sentence of an answer: that of the last call plus one of its candidates, shown or hidden."""
        ...

    def branches(self, beam: Beam) -> list[Candidate]:
        """Propose sentences in place of the last greedy one; called at most once after each :meth:`greedy`."""
        ...


def repair(
    propose: ProposeBranches, config: RepairConfig, thresholds: Thresholds
) -> Generator[Progress, None, SearchResult]:
    """Decode greedily; repair a sentence below tau_1 by branching, or hide it and continue after it.

    ``thresholds`` are those of greedy sentences (``backtrack``) and of branches (``prune``). With
    ``config.on_exhausted="annotate"``, a greedy sentence is kept and marked when nothing passes.

    Yields a :class:`fod.Progress` after each sentence; returns a :class:`fod.SearchResult` with a round for each
    sentence: the greedy one, then its branches.

    Notes
    -----
    A sentence passes if it reaches its threshold, has no altered name (``config.exact_names``), which the monitor's
    signals often miss, since most of the word is copied, and does not open with a pronoun whose noun is hidden
    (``config.clear_pronouns``). Branches have a threshold of their own: several are tried, so a wrong one has more
    chances to pass. They also have to pass the guards (``config.guards``), and must not nearly repeat a sentence of the
    answer. Those that keep the subject of the greedy sentence come first, since the same fact mended is worth more than
    another fact; then whole ones, before those that cut it short (``config.cuts``); then the likelier. If none passes,
    the greedy sentence is hidden: the model continues after it, and the answer leaves it out. So is, without a try, one
    whose tokens are less likely than ``config.repair_from``, or that opens the answer beside the question
    (``config.opening_relevance``). The answer ends after ``config.max_skips`` hidden sentences, or with a failing one
    that ends the text. A sentence that the limit on tokens cuts off is left out, and, with ``config.guards``, so is the
    announcement of what does not follow ("It is open from:"), if it comes alone.
    """

    def proposal(wanted: Wanted) -> list[Candidate]:
        (beam,) = wanted.beams
        return propose.branches(beam) if wanted.in_place else [propose.greedy(beam)]

    return proposed(repair_steps(config, thresholds), proposal)


def repair_steps(config: RepairConfig, thresholds: Thresholds) -> Steps:
    """Decide as :func:`repair` does; whoever runs it proposes the sentences, whether at once or later."""
    beam = settled = Beam()  # settled lacks the announcements at its end, which wait for what they announce
    annotate = config.on_exhausted == "annotate"
    tau_1 = thresholds.backtrack
    tau_2 = tau_1 if thresholds.prune is None else thresholds.prune
    dropped: tuple[SentenceScore, ...] = ()
    rounds: list[Round] = []
    while len(beam.sentences) < config.max_sentences:
        proposal = yield Wanted((beam,))
        if proposal is None:
            return _ended(beam, settled, "budget", dropped, rounds)
        (written,) = proposal
        candidates, passed, before = [written], [written], beam
        is_over = False
        if may_stay(written, tau_1):
            beam = beam.extended(written)
        else:
            branches: Sequence[Candidate] | None = ()
            if not _is_hopeless(written, config):
                branches = yield Wanted((beam,), in_place=True)
            if branches is None:
                rounds.append(Round((written,), (), (beam,)))
                return _ended(beam, settled, "budget", dropped + written.sentences, rounds)
            candidates += branches
            passed = [c for c in branches if c.sentences and may_stay(c, tau_2) and not _repeats(c, beam)]
            if passed:
                dropped += written.sentences
                beam = beam.extended(max(passed, key=lambda c: (c.keeps_subject, not c.is_cut, c.log_prob)))
            elif annotate and written.stop != "not_finite":
                failing = [s for s in written.sentences if written.fault or not passes(s, tau_1)]
                beam = beam.extended(written, failing=failing)
            else:
                dropped += written.sentences
                is_over = written.stop is not None or len(beam.skipped) >= config.max_skips
                beam = beam if is_over else beam.hiding(written)
        dropped += written.unfinished
        rounds.append(Round(tuple(candidates), tuple(passed), (beam,)))
        added = beam.sentences[len(before.sentences) :]
        is_announced = config.guards and passed and added and all(map(announces, added))
        if not is_announced and (added or settled is before):
            settled = beam
        yield Progress((beam,), waiting=len(beam.sentences) - len(settled.sentences))
        if is_over or beam.stop is not None:
            return _ended(beam, settled, beam.stop or "nothing_passed", dropped, rounds)
    return _ended(beam, settled, "max_sentences", dropped, rounds)


def _ended(
    beam: Beam, settled: Beam, stop: StopReason, dropped: Sequence[SentenceScore], rounds: Sequence[Round]
) -> SearchResult:
    """Build the result, without announcements that nothing follows."""
    if hidden := beam.sentences[len(settled.sentences) :]:
        dropped, beam = (*dropped, *hidden), settled.hiding_rest(beam)
    return SearchResult(beam, stop, bool(dropped), tuple(dropped), tuple(rounds))


def repair_trace_of(result: SearchResult, thresholds: Thresholds) -> tuple[TraceNode, ...]:
    """Draw a repaired answer as a tree: a chain through repaired and hidden sentences, each beside its branches."""
    after: tuple[TraceNode, ...] = ()
    for step in reversed(result.rounds):
        written, *branches = step.candidates
        cut_off = [TraceNode(s.text, s.score, "taken_back", f"greedy, {CUT_OFF}") for s in written.unfinished]
        first = [] if cut_off and not written.sentences else [_node(written, step, result, thresholds, after)]
        after = (*first, *(_branch_node(branch, step, result, thresholds, after) for branch in branches), *cut_off)
    return after


def _node(
    candidate: Candidate, step: Round, result: SearchResult, thresholds: Thresholds, after: tuple[TraceNode, ...]
) -> TraceNode:
    """Draw a greedy sentence."""
    text, why = _text_of(candidate), _shortfall(candidate, "τ₁", thresholds.backtrack)
    if candidate.handle in result.beam.skipped and text:
        why = _NOTHING_FOLLOWS if step.passed else f"{why}, and no branch passed"
        return TraceNode(text, candidate.lowest, "skipped", f"hidden: {why}", after)
    if candidate.handle not in result.beam.handles:
        return TraceNode(text, candidate.lowest, "taken_back", f"greedy, {why}")
    if candidate in step.passed:
        return TraceNode(text, candidate.lowest, "answer", "greedy", after)
    return TraceNode(text, candidate.lowest, "marked", f"in the answer, marked: {why}", after)


def _branch_node(
    candidate: Candidate, step: Round, result: SearchResult, thresholds: Thresholds, after: tuple[TraceNode, ...]
) -> TraceNode:
    text = _text_of(candidate)
    if candidate.handle in result.beam.skipped:
        return TraceNode(text, candidate.lowest, "skipped", f"a branch, hidden: {_NOTHING_FOLLOWS}", after)
    if candidate.handle in result.beam.handles:
        reason = f"a branch in place of “{_text_of(step.candidates[0])}”"
        return TraceNode(text, candidate.lowest, "repaired", reason, after)
    if candidate in step.passed:
        chosen = next(c for c in step.passed if c.handle in result.beam.handles)
        better = "is whole" if candidate.is_cut and not chosen.is_cut else "was likelier"
        if chosen.keeps_subject and not candidate.keeps_subject:
            better = "keeps to the subject"
        return TraceNode(text, candidate.lowest, "outranked", f"passed, but another branch {better}")
    tau_2 = thresholds.backtrack if thresholds.prune is None else thresholds.prune
    return TraceNode(text, candidate.lowest, "pruned", f"a branch, {_shortfall(candidate, 'τ₂', tau_2)}")


def _text_of(candidate: Candidate) -> str:
    return " ".join(sentence.text for sentence in candidate.sentences or candidate.unfinished)


def _shortfall(candidate: Candidate, name: str, threshold: float) -> str:
    """Say why a candidate did not pass: its score, or else its fault."""
    is_low = candidate.lowest is not None and candidate.lowest < threshold
    if candidate.fault and not is_low:
        return candidate.fault
    if is_low or candidate.lowest is None:
        return f"{name} is {threshold:.2f}"
    return "it nearly repeats a sentence of the answer"


def _is_hopeless(written: Candidate, config: RepairConfig) -> bool:
    """Tell whether other tokens would help no more: the sentence is beside the question, or uncertain throughout."""
    return written.flaw == BESIDE or math.exp(written.log_prob / max(len(written.token_ids), 1)) < config.repair_from


def _repeats(candidate: Candidate, beam: Beam) -> bool:
    return any(is_near_repeat(new.text, old.text) for new in candidate.sentences for old in beam.sentences)
