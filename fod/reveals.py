"""Reveals: the part of an unfinished answer that is shown to a reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

from fod.search import best_of
from fod.types import Beam, Progress
from syncheck import RetractEvent, SentenceEvent, SentenceScore

Reveal = Callable[[Progress], list[SentenceEvent | RetractEvent]]
"""Function that returns the events for a reader after a step of a search; a new one is created for each search."""


class VerifiedReveal:
    """Shows the sentences that all beams share, which are sure to be part of the answer.

    Called with the :class:`fod.Progress` after each step of a search; returns events.
    """

    def __init__(self) -> None:
        self._shown = 0

    def __call__(self, progress: Progress) -> list[SentenceEvent | RetractEvent]:
        """Make the events of the sentences that have become certain."""
        first, *others = progress.beams
        shared = min([_common(first.sentences, beam.sentences) for beam in others], default=len(first.sentences))
        before, self._shown = self._shown, max(self._shown, shared)
        return list(_events(first, before, shared))


class ImmediateReveal:
    """Shows the best answer so far after every step, and retracts sentences that are no longer part of it.

    Called with the :class:`fod.Progress` after each step of a search; returns events.
    """

    def __init__(self) -> None:
        self._shown: tuple[SentenceScore, ...] = ()
        self._reason: str | None = None  # why the sentence shown is taken back, if it was only tried

    def __call__(self, progress: Progress) -> list[SentenceEvent | RetractEvent]:
        """Make the events that turn the answer that was shown into the best one."""
        events: list[SentenceEvent | RetractEvent] = []
        tried = () if progress.tried is None else (progress.tried,)
        for beam in (*tried, best_of(progress.beams)):
            kept = _common(self._shown, beam.sentences)
            if self._shown[kept:]:
                reason = self._reason or "another continuation has a higher score"
                events.append(RetractEvent(self._shown[kept:], reason))
            events += _events(beam, kept, len(beam.sentences))
            self._shown, self._reason = beam.sentences, progress.reason if beam is progress.tried else None
        return events


def _events(beam: Beam, start: int, stop: int) -> list[SentenceEvent]:
    return [
        SentenceEvent.of(sentence, beam.token_ids, beam.text, marked=index in beam.marked)
        for index, sentence in enumerate(beam.sentences[start:stop], start)
    ]


def _common(one: Sequence[SentenceScore], other: Sequence[SentenceScore]) -> int:
    """Count the sentences that both begin with: the same objects, not only the same words."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(one, other, strict=False)))
