"""Files: atomic writes, JSON Lines by record, and checked reads of checkpoints.

A checkpoint may come from anyone: its files must be regular and not too large, numbers in its JSON finite, and its
digests must match. Digests in the same folder reveal damage and half-written copies but no intent, so everything that
is read is validated too.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from io import BufferedRandom
from pathlib import Path
from pickle import UnpicklingError
from struct import error as StructError
from typing import Any

import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from syncheck.base.errors import CheckpointError, InputError, MismatchError, RecordError

MAX_BYTES = 2 << 30
"""Largest file of weights that is read into memory."""

MAX_JSON_BYTES = 64 << 20
"""Largest JSON file that is read. A monitor's config has 100 bytes for each question that it was trained on."""

MAX_INTEGER = 1 << 53
"""Largest absolute value of a whole number in a file; every reader of JSON can represent it."""

DAMAGED = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, TypeError),
    *(ValueError, UnpicklingError, StructError),
)
"""Errors that the readers of pickles raise on damaged files."""

DIGESTS = "digests.json"
DIGESTS_FORMAT = "syncheck.digests.v1"
REMEDY = "copy the folder again or train it again"


def require_regular(path: Path, *, most: int = MAX_BYTES) -> None:
    """Refuse, with a CheckpointError, anything but a regular file of at most ``most`` bytes, a pipe for example.

    A symbolic link counts as its target.
    """
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise CheckpointError(f"{path} {reason}; pass a complete folder, or {REMEDY}") from error
    if not stat.S_ISREG(found.st_mode):
        raise CheckpointError(f"{path} must be a regular file; found {stat.filemode(found.st_mode)}. {REMEDY}")
    if found.st_size > most:
        raise CheckpointError(f"{path} has {found.st_size} bytes; at most {most} are read. {REMEDY}")


def read_bytes(path: Path, *, most: int = MAX_BYTES) -> bytes:
    """Return the content of a file; see :func:`require_regular`."""
    require_regular(path, most=most)
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}); {REMEDY}") from error


def parse_object(content: bytes, path: Path) -> dict[str, Any]:
    """Parse a JSON object with finite numbers, whole ones at most 2^53; anything else raises CheckpointError."""
    try:
        found = json.loads(content, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged and not valid JSON ({error}); {REMEDY}") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} holds a JSON {type(found).__name__}, expected an object; {REMEDY}")
    return found


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file; see :func:`parse_object`."""
    return parse_object(read_bytes(path, most=MAX_JSON_BYTES), path)


def parse_arrays(content: bytes, *, what: str) -> dict[str, NDArray[Any]]:
    """Parse the arrays, by name, of a safetensors file; anything else raises a CheckpointError that names ``what``."""
    try:
        return dict(safetensors.numpy.load(content))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:  # KeyError: a type that numpy does not have
        raise CheckpointError(f"{what} must be arrays in the safetensors format; found {error}. {REMEDY}") from error


def write_digests(directory: Path, names: Iterable[str]) -> None:
    """Write the SHA-256 of each of these files into their folder."""
    note_digests(directory, {name: file_sha256(directory / name) for name in sorted(names)})


def note_digests(directory: Path, sha256: Mapping[str, str]) -> None:
    """Write these SHA-256 of files, by name, into their folder."""
    digests = {"format": DIGESTS_FORMAT, "sha256": sha256}
    (directory / DIGESTS).write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")


def check_digests(directory: Path, names: Iterable[str]) -> None:
    """Raise CheckpointError unless these files have the digests that :func:`write_digests` wrote."""
    path = directory / DIGESTS
    saved = read_object(path)
    digests = saved.get("sha256")
    if saved.get("format") != DIGESTS_FORMAT or not isinstance(digests, dict):
        raise CheckpointError(f"{path} has format {saved.get('format')!r}, expected {DIGESTS_FORMAT!r}; {REMEDY}")
    for name in names:
        require_regular(directory / name)
        if file_sha256(directory / name) != digests.get(name):
            raise CheckpointError(
                f"{directory / name} is not the file that was saved, or is incomplete: its digest differs from that in "
                f"{DIGESTS}; {REMEDY}"
            )


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:40]} is beyond float64")
    return value


def _whole(text: str) -> int:
    if len(text) > 17 or abs(value := int(text)) > MAX_INTEGER:
        raise ValueError(f"{text[:40]} is beyond 2^53")
    return value


UNFINISHED = ".unfinished-"
"""Part of the name of a file that is still being written, or was when its process ended."""


@contextmanager
def replaced(place: Path) -> Iterator[tuple[BufferedRandom, Path]]:
    """Yield a new file and its temporary path; the file replaces ``place`` if the block ends without an error.

    Otherwise it is removed. It is flushed to the disk before it replaces the old file, so that a crash of the machine
    leaves one of the two intact. No existing file or link is followed or opened, and the mode follows the umask. If it
    cannot be written, because the disk is full, for example, InputError is raised.
    """
    path = place.with_name(f"{place.name}{UNFINISHED}{secrets.token_hex(8)}")
    try:
        file = path.open("x+b")  # exclusively
        try:
            with file:
                yield file, path
                file.flush()
                os.fsync(file.fileno())
            path.replace(place)
            _sync_folder(place.parent)
        finally:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write {str(place)!r}: {error.strerror or error}; mend that, or pass another path"
        ) from error


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def enter_run(note: Path, facts: Mapping[str, str]) -> None:
    """Create the folder of a run with a note of the facts that determine its results, or check an existing note.

    Raises MismatchError if the folder belongs to another run, or has parts but no note, CheckpointError if the note is
    damaged, and InputError if the folder cannot be created, read or written.
    """
    folder = note.parent
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the folder {str(folder)!r}: {error.strerror}") from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise InputError(
            f"the folder {str(folder)!r} cannot be read and written; change its permissions, or pass another output"
        )
    if not note.exists():
        if any(folder.glob("part-*.parquet")):
            raise MismatchError(f"{folder} holds parts but no {note.name}; delete the folder, or pass another output")
        with replaced(note) as (file, _):
            file.write(f"{json.dumps(dict(facts), indent=2)}\n".encode())
        return
    try:
        if not note.is_file():
            raise ValueError("it is not a regular file")
        found = dict(json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{note} is damaged ({error}); delete {folder} and start again") from error
    if changed := [name for name in {**facts, **found} if found.get(name) != facts.get(name)]:
        raise MismatchError(
            f"{folder} holds parts of another run: {', '.join(changed)} changed. Continue "
            "with the original values, delete the folder to start again, or pass another output"
        )


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
"""Names of fields here by their names in other tools. Ragas has ``user_input``, ``retrieved_contexts`` and
``response``, before 0.2 ``question``, ``contexts`` and ``answer``; LettuceDetect has ``context``, ``question`` and
``answer``, in its data ``prompt`` and ``answer``."""
_SHOWN = 12
_NEARNESS = 0.75
"""Similarity, in [0, 1], from which the name of a field is taken for a mistyped one."""


def absence(name: str, record: Collection[str]) -> str:
    """Say whether the field ``name``, which has no value in a record, is missing or null."""
    return f"field {name!r} is {'null' if name in record else 'missing'}"


def fields_found(name: str, found: Collection[str]) -> str:
    """Describe the fields of a record that lacks the field ``name``, and which of them to rename."""
    others = [other for other in found if other != name]
    listed = ", ".join(map(repr, others[:_SHOWN])) + (", ..." if len(others) > _SHOWN else "")
    renamed = {other: wanted for other in others if (wanted := _CALLED_HERE.get(other)) and wanted not in others}
    if name not in renamed.values():
        lower = {other.lower(): other for other in others if other not in renamed}
        renamed |= {lower[near]: name for near in get_close_matches(name, lower, 1, _NEARNESS)}
    remedy = ", ".join(f"{other!r} to {wanted!r}" for other, wanted in renamed.items())
    return f"found {listed or 'no other field'}" + (f"; rename {remedy}" if remedy else "")


JsonDict = dict[str, Any]

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that could not be used, with the reason: what was expected, what was found and what to do.

    ``source`` is the file (``-`` for standard input), ``line`` counts from 1, and ``id`` is empty if unknown.
    """

    source: str
    line: int
    id: str
    reason: str

    @classmethod
    def of(cls, source: str, line: int, row: Mapping[str, Any], reason: str) -> RefusedRecord:
        """Return the refusal of a row, without the place at which a RecordError begins its reason."""
        shown = reason.removeprefix(f"{source}:{line}").lstrip(":, ")
        return cls(source, line, "" if row.get("id") is None else str(row["id"]), shown)


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """Read one JSON file in UTF-8."""
    return json.loads(path.read_text(encoding="utf-8"))


def record_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers from 1, leaving out byte-order marks and blank lines."""
    for number, line in enumerate(lines, 1):
        if text := line.removeprefix(_BOM).strip():
            yield number, text


def field(record: JsonDict, name: str, kind: type | tuple[type, ...], *, default: Any = ...) -> Any:  # noqa: ANN401
    """Return a field, or the default if it is absent or null; another type, or no default, raises InputError."""
    value = record.get(name)
    if value is None:
        if default is ...:
            raise InputError(f"{absence(name, record)}; {fields_found(name, record)}; every record needs it")
        return default
    if not isinstance(value, kind) or isinstance(value, bool):
        wanted = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise InputError(f"field {name!r} must be {wanted}; found {type(value).__name__}")
    return value


def parsed_record(line: str | bytes, source: str, number: int) -> JsonDict:
    """Return the object in a line of JSON Lines; anything else raises RecordError.

    ``source`` and ``number``, the line from 1, are for the message.
    """
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
        except UnicodeEncodeError as error:
            message = f"not JSON in UTF-8: {error}; write whole characters"
            raise RecordError(message, source=source, line=number, field=name) from error
        except (ValueError, RecursionError) as error:
            message = f"expected a value that JSON can represent: {error}; write null for a missing number"
            raise RecordError(message, source=source, line=number, field=name) from error
    return record
