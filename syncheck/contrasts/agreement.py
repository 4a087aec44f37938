"""Agreement of quantities: whether two measure the same, and whether what one means may be what the other means."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from syncheck.contrasts.lexicon import UNITS
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.quantities import BOUNDED, EITHER, HALF_DAY, UNIT_KINDS, Quantity, size_of

ROUNDED = 0.15
"""Largest relative difference of a number that is called approximate."""
EXACT, CONVERTED = 1e-9, 0.025
"""The same of others, and of those in different units."""
MINOR = frozenset({"cents", "pence"})
"""Names of smaller coins, which a sum in a larger unit may be written in."""
_GRADUAL = UNIT_KINDS - {"money", "share"}
"""What is anything between the ends of a range: "speeds between 80 and 90 km/h" has 85 km/h."""


def are_comparable(one: Quantity, other: Quantity) -> bool:
    """Tell whether two quantities measure the same, so that one may contradict the other."""
    if one.change != other.change or (one.rate and other.rate and one.rate != other.rate):
        return False
    kinds = {one.kind, other.kind}
    if kinds == {"date", "year"}:
        return "range" not in (one.bound, other.bound)
    if kinds == {"ordinal"}:
        return not (one.counted and other.counted) or not one.counted.isdisjoint(other.counted)
    if kinds <= {"bare", "count"}:
        return len(kinds) == 2 or "bare" in kinds or not one.counted.isdisjoint(other.counted)
    return len(kinds) == 1 and (one.kind not in ("code", "square", "cubic") or one.unit == other.unit)


def agree(claim: Quantity, other: Quantity) -> bool:
    """Tell whether a quantity of a claim may be meant by one of the evidence, even one of another kind."""
    return any(_agree(ours, theirs) for ours in _readings(claim) for theirs in _readings(other))


def _readings(one: Quantity) -> Iterator[Quantity]:
    yield one
    if not math.isnan(one.loosely):
        yield replace(one, low=one.loosely, high=one.loosely)


def _agree(claim: Quantity, other: Quantity) -> bool:
    if "date" in (claim.kind, other.kind):
        date, rest = (claim, other) if claim.kind == "date" else (other, claim)
        if rest.kind == "year":
            return not date.date[0] or rest.low <= date.date[0] <= rest.high
        if rest.kind != "date":
            return rest.low in (date.date[2:] if rest.kind == "ordinal" else date.date)
        both = [(a, b) for a, b in zip(date.date, rest.date, strict=True) if a and b]
        return bool(both) and all(a == b for a, b in both)
    if claim.kind != other.kind and "ordinal" in (claim.kind, other.kind):
        return claim.number == other.number and {claim.kind, other.kind} <= {"ordinal", "bare", "count", "code"}
    if claim.kind == other.kind == "clock":
        step = HALF_DAY if EITHER in (claim.unit, other.unit) else 2 * HALF_DAY
        return (claim.low - other.low) % step == 0
    if claim.kind != other.kind and {claim.kind, other.kind} & {"bare", "count", "code"}:
        claim, other = (replace(q, low=q.low / size_of(q), high=q.high / size_of(q), unit="") for q in (claim, other))
    is_other_unit = claim.kind == other.kind and claim.unit and other.unit and claim.unit != other.unit
    if is_other_unit and not all(one.unit in UNITS and UNITS[one.unit].size for one in (claim, other)):
        return False
    if is_other_unit and claim.kind == "money" and MINOR.isdisjoint((claim.unit, other.unit)):
        return False
    return _within(claim, other, CONVERTED if is_other_unit else EXACT)


def _within(claim: Quantity, other: Quantity, slack: float) -> bool:
    """Tell whether what a claim allows overlaps what the evidence allows."""
    if claim.bound == other.bound == "up to":
        return abs(claim.high - other.high) <= EXACT * abs(other.high)
    claim, other = (replace(one, bound="upper") if one.bound == "up to" else one for one in (claim, other))
    bounds = {claim.bound, other.bound}
    if bounds == {"lower", "upper"}:
        lower, upper = (claim.low, other.high) if claim.bound == "lower" else (other.low, claim.high)
        return lower < upper
    if claim.bound == other.bound == "lower":
        return claim.low <= other.low * (1 + EXACT)
    if claim.bound == other.bound == "upper":
        return claim.high >= other.high * (1 - EXACT)
    if claim.bound == other.bound == "range":
        ends = [math.isclose(a, b) for a, b in ((claim.low, other.low), (claim.high, other.high))]
        return all(ends) or (not any(ends) and claim.low <= other.low and claim.high >= other.high)
    slack = ROUNDED if "about" in bounds else slack
    room = slack * max(abs(v) for one in (claim, other) for v in (one.low, one.high) if math.isfinite(v))
    if claim.low <= other.high + room and claim.high >= other.low - room:
        return True
    return (
        claim.kind != "year"
        and not (bounds - {""})
        and (_rounds(claim.low, other.low) or _rounds(other.low, claim.low))
    )


def _rounds(rounded: float, exact: float) -> bool:
    """Tell whether one number is another with fewer digits, two at least: 2.5 million for 2,512,000."""
    digits = len(f"{abs(rounded):.12g}".replace(".", "").strip("0"))
    exact_digits = len(f"{abs(exact):.12g}".replace(".", "").strip("0"))
    return 1 < digits < exact_digits and f"{exact:.{digits - 1}e}" == f"{rounded:.{digits - 1}e}"


def in_notation_of(claim: ParsedText, sides: Sequence[ParsedText]) -> str:
    """Rewrite a sentence so that its quantities are written as in texts that have the same ones.

    "It starts at half past two." beside "Doors open at 14:30." is "It starts at 14:30.". A quantity that a text has in
    the same writing stays as it is, and so does one that no text has.
    """
    end, pieces = 0, []
    for one in claim.quantities:
        first, last = _ends(claim, one)
        theirs = [(side, _ends(side, other)) for side in sides for other in side.quantities if _is_said_by(one, other)]
        same = [side.text[start:stop] for side, (start, stop) in theirs]
        if first >= end and same and claim.text[first:last].lower() not in map(str.lower, same):
            pieces += [claim.text[end:first], same[0] if first else same[0][0].upper() + same[0][1:]]
            end = last
    return "".join((*pieces, claim.text[end:])) if pieces else claim.notation.source


def _ends(side: ParsedText, one: Quantity) -> tuple[int, int]:
    """Find where a quantity begins and ends, with its sign, the word before a range and the full stop of "p.m."."""
    before = side.tokens[one.first - 1].word if one.first else ""
    has_word = (one.bound == "range" and before in ("between", "from")) or before == "minus"
    start, end = side.tokens[one.first - has_word].start, side.tokens[one.last].end
    start -= one.low < 0 and one.bound not in BOUNDED and side.text[start - 1 : start] == "-"
    return start, end + (side.tokens[one.last].text[1:2] == "." and side.text[end : end + 2] == ". ")


def _is_said_by(claim: Quantity, other: Quantity) -> bool:
    """Tell whether a quantity of the evidence says what one of a claim says, whatever both are said of."""
    if claim.kind == other.kind == "date":
        return claim.date == other.date
    if claim.kind == other.kind == "clock":
        return agree(claim, other)
    is_alike = (claim.kind == other.kind and claim.rate == other.rate) or {claim.kind, other.kind} == {"bare", "count"}
    if not is_alike or claim.bound not in ("", other.bound) or claim.change != other.change:
        return False
    if claim.unit != other.unit and not (claim.kind in UNIT_KINDS and agree(claim, other)):
        return False
    if other.bound == "range" and not claim.bound:
        return claim.kind in _GRADUAL and agree(claim, other)
    is_rounded = claim.bound == "" == other.bound and _rounds(claim.low, other.low)
    return is_rounded or all(math.isclose(*ends) for ends in ((claim.low, other.low), (claim.high, other.high)))
