"""Files of a checkpoint, which may come from anybody: regular, not too large, their JSON finite, their digests kept.

A digest that lies in the folder shows damage and half-written copies, not intent. So whatever is read is validated too.
"""

from __future__ import annotations

import hashlib
import json
import math
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from syncheck.errors import CheckpointError

__all__ = [
    "check_digests",
    "parse_arrays",
    "parse_object",
    "read_bytes",
    "read_object",
    "require_regular",
    "write_digests",
]

MAX_BYTES = 2 << 30
"""Largest file of weights that is read into memory."""

MAX_JSON_BYTES = 64 << 20
"""Largest JSON file. A monitor's config has 100 bytes for each question that it was trained on."""

MAX_INTEGER = 1 << 53
"""Largest whole number in a file, either sign: what every reader of JSON can hold."""

DIGESTS = "digests.json"
DIGESTS_FORMAT = "syncheck.digests.v1"
REMEDY = "copy the folder again or train anew"


def require_regular(path: Path, *, most: int = MAX_BYTES) -> None:
    """Raise CheckpointError unless this can be read to its end: a file, no pipe, device or folder, and not too large.

    A symbolic link counts as what it leads to.
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
    """Return a JSON object whose numbers are finite and whose whole numbers are at most 2^53.

    Raises
    ------
    CheckpointError
        If it is anything else; ``path`` is for the message.
    """
    try:
        found = json.loads(content, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged, not JSON that was saved ({error}); {REMEDY}") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} holds a JSON {type(found).__name__}, expected an object; {REMEDY}")
    return found


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file; see :func:`parse_object`."""
    return parse_object(read_bytes(path, most=MAX_JSON_BYTES), path)


def parse_arrays(content: bytes, *, what: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file in the safetensors format, by name; nothing is known of them but that they are whole.

    Raises
    ------
    CheckpointError
        If it is anything else; ``what`` is for the message.
    """
    try:
        return dict(safetensors.numpy.load(content))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:  # KeyError: a type that numpy does not have
        raise CheckpointError(f"{what} must be arrays in the safetensors format; found {error}. {REMEDY}") from error


def write_digests(directory: Path, names: Iterable[str]) -> None:
    """Write the SHA-256 of these files of a folder beside them."""
    digests = {"format": DIGESTS_FORMAT, "sha256": {name: _sha256(directory / name) for name in sorted(names)}}
    (directory / DIGESTS).write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")


def check_digests(directory: Path, names: Iterable[str]) -> None:
    """Raise CheckpointError unless these files are the ones that :func:`write_digests` saw."""
    path = directory / DIGESTS
    saved = read_object(path)
    digests = saved.get("sha256")
    if saved.get("format") != DIGESTS_FORMAT or not isinstance(digests, dict):
        raise CheckpointError(f"{path} has format {saved.get('format')!r}, expected {DIGESTS_FORMAT!r}; {REMEDY}")
    for name in names:
        require_regular(directory / name)
        if _sha256(directory / name) != digests.get(name):
            raise CheckpointError(
                f"{directory / name} is not the file that was saved, or only a part of it: its digest is not that of "
                f"{DIGESTS}; {REMEDY}"
            )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:40]} is beyond float64")
    return value


def _whole(text: str) -> int:
    if len(text) > 17 or abs(value := int(text)) > MAX_INTEGER:
        raise ValueError(f"{text[:40]} is beyond 2^53")
    return value
