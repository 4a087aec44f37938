"""JSON Lines in and out, a record at a time: a bad record is reported and the others go on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from tqdm import tqdm

from syncheck.errors import InputError, RecordError, SyncheckError
from syncheck.field_names import fields_found
from syncheck.printable import printable

__all__ = ["RefusedRecord", "field", "parsed_record", "process", "read_json"]

JsonDict = dict[str, Any]


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


def process(source: str, target: str, work: Callable[[JsonDict], JsonDict]) -> list[RefusedRecord]:
    """Apply ``work`` to each record of a file and write what it returns.

    Parameters
    ----------
    source, target
        Files, or ``-`` for standard input and output.
    work
        Takes a record and returns the output; a :class:`SyncheckError` it raises goes to the output as
        ``{"id", "line", "error"}``.

    Returns
    -------
    list of RefusedRecord
        Those that failed, in order.

    Raises
    ------
    InputError
        If a file cannot be opened, or the two are one: the output would overwrite the input.
    """
    if source != "-" and Path(target).exists() and Path(source).exists() and Path(target).samefile(source):
        raise InputError(f"the output {target!r} is the input, and would overwrite it; write to another file")
    refused: list[RefusedRecord] = []
    with _opened(source, "r") as lines, _opened(target, "w") as output:
        for number, line in enumerate(tqdm(lines, desc="records", unit=" records", disable=None), 1):
            if not line.strip():
                continue
            record: JsonDict = {}
            try:
                record = parsed_record(line, source, number)
                result = work(record)
            except SyncheckError as error:
                result = {"id": record.get("id"), "line": number, "error": str(error)}
                place, name = f"{source}:{number}: ", record.get("id")
                reason = str(error).removeprefix(place)  # a RecordError says where it was
                refused.append(RefusedRecord(source, number, "" if name is None else str(name), reason))
                sys.stderr.write(f"{place}{reason}\n")
            text = json.dumps(result, ensure_ascii=False, allow_nan=False)
            output.write((printable(text) if output.isatty() else text) + "\n")
            output.flush()
    return refused


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
        If it is not JSON in UTF-8, nested too deeply to be read, no object, or a field holds half a character: those
        would fail later, in a tokenizer or the output.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not JSON in UTF-8: {error}", source=source, line=number) from error
    if not isinstance(record, dict):
        raise RecordError(f"expected an object, found {type(record).__name__}", source=source, line=number)
    for name, value in record.items():
        try:
            json.dumps({name: value}, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            message = f"not JSON in UTF-8: {error}; write whole characters"
            raise RecordError(message, source=source, line=number, field=name) from error
    return record


@contextmanager
def _opened(name: str, mode: str) -> Iterator[IO[str]]:
    if name == "-":
        standard = sys.stdin if mode == "r" else sys.stdout
        if isinstance(standard, TextIOWrapper):  # UTF-8 whatever the locale says
            standard.reconfigure(encoding="utf-8", errors="surrogateescape")
        yield standard
        return
    try:
        stream = open(name, mode, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
    except OSError as error:
        raise InputError(f"cannot open {name!r}: {error.strerror}") from error
    with stream:
        yield stream
