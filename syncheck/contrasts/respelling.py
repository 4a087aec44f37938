"""Sentences with their numbers and units as other texts write them: "24 months" for "two years"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import HALVES_OF_DAY
from syncheck.contrasts.units import SIZES, UNITS

_CLOCK = re.compile(r"(?P<hour>\d{1,2})(?:[:.](?P<minute>[0-5]\d))?")


def respelled(claim: ParsedText, sides: Sequence[ParsedText]) -> str:
    """Return a sentence with numbers and units as other texts write them: "24 months" for "two years".

    What no other text has stays as it is.
    """
    text, taken = claim.text, len(claim.text)
    ours = sorted(_quantities(claim), key=lambda found: (-found[1], -len(found[2])))
    theirs = {key: written for side in sides for key, _, written in side.once(_quantities)} if ours else {}
    for key, start, written in ours:
        is_new = start + len(written) <= taken and not any(_has_words(side.text, written) for side in sides)
        if is_new and key in theirs:
            text, taken = text[:start] + theirs[key] + text[start + len(written) :], start
    return text


def _quantities(side: ParsedText) -> list[tuple[object, int, str]]:
    """Return what numbers with units, numbers, and units mean, where they begin and how they are written."""
    return [*_amounts(side), *_times(side), *_units(side)]


def _amounts(side: ParsedText) -> Iterator[tuple[object, int, str]]:
    for first, stop, value in side.amounts:
        start, unit = side.tokens[first].start, side.tokens[stop : stop + 1]
        if unit and unit[0].word in SIZES:
            quantity, size = SIZES[unit[0].word]
            yield (quantity, round(value * size, 6)), start, side.written(first, stop)
        yield value, start, side.written(first, stop - 1)


def _units(side: ParsedText) -> Iterator[tuple[object, int, str]]:
    for token in side.tokens:
        if token.word in UNITS and token.text.isalpha():
            yield UNITS[token.word], token.start, token.text


def _times(side: ParsedText) -> Iterator[tuple[object, int, str]]:
    """Yield the times of day, in minutes: "2:30 p.m." is "14:30"."""
    for token, after in zip_longest(side.tokens, side.tokens[1:]) if side.has_number else ():
        clock = _CLOCK.fullmatch(token.text) if token.number else None
        half = after.word if after is not None and after.word in HALVES_OF_DAY.values() else ""
        if clock and (half or ":" in token.text):
            hour = int(clock["hour"]) % 12 + 12 * (half == "pm") if half else int(clock["hour"])
            written = side.text[token.start : after.start + len(after.text)] if half and after else token.text
            yield ("time", 60 * hour + int(clock["minute"] or 0)), token.start, written


def _has_words(text: str, written: str) -> bool:
    return re.search(rf"(?<![\w.,]){re.escape(written)}(?!\w)", text, re.IGNORECASE) is not None
