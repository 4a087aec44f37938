"""What people read on a terminal or in a log: text made safe for it, one-line summaries, the progress of long work."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

_HARMFUL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f"  # C0 without tab and newline, ESC among them
    r"\x80-\x9f"  # C1, whose CSI and OSC need no ESC
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Unicode's Bidi_Control
    r"\ud800-\udfff]"  # half characters, which no encoding can write
)


def printable(text: str) -> str:
    r"""Escape characters that would control a terminal or reorder text, as JSON does (``\u001b``); line breaks stay."""
    return _HARMFUL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


_MOST_QUOTED = 50


def quoted(text: str) -> str:
    """Put the beginning of a text on one line and in quotation marks."""
    begun = re.sub(r"\s+", " ", text[: 4 * _MOST_QUOTED])
    shown = printable(json.dumps(begun, ensure_ascii=False))[1:-1]
    cut = len(shown) > _MOST_QUOTED or len(text) > 4 * _MOST_QUOTED
    return f'"{shown[:_MOST_QUOTED]}…"' if cut else f'"{shown}"'


def shortened(text: str, most: int) -> str:
    """Shorten a text of more than ``most`` characters to its beginning with three dots."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def one_line(text: str, most: int = 400) -> str:
    """Prepare somebody else's text for a message or a log: on one line, printable, at most ``most`` characters."""
    return shortened(printable(" ".join(text[: 4 * most].split())), most)


def counted(count: int, noun: str) -> str:
    """Write a count with its noun: ``1 token``, ``2 tokens``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Pad the cells of rows to the width of their column, leave out empty columns, and escape the text."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max((len(cell) for cell in column), default=0) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width).rstrip() for row in rows
    ]


def summary(value: object, *parts: object) -> str:
    """Build the one-line ``repr`` of an object: ``<Class 0.50 scored>``, without the parts None and ``""``."""
    told = (f"{part:.2f}" if isinstance(part, float) else str(part) for part in parts if part not in (None, ""))
    return f"<{' '.join((type(value).__name__, *told))}>"


SECONDS = 60.0  # between two lines of a log; work that takes less writes none


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
    """Make a bar over ``given``, or one to update by hand, with tqdm's options.

    ``shown`` None draws it on a terminal and otherwise writes a line a minute; True always draws it, False never.
    """
    from tqdm import tqdm  # ten times as slow to import as this module, which everything imports

    if shown is None and not sys.stderr.isatty():
        return tqdm(
            given, file=_Lines(sys.stderr), delay=SECONDS, mininterval=SECONDS, maxinterval=SECONDS, ncols=80, **options
        )
    return tqdm(given, disable=shown is False, **options)
