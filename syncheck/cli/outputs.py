"""The files that a command names: none is written over what it reads, and each is written by one run at a time."""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from syncheck.errors import InputError

__all__ = ["check_files", "held"]


_READ = ("input", "data", "train", "context", "passages", "lid_reference", "reference", "predictions", "fit_thresholds")
_MODELS = ("model", "aligner", "span_model", "classifier", "llm")
_WRITTEN = ("output", "html", "report", "plot")

LOCK = ".syncheck-lock"
"""Ending of the file that holds an output; no other program's (``uv.lock``), since it is removed at the end."""


def check_files(args: argparse.Namespace) -> None:
    """Refuse, before the work, a file that is written over one that is read, or over another that is written.

    Raises
    ------
    InputError
        If two options name one file or folder.
    """
    taken = [(option, path) for name in (*_READ, *_MODELS) for option, path in _named(args, name) if path.exists()]
    for name in _WRITTEN:
        for option, path in _named(args, name):
            clash = next((other for other, known in taken if _is_same(path, known)), None)
            if clash is not None:
                raise InputError(
                    f"{option} {str(path)!r} is what {clash} names, and would overwrite it; pass another path"
                )
            taken.append((option, path))
    for option, path in taken:
        if path.is_file() and _is_standard_output(path):
            raise InputError(f"{option} {str(path)!r} is what standard output is written to; redirect it elsewhere")


@contextmanager
def held(args: argparse.Namespace) -> Iterator[None]:
    """Keep other runs from the outputs of a command until the block ends, or the process.

    Beside each output there is meanwhile a file ``NAME.syncheck-lock`` with the id of the process. The lock is the
    system's: one that a killed process has left behind holds nothing and is taken over.

    Raises
    ------
    InputError
        If another run holds one of them.
    """
    with ExitStack() as stack:
        for name in _WRITTEN:
            for option, path in _named(args, name):
                shard = getattr(args, "shard", (1, 1)) if name == "output" else (1, 1)
                part = "" if shard == (1, 1) else f".shard-{shard[0]}-of-{shard[1]}"
                stack.enter_context(_locked(option, path, path.with_name(f"{path.name}{part}{LOCK}")))
        yield


def _named(args: argparse.Namespace, name: str) -> Iterator[tuple[str, Path]]:
    """Yield the regular files and folders that an option names, there or not; no standard stream and no device."""
    given = getattr(args, name, None)
    for value in given if isinstance(given, list) else [given]:
        if value in (None, "-"):
            continue
        path = Path(value)  # as given: where /dev/stdout leads is no file to look for
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
    except (OSError, ValueError):  # standard output is closed, or is no file of the system's
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
    """Return the open file of a lock that is now ours and empty."""
    while True:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 20, 0).decode().strip() or "unknown"
            os.close(handle)
            raise InputError(
                f"{option} {str(path)!r} is being written by another run, process {holder}; wait for it, stop it, or "
                "pass another path"
            ) from None
        # Who held it until now has removed it, and a third may have made it anew.
        if lock.exists() and os.path.samestat(os.fstat(handle), lock.stat()):
            os.truncate(handle, 0)
            return handle
        os.close(handle)
