"""``--fail-under``: a gate that is closed to what is below the threshold and to what could not be checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from syncheck.segments import is_checkable

__all__ = ["ScoreGate"]


@dataclass(slots=True)
class ScoreGate:
    """Counts what misses a threshold, in the lines that ``syncheck score`` writes.

    A sentence without a letter or digit, such as a bullet, says nothing that could be wrong, and does not count. Any
    other sentence without a score does, and so does a record with an error or without any sentence that was scored:
    an empty response has been checked as little as one whose aligner was down.

    Attributes
    ----------
    threshold : float
        In [0, 1]; a score below it misses.
    below : int
        Sentences with such a score.
    scored : int
        Records with a score.
    unscored : Counter of str
        Sentences, by status, and records that could not be checked.
    """

    threshold: float
    below: int = 0
    scored: int = 0
    unscored: Counter[str] = field(default_factory=Counter)

    def add(self, row: dict[str, Any]) -> None:
        """Count a line of output."""
        if "error" in row:
            self.unscored["records with an error"] += 1
            return
        scores = [s["score"] for s in row["sentences"] if s["score"] is not None]
        self.below += sum(not score >= self.threshold for score in scores)
        self.scored += bool(scores)
        missing = [s["status"] for s in row["sentences"] if s["score"] is None and is_checkable(s["text"])]
        self.unscored.update(f"sentences with status {status}" for status in missing)
        if not scores and not missing:
            self.unscored["records without a sentence to check"] += 1

    def missed(self, *, allow_unscored: bool) -> str | None:
        """Return what missed the threshold, None if nothing did; that there was no record at all is a miss too."""
        unscored = {} if allow_unscored else dict(self.unscored)
        if not allow_unscored and not self.scored and not unscored:
            unscored = {"records": 0}
        counts = ({f"sentences below {self.threshold:g}": self.below} if self.below else {}) | unscored
        if not counts:
            return None
        found = ", ".join(f"{count} {what}" for what, count in counts.items())
        remedy = "; --allow-unscored passes what has no score" if unscored else ""
        return f"--fail-under {self.threshold:g} missed: {found}{remedy}"
