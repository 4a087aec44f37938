"""Records of a corpus, from JSON Lines or Parquet, and the rows that answer them, written and read again."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, get_args

from syncheck.base.errors import InputError, MissingExtraError, SyncheckError, describe_failure
from syncheck.base.records import JsonDict, Record, T, fields_found, parsed_record, record_lines
from syncheck.results.report import lowest_of
from syncheck.results.types import Citation, Contrast, Evidence, Remark, SentenceScore, Status, Verdict

Work = Callable[[JsonDict], JsonDict]
"""Function that returns the row of a record."""

logger = logging.getLogger(__name__)

_REMARKS: tuple[Remark, ...] = get_args(Remark)
_PARQUET = ".parquet"
_ENDINGS = (".jsonl", ".ndjson", _PARQUET)


@dataclass(frozen=True, slots=True)
class Line:
    """A record as it is in the corpus."""

    source: str
    """The file, ``-`` for standard input."""
    number: int
    """Number of the line, or of the row in a Parquet file, from 1."""
    content: bytes
    """The record as JSON; it may be invalid."""

    def digest(self, run: str) -> str:
        """Compute a digest of the record, including its id, and the options of a run."""
        return hashlib.sha256(run.encode() + b"\n" + self.content).hexdigest()[:32]


Worker = Callable[[Sequence[Line]], list[JsonDict]]
"""Function that returns the row of each line, in order; an error of a single record is in its row, not raised."""


def corpus_lines(source: str) -> Iterator[Line]:
    """Read the records of a corpus one after the other.

    It is a JSON Lines or Parquet file, a folder of such files, read in the order of their names, without subfolders, or
    ``-`` for standard input. A Parquet value that JSON cannot represent, such as a date, is read as text. A source that
    cannot be opened, and a folder without such files or with one that is not regular, raise InputError; without
    pyarrow, a Parquet file raises MissingExtraError.
    """
    for name in _files(source):
        if name.endswith(_PARQUET):
            yield from _rows(name)
        else:
            with _bytes_of(name) as stream:
                for number, content in record_lines(stream):
                    yield Line(name, number, content)


def count_lines(source: str) -> int | None:
    """Count the records in a corpus; None if that would take reading all of it."""
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


def answer(line: Line, work: Work) -> JsonDict:
    """Make the row of a line: the result of ``work``, or ``{"id", "line", "error"}`` after any error.

    A row that JSON cannot represent is an error too.
    """
    record: JsonDict = {}
    try:
        record = parsed_record(line.content, line.source, line.number)
        row = work(record)
        json.dumps(row, allow_nan=False)
    except Exception as error:  # whatever one record does to a model or a template, the others are still answered
        if not isinstance(error, SyncheckError):
            logger.debug("%s:%d", line.source, line.number, exc_info=True)
        return {"id": record.get("id"), "line": line.number, "error": describe_failure(error)}
    return row


def _files(source: str) -> list[str]:
    if source == "-" or not Path(source).is_dir():
        return [source]
    files = sorted(path for path in Path(source).iterdir() if path.suffix in _ENDINGS and not path.is_dir())
    if not files:
        raise InputError(f"{source!r}: expected files that end in {', '.join(_ENDINGS)}; found none in the folder")
    if irregular := [path.name for path in files if not path.is_file()]:
        raise InputError(
            f"{source!r}: expected regular files; found {', '.join(irregular)}, a pipe, a device or a link to nothing. "
            "Remove it"
        )
    return [str(path) for path in files]


@contextmanager
def _bytes_of(name: str) -> Iterator[Iterable[bytes]]:
    if name == "-":
        # A replacement of standard input in a notebook or a test may only have text.
        yield getattr(sys.stdin, "buffer", None) or (line.encode("utf-8", "surrogatepass") for line in sys.stdin)
        return
    with opened(name, "rb") as stream:
        yield stream


def opened(name: str, mode: str, **options: Any) -> IO[Any]:
    """Open a file; if that is impossible, InputError."""
    try:
        return open(name, mode, **options)
    except OSError as error:
        raise InputError(f"cannot open {name!r}: {error.strerror}") from error


@contextmanager
def _parquet(name: str) -> Iterator[Any]:
    with MissingExtraError.unless("pyarrow", "data"):
        import pyarrow as pa
        import pyarrow.parquet as parquet
    try:
        with parquet.ParquetFile(name) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read {name!r} as Parquet: {error}") from error


def _rows(name: str) -> Iterator[Line]:
    with _parquet(name) as file:
        rows = chain.from_iterable(batch.to_pylist() for batch in file.iter_batches(batch_size=256))
        for number, row in enumerate(rows, 1):
            content = json.dumps(row, ensure_ascii=False, default=str)  # what JSON cannot represent becomes text
            yield Line(name, number, content.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """Answer in a line that ``syncheck score`` or ``syncheck generate`` wrote."""

    id: str
    """Empty if it has none."""
    question: str
    """Empty if it is not known."""
    sentences: tuple[SentenceScore, ...]
    reasoning: int = 0
    """Number of characters of reasoning before it, which are not scored."""
    monitor: str | None = None
    """Name of the bundled monitor that scored it; None for a monitor of one's own."""
    response: str = ""
    """The answer as a decoder gave it, with what it gave after the sentences; empty for a response that was scored."""
    stop: str | None = None
    """Why the decoder ended it; None for a response that was scored."""

    @property
    def lowest(self) -> SentenceScore | None:
        """The sentence with the lowest score, of equals the first; None if no sentence has a score."""
        return lowest_of(self.sentences)


def answer_of(row: JsonDict) -> ScoredAnswer:
    """Read the answer in a line of output."""
    if "sentences" not in row:
        raise InputError(
            "expected a line that `syncheck score` wrote, with 'sentences'; "
            f"{fields_found('sentences', row)}; run `syncheck score` on it first"
        )
    record, identity = Record(row), row.get("id")
    return ScoredAnswer(
        "" if identity is None else str(identity),
        record.optional("question", str) or "",
        tuple(map(_sentence, record.objects("sentences"))),
        reasoning=record.optional("reasoning", int) or 0,
        monitor=record.optional("monitor", str),
        response=record.optional("response", str) or "",
        stop=record.optional("stop", str),
    )


def _sentence(given: Record) -> SentenceScore:
    score, status, said = given.optional("score", float), given.choice("status", Status), given.values.get("verdict")
    if score is not None and not 0 <= score <= 1:
        raise given.error(f"expected a number from 0 to 1 or null, found {score}", "score")
    if (score is None) != (said is None):
        raise given.error(f"only a sentence with a score has a verdict; found {score!r} and {said!r}", "verdict")
    remarks = given.optional("remarks", list) or []
    if unknown := [remark for remark in remarks if remark not in _REMARKS]:
        raise given.error(f"expected some of {', '.join(_REMARKS)}, found {unknown[0]!r}", "remarks")
    return SentenceScore(
        text=given.get("text", str),
        start=given.get("start", int),
        end=given.get("end", int),
        token_start=given.optional("token_start", int),
        token_end=given.optional("token_end", int),
        score=score,
        status=status,
        features={
            name: float(value) if isinstance(value, (int, float)) else None
            for name, value in (given.optional("features", dict) or {}).items()
        },
        reason=given.optional("reason", str),
        evidence=None if given.values.get("evidence") is None else given.nested("evidence").of(Evidence),
        verdict=None if said is None else given.choice("verdict", Verdict),
        remarks=tuple(remark for remark in _REMARKS if remark in remarks),
        contrasts=_parts(given, "contrasts", Contrast),
        citations=_parts(given, "citations", Citation),
    )


def _parts(given: Record, name: str, kind: type[T]) -> tuple[T, ...]:
    return () if given.values.get(name) is None else tuple(one.of(kind) for one in given.objects(name))
