"""What a reader sees as one character, which may be several code points, and which way a text is read."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import Literal

__all__ = ["Direction", "cluster_borders", "reading_direction"]

Direction = Literal["ltr", "rtl", "auto"]

_JOINER, _NON_JOINER = "\u200d", "\u200c"
_VIRAMA = 9
"""Canonical combining class of the sign that joins two consonants of an Indic script."""

_EXTENDING = ((0x1160, 0x11FF), (0xFF9E, 0xFF9F), (0x1F3FB, 0x1F3FF), (0xE0020, 0xE007F))
"""Code points that extend the one before them and are no marks: vowels and finals of Hangul, halfwidth voicing, skin
tones, tags of flags."""

_FLAG_LETTERS = (0x1F1E6, 0x1F1FF)


def cluster_borders(text: str) -> list[int]:
    """Return where the characters that a reader sees begin, and the length of the text; [0] for an empty one.

    Notes
    -----
    The extended grapheme clusters of Unicode (annex 29), by category and combining class: marks stay with their letter,
    consonants under a virama with each other, and an emoji with its modifiers.
    """
    inside = [False] + [_joined(text, place) for place in range(1, len(text))]
    return [place for place in range(len(text)) if not inside[place]] + [len(text)] if text else [0]


def reading_direction(text: str) -> Direction:
    """Return the direction of most letters of a text: an Arabic answer that begins with a Latin name is Arabic.

    ``auto`` where neither has more, as in a text without letters.
    """
    found = Counter(unicodedata.bidirectional(character) for character in text)
    right, left = found["R"] + found["AL"], found["L"]
    return "auto" if right == left else "rtl" if right > left else "ltr"


def _joined(text: str, place: int) -> bool:
    """Whether the code point at ``place`` belongs to the one before it."""
    before, character = text[place - 1], text[place]
    category = unicodedata.category(character)
    if before in "\r\n" or character in "\r\n":
        return before == "\r" and character == "\n"
    if category[0] == "M" or character in (_JOINER, _NON_JOINER) or _within(character, *_EXTENDING):
        return True
    if before == _JOINER and category == "So":
        return True
    if _within(character, _FLAG_LETTERS):
        return _flag_letters_before(text, place) % 2 == 1
    return category == "Lo" and _under_virama(text, place)


def _under_virama(text: str, place: int) -> bool:
    earlier = place - 1
    while earlier > 0 and text[earlier] in (_JOINER, _NON_JOINER):
        earlier -= 1
    if any(text[i] == _NON_JOINER for i in range(earlier + 1, place)):
        return False
    return unicodedata.combining(text[earlier]) == _VIRAMA


def _flag_letters_before(text: str, place: int) -> int:
    start = place
    while start > 0 and _within(text[start - 1], _FLAG_LETTERS):
        start -= 1
    return place - start


def _within(character: str, *ranges: tuple[int, int]) -> bool:
    return any(low <= ord(character) <= high for low, high in ranges)
