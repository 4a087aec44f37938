"""Continuations that a server writes, and their sentences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fod.search import CandidateStop
from syncheck.results import Piece


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A part of a continuation: its sentences, in the text that the model has written."""

    text: str
    start: int
    end: int
    spans: tuple[Any, ...]
    stop: CandidateStop | None = None
    is_cut_off: bool = False
    count: int = 0
    """Number of tokens that the server has written for it."""
    token_ids: ClassVar[tuple[int, ...]] = ()
    log_prob: ClassVar[float] = 0.0
    is_cut: ClassVar[bool] = False

    @property
    def own(self) -> str:
        """The text of this part."""
        return self.text[self.start : self.end]

    def without_lead(self) -> WrittenText:
        """Leave out the white space before the first sentence."""
        return replace(self, start=self.spans[0].start) if self.spans else self

    def without_last(self) -> WrittenText:
        """Leave out the last sentence, and the text after the one before."""
        *kept, _ = self.spans
        return replace(self, spans=tuple(kept), end=kept[-1].end if kept else self.start)


class Continuation:
    """A continuation while it arrives."""

    def __init__(self, segmenter: Any) -> None:  # noqa: ANN401 - of Verifier
        self._segmenter = segmenter
        self._at = len(segmenter.text)  # where the text begins that was not taken yet
        self._closed: list[Any] = []  # sentences that what follows has closed
        self._last: tuple[Any, ...] = ()  # those that the end of the text closes
        self._count = self._taken = 0  # of tokens that have arrived, and of those that were taken
        self.stop: CandidateStop | None = None

    def add(self, piece: Piece, count: int) -> None:
        """Add a piece, unless the text has ended; with it, so many tokens have come."""
        if self.stop is None:
            self._closed += self._segmenter.push(piece.text)
            self._count = count
            if piece.stop is not None:
                self.end(piece.stop)

    def end(self, stop: CandidateStop = "end_of_text") -> None:
        """End the text, unless it has ended."""
        if self.stop is None:
            self.stop, self._last = stop, tuple(self._segmenter.finish())

    @property
    def is_due(self) -> bool:
        """True if the next sentence is whole, or there is none."""
        return bool(self._closed) or self.stop is not None

    @property
    def unfinished(self) -> str:
        """The text that was not taken."""
        return str(self._segmenter.text[self._at :]).strip()

    def take(self) -> WrittenText:
        """Take the next sentence; at the end of the text, all that it closes."""
        text, start, stop = self._segmenter.text, self._at, None
        if self._closed:
            spans: tuple[Any, ...] = (self._closed.pop(0),)
            self._at = spans[0].end
        else:
            spans, stop, self._at = self._last, self.stop, len(text)
        is_cut_off = stop == "length" and bool(spans) and self._segmenter.breaks_off
        count, self._taken = self._count - self._taken, self._count
        return WrittenText(text, start, self._at, spans, stop, is_cut_off, count)
