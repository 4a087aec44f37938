"""Progress of long work: a bar on a terminal, a line a minute in a log."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from tqdm import tqdm

SECONDS = 60.0
"""Time between two lines of a log; work that takes less writes none."""


class _Lines:
    """Stream on which each state of a bar is a line of its own."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        if state := text.strip():
            self._stream.write(f"{state}\n")

    def flush(self) -> None:
        self._stream.flush()


def progress(given: Iterable[Any] | None = None, *, shown: bool | None = None, **options: Any) -> tqdm:  # noqa: ANN401
    """Make a bar over ``given``, or one to update by hand; the options are tqdm's.

    ``shown`` None draws it on standard error if that is a terminal, and otherwise writes a line a minute there; True
    always draws it, and False never shows it.
    """
    if shown is None and not sys.stderr.isatty():
        return tqdm(
            given, file=_Lines(sys.stderr), delay=SECONDS, mininterval=SECONDS, maxinterval=SECONDS, ncols=80, **options
        )
    return tqdm(given, disable=shown is False, **options)
