"""Events of a monitor's or decoder's stream, in the order in which they happen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from syncheck.base.printable import quoted, summary
from syncheck.results import Report
from syncheck.results.types import SentenceScore


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """A token was decoded; ``text`` is the text that it completed, which may be empty. :mod:`fod` emits none."""

    token_id: int
    text: str
    type: Literal["token"] = "token"

    def __repr__(self) -> str:
        return summary(self, self.token_id, quoted(self.text))


@dataclass(frozen=True, slots=True)
class SentenceEvent:
    """A sentence is complete and scored."""

    sentence: SentenceScore
    token_ids: tuple[int, ...]
    """Its tokens."""
    marked: bool = False
    """True if a search kept it although it did not pass; see ``on_exhausted="annotate"`` of :class:`fod.FODConfig`."""
    lead: str = ""
    """The white space before it."""
    type: Literal["sentence"] = "sentence"

    @classmethod
    def of(cls, sentence: SentenceScore, token_ids: Sequence[int], text: str, *, marked: bool = False) -> SentenceEvent:
        """Build the event of a sentence in a response with these tokens and this text."""
        before = text[: sentence.start]
        tokens = tuple(token_ids[sentence.token_start : sentence.token_end])
        return cls(sentence, tokens, marked, before[len(before.rstrip()) :])

    def __repr__(self) -> str:
        return summary(self, self.sentence.score, self.sentence.status, quoted(self.sentence.text))


@dataclass(frozen=True, slots=True)
class RetractEvent:
    """The last sentences of the stream are taken back; ``sentences`` are in the order of the text."""

    sentences: tuple[SentenceScore, ...]
    reason: str = ""
    type: Literal["retract"] = "retract"


@dataclass(frozen=True, slots=True)
class NoticeEvent:
    """Text at the end of the answer that the model did not write, without a score: the message of an abstention."""

    text: str
    token_ids: tuple[int, ...]
    type: Literal["notice"] = "notice"


@dataclass(frozen=True, slots=True)
class EndEvent:
    """The response is complete."""

    report: Report
    """The response with its scores."""
    output: Any = None
    """What the decoder's ``generate(return_dict_in_generate=True)`` returns; None in a monitor's stream."""
    type: Literal["end"] = "end"

    def __repr__(self) -> str:
        return summary(self, repr(self.report))


Event = TokenEvent | SentenceEvent | RetractEvent | NoticeEvent | EndEvent
