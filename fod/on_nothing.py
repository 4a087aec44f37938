"""What is done when nothing passes: no sample of a round reaches tau_2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from syncheck import RagPrompt, Report, SentenceScore

__all__ = ["ABSTENTION", "Handover", "OnNothing"]

ABSTENTION = "The passages do not let me say more."
"""What an abstaining answer ends with, or is."""


@dataclass(frozen=True, slots=True)
class Handover:
    """What a caller is given who is asked to go on.

    Attributes
    ----------
    prompt : RagPrompt
        Under which nothing passed.
    report : Report
        The answer so far, all of which has been released.
    rejected : tuple of SentenceScore
        What was sampled last and did not reach tau_2.
    attempt : int
        How often this answer has been handed over before.
    """

    prompt: RagPrompt
    report: Report
    rejected: tuple[SentenceScore, ...]
    attempt: int


OnNothing = Literal["stop", "abstain", "annotate"] | Callable[[Handover], RagPrompt | str | None]
"""``stop``: the answer ends with what has passed. ``abstain``: it ends with a message. ``annotate``: the best of the
round is kept, marked, and decoding goes on. A callable returns a prompt, with new passages, under which the answer goes
on; a text that ends it, which is not scored; or None, which stops."""
