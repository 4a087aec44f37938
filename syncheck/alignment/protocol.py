"""What an aligner is: something that says how well a context supports a claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, runtime_checkable

from syncheck.types import Support

__all__ = ["Aligner", "QuestionAligner"]


class Aligner(Protocol):
    """Scores claims against a context.

    Attributes
    ----------
    name : str
        Stored in a monitor's config, so that the same aligner is used again.
    """

    name: str

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim against the passages.

        Parameters
        ----------
        passages
            The context, of any length; nothing is cut in silence.
        claims
            Sentences to check; an empty list gives an empty list.

        Returns
        -------
        list of Support
            One per claim: P(supported) in [0, 1], higher is better, and the best evidence.
        """
        ...


@runtime_checkable
class QuestionAligner(Aligner, Protocol):
    """An aligner that also wants to know what the claims answer; a monitor tells it."""

    def about(self, question: str) -> Self:
        """Return the same aligner, by the same name, for claims that answer this question."""
        ...
