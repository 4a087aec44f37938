"""What a reader sees of a search or a repair while it runs, and the tree of what it has tried."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from fod.config import FODConfig, RepairConfig, Thresholds
from fod.repair import repair_trace_of
from fod.search import Progress, SearchResult, trace_of
from syncheck import SentenceEvent, SentenceScore
from syncheck.results import TraceNode


def drawn(result: SearchResult, config: FODConfig | RepairConfig, thresholds: Thresholds) -> tuple[TraceNode, ...]:
    """Draw a search or a repair as a tree; see :func:`fod.trace_of` and :func:`fod.repair_trace_of`."""
    if isinstance(config, RepairConfig):
        return repair_trace_of(result, thresholds)
    return trace_of(result, config, thresholds)


class VerifiedReveal:
    """Shows the sentences that all beams share: after each step of a search, those that are now sure to be released."""

    def __init__(self) -> None:
        self._shown = 0

    def __call__(self, progress: Progress) -> list[SentenceEvent]:
        """Make the events of the sentences that have become certain."""
        first = progress.beams[0]
        shared = min(_common(first.sentences, beam.sentences) for beam in progress.beams) - progress.waiting
        before, self._shown = self._shown, max(self._shown, shared)
        return [
            SentenceEvent.of(sentence, first.token_ids, first.text, marked=index in first.marked)
            for index, sentence in enumerate(first.sentences[before:shared], before)
        ]


def _common(one: Sequence[SentenceScore], other: Sequence[SentenceScore]) -> int:
    """Count the sentences that both begin with: the same objects, not only the same words."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(one, other, strict=False)))
