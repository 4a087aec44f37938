"""Files: atomic writes, and checked reads of checkpoints.

A checkpoint may come from anyone. Digests in its folder reveal damage and half-written copies but no intent, so
everything that is read is validated too: regular files of limited size, finite numbers in JSON.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from io import BufferedRandom
from pathlib import Path
from pickle import UnpicklingError
from struct import error as StructError
from typing import Any

import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from syncheck.base.errors import CheckpointError, InputError

MAX_BYTES = 2 << 30  # largest file of weights that is read into memory
MAX_JSON_BYTES = 64 << 20  # largest JSON file; a monitor's config has 100 bytes for each question it was trained on
MAX_INTEGER = 1 << 53  # largest whole number in a file, which every reader of JSON can represent

DAMAGED = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, TypeError),
    *(ValueError, UnpicklingError, StructError),
)
"""Errors that the readers of pickles raise on damaged files."""

DIGESTS = "digests.json"
DIGESTS_FORMAT = "syncheck.digests.v1"
REMEDY = "copy the folder again or train it again"


def require_regular(path: Path, *, most: int = MAX_BYTES) -> None:
    """Refuse, with a CheckpointError, anything but a regular file, or a link to one, of at most ``most`` bytes."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise CheckpointError(f"{path} {reason}; pass a complete folder, or {REMEDY}") from error
    if not stat.S_ISREG(status.st_mode):
        raise CheckpointError(f"{path} must be a regular file; found {stat.filemode(status.st_mode)}. {REMEDY}")
    if status.st_size > most:
        raise CheckpointError(f"{path} has {status.st_size} bytes; at most {most} are read. {REMEDY}")


def read_bytes(path: Path, *, most: int = MAX_BYTES) -> bytes:
    """Read the content of a file; see :func:`require_regular`."""
    require_regular(path, most=most)
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}); {REMEDY}") from error


def read_weights(config: Path, named: object, sha256: object, *, expected: str) -> bytes:
    """Read the weights beside a config that names them with their digest; others raise CheckpointError."""
    if named != expected:
        raise CheckpointError(
            f"{config} keeps its weights in {named!r}; this version reads {expected!r}. XGBoost's own .ubj files are "
            "not read, since a damaged one crashes the program: train and save it again"
        )
    weights = read_bytes(config.parent / expected)
    if hashlib.sha256(weights).hexdigest() != sha256:
        raise CheckpointError(
            f"the weights {config.parent / expected} were not saved with {config.name}, or are incomplete; {REMEDY}"
        )
    return weights


def parse_object(content: bytes, path: Path) -> dict[str, Any]:
    """Parse a JSON object with finite numbers, whole ones at most 2^53; anything else raises CheckpointError."""
    try:
        values = json.loads(content, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged and not valid JSON ({error}); {REMEDY}") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds a JSON {type(values).__name__}, expected an object; {REMEDY}")
    return values


def read_object(path: Path) -> dict[str, Any]:
    """Read the JSON object of a file; see :func:`parse_object`."""
    return parse_object(read_bytes(path, most=MAX_JSON_BYTES), path)


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
    """Compute the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


UNFINISHED = ".unfinished-"  # part of the name of a file that is being written, or was when its process ended


@contextmanager
def replaced(place: Path) -> Iterator[tuple[BufferedRandom, Path]]:
    """Yield a new file and its temporary path; the file replaces ``place`` if the block ends without an error.

    Otherwise it is removed. It is flushed to the disk first, so that a crash of the machine leaves one of the two
    intact. No existing file or link is followed or opened. A file that cannot be written raises InputError.
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
            folder = os.open(place.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        finally:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write {str(place)!r}: {error.strerror or error}; mend that, or pass another path"
        ) from error


def asset_text(name: str) -> str:
    """Read a packaged text, such as ``prompts/refind.txt``."""
    return (files("syncheck") / "assets" / name).read_text(encoding="utf-8")


def asset_lines(name: str, *, joint: str = " ") -> Iterator[tuple[str, str]]:
    """Yield title and content of each line of a packaged list, such as ``contrasts/units.txt``.

    Lines that begin with # are comments; indented lines continue the one before, joined with ``joint``. A title with a
    colon must be in quotes.
    """
    text = re.sub(r"^#.*", "", asset_text(name), flags=re.MULTILINE)
    for line in text.replace("\n    ", joint).splitlines():
        if entry := re.match(r"(\"[^\"]*\"|.*?): (.+)", line):
            yield entry[1], entry[2]


def asset_words(name: str) -> dict[str, frozenset[str]]:
    """Read the words of each line of a packaged list."""
    return {title: frozenset(content.split()) for title, content in asset_lines(name)}


def asset_expressions(name: str, **known: str) -> dict[str, str]:
    """Read the patterns of a packaged list, in which ``{title}`` stands for a known one or that of a line before."""
    for title, content in asset_lines(name, joint=""):
        known[title] = re.sub(r"\{([a-z][a-z ]*)\}", lambda match: known[match[1]], content)
    return known


def asset_patterns(name: str, **known: str) -> dict[str, re.Pattern[str]]:
    """Compile the patterns of a packaged list; see :func:`asset_expressions`."""
    return {title: re.compile(content) for title, content in asset_expressions(name, **known).items()}
