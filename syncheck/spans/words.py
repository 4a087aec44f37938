"""Words of a text, its clusters of characters, and how rare a word is."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import regex
from numpy.typing import NDArray

from syncheck.errors import MissingExtraError

__all__ = ["Direction", "Word", "cluster_borders", "normalised", "reading_direction", "word_rarity", "words_of"]


Kind = Literal["letters", "number", "ideograph", "symbol"]

_JOINERS = frozenset("\u200c\u200d")
"""Zero-width (non-)joiners stand inside words of Persian and Hindi, and inside emoji."""

_INSIDE_NUMBERS = frozenset(".,:/\u066b\u066c")

_UNSPACED = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
"""Kana and Han are written without spaces: each character is a word."""


@dataclass(frozen=True, slots=True)
class Word:
    """Characters ``start`` to ``end`` (half-open) of a text, as written, and what they are.

    ``symbol`` is one that is no punctuation: a currency sign, an operator, an emoji.
    """

    start: int
    end: int
    text: str
    kind: Kind


def words_of(text: str) -> list[Word]:
    """Cut a text into words, in order; white space and punctuation are in none.

    Combining marks belong to the letter before them, so that nothing that a reader sees as one character is cut.
    "3.141" and "12/04/1999" are one number each; apostrophes and hyphens end a word.
    """
    found: list[Word] = []
    start = 0
    while start < len(text):
        kind = _kind(text[start])
        stop = start + 1
        while kind is not None and stop < len(text) and _goes_on(text, stop, kind):
            stop += 1
        if kind is not None:
            found.append(Word(start, stop, text[start:stop], kind))
        start = stop
    return found


def normalised(word: str) -> str:
    """Return a word as it is compared: compatibility forms and case folded, digits of any script as 0 to 9."""
    folded = unicodedata.normalize("NFKC", word).casefold()
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in folded)


def _kind(character: str) -> Kind | None:
    """Return what a word that begins with this character is, None where none does."""
    if any(low <= ord(character) <= high for low, high in _UNSPACED):
        return "ideograph"
    category = unicodedata.category(character)
    if category == "Nd":
        return "number"
    if category[0] in "LMN":
        return "letters"
    return "symbol" if category[0] == "S" else None


def _goes_on(text: str, place: int, kind: Kind) -> bool:
    """Whether the character at ``place`` belongs to the word before it."""
    character = text[place]
    if unicodedata.category(character)[0] == "M" or character in _JOINERS:
        return True
    if kind == "letters":
        return _kind(character) == "letters"
    if kind == "number":
        inside = character in _INSIDE_NUMBERS and place + 1 < len(text) and text[place - 1].isdecimal()
        return character.isdecimal() or (inside and text[place + 1].isdecimal())
    return kind == "symbol" and (text[place - 1] == "\u200d" or 0x1F3FB <= ord(character) <= 0x1F3FF)


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


_SEGMENTED = frozenset({"zh", "ja", "ko"})
"""Languages whose counts need a segmenter of their own."""


def word_rarity(words: Sequence[str], lang: str) -> NDArray[np.float64]:
    """Return the Zipf frequency of each word: log10 of its occurrences in a billion words, (W,) float64, 0 to 8.

    0 is a word never seen; NaN stands for all words of a language without counts (Basque among others).

    Raises
    ------
    MissingExtraError
        If ``wordfreq`` is not installed.
    """
    counts = _wordfreq()
    code = lang.casefold()
    if code in _SEGMENTED or code not in counts.available_languages():
        return np.full(len(words), np.nan)
    return np.array([float(counts.zipf_frequency(word, code)) for word in words])


def _wordfreq() -> Any:
    try:
        import wordfreq
    except ImportError as error:
        raise MissingExtraError("wordfreq", "rarity") from error
    return wordfreq
