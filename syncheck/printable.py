"""Text that others wrote, made fit to be shown on a terminal."""

from __future__ import annotations

import re

__all__ = ["printable"]

_HARMFUL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f"  # C0 without tab and newline, ESC among them
    r"\x80-\x9f"  # C1, whose CSI and OSC need no ESC
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Unicode's Bidi_Control
    r"\ud800-\udfff]"  # half characters, which no encoding can write
)


def printable(text: str) -> str:
    r"""Return a text with what would steer a terminal, or reorder the text around it, written out as ``\u001b``.

    Tabs and line breaks stay. Within JSON this is the same value still: such characters stand in strings alone, and
    this is how JSON writes them.

    Examples
    --------
    >>> printable("\x1b[2Jgone")
    '\\u001b[2Jgone'
    """
    return _HARMFUL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
