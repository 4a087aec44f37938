"""Which sentences reach a reader, and when: only what can no longer be taken back, or at once and then taken back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Protocol

from fod.events import ReleaseEvent, RetractEvent
from fod.search import best_of
from fod.types import Beam, Progress
from syncheck import SentenceScore

__all__ = ["ImmediateRelease", "Release", "VerifiedRelease", "releases"]


class Release(Protocol):
    """Turns the steps of a search into events for a reader."""

    def __call__(self, progress: Progress) -> list[ReleaseEvent | RetractEvent]:
        """Return what the reader is to be told after this step."""
        ...


class VerifiedRelease:
    """Releases the sentences that all beams share: stage 1 has scored them, and no answer can come out without them."""

    def __init__(self) -> None:
        self._released = 0

    def __call__(self, progress: Progress) -> list[ReleaseEvent | RetractEvent]:
        """Return the sentences that have become certain."""
        first, *others = progress.beams
        shared = min([_common(first.sentences, beam.sentences) for beam in others], default=len(first.sentences))
        before, self._released = self._released, max(self._released, shared)
        return list(releases(first, before, shared))


class ImmediateRelease:
    """Shows the best answer so far after every step, and retracts what is no longer part of it."""

    def __init__(self) -> None:
        self._shown: tuple[SentenceScore, ...] = ()

    def __call__(self, progress: Progress) -> list[ReleaseEvent | RetractEvent]:
        """Return what changes the answer that was shown into the best one."""
        events: list[ReleaseEvent | RetractEvent] = []
        tried = () if progress.tried is None else (progress.tried,)
        for beam in (*tried, best_of(progress.beams)):
            kept = _common(self._shown, beam.sentences)
            if self._shown[kept:]:
                events.append(RetractEvent(self._shown[kept:]))
            events += releases(beam, kept, len(beam.sentences))
            self._shown = beam.sentences
        return events


def releases(beam: Beam, start: int, stop: int) -> list[ReleaseEvent]:
    """Return the events of some sentences of a beam."""
    return [
        ReleaseEvent(
            sentence=sentence,
            token_ids=beam.token_ids[sentence.token_start : sentence.token_end],
            marked=index in beam.marked,
        )
        for index, sentence in enumerate(beam.sentences[start:stop], start)
    ]


def _common(one: Sequence[SentenceScore], other: Sequence[SentenceScore]) -> int:
    """Count the sentences that both begin with; the same ones, not only the same words."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(one, other, strict=False)))
