"""Sentences of a response that is complete."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from os.path import commonprefix

from syncheck.errors import InputError
from syncheck.segments.assignment import first_token_from, visible
from syncheck.types import SentenceSpan

__all__ = ["is_checkable", "segment_given"]


def segment_given(token_texts: Sequence[str], sentences: Sequence[str]) -> list[SentenceSpan]:
    """Assign a response's tokens to sentences that the caller has cut.

    White space around a sentence is not in its span of characters, but it decides about tokens: a token of
    white space goes to the sentence whose string holds it.

    Parameters
    ----------
    token_texts
        Each token's text, joined the response.
    sentences
        The sentences with all white space; joined they are the response.

    Raises
    ------
    InputError
        If the joined sentences are not the response.
    """
    text = "".join(token_texts)
    _check_same(text, "".join(sentences))
    stops = list(accumulate(map(len, token_texts), initial=0))
    char_spans = list(pairwise(stops))
    spans: list[SentenceSpan] = []
    char, token = 0, 0
    for index, sentence in enumerate(sentences):
        after = char + len(sentence)
        is_last = index == len(sentences) - 1
        token_stop = len(char_spans) if is_last else first_token_from(after, text, char_spans, lowest=token)
        spans.append(SentenceSpan(index, *visible(text, char, after), token, token_stop))
        char, token = after, token_stop
    return spans


def is_checkable(text: str) -> bool:
    """Whether a sentence has a letter or digit of any script, without which it claims nothing."""
    return any(char.isalnum() for char in text)


def _check_same(response: str, joined: str) -> None:
    if joined == response:
        return
    at = len(commonprefix((response, joined)))
    raise InputError(
        f"the sentences, joined, must be the response; from character {at} on they differ: expected "
        f"{response[at : at + 40]!r}, found {joined[at : at + 40]!r}; pass them in order with all white space"
    )
