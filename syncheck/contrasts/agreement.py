"""Agreement of quantities: whether two measure the same, and whether what one means may be what the other means."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from syncheck.contrasts.lexicon import UNITS
from syncheck.contrasts.quantities import EITHER, HALF_DAY, Quantity, size_of

ROUNDED = 0.15
"""Largest relative difference of a number that is called approximate."""
EXACT, CONVERTED = 1e-9, 0.025
"""The same of others, and of those in different units."""
MINOR = frozenset({"cents", "pence"})
"""Names of smaller coins, which a sum in a larger unit may be written in."""


def are_comparable(one: Quantity, other: Quantity) -> bool:
    """Tell whether two quantities measure the same, so that one may contradict the other."""
    if one.change != other.change or (one.rate and other.rate and one.rate != other.rate):
        return False
    kinds = {one.kind, other.kind}
    if kinds == {"date", "year"}:
        return True
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
