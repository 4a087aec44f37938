"""Segmenter of a text that no tokenizer has read, as it arrives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from syncheck.results.types import SentenceSpan
from syncheck.text.sentences.boundaries import Boundary, BoundaryFinder
from syncheck.text.sentences.config import SegmenterConfig
from syncheck.text.sentences.token_text import visible


class TextSegmenter:
    """Cuts a growing text into sentences, wherever its pieces are divided.

    The sentences are those of :class:`~syncheck.text.sentences.IncrementalSegmenter`; only one that has not ended after
    ``max_characters`` is cut elsewhere: at its last white space before, if there is any.

    Attributes
    ----------
    text : str
        The text so far.
    """

    def __init__(self, config: SegmenterConfig) -> None:
        self._max_characters = config.max_characters
        self._sentences = config.sentences
        self._finder = BoundaryFinder(config)
        self._start = 0  # of the open sentence
        self._complete = 0  # sentences found in it, when several are taken as one
        self._count = 0
        self.text = ""

    def push(self, piece: str) -> list[SentenceSpan]:
        """Add text and return the sentences that it closes, whose ``token_start`` and ``token_end`` are 0."""
        self.text += piece
        closed: list[SentenceSpan] = []
        while (limit := self._limit()) < len(self.text):
            # What the limit cuts must not depend on how much of the text is known behind it.
            found = self._close_at(self._finder.find(self.text[: limit + 1]))
            closed += found or [self._cut(limit)]
        return closed + self._close_at(self._finder.find(self.text))

    def finish(self) -> list[SentenceSpan]:
        """Close the sentence that is open at the end of the text."""
        closed = self._close_at(self._finder.find(self.text, final=True))
        if self.text[self._start :].strip():
            closed.append(self._close(len(self.text)))
            self._start = len(self.text)
        return closed

    def _limit(self) -> int:
        """Return the character after which the open sentence is cut; none while it is blank."""
        start = self._start
        while start < len(self.text) and self.text[start].isspace():
            start += 1
        return start + self._max_characters

    def _close_at(self, boundaries: Iterable[Boundary]) -> list[SentenceSpan]:
        """Close the open sentence at these boundaries, or at each n-th if n sentences are taken as one."""
        closed: list[SentenceSpan] = []
        for stop, after, _, _ in boundaries:
            self._complete += 1
            if self._complete == self._sentences:
                closed.append(self._close(stop))
                self._start, self._complete = after, 0
        return closed

    def _cut(self, limit: int) -> SentenceSpan:
        """Close the open sentence within the limit, and read what follows as the start of another."""
        start, _ = visible(self.text, self._start, limit)
        spaces = [at for at in range(start + 1, limit + 1) if self.text[at].isspace()]
        cut = spaces[-1] if spaces else limit
        span = self._close(cut, truncated=True)
        self._start, self._complete = cut, 0
        self._finder.restart(cut, block=cut)
        return span

    def _close(self, end: int, *, truncated: bool = False) -> SentenceSpan:
        span = SentenceSpan(self._count, *visible(self.text, self._start, end), 0, 0, truncated)
        self._count += 1
        return span


def spans_of(sentences: Sequence[str]) -> list[SentenceSpan]:
    """Place given sentences, which are joined as they are, in their text."""
    text = "".join(sentences)
    places = pairwise(accumulate(map(len, sentences), initial=0))
    return [SentenceSpan(index, *visible(text, start, stop), 0, 0) for index, (start, stop) in enumerate(places)]
