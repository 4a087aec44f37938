"""Numbers in figures and words: "45", "45 thousand", "forty-five thousand"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from syncheck.contrasts.tokens import Token, between

SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}

_PLAIN = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


class Amount(NamedTuple):
    """A number in figures or words, such as "45", "45 thousand" or "forty-five thousand": tokens and value."""

    first: int
    stop: int
    value: float


def amounts_in(text: str, tokens: Sequence[Token]) -> Iterator[Amount]:
    """Read the numbers; "10:30" is none."""
    place = 0
    while place < len(tokens):
        found = _amount(text, tokens, place)
        if found is not None:
            yield found
        place = place + 1 if found is None else found.stop


def _amount(text: str, tokens: Sequence[Token], first: int) -> Amount | None:
    """Read the number that begins at a place."""
    if not tokens[first].number or not _PLAIN.fullmatch(tokens[first].word):
        return None
    total, part, place = 0.0, _value(tokens[first]), first + 1
    while place < len(tokens) and between(text, tokens[place - 1], tokens[place]) in ("", "-"):
        token, after = tokens[place], tokens[place + 1 : place + 2]
        if token.word == "hundred":
            part *= 100
        elif token.word in SCALES:
            total, part = total + part * SCALES[token.word], 0.0
        elif _is_spelled(token) and tokens[first].text.isalpha():
            part += _value(token)
        elif not (
            token.word == "and" and tokens[place - 1].word in {"hundred", *SCALES} and any(map(_is_spelled, after))
        ):
            break
        place += 1
    return Amount(first, place, total + part)


def _is_spelled(token: Token) -> bool:
    return token.text.isalpha() and (token.number or token.word == "one")


def _value(token: Token) -> float:
    return 1.0 if token.word == "one" else float(token.word.replace(",", ""))
