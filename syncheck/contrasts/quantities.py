"""Quantities that the measures of a text may be of, and whether a comparative word fits them."""

from __future__ import annotations

from collections.abc import Iterator

from syncheck.contrasts.comparatives import Comparative
from syncheck.contrasts.measures import Measure
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.placing import Evidence, Placed

NAMED = {
    **dict.fromkeys("cost costs costing price prices priced fare fares fee fees rent pay pays paid".split(), "money"),
    **dict.fromkeys("salary salaries wage wages earn earns earned spend spent sell sells sold".split(), "money"),
    **dict.fromkeys("weigh weighs weighed weight".split(), "mass"),
    **dict.fromkeys("take takes took taken last lasts lasted duration".split(), "time"),
    **dict.fromkeys("temperature temperatures thermometer".split(), "temperature"),
    **dict.fromkeys("share percentage proportion".split(), "share"),
    **dict.fromkeys("population inhabitants people residents".split(), "people"),
}
"""Words that say what a number measures, or what is compared, without a unit."""
_PEOPLE = frozenset("inhabitant resident people popul pupil student employe member seat room bed page citizen".split())
"""Stems of what the size of a town, a school or a book is counted in."""
_ORIGINS = frozenset(
    "open found build establish bear complet date launch construct creat erect publish start releas inaugur".split()
)
"""Stems of verbs whose year tells an age."""
_TIMED = frozenset("in of with time clocked took ran".split())
"""Words before a time that someone took, and which is no time of day."""
_BEFORE_AGES = frozenset("is was are were aged age turned".split())
"""Words, besides names, before a number without a unit that may be an age."""
_OLDEST = 120
"""Largest number without a unit that may be an age."""
_MORNING = 360
"""Minute of the day before which it is unclear to which day or half of a day a time belongs."""


def fits(claim: ParsedText, comparison: Comparative, placed: Placed, evidence: Evidence) -> bool:
    """Return True if a comparative word, with the words around it, may be about a measure."""
    measure = placed.measure
    quantities = set(_quantities(placed, evidence))
    named = {NAMED[t.word] for n in (*comparison.left, *comparison.right) if (t := claim.tokens[n]).word in NAMED}
    if not sign_of(comparison, placed, evidence):
        return False
    if comparison.counted:
        return comparison.counted == measure.unit or _is_amount_of(comparison.counted, measure, evidence)
    return not (comparison.general and named) or not named.isdisjoint(quantities)


def _is_amount_of(counted: str, measure: Measure, evidence: Evidence) -> bool:
    """Return True if a measure of a unit, or without one, may be that of a noun: "a profit of 5 euros"."""
    if measure.quantity in ("count", "share"):
        return False
    return any(
        counted in (evidence.stems[one.part] if measure.unit else evidence.held)
        for one in evidence.placed
        if one.measure.unit == measure.unit
    )


def sign_of(comparison: Comparative, placed: Placed, evidence: Evidence) -> int:
    """Return 1 if more of a measure makes a comparison true, -1 if less does; 0 if the word does not fit."""
    aspect = placed.measure.aspect
    for quantity in _quantities(placed, evidence):
        for key, sign in comparison.signs.items():
            if key[0] == quantity and (key[1] in ("", aspect) or (not aspect and key[1] in ("long", "high"))):
                return sign
    return 0


def _quantities(placed: Placed, evidence: Evidence) -> Iterator[str]:
    """Yield what a measure may be."""
    measure, text = placed.measure, evidence.texts[placed.text]
    before = text.tokens[measure.first - 1].word if measure.first else ""
    if measure.quantity == "clock":
        if before in _TIMED or measure.unit == "time with seconds":
            yield "timed"
        if measure.unit == "time with half" or measure.low >= _MORNING:
            yield "clock"
        return
    yield measure.quantity
    named = {NAMED[word] for word in text.words if word in NAMED}
    if measure.quantity == "bare":
        yield from named
        is_after = before in _BEFORE_AGES or (measure.first > 0 and text.tokens[measure.first - 1].name)
        if is_after and measure.low in range(1, _OLDEST):
            yield "age"
    if measure.quantity == "count" and measure.unit in _PEOPLE:
        yield "people"
    if measure.quantity == "time" and not {"age", "aged"}.isdisjoint(text.words):
        yield "age"
    if measure.quantity == "year" and not _ORIGINS.isdisjoint(text.stems):
        yield "origin"
