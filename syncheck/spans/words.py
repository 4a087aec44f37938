"""Words of a text, grapheme clusters, frequencies of words, and the characters of a response's tokens."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

import numpy as np
import regex
from numpy.typing import NDArray

from syncheck.base.errors import MissingExtraError

Kind = Literal["letters", "number", "ideograph", "symbol"]


@dataclass(frozen=True, slots=True)
class Word:
    """Word of a text: characters ``start`` to ``end``, half-open, as written, and their kind.

    A ``symbol`` is a currency sign, an operator or an emoji, but no punctuation.
    """

    start: int
    end: int
    text: str
    kind: Kind


# Kana and Han are written without spaces: each character is a word.
_UNSPACED = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
# Zero-width (non-)joiners occur inside words of Persian and Hindi, and inside emoji.
_MARK = r"[\p{M}\u200c\u200d]"
_LETTER = rf"(?!{_UNSPACED})[\p{{L}}\p{{M}}\p{{Nl}}\p{{No}}]"
_WORD = regex.compile(
    rf"(?P<ideograph>{_UNSPACED}{_MARK}*)"
    rf"|(?P<number>\p{{Nd}}(?:{_MARK}|\p{{Nd}}|(?<=\p{{Nd}})[.,:/\u066b\u066c](?=\p{{Nd}}))*)"
    rf"|(?P<letters>{_LETTER}(?:{_MARK}|{_LETTER})*)"
    rf"|(?P<symbol>\p{{S}}(?:{_MARK}|[\U0001f3fb-\U0001f3ff]|(?<=\u200d).)*)",
    regex.DOTALL,
)


def words_of(text: str) -> list[Word]:
    """Split a text into words, in order, without white space and punctuation.

    Combining marks belong to the letter before them, so that no character that a reader sees is divided. "3.141" and
    "12/04/1999" are one number each; apostrophes and hyphens end a word.
    """
    return [Word(match.start(), match.end(), match[0], cast(Kind, match.lastgroup)) for match in _WORD.finditer(text)]


def normalised(word: str) -> str:
    """Normalise a word for comparisons: NFKC, with case folded and digits of any script as 0 to 9."""
    folded = unicodedata.normalize("NFKC", word).casefold()
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in folded)


_CLUSTER = regex.compile(r"\X")


def cluster_borders(text: str) -> list[int]:
    """Find the starts of a text's extended grapheme clusters (Unicode, annex 29), then its length."""
    return [*(cluster.start() for cluster in _CLUSTER.finditer(text)), len(text)]


Direction = Literal["ltr", "rtl", "auto"]


def reading_direction(text: str) -> Direction:
    """Find the direction of most letters in a text; ``auto`` if there are equally many of both.

    An Arabic answer that begins with a Latin name is thus right to left.
    """
    classes = Counter(unicodedata.bidirectional(character) for character in text)
    right, left = classes["R"] + classes["AL"], classes["L"]
    return "auto" if right == left else "rtl" if right > left else "ltr"


def word_rarity(words: Sequence[str], lang: str) -> NDArray[np.float64]:
    """Look up the Zipf frequency of each word, (W,) float64 in [0, 8]: log10 of its occurrences in a billion words.

    0 means that a word was never seen. All are NaN in a language without counts, such as Basque.
    """
    with MissingExtraError.unless("wordfreq", "rarity"):
        import wordfreq
    code = lang.casefold()  # the counts of Chinese, Japanese and Korean need their own segmenter
    if code in ("zh", "ja", "ko") or code not in wordfreq.available_languages():
        return np.full(len(words), np.nan)
    return np.array([float(wordfreq.zipf_frequency(word, code)) for word in words])


_SKIPPED_BYTES = 24
"""Largest number of bytes skipped to find the next token; a clean-up of spaces adds and removes some."""


def token_char_spans(text: str, tokens: Sequence[str]) -> NDArray[np.int64]:
    """Locate the characters that each token covers, (T, 2) int64, half-open.

    A token that is part of a character covers all of it, so that several tokens may cover one character. A special
    token, or one that is not found in the text, has an empty span at the end of the token before it.

    Tokens are in the spelling of the vocabulary: byte-level BPE (``"Ġà¤¹"``), SentencePiece (``"▁je"``, ``"<0xE2>"``)
    or plain. The spelling is not given, so the one with which the tokens cover most bytes of the text is taken.
    """
    data = _utf8(text)
    tries = [_placed(data, [spelling(token) for token in tokens]) for spelling in (_byte_level, _sentence_piece)]
    best = max(tries, key=lambda spans: int((spans[:, 1] - spans[:, 0]).sum()))
    return _characters(text, best)


def _placed(data: bytes, pieces: Sequence[bytes]) -> NDArray[np.int64]:
    """Locate the pieces, in bytes, one after the other; the span is empty for a piece that is not found."""
    spans = np.zeros((len(pieces), 2), dtype=np.int64)
    place = 0
    for index, piece in enumerate(pieces):
        start, length = _found(data, place, piece)
        if length:
            place = start + length
        spans[index] = (place - length, place)
    return spans


def _found(data: bytes, place: int, piece: bytes) -> tuple[int, int]:
    bare = piece.strip(b" ")
    for form in (piece, bare):
        if form and data.startswith(form, place):
            return place, len(form)
    start = data.find(bare, place, place + _SKIPPED_BYTES + len(bare)) if len(bare) > 1 else -1
    # White space alone may always be skipped; more only for a piece long enough not to be there by chance.
    if start < 0 and bare and data[place:].lstrip().startswith(bare):
        start = data.index(bare, place)
    return (start, len(bare)) if start >= 0 else (place, 0)


def _characters(text: str, spans: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = np.cumsum([0, *(len(_utf8(character)) for character in text)])  # (C + 1,) byte where a character begins
    first = np.searchsorted(starts, spans[:, 0], side="right") - 1
    last = np.searchsorted(starts, spans[:, 1], side="left")
    empty = spans[:, 0] == spans[:, 1]
    return np.stack([np.where(empty, last, first), last], axis=1)


def _byte_level(token: str) -> bytes:
    known = _byte_alphabet()
    return bytes(known[c] for c in token) if all(c in known for c in token) else _utf8(token)


def _sentence_piece(token: str) -> bytes:
    byte = re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", token)
    return bytes([int(byte[1], 16)]) if byte else _utf8(token.replace("\u2581", " "))


@cache
def _byte_alphabet() -> dict[str, int]:
    """Map each character of byte-level BPE to its byte (Radford et al., 2019)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + index): byte for index, byte in enumerate(hidden)}


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
