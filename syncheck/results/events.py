"""Events of a monitor's or decoder's stream, in the order in which they happen, and the protocol's, made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from syncheck.base.checks import check_choice, check_texts
from syncheck.base.errors import InputError
from syncheck.base.printable import quoted, summary
from syncheck.results import Report
from syncheck.results.protocol import Append, Final, LocatedEvidence, Notice, ProtocolEvent, Retract, Reveal, Verified
from syncheck.results.types import Evidence, SentenceScore


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


Event = TokenEvent | SentenceEvent | NoticeEvent | EndEvent


_NOT_SENT = frozenset({"passages", "tokens", "spans"})
"""Parts of a report that a final event leaves out: the reader has them, or did not ask for them."""


class EventWriter:
    """Writes and numbers the events of one answer, and keeps them for readers who reconnect.

    Evidence is located in the ``passages`` of the prompt, under the caller's ``passage_ids``, one for each; names that
    are no list of strings raise WrongTypeError, another number of them, or an unknown ``reveal``, InputError.
    """

    def __init__(
        self, passages: Sequence[str] = (), *, reveal: Reveal = "verified", passage_ids: Sequence[str] | None = None
    ) -> None:
        check_choice(reveal, "reveal", Reveal)
        if passage_ids is not None:
            check_texts(passage_ids, "passage_ids")
            if (named := len(passage_ids)) != (asked := len(passages)):
                raise InputError(f"passage_ids must have one entry for each of the {asked} passages; found {named}")
        self._passages = tuple(passages)
        self._passage_ids = passage_ids
        self._reveal = reveal
        self.events: list[ProtocolEvent] = []
        """All events so far."""
        self.text = ""
        """The answer as a reader of all events sees it."""
        self._told = 0  # characters that the producer has written, revealed or not
        self._starts: list[int] = []  # where each sentence begins, the white space before it included

    def since(self, last_id: int) -> list[ProtocolEvent]:
        """List the events after the one numbered ``last_id``; 0 lists all."""
        return self.events[max(last_id, 0) :]

    def write(self, event: Event) -> list[ProtocolEvent]:
        """Write an event of :meth:`syncheck.Monitor.stream` or of a decoder of :mod:`fod` as events of the protocol."""
        known = len(self.events)
        if isinstance(event, TokenEvent):
            self.append(event.text)
        elif isinstance(event, SentenceEvent):
            self.sentence(event.sentence, lead=event.lead, marked=event.marked)
        elif isinstance(event, NoticeEvent):
            self._show(event.text)
        elif isinstance(event, EndEvent):
            self.end(event.report)
        return self.events[known:]

    def append(self, text: str) -> None:
        """Add text that is not verified yet; with ``reveal="verified"``, it is held back."""
        if self._reveal == "immediate":
            self._told += len(text)
            self._show(text[max(0, len(text) - (self._told - len(self.text))) :])

    def sentence(self, sentence: SentenceScore, *, lead: str = "", marked: bool = False) -> None:
        """Add a verified sentence, with the white space or reasoning before it, if that has not been shown.

        ``marked`` tells that it did not pass. Text before it that was never revealed raises InputError.
        """
        known = len(self.text) - (sentence.start - len(lead))  # characters of lead and sentence that are shown
        if known < 0:
            raise InputError(f"{-known} characters before a sentence were left out; pass the white space as lead=")
        s = sentence
        evidence = () if s.evidence is None else (located(s.evidence, self._passages, self._passage_ids),)
        self._starts.append(s.start - len(lead))
        checked = (s.start, s.end, s.score, s.status, s.verdict, evidence, s.reason, marked, s.remarks, s.contrasts)
        self._add(Verified, *checked)
        self._show((lead + sentence.text)[known:])
        self._told = max(self._told, sentence.end)

    def retract(self, sentences: int, reason: str) -> None:
        """Take back the last sentences, with the white space before them."""
        start = self._starts[-sentences]
        del self._starts[-sentences:]
        self._add(Retract, start, len(self.text), reason)
        self.text = self.text[:start]
        self._told = min(self._told, start)

    def notice(self, text: str, *, kind: Any = "message") -> None:
        """Add text that is not part of the answer; see :class:`syncheck.results.Notice`."""
        self._add(Notice, text, kind)

    def end(self, report: Report | Mapping[str, Any]) -> None:
        """Add the rest of the answer, or take back appended text that is not part of it, and then its report.

        A report whose response does not begin with the text that was revealed raises InputError.
        """
        values = report.to_dict() if isinstance(report, Report) else report
        response: str = values["response"]
        if self._reveal == "immediate" and self.text.startswith(response) and self.text != response:
            self._add(Retract, len(response), len(self.text), "the answer ends before it")
            self.text = response
        if not response.startswith(self.text):
            raise InputError(
                f"the events do not add up to the response: revealed {self.text[-40:]!r}, and the report has "
                f"{response[:40]!r}...; pass the whole stream, with the reveal= it was requested with"
            )
        self._show(response[len(self.text) :])
        self._add(Final, {name: value for name, value in values.items() if name not in _NOT_SENT})

    def _show(self, text: str) -> None:
        if text:
            self._add(Append, text)
            self.text += text

    def _add(self, kind: type[ProtocolEvent], *values: Any) -> None:
        self.events.append(kind(len(self.events) + 1, *values))


def protocol_events(
    events: Iterable[Event],
    passages: Sequence[str] = (),
    *,
    reveal: Reveal = "verified",
    passage_ids: Sequence[str] | None = None,
) -> Iterator[ProtocolEvent]:
    """Turn the events of :meth:`syncheck.Monitor.stream`, or of a decoder's ``stream``, into those of the protocol.

    The stream must have been called with the same ``reveal``, if it takes one; the other parameters are as in
    :class:`EventWriter`.
    """
    writer = EventWriter(passages, reveal=reveal, passage_ids=passage_ids)
    for event in events:
        yield from writer.write(event)


def why_stopped(sentence: SentenceScore, threshold: float, *, withheld: bool = False) -> str:
    """Write the notice of a sentence that ended an answer, because it did not reach a threshold."""
    missing = f"has no score ({sentence.reason or sentence.status})"
    shown = missing if sentence.score is None else f"scored {sentence.score:.2f}"
    which, end = ("the next", "; it is withheld") if withheld else ("this", "")
    return f"Stopped: {which} sentence {shown}, and {threshold:.2f} was asked for{end}."


def located(evidence: Evidence, passages: Sequence[str], passage_ids: Sequence[str] | None = None) -> LocatedEvidence:
    """Locate a piece of evidence in its passage, whatever white space the passage has."""
    known = evidence.passage < len(passages)
    place = _place(evidence.text, passages[evidence.passage]) if known else None
    start, end = place or (None, None)
    name = passage_ids[evidence.passage] if known and passage_ids is not None else None
    return LocatedEvidence(evidence.passage, start, end, evidence.text, evidence.score, name)


def _place(text: str, passage: str) -> tuple[int, int] | None:
    start = passage.find(text)
    if text and start >= 0:
        return start, start + len(text)
    words = text.split()
    match = re.search(r"\s*".join(map(re.escape, words)), passage) if words else None
    return match.span() if match else None
