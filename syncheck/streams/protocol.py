"""The events by which an answer reaches a reader, as JSON, and how to fold them; docs/protocol.md has the format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, get_args

from syncheck.errors import InputError
from syncheck.types import Contrast, Remark, Status, Verdict

VERSION = 1

Reveal = Literal["verified", "immediate"]
"""``verified``: a character comes after the verification of its sentence, and stays. ``immediate``: text comes as it is
written, its verification follows, and it may be retracted or replaced."""


@dataclass(frozen=True, slots=True)
class Append:
    """The answer continues with this text.

    Attributes
    ----------
    id : int
        Place of the event in its stream, counted from 1; the other events have it, too.
    text : str
    """

    id: int
    text: str
    type: ClassVar[str] = "append"


@dataclass(frozen=True, slots=True)
class Citation:
    """The part of a passage that supports a sentence best.

    Attributes
    ----------
    passage : int
        Index among the passages, from 0.
    passage_id : str or None
        The caller's own name for it.
    start, end : int or None
        Characters of the passage; None where the evidence is not in it word for word.
    text : str
        The evidence.
    support : float
        How well it supports the sentence, in [0, 1].
    """

    passage: int
    start: int | None
    end: int | None
    text: str
    support: float
    passage_id: str | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """A sentence was checked; ``status`` says with what outcome, and only ``scored`` has a score.

    Attributes
    ----------
    id : int
    start, end : int
        Its characters in the answer, which follow this event where text is revealed when verified.
    score : float or None
        P(faithful) in [0, 1].
    status : Status
    verdict : Verdict or None
    evidence : tuple of Citation
        The best first.
    reason : str or None
        Why there is no score.
    marked : bool
        Whether it was kept although it did not pass.
    remarks : tuple of Remark
    contrasts : tuple of Contrast
        Where it says otherwise than a passage, word by word.
    """

    id: int
    start: int
    end: int
    score: float | None
    status: Status
    verdict: Verdict | None = None
    evidence: tuple[Citation, ...] = ()
    reason: str | None = None
    marked: bool = False
    remarks: tuple[Remark, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    type: ClassVar[str] = "verified"


@dataclass(frozen=True, slots=True)
class Retract:
    """These characters of the answer are removed; ``reason`` says why, in words."""

    id: int
    start: int
    end: int
    reason: str
    type: ClassVar[str] = "retract"


@dataclass(frozen=True, slots=True)
class Replace:
    """These characters of the answer become this text."""

    id: int
    start: int
    end: int
    text: str
    type: ClassVar[str] = "replace"


@dataclass(frozen=True, slots=True)
class Notice:
    """Text that is not part of the answer.

    ``kind`` is ``message`` for text next to it or in its place, such as an abstention's words, and ``warning`` for
    what went wrong on the way.
    """

    id: int
    text: str
    kind: Literal["message", "warning"] = "message"
    type: ClassVar[str] = "notice"


@dataclass(frozen=True, slots=True)
class Final:
    """The answer is complete; ``report`` is that of :meth:`syncheck.Report.to_dict` without passages and tokens."""

    id: int
    report: Mapping[str, Any]
    type: ClassVar[str] = "final"


ProtocolEvent = Append | Verified | Retract | Replace | Notice | Final
_KINDS: Mapping[str, type[ProtocolEvent]] = {kind.type: kind for kind in get_args(ProtocolEvent)}
_PARTS: Mapping[str, type[Citation | Contrast]] = {"evidence": Citation, "contrasts": Contrast}


@dataclass
class FoldedAnswer:
    """An answer as the events so far make it; ``last_id`` is the event to continue after when the stream breaks off."""

    text: str = ""
    last_id: int = 0
    sentences: list[Verified] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    report: Mapping[str, Any] | None = None

    def take(self, event: ProtocolEvent) -> None:
        """Fold the next event; one that was folded before changes nothing."""
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
            self._splice(event.start, event.end, event.text if isinstance(event, Replace) else "")

    def _splice(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + self.text[end:]
        by, kept = len(text) - (end - start), [s for s in self.sentences if s.end <= start or s.start >= end]
        self.sentences = [s if s.end <= start else replace(s, start=s.start + by, end=s.end + by) for s in kept]


def fold(events: Iterable[ProtocolEvent], answer: FoldedAnswer | None = None) -> FoldedAnswer:
    """Fold events into a new answer, or into one that was begun before the stream broke off.

    Raises
    ------
    InputError
        If events are missing in between.
    """
    folded = FoldedAnswer() if answer is None else answer
    for event in events:
        folded.take(event)
    return folded


def to_dict(event: ProtocolEvent) -> dict[str, Any]:
    """Return an event as values that JSON can hold."""
    values = _values(event)
    if isinstance(event, Verified):
        values["evidence"] = [_values(cited) for cited in event.evidence]
        values["remarks"] = list(event.remarks)
        values["contrasts"] = [_values(contrast) for contrast in event.contrasts]
    return {"v": VERSION, "type": event.type, **values}


def from_dict(values: Mapping[str, Any]) -> ProtocolEvent:
    """Return the event that :func:`to_dict` wrote; fields that are not known are ignored.

    Raises
    ------
    InputError
        If the version or the type is another, or a field is missing.
    """
    kind = _KINDS.get(values.get("type", ""))
    if values.get("v") != VERSION or kind is None:
        raise InputError(
            f"expected an event of version {VERSION} of a type in {sorted(_KINDS)}; found version "
            f"{values.get('v')!r}, type {values.get('type')!r}. Use the client of the server's release"
        )
    found = _known(kind, values)
    try:
        for name in _PARTS.keys() & found.keys():
            found[name] = tuple(_PARTS[name](**_known(_PARTS[name], part)) for part in found[name])
        if "remarks" in found:
            found["remarks"] = tuple(found["remarks"])
        return kind(**found)
    except TypeError as error:
        raise InputError(f"an event of type {kind.type!r} lacks a field: {error}; found {sorted(found)}") from error


def to_json(event: ProtocolEvent) -> str:
    """Return an event as one line of JSON, in ASCII."""
    return json.dumps(to_dict(event), allow_nan=False)


def from_json(line: str) -> ProtocolEvent:
    """Return the event of a line that :func:`to_json` wrote."""
    try:
        values = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"expected one event as JSON; found {line[:80]!r}: {error}") from error
    if not isinstance(values, dict):
        raise InputError(f"expected one event as a JSON object; found {type(values).__name__}")
    return from_dict(values)


def to_sse(event: ProtocolEvent) -> str:
    """Return an event as a server-sent event, whose id a client sends back as ``Last-Event-ID``."""
    return f"id: {event.id}\ndata: {to_json(event)}\n\n"


def _values(part: ProtocolEvent | Citation | Contrast) -> dict[str, Any]:
    return {f.name: getattr(part, f.name) for f in fields(part)}


def _known(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f.name: values[f.name] for f in fields(kind) if f.name in values}
