"""Files that are there whole or not at all: written beside their place under a name nobody can foresee."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["UNFINISHED", "replaced"]

UNFINISHED = ".unfinished-"
"""In the name of a file that is still being written, or was when its process ended."""


@contextmanager
def replaced(place: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Yield a new file, which takes its place when the block ends without an error, and is removed otherwise.

    It is made for this block alone: what has its name already, a link among others, is neither followed nor opened.
    Its mode follows the umask.

    Parameters
    ----------
    place
        What the file becomes; an older file there is replaced.

    Yields
    ------
    tuple of BinaryIO and Path
        The file to write to, and what it is called until then, to read it back once it was flushed.
    """
    path = place.with_name(f"{place.name}{UNFINISHED}{secrets.token_hex(8)}")
    file = path.open("x+b")  # exclusively
    try:
        with file:
            yield file, path
        path.replace(place)
    finally:
        path.unlink(missing_ok=True)
