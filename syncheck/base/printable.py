"""Text made safe for a terminal, and one-line summaries of objects."""

from __future__ import annotations

import json
import re

_HARMFUL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f"  # C0 without tab and newline, ESC among them
    r"\x80-\x9f"  # C1, whose CSI and OSC need no ESC
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Unicode's Bidi_Control
    r"\ud800-\udfff]"  # half characters, which no encoding can write
)


def printable(text: str) -> str:
    r"""Escape characters that would control a terminal or reorder the text around them, as in ``\u001b``.

    Tabs and line breaks stay. JSON keeps its value: such characters occur only in its strings, where this is its own
    escape.

    Examples
    --------
    >>> printable("\x1b[2Jgone")
    '\\u001b[2Jgone'
    """
    return _HARMFUL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


_MOST_QUOTED = 50


def quoted(text: str) -> str:
    r"""Put the beginning of a text on one line and in quotation marks.

    Examples
    --------
    >>> quoted("One.\nTwo.")
    '"One. Two."'
    """
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


def summary(value: object, *parts: object) -> str:
    """Build the one-line ``repr`` of an object: its class and these parts, without None and ``""``.

    Examples
    --------
    >>> summary(Ellipsis, 0.5, None, "scored")
    '<ellipsis 0.50 scored>'
    """
    told = (f"{part:.2f}" if isinstance(part, float) else str(part) for part in parts if part not in (None, ""))
    return f"<{' '.join((type(value).__name__, *told))}>"
