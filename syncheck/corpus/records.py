"""The records of a corpus, from JSON Lines or Parquet, and the row that answers each."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncheck.errors import InputError, MissingExtraError, SyncheckError, describe_failure
from syncheck.files import parsed_record, record_lines

JsonDict = dict[str, Any]

Work = Callable[[JsonDict], JsonDict]
"""A record to its row."""

logger = logging.getLogger(__name__)

_PARQUET = ".parquet"
_ENDINGS = (".jsonl", ".ndjson", _PARQUET)


@dataclass(frozen=True, slots=True)
class Line:
    """A record as it is in the corpus.

    Attributes
    ----------
    source : str
        The file, ``-`` for standard input.
    number : int
        Of the line, or of the row of a Parquet file, from 1.
    content : bytes
        The record as JSON, if it is sound.
    """

    source: str
    number: int
    content: bytes

    def digest(self, run: str) -> str:
        """Return what identifies the record, its id included, under the options of a run."""
        return hashlib.sha256(run.encode() + b"\n" + self.content).hexdigest()[:32]


Worker = Callable[[Sequence[Line]], list[JsonDict]]
"""Lines to their rows, one each, in order; it raises nothing that only one record is to blame for."""


def corpus_lines(source: str) -> Iterator[Line]:
    """Read the records of a corpus one after the other.

    Parameters
    ----------
    source
        A JSON Lines or Parquet file, a folder of either (files by name, folders in it left out), or ``-`` for standard
        input. A value of Parquet that JSON does not have, such as a date, is read as text.

    Raises
    ------
    InputError
        If it cannot be opened, or is a folder without such files.
    MissingExtraError
        If there is a Parquet file and pyarrow is not installed.
    """
    for name in _files(source):
        if name.endswith(_PARQUET):
            yield from _rows(name)
        else:
            with _bytes_of(name) as stream:
                for number, content in record_lines(stream):
                    yield Line(name, number, content)


def count_lines(source: str) -> int | None:
    """Return how many records a corpus has; None where only reading all of it would tell."""
    if source == "-" or not Path(source).exists() or Path(source).is_fifo():
        return None
    total = 0
    for name in _files(source):
        if name.endswith(_PARQUET):
            with _parquet(name) as file:
                total += file.metadata.num_rows
        else:
            with _bytes_of(name) as stream:
                total += sum(1 for _ in record_lines(stream))
    return total


def row_content(row: JsonDict) -> bytes:
    """Return a row of a table as JSON; what JSON does not have becomes text."""
    return json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")


def answer(line: Line, work: Work) -> JsonDict:
    """Return the row of a line: what the work makes of it, or ``{"id", "line", "error"}`` where it could not.

    Any error counts, and a row that JSON cannot carry.
    """
    record: JsonDict = {}
    try:
        record = parsed_record(line.content, line.source, line.number)
        row = work(record)
        json.dumps(row, allow_nan=False)
    except Exception as error:  # whatever one record does to a model or a template, the others are answered
        if not isinstance(error, SyncheckError):
            logger.debug("%s:%d", line.source, line.number, exc_info=True)
        return {"id": record.get("id"), "line": line.number, "error": describe_failure(error)}
    return row


def answer_one_by_one(work: Work) -> Worker:
    """Return a worker that does one record after the other."""
    return lambda lines: [answer(line, work) for line in lines]


def _files(source: str) -> list[str]:
    if source == "-" or not Path(source).is_dir():
        return [source]
    found = sorted(str(path) for path in Path(source).iterdir() if path.suffix in _ENDINGS and path.is_file())
    if not found:
        raise InputError(f"{source!r}: expected files that end in {', '.join(_ENDINGS)}; found none in the folder")
    return found


@contextmanager
def _bytes_of(name: str) -> Iterator[Iterable[bytes]]:
    if name == "-":
        # A replacement of standard input in a notebook or a test may have text alone.
        yield getattr(sys.stdin, "buffer", None) or (line.encode("utf-8", "surrogatepass") for line in sys.stdin)
        return
    try:
        stream = open(name, "rb")  # noqa: SIM115
    except OSError as error:
        raise InputError(f"cannot open {name!r}: {error.strerror}") from error
    with stream:
        yield stream


@contextmanager
def _parquet(name: str) -> Iterator[Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "data") from error
    try:
        with parquet.ParquetFile(name) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read {name!r} as Parquet: {error}") from error


def _rows(name: str) -> Iterator[Line]:
    number = 0
    with _parquet(name) as file:
        for batch in file.iter_batches(batch_size=256):
            for row in batch.to_pylist():
                number += 1
                yield Line(name, number, row_content(row))
