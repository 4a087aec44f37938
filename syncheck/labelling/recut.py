"""Whether labelled sentences are the sentences that are measured: where they are not, labels merge or are doubled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from syncheck.errors import InputError, RecordError
from syncheck.labelling.responses import LabelledResponse
from syncheck.segments import is_checkable

__all__ = ["carried_line", "check_cut", "shortened"]


SHOWN = 60
"""Characters of a text that a message shows."""
REMEDY = (
    "give the text as it was written in 'response', pass the options of segmentation that cut it so, or accept that "
    "labels are carried over (carry_labels=True, --carry-labels): what overlaps an unfaithful sentence is then "
    "unfaithful"
)

Bounds = Sequence[tuple[int, int]]
"""Start and end of sentences in a response, in order."""


def check_cut(record: LabelledResponse, bounds: Bounds) -> None:
    """Check that each labelled sentence of a response is measured as one, and by itself.

    Parameters
    ----------
    record
        With labels of sentences; with spans, or with ``carry_labels``, every cut is right.
    bounds
        Of the measured sentences. Those without a letter or digit, which get no score, do not count.

    Raises
    ------
    RecordError
        If two labelled sentences share a measured one, or one is measured as several; it has the line of the record.
        An :class:`InputError` without a line for a record that was not read from a file.
    """
    found = None if record.carry_labels else _cut_otherwise(record, bounds)
    if found is None:
        return
    message = f"record {record.id!r}: expected each labelled sentence to be measured as one, but {found}; {REMEDY}"
    if record.source is None or record.line is None:
        raise InputError(message)
    raise RecordError(message, source=record.source, line=record.line, field="sentences")


def carried_line(measured: Iterable[tuple[LabelledResponse, Bounds]]) -> str | None:
    """Say how many labelled sentences were carried over to how many others, None if every one was measured as one.

    Parameters
    ----------
    measured
        Each response with the bounds of its measured sentences.
    """
    names, given, became = [], 0, 0
    for record, bounds in measured:
        if _cut_otherwise(record, bounds) is not None:
            names.append(record.id)
            given += len(_checkable(record.response, _labelled(record)))
            became += len(_checkable(record.response, bounds))
    if not names:
        return None
    return f"labels carried over: in {len(names)} responses, {names[0]} first, {given} sentences became {became}"


def shortened(text: str) -> str:
    """Return the first characters of a text, as a message shows them."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _cut_otherwise(record: LabelledResponse, bounds: Bounds) -> str | None:
    """Say where the labelled sentences are not the measured ones, None where they are the same."""
    if record.sentences is None:
        return None
    given = _checkable(record.response, _labelled(record))
    measured = _checkable(record.response, bounds)
    for one in measured:
        shared = _overlapping(one, given)
        if len(shared) > 1:
            return f"{len(shared)}, {_shown(record, shared[0])} first, would be one: {_shown(record, one)}"
    for one in given:
        parts = _overlapping(one, measured)
        if len(parts) > 1:
            return f"{_shown(record, one)} would be {len(parts)}, {_shown(record, parts[0])} first"
    return None


def _labelled(record: LabelledResponse) -> list[tuple[int, int]]:
    return [(sentence.start, sentence.end) for sentence in record.sentences or ()]


def _checkable(response: str, bounds: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(start, end) for start, end in bounds if is_checkable(response[start:end])]


def _overlapping(one: tuple[int, int], others: Bounds) -> list[tuple[int, int]]:
    return [(start, end) for start, end in others if one[0] < end and start < one[1]]


def _shown(record: LabelledResponse, one: tuple[int, int]) -> str:
    return repr(shortened(record.response[slice(*one)]))
