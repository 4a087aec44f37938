"""The part of a context that a claim sees: the chunks closest to it, in windows that are read once for all claims."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from syncheck.reading.evidence import EvidenceIndex

logger = logging.getLogger(__name__)

WINDOW_TOKENS = 255
"""Largest number of tokens of a window."""
RANKED_CHUNKS, CENTRES = 10, 3
"""Number of chunks that are ranked by the words they share with a claim, and number of the best whose neighbours come
next."""


class Part(NamedTuple):
    """Tokens of a window, from ``begin`` up to ``end``; the token at 0 is a BEGIN."""

    window: int
    begin: int
    end: int


class PassageWindows:
    """The chunks of a context in windows, each of as many whole chunks as there is room for.

    Parameters
    ----------
    chunks
        Token ids of each. Of a chunk longer than a window only the beginning is read, with a warning.

    Attributes
    ----------
    ids : list of list of int
        Token ids of each window, without BEGIN.
    lengths : list of int
        Number of tokens of each chunk.
    """

    def __init__(self, chunks: Sequence[Sequence[int]]) -> None:
        self.ids: list[list[int]] = [[]]
        self._places: list[Part] = []
        if cut := sum(len(chunk) > WINDOW_TOKENS for chunk in chunks):
            logger.warning("passages have chunks that are too long: %d; %d tokens of each are read", cut, WINDOW_TOKENS)
        for chunk in chunks:
            kept = chunk[:WINDOW_TOKENS]
            if len(self.ids[-1]) + len(kept) > WINDOW_TOKENS:
                self.ids.append([])
            begin = 1 + len(self.ids[-1])
            self.ids[-1] += kept
            self._places.append(Part(len(self.ids) - 1, begin, begin + len(kept)))
        self.lengths = [place.end - place.begin for place in self._places]

    def parts(self, chunks: Sequence[int], room: int) -> list[Part]:
        """Locate chunks, after the BEGIN of the first one's window; at most ``room`` tokens of a chunk."""
        places = [self._places[chunk] for chunk in chunks]
        begin = Part(places[0].window, 0, 1)
        return [begin, *(place._replace(end=min(place.end, place.begin + room)) for place in places)]


def chosen_parts(
    windows: PassageWindows, index: EvidenceIndex, claim: str, *, seen: int, joint: int
) -> tuple[list[Part], list[Part]]:
    """Choose the tokens that a claim sees, and those of them that are read with it (:func:`closest_of`)."""
    chunks = closest_chunks(index, claim, windows.lengths, seen)
    closest = closest_of(chunks, index, claim, windows.lengths, joint)
    begin, *parts = windows.parts(chunks, seen)
    return [begin, *parts], [begin, *(part for chunk, part in zip(chunks, parts, strict=True) if chunk in closest)]


def closest_chunks(index: EvidenceIndex, claim: str, lengths: Sequence[int], room: int) -> list[int]:
    """Choose the chunks that a claim sees, by index, in the order of the context.

    A claim sees all of them if their ``lengths`` together are at most ``room``. Otherwise it sees those that fit, taken
    in this order: the best by the words they share with the claim, the neighbours of the first of these, and the rest
    from the beginning; if none fits, the best one alone.
    """
    if sum(lengths) <= room:
        return list(range(len(lengths)))
    ranked = _by_closeness(index, claim, len(lengths))
    chosen: list[int] = []
    for chunk in ranked:
        if lengths[chunk] <= room:
            chosen.append(chunk)
            room -= lengths[chunk]
    return sorted(chosen) or ranked[:1]


def closest_of(chunks: Sequence[int], index: EvidenceIndex, claim: str, lengths: Sequence[int], room: int) -> list[int]:
    """Choose the chunks that are read with a claim: the best, whatever its length, and others that fit.

    They are taken in the order of :func:`closest_chunks`; all, if there is room for them.
    """
    if sum(lengths[chunk] for chunk in chunks) <= room:
        return list(chunks)
    chosen: list[int] = []
    for chunk in _by_closeness(index, claim, len(lengths)):
        if chunk in chunks and (not chosen or lengths[chunk] <= room):
            chosen.append(chunk)
            room -= lengths[chunk]
    return sorted(chosen)


def _by_closeness(index: EvidenceIndex, claim: str, count: int) -> list[int]:
    """Rank all chunks, by index, those closest to a claim first."""
    best = index.best(claim, RANKED_CHUNKS)
    beside = [near for chunk in best[:CENTRES] for near in (chunk - 1, chunk + 1) if 0 <= near < count]
    return list(dict.fromkeys((*best, *beside, *range(count))))
