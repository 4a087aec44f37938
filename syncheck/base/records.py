"""Records of JSON Lines: their fields, with the places at which they are wrong."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from syncheck.base.errors import InputError, RecordError
from syncheck.base.printable import shortened

_CALLED_ELSEWHERE = {
    "response": "answer completion generated_answer output prediction",
    "context": "context_list contexts documents passages reference_contexts retrieved_contexts source_documents",
    "question": "input instruction prompt query user_input",
}
_CALLED_HERE = {other: name for name, others in _CALLED_ELSEWHERE.items() for other in others.split()}
"""Names of fields here by their names in other tools. Ragas has ``user_input``, ``retrieved_contexts`` and
``response``, before 0.2 ``question``, ``contexts`` and ``answer``; LettuceDetect has ``context``, ``question`` and
``answer``, in its data ``prompt`` and ``answer``."""
_SHOWN = 12
_NEARNESS = 0.75  # similarity, in [0, 1], from which the name of a field is taken for a mistyped one
JsonDict = dict[str, Any]
_BOM = b"\xef\xbb\xbf"
T = TypeVar("T")
SHOWN = 60  # characters of a text in a message
_MISSING = object()
_NAMES: dict[type, str] = {str: "a string", list: "a list", dict: "an object", bool: "true or false"}
_NAMES |= {int: "a whole number", float: "a number"}


def fields_found(name: str, fields: Collection[str]) -> str:
    """Describe the fields of a record that lacks the field ``name``, and which of them to rename."""
    others = [other for other in fields if other != name]
    listed = ", ".join(map(repr, others[:_SHOWN])) + (", ..." if len(others) > _SHOWN else "")
    renamed = {other: wanted for other in others if (wanted := _CALLED_HERE.get(other)) and wanted not in others}
    if name not in renamed.values():
        lower = {other.lower(): other for other in others if other not in renamed}
        renamed |= {lower[near]: name for near in get_close_matches(name, lower, 1, _NEARNESS)}
    remedy = ", ".join(f"{other!r} to {wanted!r}" for other, wanted in renamed.items())
    return f"found {listed or 'no other field'}" + (f"; rename {remedy}" if remedy else "")


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that could not be used, and the reason.

    ``source`` is the file (``"-"`` for standard input), ``line`` counts from 1, and ``id`` is empty if unknown.
    """

    source: str
    line: int
    id: str
    reason: str

    @classmethod
    def of(cls, source: str, line: int, row: Mapping[str, Any], reason: str) -> RefusedRecord:
        """Make the refusal of a row, without the place at which a RecordError begins its reason."""
        shown = reason.removeprefix(f"{source}:{line}").lstrip(":, ")
        return cls(source, line, "" if row.get("id") is None else str(row["id"]), shown)


def record_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers from 1, leaving out byte-order marks and blank lines."""
    for number, line in enumerate(lines, 1):
        if text := line.removeprefix(_BOM).strip():
            yield number, text


def parsed_record(line: str | bytes, source: str, number: int) -> JsonDict:
    """Parse the object in a line of JSON Lines; anything else raises RecordError with ``source`` and ``number``."""
    try:
        record = json.loads(line.decode() if isinstance(line, bytes) else line)
    except (ValueError, RecursionError) as error:
        hint = "; each line must be one JSON object (JSON Lines)" if number == 1 else ""
        raise RecordError(f"not JSON in UTF-8: {error}{hint}", source=source, line=number) from error
    if not isinstance(record, dict):
        hint = "; write its items one a line (JSON Lines)" if isinstance(record, list) and number == 1 else ""
        raise RecordError(f"expected an object, found {type(record).__name__}{hint}", source=source, line=number)
    for name, value in record.items():
        try:
            json.dumps({name: value}, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError) as error:
            broken = isinstance(error, UnicodeEncodeError)
            message = "not JSON in UTF-8" if broken else "expected a value that JSON can represent"
            remedy = "write whole characters" if broken else "write null for a missing number"
            raise RecordError(f"{message}: {error}; {remedy}", source=source, line=number, field=name) from error
    return record


@dataclass(frozen=True, slots=True)
class Record:
    """A JSON object, perhaps of a file, or one nested in it; ``prefix`` is its path in the line."""

    values: Mapping[str, Any]
    source: str = ""
    line: int = 0
    prefix: str = ""

    def error(self, message: str, field: str | None = None) -> InputError:
        """Make an error that points at this record, or at one of its fields."""
        place = f"{self.prefix}{field}" if field else self.prefix.rstrip(".") or None
        if not self.source:
            return InputError(message if place is None else f"field {place!r}: {message}")
        return RecordError(message, source=self.source, line=self.line, field=place)

    def get(self, field: str, kind: type[T]) -> T:
        """Read a field that must exist and have this JSON type."""
        value = self.values.get(field, _MISSING)
        if value is _MISSING:
            raise self.error(f"missing; expected {_NAMES[kind]}; {fields_found(field, self.values)}", field)
        if kind is float and type(value) is int:
            with suppress(OverflowError):  # more than a float can hold, which is refused below
                value = float(value)
        # JSON's true is an int to Python, but not a number to its author.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(f"expected {_NAMES[kind]}, found {_shown(value)}", field)
        return value

    def choice(self, field: str, choices: Any) -> Any:  # noqa: ANN401 - a Literal is no type to mypy
        """Read a field that must be one of the strings of a ``Literal``."""
        if (value := self.get(field, str)) not in get_args(choices):
            raise self.error(f"expected one of {', '.join(get_args(choices))}, found {_shown(value)}", field)
        return value

    def optional(self, field: str, kind: type[T]) -> T | None:
        """Read a field that may be absent or null."""
        return None if self.values.get(field) is None else self.get(field, kind)

    def of(self, kind: type[T]) -> T:
        """Read the fields of a dataclass, each a string, a number or a choice, or None where that is allowed."""
        values: dict[str, Any] = {}
        for name, hint in get_type_hints(kind).items():
            wanted, *others = get_args(hint) if NoneType in get_args(hint) else (hint,)
            if others and self.values.get(name) is None:
                values[name] = None
            else:
                values[name] = (self.choice if get_origin(wanted) is Literal else self.get)(name, wanted)
        return kind(**values)

    def strings(self, field: str) -> tuple[str, ...]:
        """Read a field that must be a list of strings."""
        values = self.get(field, list)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise self.error(f"expected a string, found {_shown(value)}", f"{field}[{index}]")
        return tuple(values)

    def texts(self, field: str) -> tuple[str, ...]:
        """Read a field that must be a string or a list of strings as a tuple."""
        value = self.values.get(field, _MISSING)
        if isinstance(value, str):
            return (value,)
        if isinstance(value, list):
            return self.strings(field)
        expected = "expected a string or a list of strings"
        absent = f"missing; {expected}; {fields_found(field, self.values)}"
        raise self.error(absent if value is _MISSING else f"{expected}, found {_shown(value)}", field)

    def objects(self, field: str) -> Iterator[Record]:
        """Yield the members of a field that must be a list of objects."""
        for index, value in enumerate(self.get(field, list)):
            if not isinstance(value, dict):
                raise self.error(f"expected an object, found {_shown(value)}", f"{field}[{index}]")
            yield Record(value, self.source, self.line, f"{self.prefix}{field}[{index}].")

    def nested(self, field: str) -> Record:
        """Read a field that must be an object."""
        return Record(self.get(field, dict), self.source, self.line, f"{self.prefix}{field}.")


def read_records(path: Path) -> Iterator[Record]:
    """Yield the objects of a JSON Lines file in UTF-8; blank lines are skipped, and only a line feed ends a line."""
    if not path.is_file():
        raise InputError(f"{path} does not exist or is not a file; pass a JSON Lines file")
    with path.open("rb") as lines:
        for number, line in record_lines(lines):
            yield Record(parsed_record(line, str(path), number), str(path), number)


def _shown(value: object) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), SHOWN)
