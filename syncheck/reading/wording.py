"""Wording of a context: the stems, pieces and word pairs of its chunks, with the chunks in which a stem occurs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from syncheck.text.rarity import NUMBER_WORDS
from syncheck.text.words import stem, words

BEST_CHUNKS = 4
"""Number of chunks that are compared with a sentence; the bundled aligner reads as many."""
PIECE = 5
"""Number of characters of a piece: enough to distinguish words, few enough to ignore their endings."""


@dataclass(frozen=True, slots=True)
class ContextChunks:
    """Chunks of a context, the stems of each (function words included), and the chunks in which each stem occurs."""

    texts: tuple[str, ...]
    stems: tuple[frozenset[str], ...]
    held_in: Mapping[str, tuple[int, ...]]
    _words: Sequence[Sequence[str]] = field(repr=False)
    _wordings: dict[int, tuple[frozenset[str], frozenset[tuple[str, str]]]] = field(default_factory=dict, repr=False)
    _near: dict[str, frozenset[int]] = field(default_factory=dict, repr=False)

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> ContextChunks:
        """Read the chunks, of which there may be none."""
        read = [words(text) for text in texts]
        stems = tuple(frozenset(stem(digits(word)) for word in found) for found in read)
        held_in: dict[str, list[int]] = defaultdict(list)
        for number, chunk in enumerate(stems):
            for known in chunk:
                held_in[known].append(number)
        return cls(tuple(texts), stems, {known: tuple(found) for known, found in held_in.items()}, read)

    def wording(self, number: int) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
        """Return the pieces and the pairs of neighbouring words of a chunk, which are read at first use."""
        if number not in self._wordings:
            self._wordings[number] = pieces(self.texts[number]), bigrams(self._words[number])
        return self._wordings[number]

    def near(self, known: str) -> frozenset[int]:
        """Return the chunks that have a stem and their neighbours, from -1 up to the number of chunks."""
        if known not in self._near:
            found = self.held_in.get(known, ())
            self._near[known] = frozenset(n for place in found for n in (place - 1, place, place + 1))
        return self._near[known]


def digits(word: str) -> str:
    """Return a number in words in digits, and any other word as it is."""
    return NUMBER_WORDS.get(word, word)


def pieces(text: str) -> frozenset[str]:
    """Cut a text into its distinct pieces of :data:`PIECE` characters, in lower case, with spaces for punctuation."""
    padded = " ".join(["", *re.findall(r"\w+", text.lower()), ""])
    return frozenset(padded[start : start + PIECE] for start in range(len(padded) - PIECE + 1))


def bigrams(read: Sequence[str]) -> frozenset[tuple[str, str]]:
    """Collect the pairs of neighbouring words."""
    return frozenset(pairwise(read))
