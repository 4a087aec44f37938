"""What a monitored stream says, in the order in which it happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from syncheck.printable import quoted, summary
from syncheck.report import Report
from syncheck.types import SentenceScore

__all__ = ["EndEvent", "Event", "SentenceEvent", "TokenEvent"]


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """A token was decoded; ``text`` is what it completed, possibly nothing."""

    token_id: int
    text: str
    type: Literal["token"] = "token"

    def __repr__(self) -> str:
        return summary(self, self.token_id, quoted(self.text))


@dataclass(frozen=True, slots=True)
class SentenceEvent:
    """A sentence is complete and judged."""

    sentence: SentenceScore
    type: Literal["sentence"] = "sentence"

    def __repr__(self) -> str:
        return summary(self, self.sentence.score, self.sentence.status, quoted(self.sentence.text))


@dataclass(frozen=True, slots=True)
class EndEvent:
    """The response is complete."""

    report: Report
    type: Literal["end"] = "end"

    def __repr__(self) -> str:
        return summary(self, repr(self.report))


Event = TokenEvent | SentenceEvent | EndEvent
