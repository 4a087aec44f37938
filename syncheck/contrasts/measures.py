"""Measures of a text: its numbers as amounts of a quantity, such as a length in metres or a time of day."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import pairwise

from syncheck.contrasts.amounts import SCALES, Amount
from syncheck.contrasts.grammar import CALENDAR, MAY
from syncheck.contrasts.misplaced import DIFFERENCES
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import SYMBOLS, Token, between, is_year
from syncheck.contrasts.units import SIZES, UNITS

_UNKNOWN = ""
"""Unit of a number without one."""
_DATED = frozenset({"year", "date", "clock"})
"""Quantities that are points in time."""

_QUANTITIES = {
    **{UNITS[unit][0]: quantity for unit, quantity in (("g", "mass"), ("m", "length"), ("l", "volume"))},
    **{UNITS[unit][0]: quantity for unit, quantity in (("day", "time"), ("euro", "money"), ("kb", "data"))},
}
_SPEEDS = {"mph": "mile", "kmh": "km", "kph": "km", "knot": "knot", "knots": "knot", "mbps": "mb", "gbps": "gb"}
_DEGREES = {"degree": "c", "degrees": "c", "celsius": "c", "c": "c", "fahrenheit": "f", "f": "f"}
_PER = frozenset("per a an each every".split())
_HOURLY = frozenset("h hour hours hr s second seconds".split())
_MODIFIERS = {"square": ("area", 2), "sq": ("area", 2), "cubic": ("volume", 3)}
_ABOVE = frozenset("over above least more beyond exceeding exceeds after since minimum".split())
_BELOW = frozenset("under below most less fewer until before maximum".split())
_CHANGES = frozenset(
    """
    by per rose rise rises risen fell fall falls fallen grew grow grows grown increased increase increases decreased
    decrease decreases declined decline dropped drop drops climbed up down extra another additional
    """.split()
)
"""Words directly before a number that is a change, or what another is divided by."""
_IN_YEAR = frozenset("in since of from until by to circa year about around and or between".split())
_MONTHS = (
    *("january", "february", "march", "april", MAY, "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_CLOCK = re.compile(r"(\d{1,2})[:.](\d\d)(?::(\d\d))?(?:\.(\d+))?|(\d+)")
_SMALL = 1000
"""Number from which a scale such as "million" is not left out."""
_ASPECTS = {
    **dict.fromkeys("long length".split(), "long"),
    **dict.fromkeys("wide width broad across diameter".split(), "wide"),
    **dict.fromkeys("high height tall altitude elevation above".split(), "high"),
    **dict.fromkeys("deep depth".split(), "deep"),
    **dict.fromkeys("thick thickness".split(), "thick"),
}
"""Words that say which length is meant."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a text with what it measures."""

    first: int
    last: int
    """Places of its first and last token, with the unit."""
    low: float
    high: float
    """Smallest and largest value, in the basic unit of the quantity if it can be converted."""
    quantity: str
    """ "length", "money" and the like; "count" for other nouns, "bare" without a unit."""
    unit: str
    """Measures of the same unit can be compared."""
    aspect: str = ""
    """Which length it is, if the text says so: "long", "wide", "high", "deep", "thick"."""


def measures(side: ParsedText) -> list[Measure]:
    """Return the measures of a text; a number without unit takes the only unit, which other parts have."""
    found = [_with_scale(side, measure) for measure in _read(side) if not _is_change(side, measure)]
    known = {measure.unit: measure for measure in found if measure.unit and measure.quantity not in _DATED}
    if len(known) != 1:
        return found
    (only,) = known.values()
    size = _size_of(side, only)
    explicit = {part for m in found if m.unit == only.unit for part in side.parts if m.first in part}
    firsts = {m.first for m in found if m.unit}
    for n, m in enumerate(found):
        is_beside = any(m.first in part for part in explicit) and not _is_joined(side, m, firsts)
        if m.quantity == "bare" and not is_beside:
            found[n] = replace(m, quantity=only.quantity, unit=only.unit, low=m.low * size, high=m.high * size)
    return found


def _is_joined(side: ParsedText, measure: Measure, firsts: AbstractSet[int]) -> bool:
    """Return True for the first number of "5 and 7 grams"."""
    after = measure.last + 1
    return after + 1 in firsts and side.tokens[after].word in ("and", "or", "to")


def _with_scale(side: ParsedText, measure: Measure) -> Measure:
    """Return a small number without unit in the only scale of the others: "2 million, the other 7"."""
    scales = {token.word for token in side.tokens if token.word in SCALES}
    if measure.quantity != "bare" or measure.first != measure.last or measure.high >= _SMALL or len(scales) != 1:
        return measure
    scale = SCALES[scales.pop()]
    return replace(measure, low=measure.low * scale, high=measure.high * scale)


def has_symbol(side: ParsedText, place: int) -> bool:
    """Return True if the sign of a currency stands before a place."""
    before = side.tokens[place - 1].text if place else "%"
    return before in SYMBOLS and before != "%"


def _size_of(side: ParsedText, measure: Measure) -> float:
    """Return the factor that turned the number of a measure into its value."""
    written = next(amount.value for amount in side.amounts if amount.first == measure.first)
    values = [value for value in (measure.low, measure.high) if math.isfinite(value)]
    return abs(values[0]) / written if written and values else 1.0


def _read(side: ParsedText) -> Iterator[Measure]:
    stop = 0
    amounts = {amount.first: amount for amount in side.amounts}
    for place, token in enumerate(side.tokens):
        if place < stop or not token.number or _is_code(side, place):
            continue
        amount = amounts.get(place)
        found = _date(side, place) or _clock(side, place) or (_amount(side, amount) if amount is not None else None)
        if found is not None:
            yield found
            stop = found.last + 1


def _is_code(side: ParsedText, place: int) -> bool:
    """Return True for the number of a name such as "X2" or "A-4"."""
    start = side.tokens[place].start
    return re.search(r"[^\W\d_]-?$", side.text[max(0, start - 2) : start]) is not None


def _is_change(side: ParsedText, measure: Measure) -> bool:
    """Return True for a number that says how much two others differ: "rose by 5", "5 minutes longer than"."""
    first = measure.first - has_symbol(side, measure.first)
    before = side.tokens[first - 1].word if first else ""
    after = [token.word for token in side.tokens[measure.first + 1 : measure.last + 4]]
    compared = any(then == "than" and (word.endswith("er") or word in DIFFERENCES) for word, then in pairwise(after))
    is_change = before in _CHANGES and not (before == "by" and measure.quantity in _DATED)
    return is_change or compared or not {"points", "times"}.isdisjoint(after[:2])


def _date(side: ParsedText, place: int) -> Measure | None:
    """Read "3 March", "March 3" and both with a year, in days."""
    tokens = side.tokens
    around = ((place - 1, place), (place + 1, place + 1))
    month, last = next(((n, end) for n, end in around if 0 <= n < len(tokens) and tokens[n].word in _MONTHS), (-1, 0))
    day = tokens[place].word
    if month < 0 or not day.isdigit() or not 0 < int(day) <= 31:
        return None
    following = tokens[last + 1 : last + 2]
    year = int(following[0].word) if following and is_year(following[0]) else 0
    value = 372.0 * year + 31 * _MONTHS.index(tokens[month].word) + int(day)
    return Measure(min(month, place), last + bool(year), value, value, "date", "date of year" if year else "date")


def _clock(side: ParsedText, place: int) -> Measure | None:
    """Read a time of day in minutes, or a time such as "1:58.2" in units of its first number's 60th part."""
    token, after = side.tokens[place], side.tokens[place + 1 : place + 2]
    half = after[0].word if after and after[0].word in ("am", "pm") else ""
    found = _CLOCK.fullmatch(token.text)
    if found is None or not (half or ":" in token.text):
        return None
    hour, minute, second, part, alone = found.groups()
    value = 60.0 * int(hour or alone) + int(minute or 0) + float(f"0.{part or 0}")
    if half:
        value = value % 720 + 720 * (half == "pm")
    unit = "time with seconds" if second else "time with half" if half else "time"
    value = 60 * value + int(second) if second else value
    return Measure(place, place + bool(half), value, value, "clock", unit)


def _amount(side: ParsedText, amount: Amount) -> Measure:
    quantity, unit, size, last = _unit(side, amount)
    value = amount.value * size
    before = [token.word for token in side.tokens[max(0, amount.first - 3) : amount.first]]
    start = side.tokens[amount.first].start
    if "minus" in before[-1:] or re.search(r"(?:^|\s)[-\u2212]$", side.text[:start]):
        value = -value
    low, high = value, value
    if not _ABOVE.isdisjoint(before[-2:]):
        high = math.inf
    if not _BELOW.isdisjoint(before[-2:]) or before[-2:] == ["up", "to"]:
        low = -math.inf
    return Measure(amount.first, last, low, high, quantity, unit, _aspect(side, amount.first, last))


def _aspect(side: ParsedText, first: int, last: int) -> str:
    """Return which length is meant, by the word after a measure or else one shortly before it."""
    after = [token.word for token in side.tokens[last + 1 : last + 2]]
    before = [token.word for token in side.tokens[max(0, first - 3) : first]]
    return next((_ASPECTS[word] for word in (*after, *reversed(before)) if word in _ASPECTS), "")


def _unit(side: ParsedText, amount: Amount) -> tuple[str, str, float, int]:
    """Return quantity, unit, size in the basic unit, and the last place."""
    last = amount.stop - 1
    before = side.tokens[max(0, amount.first - 1) : amount.first]
    if has_symbol(side, amount.first):
        return "money", str(UNITS[before[0].word]), 1.0, last
    after = _adjoining(side, amount.stop)
    is_dated = is_year(side.tokens[amount.first]) and amount.stop == amount.first + 1
    if is_dated and (not after or not after[0].content or any(token.word in _IN_YEAR for token in before)):
        return "year", "year", 1.0, last
    if not after or (not after[0].content and after[0].word not in UNITS):
        return "bare", _UNKNOWN, 1.0, last
    return _named(after, last)


def _named(after: Sequence[Token], last: int) -> tuple[str, str, float, int]:
    """Return the same for a number with words after it."""
    words = [token.word for token in after]
    if words[0] in _DEGREES:
        scales = [_DEGREES[word] for word in words[:2] if word in _DEGREES]
        return "temperature", scales[-1], 1.0, last + len(scales)
    if words[0] in _SPEEDS:
        return "speed", _SPEEDS[words[0]] + "/h", 1.0, last + 1
    if words[0] in _MODIFIERS and len(words) > 1:
        quantity, power = _MODIFIERS[words[0]]
        _, size = SIZES.get(words[1], ("", 1.0))
        return quantity, quantity if words[1] in SIZES else after[1].stem, size**power, last + 2
    return _plain(after, words, last)


def _plain(after: Sequence[Token], words: Sequence[str], last: int) -> tuple[str, str, float, int]:
    """Return the same for a unit of one word, perhaps with "per hour" or "old"."""
    if words[0] == "percent":
        return "share", "percent", 1.0, last + 1
    known = UNITS.get(words[0])
    quantity = _QUANTITIES.get(known[0], "count") if known else "count"
    converted, size = SIZES.get(words[0], ("", 1.0))
    unit = converted or (str(known) if known else after[0].stem)
    rate = next((t for t in after[1:3] if t.word not in _PER), None)
    if len(words) > 1 and (words[1] in _PER or words[1] in _HOURLY) and rate is not None:
        is_speed = quantity in ("length", "data") and rate.word in _HOURLY
        return ("speed" if is_speed else quantity), f"{unit}/{rate.stem[:1]}", size, last + 1
    if quantity == "time" and "old" in words[1:2]:
        return "age", unit, size, last + 2
    return quantity, unit, size, last + 1


def _adjoining(side: ParsedText, place: int) -> list[Token]:
    """Return up to three words after a number that nothing parts from it."""
    found: list[Token] = []
    for n in range(place, min(place + 3, len(side.tokens))):
        if n and between(side.text, side.tokens[n - 1], side.tokens[n]) not in ("", "-", "\u00b0", "/"):
            break
        if side.tokens[n].number or side.tokens[n].word in CALENDAR:
            break
        found.append(side.tokens[n])
    return found
