"""Where the tokens of a response lie in its text, from the vocabulary's own spelling of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["token_char_spans"]

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_WORD_BORDER = "\u2581"
"""SentencePiece's sign for a space."""

_SKIPPED_BYTES = 24
"""How much of the text may be passed over to find the next token again: what a clean-up of spaces took or added."""


def token_char_spans(text: str, tokens: Sequence[str]) -> NDArray[np.int64]:
    """Return the characters that each token covers, (T, 2) int64, half-open.

    A token that is a part of a character covers all of it, so that several tokens may cover one. A special token,
    and one that is not found in the text, covers nothing: it lies, empty, where the token before it ends.

    Parameters
    ----------
    text
        The response.
    tokens
        As the vocabulary spells them: byte-level BPE (``"Ġà¤¹"``), SentencePiece (``"▁je"``, ``"<0xE2>"``) or plain.

    Notes
    -----
    The spelling is not known beforehand: each of the three is tried, and the one under which most bytes of the text
    are covered is taken, the first of equals.
    """
    data = text.encode("utf-8", "surrogatepass")
    tries = [_placed(data, [spelling(token) for token in tokens]) for spelling in _SPELLINGS]
    best = max(tries, key=lambda spans: int((spans[:, 1] - spans[:, 0]).sum()))
    return _characters(text, best)


def _placed(data: bytes, pieces: Sequence[bytes]) -> NDArray[np.int64]:
    """Find the pieces one after the other, in bytes; what is not found has an empty span."""
    spans = np.zeros((len(pieces), 2), dtype=np.int64)
    place = 0
    for index, piece in enumerate(pieces):
        start, length = _found(data, place, piece)
        if length:
            place = start + length
        spans[index] = (place - length, place)
    return spans


def _found(data: bytes, place: int, piece: bytes) -> tuple[int, int]:
    for form in (piece, piece.strip(b" ")):
        if form and data.startswith(form, place):
            return place, len(form)
    bare = piece.strip(b" ")
    start = data.find(bare, place, place + _SKIPPED_BYTES + len(bare)) if len(bare) > 1 else -1
    # White space alone may always be passed over; more only for a piece long enough not to be there by chance.
    if start < 0 and bare and data[place:].lstrip().startswith(bare):
        start = data.index(bare, place)
    return (start, len(bare)) if start >= 0 else (place, 0)


def _characters(text: str, spans: NDArray[np.int64]) -> NDArray[np.int64]:
    lengths = [len(character.encode("utf-8", "surrogatepass")) for character in text]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)  # (C + 1,) byte at which a character begins
    first = np.searchsorted(starts, spans[:, 0], side="right") - 1
    last = np.searchsorted(starts, spans[:, 1], side="left")
    empty = spans[:, 0] == spans[:, 1]
    return np.stack([np.where(empty, last, first), last], axis=1)


def _byte_level(token: str) -> bytes:
    known = _byte_alphabet()
    return bytes(known[c] for c in token) if all(c in known for c in token) else token.encode("utf-8", "surrogatepass")


def _sentence_piece(token: str) -> bytes:
    byte = _BYTE_PIECE.fullmatch(token)
    if byte:
        return bytes([int(byte[1], 16)])
    return token.replace(_WORD_BORDER, " ").encode("utf-8", "surrogatepass")


@cache
def _byte_alphabet() -> dict[str, int]:
    """Return which byte each character of byte-level BPE stands for (Radford et al., 2019)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + index): byte for index, byte in enumerate(hidden)}


_SPELLINGS: tuple[Callable[[str], bytes], ...] = (_byte_level, _sentence_piece)
