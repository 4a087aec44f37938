"""What a stream of released sentences says, in the order in which it happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fod.output import GeneratorOutput
from syncheck import Report, SentenceScore

__all__ = ["Event", "FinishEvent", "NoticeEvent", "ReleaseEvent", "RetractEvent"]


@dataclass(frozen=True, slots=True)
class ReleaseEvent:
    """A sentence for the reader.

    Attributes
    ----------
    sentence : SentenceScore
    token_ids : tuple of int
        Its tokens.
    marked : bool
        Whether it was kept although it did not pass, ``on_exhausted="annotate"``.
    """

    sentence: SentenceScore
    token_ids: tuple[int, ...]
    marked: bool = False
    type: Literal["sentence"] = "sentence"


@dataclass(frozen=True, slots=True)
class RetractEvent:
    """The last sentences of the stream are taken back; ``sentences`` are they, in the order of the text."""

    sentences: tuple[SentenceScore, ...]
    type: Literal["retract"] = "retract"


@dataclass(frozen=True, slots=True)
class NoticeEvent:
    """Text that the model has not written: an abstention's message, or what a caller handed over; without a score."""

    text: str
    token_ids: tuple[int, ...]
    type: Literal["notice"] = "notice"


@dataclass(frozen=True, slots=True)
class FinishEvent:
    """The answer is complete; ``output`` is what ``generate(return_dict_in_generate=True)`` returns."""

    output: GeneratorOutput
    type: Literal["end"] = "end"

    @property
    def report(self) -> Report:
        """The answer with its scores."""
        return self.output.report


Event = ReleaseEvent | RetractEvent | NoticeEvent | FinishEvent
