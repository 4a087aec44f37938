"""Event protocol: the events that carry an answer to a reader, as JSON, and their folding; see docs/protocol.md.

What a decoder asks a server for, and the pieces in which it comes, are at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, get_args

from syncheck.base.errors import InputError
from syncheck.results.types import Contrast, Remark, Status, Verdict

VERSION = 1

Reveal = Literal["verified", "immediate"]
"""When text is shown. ``verified``: after its sentence is verified, and it stays. ``immediate``: as it is written;
verification follows, and the text may be retracted."""


@dataclass(frozen=True, slots=True)
class Append:
    """The answer continues with this text."""

    id: int
    """Number of the event in its stream, from 1; all events have it."""
    text: str
    type: ClassVar[str] = "append"


@dataclass(frozen=True, slots=True)
class LocatedEvidence:
    """The part of a passage that supports a sentence best."""

    passage: int
    """Index among the passages, from 0."""
    start: int | None
    end: int | None
    """Characters of the passage, half-open; None if the evidence is not in it word for word."""
    text: str
    support: float
    """Support of the sentence by the evidence, in [0, 1]."""
    passage_id: str | None = None
    """The caller's name for the passage."""


@dataclass(frozen=True, slots=True)
class Verified:
    """A sentence was checked; only the status ``scored`` has a score."""

    id: int
    start: int
    end: int
    """Its characters in the answer, half-open; with ``reveal="verified"`` they follow this event."""
    score: float | None
    """P(faithful) in [0, 1]."""
    status: Status
    verdict: Verdict | None = None
    """The score in words; None without a score."""
    evidence: tuple[LocatedEvidence, ...] = ()
    """Evidence for the sentence, best first."""
    reason: str | None = None
    """Why there is no score."""
    marked: bool = False
    """True if it was kept although it did not pass."""
    remarks: tuple[Remark, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    """Disagreements with a passage, word by word."""
    type: ClassVar[str] = "verified"


@dataclass(frozen=True, slots=True)
class Retract:
    """The characters ``start`` to ``end`` of the answer, half-open, are removed; ``reason`` says why, in words."""

    id: int
    start: int
    end: int
    reason: str
    type: ClassVar[str] = "retract"


@dataclass(frozen=True, slots=True)
class Notice:
    """Text that is not part of the answer: a ``message`` after or instead of it, or a ``warning`` on the way."""

    id: int
    text: str
    kind: Literal["message", "warning"] = "message"
    type: ClassVar[str] = "notice"


@dataclass(frozen=True, slots=True)
class Final:
    """The answer is complete; ``report`` is :meth:`syncheck.Report.to_dict` without passages, tokens and spans."""

    id: int
    report: Mapping[str, Any]
    type: ClassVar[str] = "final"


ProtocolEvent = Append | Verified | Retract | Notice | Final
_KINDS: Mapping[str, type[ProtocolEvent]] = {kind.type: kind for kind in get_args(ProtocolEvent)}
_PARTS: Mapping[str, type[LocatedEvidence | Contrast]] = {"evidence": LocatedEvidence, "contrasts": Contrast}
_LISTED = {*_PARTS, "remarks"}
"""Fields that are tuples, and lists in JSON; parts are objects there."""


@dataclass
class FoldedAnswer:
    """An answer as folded from the events so far."""

    text: str = ""
    last_id: int = 0
    """Number of the last event, after which a stream that broke off is continued."""
    sentences: list[Verified] = field(default_factory=list)
    """The sentences that were verified and not retracted."""
    notices: list[Notice] = field(default_factory=list)
    report: Mapping[str, Any] | None = None
    """The report of the final event; None before it."""

    def take(self, event: ProtocolEvent) -> None:
        """Fold the next event; one that was folded before changes nothing, a gap before it raises InputError."""
        if event.id > self.last_id + 1:
            raise InputError(f"expected event {self.last_id + 1}, found {event.id}: ask for the stream after last_id")
        if event.id <= self.last_id:
            return
        self.last_id = event.id
        if isinstance(event, Append):
            self.text += event.text
        elif isinstance(event, Verified):
            self.sentences.append(event)
        elif isinstance(event, Notice):
            self.notices.append(event)
        elif isinstance(event, Final):
            self.report = event.report
        else:
            start, end, by = event.start, event.end, event.end - event.start
            self.text = self.text[:start] + self.text[end:]
            kept = [s for s in self.sentences if s.end <= start or s.start >= end]
            self.sentences = [s if s.end <= start else replace(s, start=s.start - by, end=s.end - by) for s in kept]


def fold(events: Iterable[ProtocolEvent], answer: FoldedAnswer | None = None) -> FoldedAnswer:
    """Fold events into a new answer, or into one that was begun before a stream broke off; a gap raises InputError."""
    folded = FoldedAnswer() if answer is None else answer
    for event in events:
        folded.take(event)
    return folded


def to_dict(event: ProtocolEvent) -> dict[str, Any]:
    """Convert an event to values that JSON can represent."""
    values = _values(event)
    for name in _LISTED & values.keys():
        values[name] = [_values(part) if name in _PARTS else part for part in values[name]]
    return {"v": VERSION, "type": event.type, **values}


def from_dict(values: Mapping[str, Any]) -> ProtocolEvent:
    """Rebuild the event that :func:`to_dict` wrote, ignoring unknown fields; anything else raises InputError."""
    kind = _KINDS.get(values.get("type", ""))
    if values.get("v") != VERSION or kind is None:
        raise InputError(
            f"expected an event of version {VERSION} of a type in {sorted(_KINDS)}; found version "
            f"{values.get('v')!r}, type {values.get('type')!r}. Use the client of the server's release"
        )
    given = _known(kind, values)
    try:
        for name in _LISTED & given.keys():
            part = _PARTS.get(name)
            given[name] = tuple(one if part is None else part(**_known(part, one)) for one in given[name])
        return kind(**given)
    except TypeError as error:
        raise InputError(f"an event of type {kind.type!r} lacks a field: {error}; found {sorted(given)}") from error


def to_json(event: ProtocolEvent) -> str:
    """Write an event as one line of JSON, in ASCII."""
    return json.dumps(to_dict(event), allow_nan=False)


def from_json(line: str) -> ProtocolEvent:
    """Read the event in a line that :func:`to_json` wrote; errors as in :func:`from_dict`."""
    try:
        values = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"expected one event as JSON; found {line[:80]!r}: {error}") from error
    if not isinstance(values, dict):
        raise InputError(f"expected one event as a JSON object; found {type(values).__name__}")
    return from_dict(values)


def to_sse(event: ProtocolEvent) -> str:
    """Write an event as a server-sent event."""
    return f"id: {event.id}\ndata: {to_json(event)}\n\n"


def _values(part: ProtocolEvent | LocatedEvidence | Contrast) -> dict[str, Any]:
    return {f.name: getattr(part, f.name) for f in fields(part)}


def _known(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f.name: values[f.name] for f in fields(kind) if f.name in values}


@dataclass(frozen=True, slots=True)
class ContinuationRequest:
    """Request to a server to continue an answer that it has begun."""

    beginning: str = ""
    """The answer so far: whole sentences, or empty."""
    samples: int | None = None
    """Number of samples of the next sentence, whose pieces the reader closes once each has a whole sentence; None asks
    for one continuation to the end of the answer."""
    seed: int = 0
    """Seed of the samples; each request of an answer has another one."""
    temperature: float | None = None
    top_p: float | None = None
    """Temperature and nucleus of the sampling; None leaves them to whoever asks the server."""
    tokens: int = 0
    """Number of tokens of the beginning as far as it is known, for a limit on the tokens of the whole answer."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The next piece of one of the continuations."""

    text: str = ""
    sample: int | None = 0
    """Index of the sample, from 0; None for the usage of all samples together."""
    stop: Literal["end_of_text", "length"] | None = None
    """Why it ends with this piece; None if it goes on."""
    usage: Mapping[str, Any] | None = None
    """Numbers of tokens of the sample or of all together, as an OpenAI-compatible server reports them, if it does."""
