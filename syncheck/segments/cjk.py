"""Full stops of Chinese and Japanese, which need no white space after them."""

from __future__ import annotations

__all__ = ["CLOSERS", "ends_cjk_sentence"]

CLOSERS = frozenset("\"')]}\u2019\u201d\xbb＂＇）］｝｠〉》」』】〕〗〙〛〞〟｣")
"""Quotes and brackets that belong to the sentence before them, straight, curly, full-width and ideographic."""

_STOPS = frozenset("。！？｡")
_FULL_WIDTH_POINT = "．"
_AFTER_STOP = CLOSERS | _STOPS | frozenset(_FULL_WIDTH_POINT + ".?!\u2026")
"""What belongs to the sentence when it follows its full stop."""


def ends_cjk_sentence(text: str, start: int, stop: int, after: int) -> bool:
    """Whether a full stop ends a sentence at ``stop``, with its closing quotes and brackets.

    Parameters
    ----------
    text
        The response as far as it is known.
    start
        Where what is looked at begins.
    stop
        Where the sentence would end: the start of the white space before ``after``, or ``after``.
    after
        Where the next would start: a character that is no white space.

    Notes
    -----
    The full-width point is a full stop only where no letter or digit of ASCII, or its full-width form, comes
    before it: there it is a decimal point, or the mark of an abbreviation or of a list's number.
    """
    if stop == after and text[after] in _AFTER_STOP:
        return False
    end = stop
    while end > start and text[end - 1] in _AFTER_STOP:
        end -= 1
        if text[end] in _STOPS or (text[end] == _FULL_WIDTH_POINT and not _is_latin(text[max(end - 1, start) : end])):
            return True
    return False


def _is_latin(char: str) -> bool:
    return char.isalnum() and (char.isascii() or "０" <= char <= "ｚ")
