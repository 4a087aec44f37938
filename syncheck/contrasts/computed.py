"""Numbers of a sentence that follow from those of the evidence, such as "thirty" from "a third of the 90 pupils"."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import combinations

from syncheck.contrasts.amounts import Amount
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import between
from syncheck.contrasts.units import UNITS

FACTORS = {"half": 1 / 2, "halves": 1 / 2, "third": 1 / 3, "thirds": 1 / 3, "quarter": 1 / 4, "quarters": 1 / 4} | {
    "double": 2.0,
    "doubles": 2.0,
    "doubled": 2.0,
    "twice": 2.0,
    "percent": 1 / 100,
}
"""Words that multiply a number; the words of fractions may follow one ("two thirds")."""

ANY_UNIT = (-1, -1)
"""In place of the unit of a number without one, as the first in "2 and 3 euros"."""


def is_computed(claim: ParsedText, place: int, chunk: ParsedText) -> bool:
    """Return True if a number that the evidence lacks is made of numbers that the evidence has.

    It may be a share or a multiple of one, with the number of things that the sentence names ("two cost 20 euros"), or
    a sum or difference of two, if the sentence has a word of its own such as "together". A sentence that repeats the
    evidence in all other words has another number in its place.
    """
    value = next((amount.value for amount in claim.amounts if amount.first <= place < amount.stop), None)
    theirs, ours = _values(chunk), _values(claim)
    if value is None or value in theirs:
        return False
    own = not {t.stem for t in claim.tokens if t.content and not t.number} <= chunk.stems
    shares = set(_shares(chunk)) | set(_shares(claim))
    times = shares | (ours - theirs - {value})
    new = theirs - ours
    return (
        _any_equal(value, (a * b for a in theirs for b in times))
        or _any_equal(value, (a - a * b for a in theirs for b in shares if b < 1))
        or _any_equal(value, (a * b for a, b in combinations(new, 2)))
        or (own and _any_equal(value, _totals(chunk)))
    )


def _totals(side: ParsedText) -> Iterator[float]:
    """Yield the sums and differences of numbers of the same unit, which may be left out after one of them."""
    for first, second in combinations(side.amounts, 2):
        units = {_unit(side, amount) for amount in (first, second)} - {ANY_UNIT}
        if len(units) <= 1:
            yield from (first.value + second.value, abs(first.value - second.value))


def _unit(side: ParsedText, amount: Amount) -> tuple[int, int] | None:
    after = side.tokens[amount.stop : amount.stop + 1]
    around = [*after, *side.tokens[max(0, amount.first - 1) : amount.first]]
    unit = next((UNITS[token.word] for token in around if token.word in UNITS), None)
    left_out = not after or after[0].word in {"and", "or"} or between(side.text, side.tokens[amount.stop - 1], after[0])
    return ANY_UNIT if unit is None and left_out else unit


def _values(side: ParsedText) -> set[float]:
    return {amount.value for amount in side.amounts if amount.value > 1}


def _shares(side: ParsedText) -> Iterator[float]:
    """Yield the fractions, percentages and factors of a text."""
    counts = {amount.stop: amount.value for amount in side.amounts}
    for place, token in enumerate(side.tokens):
        if token.word in FACTORS:
            yield FACTORS[token.word] * counts.get(place, 1.0)


def _any_equal(value: float, made: Iterable[float]) -> bool:
    return any(math.isclose(value, other, rel_tol=1e-6) for other in made)
