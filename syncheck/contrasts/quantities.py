"""Quantities of a text: its numbers with what they measure, how they are bounded, and whether two of them agree."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from syncheck.contrasts.tokens import Token, between, is_year
from syncheck.contrasts.words import CALENDAR, CLASSES, MAY, SCALES, SYMBOLS, UNITS
from syncheck.text.notation import MAGNITUDES

Bound = Literal["", "lower", "upper", "about", "range"]

ROUNDED = 0.15
"""Largest relative difference of a number that is called approximate."""
EXACT, CONVERTED = 1e-9, 0.02
"""The same of others, and of those in different units."""
YEARS_ROUNDED = 5
"""The same of years, in years."""
HALF_DAY = 720
"""Minutes."""
EITHER = "either half of the day"
"""Stands in for the unit of a time."""

_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_CLOCK = re.compile(r"(\d{1,2})[:.](\d\d)(?::\d\d)?|(\d{1,2})")
_MONTHS = (
    *("january", "february", "march", "april", MAY, "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_PER = frozenset("per a an each every".split())
_DEGREES = {"c": "celsius", "celsius": "celsius", "f": "fahrenheit", "fahrenheit": "fahrenheit"}
_IN_YEAR = frozenset("in since of from until by to circa year about around and or between during after before".split())


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a text with what it measures."""

    first: int
    last: int
    """Places of its first and last token, with the unit."""
    stop: int
    """Place after its number, where the unit begins."""
    number: float
    """The number as it is written, whatever it measures."""
    low: float
    high: float
    """Smallest and largest value that is meant, in the basic unit."""
    kind: str
    """"mass", "money" and the like; "year", "date", "clock", "count" of other nouns, "code", "bare" without a unit."""
    unit: str = ""
    """First name of its unit."""
    rate: str = ""
    """Stem of what it is divided by, as in "an hour"."""
    counted: frozenset[str] = frozenset()
    """Stems of what is counted."""
    bound: Bound = ""
    change: bool = False
    """True if it says how much two others differ: "rose by 5", "5 minutes longer than"."""
    date: tuple[int, int, int] = (0, 0, 0)
    """Year, month and day; 0 where one is not given."""


def quantities_in(text: str, tokens: Sequence[Token]) -> Iterator[Quantity]:
    """Yield the quantities in order; one without unit takes that of the next, as in "5 and 7 grams"."""
    found = list(_read(text, tokens))
    place = 0
    while place < len(found):
        one, after = found[place], found[place + 1] if place + 1 < len(found) else None
        joined = after is not None and _joined(text, tokens, one, after)
        if (
            after is not None
            and joined
            and one.kind in ("bare", "year")
            and after.kind not in ("year", "date", "clock")
        ):
            size = _size(after)
            one = replace(one, kind=after.kind, unit=after.unit, rate=after.rate, counted=after.counted)
            one = replace(one, low=one.low * size, high=one.high * size)
        if after is not None and joined == "range" and one.kind == after.kind and one.high <= after.low:
            one = replace(after, first=one.first, low=one.low, bound="range")
            place += 1
        yield one
        place += 1


def _size(one: Quantity) -> float:
    """Look up the size of a unit in the basic one, 1 if it is not converted."""
    return (UNITS[one.unit].size if one.unit in UNITS else 0.0) or 1.0


def _joined(text: str, tokens: Sequence[Token], one: Quantity, after: Quantity) -> str:
    """Classify: "range" for "between 5 and 7" and "5 to 7 grams", "list" for "5 and 7 grams", "" for anything else."""
    if one.last + 1 == after.first:
        has_dash = between(text, tokens[one.last], tokens[after.first]) in ("-", "\u2013")
        return "range" if has_dash and (after.kind != "bare" or one.kind == "year") else ""
    word = tokens[one.last + 1].word if one.last + 2 == after.first else ""
    before = tokens[one.first - 1].word if one.first else ""
    if (word == "and" and before == "between") or (word == "to" and before not in ("from", "by", "rose", "fell")):
        return "range"
    return "list" if word in ("and", "or", "to") else ""


def _read(text: str, tokens: Sequence[Token]) -> Iterator[Quantity]:
    place = 0
    while place < len(tokens):
        token = tokens[place]
        is_month = token.word in _MONTHS and token.text[0].isupper()
        if token.word == "twice":
            yield Quantity(place, place, place + 1, 2.0, 2.0, 2.0, "count", counted=frozenset({"time"}))
        if (token.number and not _is_code(text, token)) or is_month:
            found = _date(text, tokens, place) or (
                None if is_month else _clock(tokens, place) or _amount(text, tokens, place)
            )
            if found is not None:
                yield found
                place = found.last
        place += 1


def _is_code(text: str, token: Token) -> bool:
    """Tell whether a number is that of a name such as "X2" or "A-4", of a citation, "[3]", or of a list, "1. "."""
    before, after = text[: token.start], text[token.end :]
    is_mark = before.endswith("[") or (not before.strip() and re.match(r"[.)]?\s\s|[.)]\s", after))
    return bool(is_mark) or re.search(r"[^\W\d_]-?$", before[-2:]) is not None


def _date(text: str, tokens: Sequence[Token], place: int) -> Quantity | None:
    """Read "3 March 2020", "March 3, 2020", "March 2020" and "2020-03-03"."""
    after = tokens[place + 1 : place + 3]
    if len(after) == 2 and is_year(tokens[place]) and all(t.number and len(t.text) == 2 for t in after):
        if re.match(r"-\d\d-\d\d(?!\d)", text[tokens[place].end :]):
            year, month, day = (int(token.text) for token in tokens[place : place + 3])
            return _dated(place, place + 2, year, month, day)
    is_day_first = tokens[place].number and bool(after) and after[0].word in _MONTHS
    month_place = place + 1 if is_day_first else place
    if tokens[month_place].word not in _MONTHS or (is_day_first and not _is_day(tokens[place])):
        return None
    month, last, day, year = _MONTHS.index(tokens[month_place].word) + 1, month_place, 0, 0
    if is_day_first:
        day = int(tokens[place].word)
    elif after and _is_day(after[0]) and not is_year(after[0]):
        day, last = int(after[0].word), place + 1
    if last + 1 < len(tokens) and is_year(tokens[last + 1]):
        if between(text, tokens[last], tokens[last + 1]) in ("", ","):
            year, last = int(tokens[last + 1].word), last + 1
    return _dated(place, last, year, month, day) if day or year else None


def _is_day(token: Token) -> bool:
    return token.number and token.word.isdigit() and 0 < int(token.word) <= 31


def _dated(first: int, last: int, year: int, month: int, day: int) -> Quantity:
    value = 372.0 * year + 31 * month + day
    return Quantity(first, last, last + 1, value, value, value, "date", date=(year, month, day))


def _clock(tokens: Sequence[Token], place: int) -> Quantity | None:
    """Read a time of day in minutes; without "am" and "pm" it may be of either half."""
    token, after = tokens[place], tokens[place + 1 : place + 2]
    half = after[0].word if after and after[0].word in ("am", "pm") else ""
    found = _CLOCK.fullmatch(token.text)
    before = tokens[place - 1].word if place else ""
    is_time = half or ":" in token.text or ("." in token.text and before in ("at", "until", "till"))
    if found is None or not is_time or int(found[2] or 0) > 59:
        return None
    minutes = 60.0 * int(found[1] or found[3]) + int(found[2] or 0)
    if half:
        minutes = minutes % HALF_DAY + HALF_DAY * (half == "pm")
    unit = "" if half or minutes >= HALF_DAY + 60 else EITHER
    number = 60.0 * int(found[1] or found[3]) + int(found[2] or 0)
    return Quantity(place, place + bool(half), place + 1, number, minutes, minutes, "clock", unit=unit)


def _amount(text: str, tokens: Sequence[Token], first: int) -> Quantity | None:
    """Read a number in figures or words, such as "45", "45 thousand" or "forty-five thousand", with its unit."""
    if not _PLAIN.fullmatch(tokens[first].word) and tokens[first].word != "one":
        return None
    total, part, stop = 0.0, _value(tokens[first]), first + 1
    while stop < len(tokens) and between(text, tokens[stop - 1], tokens[stop]) in ("", "-"):
        token, after = tokens[stop], tokens[stop + 1 : stop + 2]
        magnitude = MAGNITUDES.get(token.text.lower(), "") if token.start == tokens[stop - 1].end else ""
        if magnitude and (len(token.text) > 1 or (first and tokens[first - 1].text in SYMBOLS)):
            part *= SCALES[magnitude]
        elif token.word == "hundred":
            part *= 100
        elif token.word in SCALES:
            total, part = total + part * SCALES[token.word], 0.0
        elif _is_spelled(token) and tokens[first].text.isalpha():
            part += _value(token)
        elif not (token.word == "and" and tokens[stop - 1].word in SCALES and any(map(_is_spelled, after))):
            break
        stop += 1
    return _bounded(text, tokens, _measured(text, tokens, first, stop, total + part))


def _is_spelled(token: Token) -> bool:
    return token.text.isalpha() and (token.number or token.word == "one")


def _value(token: Token) -> float:
    return 1.0 if token.word == "one" else float(token.word)


def _measured(text: str, tokens: Sequence[Token], first: int, stop: int, value: float) -> Quantity:
    """Add what is measured, by the words after a number and the sign before it."""
    start, before = tokens[first].start, tokens[first - 1] if first else None
    plain = Quantity(first, stop - 1, stop, value, value, value, "bare")
    if re.search(r"(?:^|[\s(])[-\u2212]$", text[:start]) or (before is not None and before.word == "minus"):
        plain = replace(plain, low=-value, high=-value)
    after = _adjoining(text, tokens, stop)
    rate = _rate(after[1:])
    if before is not None and before.text in SYMBOLS:
        return replace(plain, first=first - 1, kind="money", unit=UNITS[before.word].name, rate=_rate(after))
    is_alone = is_year(tokens[first]) and stop == first + 1
    if is_alone and after and after[0].text == "s" and after[0].start == tokens[first].end:
        return replace(plain, last=stop, kind="year", high=value + 9, bound="range")
    is_in_year = before is not None and before.word in _IN_YEAR
    if is_alone and (not after or not after[0].content or (is_in_year and after[0].word not in UNITS)):
        return replace(plain, kind="year")
    if (
        before is not None
        and before.word in CLASSES["codes"]
        and before.content
        and (not after or after[0].word not in UNITS)
    ):
        return replace(plain, kind="code", unit=before.stem)
    if not after:
        return plain
    word = after[0].word
    if word in ("degree", "degrees") or (word in _DEGREES and "\u00b0" in text[start : after[0].start]):
        scale = next((_DEGREES[t.word] for t in after[:2] if t.word in _DEGREES), "")
        return replace(
            plain, last=stop + (len(after) > 1 and after[1].word in _DEGREES), kind="temperature", unit=scale
        )
    if word in ("square", "cubic") and len(after) > 1:
        return replace(plain, last=stop + 1, kind=word, unit=after[1].stem)
    if word in UNITS:
        plain = replace(plain, last=stop, kind=UNITS[word].quantity, unit=UNITS[word].name, rate=rate)
        return replace(plain, low=plain.low * _size(plain), high=plain.high * _size(plain))
    counted = frozenset(t.stem for t in after[:2] if t.content)
    return replace(plain, kind="count", counted=counted) if after[0].content else plain


def _adjoining(text: str, tokens: Sequence[Token], stop: int) -> Sequence[Token]:
    """Collect up to three words after a number that nothing separates from it."""
    found: list[Token] = []
    for place in range(stop, min(stop + 3, len(tokens))):
        if between(text, tokens[place - 1], tokens[place]) not in ("", "-", "\u00b0", "/"):
            break
        if tokens[place].number or tokens[place].word in CALENDAR:
            break
        found.append(tokens[place])
    return found


def _rate(after: Sequence[Token]) -> str:
    """Find the stem of the second word of "per hour", "an hour"."""
    is_rate = len(after) > 1 and after[0].word in _PER and (after[1].word in UNITS or after[0].word == "per")
    return after[1].stem if is_rate else ""


def _bounded(text: str, tokens: Sequence[Token], one: Quantity) -> Quantity:
    """Add a bound, by the words before a quantity and after it, and whether it is a change."""
    before = [token.word for token in tokens[max(0, one.first - 4) : one.first]]
    after = [token.word for token in tokens[one.last + 1 : one.last + 4]]
    if one.kind == "year":
        is_about = before[-1:] and before[-1] in CLASSES["about"]
        return replace(one, low=one.low - YEARS_ROUNDED, high=one.high + YEARS_ROUNDED) if is_about else one
    compared = "than" in after[1:2] and (after[0].endswith("er") or after[0] in CLASSES["differences"])
    is_often = after[:1] == ["times"] and bool(after[1:]) and (after[1] in _PER or after[1] in UNITS)
    compared = compared or (bool(after) and not is_often and after[0] in ("more", "less", "fewer", "times", "ahead"))
    if compared or (before[-1:] and before[-1] in CLASSES["changes"]):
        one = replace(one, change=True)
    if before[-2:] == ["up", "to"]:
        return replace(one, low=-math.inf, bound="upper")
    word, rest = (before[-1], before[:-1]) if before else ("", [])
    if word in ("than", "of", "to") and rest:
        word, rest = (rest[-1], rest[:-1]) if word != "to" else (word, rest)
    if not word and not after:
        return one
    is_lower, is_upper = word in CLASSES["more"], word in CLASSES["less"]
    if rest[-1:] and rest[-1] in ("no", "not", "never", "cannot"):
        is_lower, is_upper = is_upper, is_lower
    if len(after) > 1 and after[0] in ("or", "and"):
        is_lower, is_upper = is_lower or after[1] in CLASSES["more"], is_upper or after[1] in CLASSES["less"]
    end = tokens[one.stop - 1].end
    if is_lower or text[end : end + 1] == "+":
        return replace(one, high=math.inf, bound="lower")
    if is_upper:
        return replace(one, low=-math.inf, bound="upper")
    return replace(one, bound="about") if word in CLASSES["about"] else one


def are_comparable(one: Quantity, other: Quantity) -> bool:
    """Tell whether two quantities measure the same, so that one may contradict the other."""
    if one.change != other.change or (one.rate and other.rate and one.rate != other.rate):
        return False
    kinds = {one.kind, other.kind}
    if kinds == {"date", "year"}:
        return True
    if kinds <= {"bare", "count"}:
        return len(kinds) == 2 or "bare" in kinds or not one.counted.isdisjoint(other.counted)
    return len(kinds) == 1 and (one.kind not in ("code", "square", "cubic") or one.unit == other.unit)


def agree(claim: Quantity, other: Quantity) -> bool:
    """Tell whether a quantity of a claim may be meant by one of the evidence, even one of another kind."""
    if "date" in (claim.kind, other.kind):
        date, rest = (claim, other) if claim.kind == "date" else (other, claim)
        if rest.kind == "year":
            return not date.date[0] or rest.low <= date.date[0] <= rest.high
        if rest.kind != "date":
            return rest.low in date.date
        both = [(a, b) for a, b in zip(date.date, rest.date, strict=True) if a and b]
        return bool(both) and all(a == b for a, b in both)
    if claim.kind == other.kind == "clock":
        step = HALF_DAY if EITHER in (claim.unit, other.unit) else 2 * HALF_DAY
        return (claim.low - other.low) % step == 0
    if claim.kind != other.kind and {claim.kind, other.kind} & {"bare", "count", "code"}:
        claim, other = (replace(q, low=q.low / _size(q), high=q.high / _size(q), unit="") for q in (claim, other))
    is_other_unit = claim.kind == other.kind and claim.unit and other.unit and claim.unit != other.unit
    if is_other_unit and not all(one.unit in UNITS and UNITS[one.unit].size for one in (claim, other)):
        return False
    return _within(claim, other, CONVERTED if is_other_unit else EXACT)


def _within(claim: Quantity, other: Quantity, slack: float) -> bool:
    """Tell whether what a claim allows overlaps what the evidence allows."""
    bounds = {claim.bound, other.bound}
    if bounds == {"lower", "upper"}:
        lower, upper = (claim.low, other.high) if claim.bound == "lower" else (other.low, claim.high)
        return lower < upper
    if claim.bound == other.bound == "lower":
        return claim.low <= other.low * (1 + EXACT)
    if claim.bound == other.bound == "upper":
        return claim.high >= other.high * (1 - EXACT)
    if claim.bound == other.bound == "range":
        return claim.low <= other.low * (1 + EXACT) and claim.high >= other.high * (1 - EXACT)
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
