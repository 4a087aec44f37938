"""Records in, rows out: each answered once, and resumed after what the output holds."""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from tqdm import tqdm

from syncheck.errors import InputError, SyncheckError, describe_failure
from syncheck.files import RefusedRecord, parsed_record, record_lines
from syncheck.monitor import Monitor
from syncheck.printable import printable
from syncheck.training.provenance import instrument_of

__all__ = ["digest_of_run", "process"]


_IDLE = frozenset({"input", "output", "html", "resume", "fail_under", "allow_unscored", "model", "aligner"})
"""Options that change no line of the output, and those whose weights are told by :func:`instrument_of`."""
_FILES = ("monitor", "lid_reference", "passages", "spans")


def digest_of_run(args: argparse.Namespace, monitor: Monitor) -> str:
    """Return a digest of all that decides a line of output beside its record.

    Files count by what is in them, wherever they lie; the model and its aligner by their weights.
    """
    options = {name: value for name, value in vars(args).items() if name not in _IDLE}
    for name in _FILES:
        value = options.get(name)
        if value is not None and Path(value).exists():
            options[name] = _content(Path(value))
    facts = {"options": options, "dtype": str(monitor.model.dtype), "version": version("syncheck")}
    return hashlib.sha256(json.dumps(facts | instrument_of(monitor), sort_keys=True).encode()).hexdigest()


def _content(place: Path) -> str:
    """Return a digest of a file, or of the files of a folder with their names in it."""
    digest = hashlib.sha256()
    for file in [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(place)}\n{file.stat().st_size}\n".encode())
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


JsonDict = dict[str, Any]

logger = logging.getLogger(__name__)


def process(
    source: str,
    target: str,
    work: Callable[[JsonDict], JsonDict],
    *,
    run: str | None = None,
    resume: bool = False,
    seen: Callable[[JsonDict], None] = lambda row: None,
) -> list[RefusedRecord]:
    """Apply ``work`` to each record of a file and write what it returns.

    Parameters
    ----------
    source, target
        Files, or ``-`` for standard input and output.
    work
        Takes a record and returns the output; any error it raises, and an output that JSON cannot carry, goes to the
        output as ``{"id", "line", "error"}``.
    run
        What tells the options of this run from others; each line of output then has a ``digest`` of them and its
        record. None leaves it out.
    resume
        Go on after what ``target`` holds of this run. A last line that was cut off is dropped and made again.
    seen
        Called with each line of output, also with those of an earlier run.

    Returns
    -------
    list of RefusedRecord
        Those that failed, in order, also in an earlier run.

    Raises
    ------
    InputError
        If a file cannot be opened, or the two are one: the output would overwrite the input. When resuming, if
        ``target`` holds lines that are not of this run's records, in their order, with its options.
    """
    if source != "-" and Path(target).exists() and Path(source).exists() and Path(target).samefile(source):
        raise InputError(f"the output {target!r} is the input, and would overwrite it; write to another file")
    refused: list[RefusedRecord] = []
    with _bytes_of(source) as stream:
        lines = record_lines(stream)
        for number, row in _answered(lines, target, run) if resume else ():
            seen(row)
            if "error" in row:
                refused.append(_refused(source, number, row))
        with _writable(target, "a" if resume else "w") as output:
            for number, line in tqdm(lines, desc="records", unit=" records", disable=None):
                row = _answer(line, source, number, work, digest=None if run is None else _digest(run, line))
                if "error" in row:
                    refused.append(_refused(source, number, row))
                    sys.stderr.write(f"{source}:{number}: {refused[-1].reason}\n")
                seen(row)
                text = json.dumps(row, ensure_ascii=False)
                output.write((printable(text) if output.isatty() else text) + "\n")
                output.flush()
    return refused


def _answer(
    line: bytes, source: str, number: int, work: Callable[[JsonDict], JsonDict], *, digest: str | None
) -> JsonDict:
    """Return the output for a line: what the work makes of it, or why it could not."""
    noted = {} if digest is None else {"digest": digest}
    record: JsonDict = {}
    try:
        record = parsed_record(line, source, number)
        row = work(record) | noted
        _check_carried(row)
    except Exception as error:  # whatever one record does to a model or a template, the others are answered
        if not isinstance(error, SyncheckError):
            logger.debug("%s:%d", source, number, exc_info=True)
        row = {"id": record.get("id"), "line": number, "error": describe_failure(error)} | noted
    return row


def _check_carried(row: JsonDict) -> None:
    json.dumps(row, allow_nan=False)


def _refused(source: str, number: int, row: JsonDict) -> RefusedRecord:
    reason = str(row["error"]).removeprefix(f"{source}:{number}").lstrip(":, ")  # a RecordError says where it was
    return RefusedRecord(source, number, "" if row["id"] is None else str(row["id"]), reason)


def _digest(run: str, line: bytes) -> str:
    return hashlib.sha256(run.encode() + b"\n" + line).hexdigest()[:32]


def _answered(lines: Iterator[tuple[int, bytes]], target: str, run: str | None) -> Iterator[tuple[int, JsonDict]]:
    """Yield what a file holds of this run, taking the lines of its records; a last line that was cut off is dropped."""
    if run is None or target == "-":
        raise InputError("expected a file to go on after; --resume needs --output FILE")
    if not Path(target).exists():
        return
    with open(target, "r+b") as file:
        whole = 0
        for place, written in enumerate(file, 1):
            if not written.endswith(b"\n"):
                file.truncate(whole)
                return
            number, line = next(lines, (0, b""))
            row = _row(written)
            if not number or row.get("digest") != _digest(run, line):
                raise InputError(
                    f"cannot go on after {target!r}: expected its line {place} to be the answer to "
                    f"{f'the record of line {number}' if number else 'a record'} with the options of this run; found "
                    f"{'another' if number else 'no more records'}. Go on with the records, models and options of "
                    "that run, or write to another file"
                )
            whole += len(written)
            yield number, row


def _row(written: bytes) -> JsonDict:
    try:
        row = json.loads(written)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


@contextmanager
def _bytes_of(name: str) -> Iterator[Iterable[bytes]]:
    if name == "-":
        # What stands in for standard input in a notebook or a test may have text alone.
        yield getattr(sys.stdin, "buffer", None) or (line.encode("utf-8", "surrogatepass") for line in sys.stdin)
        return
    try:
        stream = open(name, "rb")  # noqa: SIM115
    except OSError as error:
        raise _unopened(name, error) from error
    with stream:
        yield stream


@contextmanager
def _writable(name: str, mode: str) -> Iterator[IO[str]]:
    """Open an output in UTF-8; half a character that a message quotes is written as JSON escapes it."""
    if name == "-":
        if isinstance(sys.stdout, TextIOWrapper):  # UTF-8 whatever the locale says
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        yield sys.stdout
        return
    try:
        stream = open(name, mode, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    except OSError as error:
        raise _unopened(name, error) from error
    with stream:
        yield stream


def _unopened(name: str, error: OSError) -> InputError:
    return InputError(f"cannot open {name!r}: {error.strerror}")
