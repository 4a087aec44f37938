"""What of a response's words a text holds: exactly, nearly (another ending, another script of a name) and in runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from syncheck.spans.words import normalised, words_of

__all__ = ["WordEvidence"]


_SHORTEST_NEAR = 3
"""Words of the text shorter than this are matched exactly or not at all."""

Floats = NDArray[np.float64]


class WordEvidence:
    """The words of a text, ready to be asked for.

    Attributes
    ----------
    counts : Counter
        How often each normalised word occurs.
    """

    def __init__(self, text: str) -> None:
        words = [normalised(word.text) for word in words_of(text)]
        self.counts = Counter(words)
        self._pairs = set(pairwise(words))
        self._trigrams = [(len(w), _trigrams(w)) for w in self.counts if len(w) >= _SHORTEST_NEAR]
        self._nearest: dict[str, float] = {}

    @property
    def numbers(self) -> int:
        """How many different words have a digit in front."""
        return sum(word[0].isdecimal() for word in self.counts)

    def holds(self, words: Sequence[str]) -> Floats:
        """Return 1 for each normalised word that the text has and 0 for the others, (W,) float64."""
        return np.array([float(word in self.counts) for word in words])

    def nearness(self, words: Sequence[str]) -> Floats:
        """Return how near each word comes to one of the text, (W,) float64 in [0, 1], 1 where the text has it.

        Dice's coefficient of the character trigrams, borders included; the best of words of like length.
        """
        return np.array([self._near(word) for word in words])

    def run_lengths(self, words: Sequence[str]) -> Floats:
        """Return in how long a run of words that follow each other in the text each word lies, (W,) float64."""
        found = np.zeros(len(words))
        start = 0
        while start < len(words):
            stop = start
            while stop < len(words) and words[stop] in self.counts:
                stop += 1
                if stop < len(words) and (words[stop - 1], words[stop]) not in self._pairs:
                    break
            found[start:stop] = stop - start
            start = max(stop, start + 1)
        return found

    def _near(self, word: str) -> float:
        if word in self.counts:
            return 1.0
        if word not in self._nearest:
            wanted, size = _trigrams(word), len(word)
            self._nearest[word] = max(
                (
                    2 * len(wanted & known) / (len(wanted) + len(known))
                    for length, known in self._trigrams
                    if 2 * abs(length - size) <= max(length, size)
                ),
                default=0.0,
            )
        return self._nearest[word]


def _trigrams(word: str) -> frozenset[str]:
    bordered = f"^{word}$"
    return frozenset(bordered[i : i + 3] for i in range(len(bordered) - 2))
