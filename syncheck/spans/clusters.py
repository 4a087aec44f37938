"""What a reader sees as one character, which may be several code points, and which way a text is read."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import Literal

import regex

__all__ = ["Direction", "cluster_borders", "reading_direction"]

Direction = Literal["ltr", "rtl", "auto"]

_CLUSTER = regex.compile(r"\X")


def cluster_borders(text: str) -> list[int]:
    """Return where the extended grapheme clusters of Unicode (annex 29) begin, and the length of the text.

    An empty text gives [0].
    """
    return [*(cluster.start() for cluster in _CLUSTER.finditer(text)), len(text)]


def reading_direction(text: str) -> Direction:
    """Return the direction of most letters of a text: an Arabic answer that begins with a Latin name is Arabic.

    ``auto`` where neither has more, as in a text without letters.
    """
    found = Counter(unicodedata.bidirectional(character) for character in text)
    right, left = found["R"] + found["AL"], found["L"]
    return "auto" if right == left else "rtl" if right > left else "ltr"
