"""What a decoder that searches has tried, as a tree of sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Fate", "TraceNode"]

Fate = Literal["answer", "marked", "kept", "outranked", "pruned", "taken_back"]
"""``answer``: part of the answer; ``marked``: so too, although it did not pass; ``kept``: of a beam that was left
later; ``outranked``: passed, but others were better; ``pruned``: did not pass; ``taken_back``: was written and did not
pass."""


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A continuation that was tried, as a rule one sentence.

    Attributes
    ----------
    text : str
        Empty where the text ended at once.
    score : float or None
        P(faithful) in [0, 1], the lowest of its sentences; None when none has one.
    fate : Fate
        What became of it.
    reason : str
        Why, in words.
    children : tuple of TraceNode
        What was tried behind it.
    """

    text: str
    score: float | None
    fate: Fate
    reason: str
    children: tuple[TraceNode, ...] = ()

    @property
    def size(self) -> int:
        """Continuations in this tree."""
        return 1 + sum(child.size for child in self.children)

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as values that JSON can hold."""
        return {
            "text": self.text,
            "score": self.score,
            "fate": self.fate,
            "reason": self.reason,
            "children": [child.to_dict() for child in self.children],
        }
