"""Which tokens belong to a sentence.

A token whose text ends at or before the next sentence's first character belongs to the earlier sentence.
One that starts there, or holds only the space before it and its text, belongs to the later. One with text of
both stays in the earlier. A token without text goes with the next that has text and completes its character.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from syncheck.types import SentenceSpan

__all__ = ["first_token_from", "last_text_token", "visible"]

CharSpan = tuple[int, int]


def first_token_from(start: int, text: str, char_spans: Sequence[CharSpan], *, lowest: int) -> int:
    """Return the first token of the sentence that starts at a character.

    Parameters
    ----------
    start
        Where the later sentence's first character is.
    text
        The response as far as it is known.
    char_spans
        ``(start, stop)`` of each token; the last one must reach ``start``.
    lowest
        The earlier sentence's first token, which is never passed.
    """
    first = len(char_spans)
    for token in range(len(char_spans) - 1, lowest - 1, -1):
        begin, end = char_spans[token]
        if begin == end:
            continue
        if end <= start or text[begin:start].strip():
            break
        first = token
    while first > lowest and first < len(char_spans) and char_spans[first - 1][0] == char_spans[first - 1][1]:
        first -= 1
    return first


def last_text_token(span: SentenceSpan, char_spans: Sequence[CharSpan]) -> int:
    """Return the index of the token whose text reaches the sentence's end: where its hidden state is taken.

    Trailing white space and special tokens come after it. A sentence without tokens of its own, because one
    token holds several sentences, gives that token.
    """
    reaches = bisect_left(char_spans, span.char_stop, key=lambda chars: chars[1])
    last = max(span.token_start, span.token_stop - 1)
    return max(min(span.token_start, span.token_stop - 1), min(reaches, last))


def visible(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return the span without white space at its ends; empty at ``start`` when it holds nothing else."""
    inner = text[start:stop].rstrip()
    return start + (len(inner) - len(inner.lstrip())), start + len(inner)
