"""Pace of a text: whether it comes so much faster than it is scored that its sentences had better wait."""

from __future__ import annotations

QUICK = 0.1
"""A sentence is quick if its source took less than this share of the time that scoring a sentence takes."""
IN_A_ROW = 3
"""Number of quick sentences in a row after which further ones wait for each other."""


class Pace:
    """Compares the seconds that a source takes for a sentence with those that scoring one takes.

    Scoring sentences together takes less work. A text that is replayed, or read from a buffer, loses no time by it; a
    model that writes takes longer for a sentence than its score does, so that waiting would delay what is known.
    """

    def __init__(self) -> None:
        self._source = 0.0  # seconds since the last sentence was complete
        self._scoring = 0.0  # seconds that scoring a sentence took
        self._in_a_row = 0

    @property
    def is_quick(self) -> bool:
        """True while the last sentences, :data:`IN_A_ROW` or more, were quick and the next is not late."""
        return self._in_a_row >= IN_A_ROW and self._source < QUICK * self._scoring

    def waited(self, seconds: float) -> None:
        """Add time that the source took for a piece."""
        self._source += seconds

    def completed(self, sentences: int) -> None:
        """Count sentences that a piece has completed."""
        self._in_a_row = self._in_a_row + sentences if self._source < QUICK * self._scoring else 0
        self._source = 0.0

    def scored(self, sentences: int, seconds: float) -> None:
        """Note how long it took to score sentences, at least one."""
        self._scoring = seconds / sentences
