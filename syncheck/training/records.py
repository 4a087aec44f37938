"""JSON Lines, one checked field at a time: every fault knows its file, line and field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from syncheck.errors import InputError, RecordError
from syncheck.field_names import fields_found
from syncheck.jsonlines import parsed_record, record_lines

__all__ = ["Record", "read_records"]

T = TypeVar("T")

_MISSING = object()
_NAMES = {str: "a string", list: "a list", dict: "an object", int: "a whole number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object of a file, or one inside it; ``prefix`` is its place in the line."""

    values: Mapping[str, Any]
    source: str
    line: int
    prefix: str = ""

    def error(self, message: str, field: str | None = None) -> RecordError:
        """Return an error that points at this record, or at one of its fields."""
        place = f"{self.prefix}{field}" if field else self.prefix.rstrip(".") or None
        return RecordError(message, source=self.source, line=self.line, field=place)

    def get(self, field: str, kind: type[T]) -> T:
        """Return a field that must be there and be of this JSON type."""
        value = self.values.get(field, _MISSING)
        if value is _MISSING:
            raise self.error(f"missing; expected {_NAMES[kind]}; {fields_found(field, self.values)}", field)
        # JSON's true is an int to Python, but not a number to its author.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(f"expected {_NAMES[kind]}, found {_shown(value)}", field)
        return value

    def optional(self, field: str, kind: type[T]) -> T | None:
        """Return a field that may be absent or null."""
        return None if self.values.get(field) is None else self.get(field, kind)

    def strings(self, field: str) -> tuple[str, ...]:
        """Return a field that must be a list of strings."""
        values = self.get(field, list)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise self.error(f"expected a string, found {_shown(value)}", f"{field}[{index}]")
        return tuple(values)

    def texts(self, field: str) -> tuple[str, ...]:
        """Return a field that must be a list of strings, or a string, which is a list of one."""
        value = self.values.get(field, _MISSING)
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list):
            expected = "expected a string or a list of strings"
            absent = f"missing; {expected}; {fields_found(field, self.values)}"
            found = absent if value is _MISSING else f"{expected}, found {_shown(value)}"
            raise self.error(found, field)
        return self.strings(field)

    def objects(self, field: str) -> Iterator[Record]:
        """Yield the members of a field that must be a list of objects."""
        for index, value in enumerate(self.get(field, list)):
            place = f"{self.prefix}{field}[{index}]"
            if not isinstance(value, dict):
                raise self.error(f"expected an object, found {_shown(value)}", f"{field}[{index}]")
            yield Record(value, self.source, self.line, f"{place}.")


def read_records(path: Path) -> Iterator[Record]:
    """Yield the objects of a JSON Lines file in UTF-8; blank lines are passed over.

    Raises
    ------
    InputError
        If the file does not exist.
    RecordError
        At the first line that is not a JSON object, or holds what is no text.
    """
    if not path.is_file():
        raise InputError(f"{path} does not exist or is not a file; pass a JSON Lines file")
    with path.open("rb") as lines:
        for number, line in record_lines(lines):
            yield Record(parsed_record(line, str(path), number), str(path), number)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
