"""Outputs of a command: files with locks against other runs, logs of one line, and exit codes."""

from __future__ import annotations

import argparse
import fcntl
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from syncheck.base.errors import InputError, describe_failure
from syncheck.report.plots import check_plot

_READ = (
    "input",
    "data",
    "train",
    "context",
    "passages",
    "lid_reference",
    "reference",
    "predictions",
    "fit_thresholds",
    "rates",
    "records",
)
_MODELS = ("model", "aligner", "span_model", "classifier", "llm")
_WRITTEN = ("output", "html", "report", "plot", "curve")

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 plus the number of SIGINT."""

READER_LEFT = 141
"""Exit code after the reader of the output left: 128 plus the number of SIGPIPE."""

LOCK = ".syncheck-lock"
"""Suffix of the lock file of an output; unlike other programs' (``uv.lock``), since the file is removed at the end."""


def check_files(args: argparse.Namespace) -> None:
    """Refuse, before the work, a page or plot that cannot be written, and a file that would overwrite another one."""
    taken = [(option, path) for name in (*_READ, *_MODELS) for option, path in _named(args, name) if path.exists()]
    for name in _WRITTEN:
        for option, path in _named(args, name):
            clash = next((other for other, known in taken if _is_same(path, known)), None)
            if clash is not None:
                raise InputError(
                    f"{option} {str(path)!r} is the path that {clash} names, and would overwrite it; pass another path"
                )
            taken.append((option, path))
    for option, path in taken:
        if path.is_file() and _is_standard_output(path):
            raise InputError(f"{option} {str(path)!r} is also where standard output goes; redirect that elsewhere")
    made = Path(getattr(args, "output", None) or "-")  # by `spans`, if it is a folder
    for name in ("html", "report"):
        page = getattr(args, name, None)
        if page is not None and Path(page).parent != made:
            check_file(f"--{name}", page)
    for name in ("plot", "curve"):
        if getattr(args, name, None) is not None:
            check_plot(getattr(args, name))


@contextmanager
def locked_outputs(args: argparse.Namespace) -> Iterator[None]:
    """Keep other runs from the outputs of a command until the block, or the process, ends.

    Meanwhile there is a file ``NAME.syncheck-lock`` with the id of the process next to each output. The lock is the
    operating system's, so that one left by a killed process has no effect and is taken over.
    """
    with ExitStack() as stack:
        for name in _WRITTEN:
            for option, path in _named(args, name):
                shard = getattr(args, "shard", (1, 1)) if name == "output" else (1, 1)
                part = "" if shard == (1, 1) else f".shard-{shard[0]}-of-{shard[1]}"
                stack.enter_context(_locked(option, path, path.with_name(f"{path.name}{part}{LOCK}")))
        yield


def _named(args: argparse.Namespace, name: str) -> Iterator[tuple[str, Path]]:
    """Yield the files and folders that an option names, existing or not, but no standard stream or device."""
    given = getattr(args, name, None)
    for value in given if isinstance(given, list) else [given]:
        if value in (None, "-"):
            continue
        path = Path(value)  # as given: the target of /dev/stdout is not a file to look for
        if path.is_file() or path.is_dir() or not path.exists():
            yield f"--{name.replace('_', '-')}", path.resolve()


def _is_same(path: Path, known: Path) -> bool:
    # A page may be named as a file of the folder that `spans` reads or writes.
    if path.suffix == ".jsonl" and path.parent == known:
        return True
    return path == known or (path.exists() and known.exists() and path.samefile(known))


def _is_standard_output(path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(sys.stdout.fileno()), path.stat())
    except (OSError, ValueError):  # standard output is closed, or is not a file of the system
        return False


@contextmanager
def _locked(option: str, path: Path, lock: Path) -> Iterator[None]:
    if not path.parent.is_dir() or not path.name:  # the command says so in its own words
        yield
        return
    handle = _lock(option, path, lock)
    try:
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


def _lock(option: str, path: Path, lock: Path) -> int:
    """Acquire a lock and return its open, empty file."""
    while True:
        try:
            handle = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise InputError(
                f"{option} {str(path)!r} cannot be written: {error.strerror}, {str(lock)!r}. Pass another path"
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 20, 0).decode().strip() or "unknown"
            os.close(handle)
            raise InputError(
                f"{option} {str(path)!r} is being written by another run, process {holder}; wait for it, stop it, or "
                "pass another path"
            ) from None
        # Its former holder has removed it, and a third process may have made it again.
        if lock.exists() and os.path.samestat(os.fstat(handle), lock.stat()):
            os.truncate(handle, 0)
            return handle
        os.close(handle)


def check_file(option: str, name: str | None) -> None:
    """Refuse standard output, a folder, and a file whose folder cannot be written; None names no file."""
    if name is None:
        return
    if name == "-":
        raise InputError(f"{option} '-': only JSON Lines are written to standard output; name a file")
    if not Path(name).parent.is_dir():
        raise InputError(f"{option} {name!r}: the folder does not exist; create it first")
    if Path(name).is_dir():
        raise InputError(f"{option} {name!r} is a folder; name a file")
    if not os.access(Path(name) if Path(name).exists() else Path(name).parent, os.W_OK):
        raise InputError(f"{option} {name!r} cannot be written; change its permissions, or pass another path")


def check_folder(path: str | None, *, option: str = "--output") -> None:
    """Refuse a path that is not a folder and cannot be made one; None names no folder."""
    if path is None:
        return
    place = next(place for place in (Path(path).absolute(), *Path(path).absolute().parents) if place.exists())
    if not place.is_dir():
        raise InputError(
            f"{option} {path!r}: expected a folder, or a path where one can be created; found a file at "
            f"{str(place)!r}. Move it, or pass another path"
        )
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(
            f"{option} {path!r}: {str(place)!r} cannot be written; change its permissions, or pass another"
        )


def write_json(path: str | None, values: Mapping[str, object]) -> None:
    """Write the results of a command as JSON, if a file was named."""
    if path is not None:
        Path(path).write_text(json.dumps(values, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def reader_left() -> int:
    """Discard silently all further output; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            with suppress(OSError):  # a stream without a descriptor is not flushed again at the end of the process
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return READER_LEFT


class _OneLine(logging.Formatter):
    """Formats a logged error with its type and message, without its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        return message if error is None else f"{message}: {describe_failure(error)}"


@contextmanager
def one_line_logs() -> Iterator[None]:
    """Show warnings and errors that are logged as one line each until the block ends."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_OneLine())
    loggers = [logging.getLogger(name) for name in ("syncheck", "fod")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
