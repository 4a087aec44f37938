"""JSON Lines in and out, a record at a time: a bad record is reported and the others go on."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncheck.errors import InputError, RecordError

__all__ = ["RefusedRecord", "field", "fields_found", "parsed_record", "read_json", "record_lines"]


_CALLED_HERE: Mapping[str, str] = {
    "answer": "response",
    "completion": "response",
    "context_list": "context",
    "contexts": "context",
    "documents": "context",
    "generated_answer": "response",
    "input": "question",
    "instruction": "question",
    "output": "response",
    "passages": "context",
    "prediction": "response",
    "prompt": "question",
    "query": "question",
    "reference_contexts": "context",
    "retrieved_contexts": "context",
    "source_documents": "context",
    "user_input": "question",
}
"""Ragas has ``user_input``, ``retrieved_contexts`` and ``response``, before 0.2 ``question``, ``contexts`` and
``answer``; LettuceDetect ``context``, ``question`` and ``answer``, in its data ``prompt`` and ``answer``."""
_SHOWN = 12


def fields_found(name: str, found: Collection[str]) -> str:
    """Return which fields a record has that lacks this one, and which of them to rename."""
    others = [other for other in found if other != name]
    listed = ", ".join(map(repr, others[:_SHOWN])) + (", ..." if len(others) > _SHOWN else "")
    renamed = {other: wanted for other in others if (wanted := _CALLED_HERE.get(other)) and wanted not in others}
    remedy = ", ".join(f"{other!r} to {wanted!r}" for other, wanted in renamed.items())
    return f"found {listed or 'no other field'}" + (f"; rename {remedy}" if remedy else "")


JsonDict = dict[str, Any]

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that could not be used.

    Attributes
    ----------
    source : str
        The file, ``-`` for standard input.
    line : int
        Counted from 1.
    id : str
        Empty where the record has none, or could not be read.
    reason : str
        What was expected, what was found, what to do.
    """

    source: str
    line: int
    id: str
    reason: str


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """Read one JSON file in UTF-8."""
    return json.loads(path.read_text(encoding="utf-8"))


def record_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers, from 1, without byte-order marks; blank ones are passed over."""
    for number, line in enumerate(lines, 1):
        text = line.removeprefix(_BOM).strip()
        if text:
            yield number, text


def field(record: JsonDict, name: str, kind: type | tuple[type, ...], *, default: Any = ...) -> Any:  # noqa: ANN401
    """Return a field of the right type, or the default where it is absent or null.

    Raises
    ------
    InputError
        If it is missing without a default, or of another type.
    """
    value = record.get(name)
    if value is None:
        if default is ...:
            raise InputError(f"field {name!r} is missing; {fields_found(name, record)}; every record needs it")
        return default
    if not isinstance(value, kind) or isinstance(value, bool):
        wanted = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise InputError(f"field {name!r} must be {wanted}; found {type(value).__name__}")
    return value


def parsed_record(line: str | bytes, source: str, number: int) -> JsonDict:
    """Return the object of a line of JSON Lines.

    Parameters
    ----------
    line
    source, number
        The file and the line's number in it, from 1, for the message.

    Raises
    ------
    RecordError
        If it is not JSON in UTF-8, nested too deeply to be read, no object, or a field holds half a character, NaN or
        an infinite number: those would fail later, in a tokenizer or the output.
    """
    try:
        record = json.loads(line.decode() if isinstance(line, bytes) else line)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not JSON in UTF-8: {error}", source=source, line=number) from error
    if not isinstance(record, dict):
        raise RecordError(f"expected an object, found {type(record).__name__}", source=source, line=number)
    for name, value in record.items():
        try:
            json.dumps({name: value}, ensure_ascii=False, allow_nan=False).encode()
        except UnicodeEncodeError as error:
            message = f"not JSON in UTF-8: {error}; write whole characters"
            raise RecordError(message, source=source, line=number, field=name) from error
        except (ValueError, RecursionError) as error:
            message = f"expected a value that JSON can carry: {error}; write null for a number that is not there"
            raise RecordError(message, source=source, line=number, field=name) from error
    return record
