"""Quantities of a text: its numbers with what they measure and how they are bounded, and whether two agree."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Any, Literal

from syncheck.contrasts.lexicon import CLASSES, MAY, SCALES, SYMBOLS, UNITS, Token, between, is_year, ordinal_of
from syncheck.text.notation import MONTHS

BOUNDED = frozenset({"lower", "upper", "up to"})  # bounds that words beside a number express
YEARS_ROUNDED = 5  # largest difference of a year that is called approximate
HALF_DAY = 720  # minutes
MOST = 100  # largest number of "one in ten" and the like
NEARLY = 1.0  # percentage points by which a third and other shares of no whole percent may be rounded
ROUNDED = 0.15  # largest relative difference of a number that is called approximate
EXACT, CONVERTED = 1e-9, 0.025  # the same of others, and of those in different units
MINOR = frozenset({"cents", "pence"})  # names of smaller coins, which a sum in a larger unit may be written in
EITHER = "either half of the day"  # stands in for the unit of a time

_CLOCK = re.compile(r"(\d{1,2})[:.](\d\d)(?::\d\d)?|(\d{1,2})")
_MONTHS = tuple(MAY if name == "May" else name.lower() for name in MONTHS)
_PER = frozenset("per a an each every".split())
_PARTS = {"a": 1, "one": 1} | {str(number): number for number in range(1, 10)}
_SHARES = {"third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
_SUMMED = frozenset({"time", "length", "mass", "money"})  # in several units at once: "2 hours 30 minutes"
NOON = ("noon", "midnight")
UNIT_KINDS = frozenset(unit.quantity for unit in UNITS.values()) | {"temperature"}  # what units measure
_IN_YEAR = frozenset("in since of from until by to circa year about around and or between during after before".split())


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a text with what it measures."""

    first: int
    last: int
    """Places of its first and last token, with the unit."""
    stop: int  # place after its number, where the unit begins
    number: float  # the number as it is written, whatever it measures
    low: float  # smallest value that is meant, in the basic unit
    high: float  # largest value that is meant, in the basic unit
    kind: str
    """"mass", "money" and the like; "year", "date", "clock", "count" of other nouns, "code", "bare" without a unit."""
    unit: str = ""  # first name of its unit
    rate: str = ""  # stem of what it is divided by, as in "an hour"
    counted: frozenset[str] = frozenset()  # stems of what is counted
    bound: Literal["", "lower", "upper", "up to", "about", "range"] = ""
    change: bool = False  # true if it says how much two others differ: "rose by 5", "5 minutes longer than"
    date: tuple[int, int, int] = (0, 0, 0)  # year, month and day; 0 where one is not given
    loosely: float = math.nan
    """What it may mean as well, in the basic unit: 16181 for "16.181", 8 minutes for "8 minutes 20 seconds"."""


def quantities_in(text: str, tokens: Sequence[Token]) -> Iterator[Quantity]:
    """Yield the quantities in order; one without unit takes that of the next, as in "5 and 7 grams"."""
    read: list[Quantity] = []
    for one in _read(text, tokens):
        whole = read[-1] if read else one
        is_part = whole.kind == one.kind in _SUMMED and whole.last >= whole.stop and size_of(whole) > size_of(one)
        if is_part and between(text, tokens[whole.last], tokens[one.first]) in ("", ",", "and"):
            total = whole.low + one.low  # "2 hours 30 minutes", "2 dollars and 50 cents"
            whole = replace(whole, last=one.last, stop=one.stop, number=total / size_of(whole), loosely=whole.low)
            read[-1] = replace(whole, low=total, high=total)
        else:
            read.append(one)
    pairs = iter(zip(read, [*read, None][1:], strict=True))
    for one, after in pairs:
        if after is not None and (joined := _joined(text, tokens, one, after)):
            if one.kind in ("bare", "year") and after.kind not in ("year", "date", "clock"):
                one = replace(one, kind=after.kind, unit=after.unit, rate=after.rate, counted=after.counted)
                one = replace(one, low=one.low * size_of(after), high=one.high * size_of(after))
            if joined == "range" and one.kind == after.kind and one.high <= after.low:
                one = replace(after, first=one.first, low=one.low, bound="range")
                next(pairs)
        yield one


def size_of(one: Quantity) -> float:
    """Look up the size of a quantity's unit in the basic one, 1 if it is not converted."""
    return (UNITS[one.unit].size if one.unit in UNITS else 0.0) or 1.0


def _joined(text: str, tokens: Sequence[Token], one: Quantity, after: Quantity) -> str:
    """Classify: "range" for "between 5 and 7" and "5 to 7 grams", "list" for "5 and 7 grams", "" for others."""
    if one.last + 1 == after.first:
        has_dash = between(text, tokens[one.last], tokens[after.first]) in ("-", "\u2013")
        return "range" if has_dash and (after.kind != "bare" or one.kind == "year") else ""
    word = tokens[one.last + 1].word if one.last + 2 == after.first else ""
    before = tokens[one.first - 1].word if one.first else ""
    is_measured = before == "from" and (one.kind == after.kind or one.kind == "bare") and after.kind in UNIT_KINDS
    is_span = word == "to" and (is_measured or before not in ("from", "by", "rose", "fell"))
    if is_span or (word == "and" and before == "between"):
        return "range"
    return "list" if word in ("and", "or", "to") else ""


def _read(text: str, tokens: Sequence[Token]) -> Iterator[Quantity]:
    place = 0
    while place < len(tokens):
        token = tokens[place]
        is_month = token.word in _MONTHS and token.text[0].isupper()
        if token.word == "twice":
            yield _plain(place, place, 2.0, "count", counted=frozenset({"time"}))
        if token.word in NOON:
            yield _plain(place, place, float(HALF_DAY * (token.word == "noon")), "clock")
        other = _share(text, tokens, place) or _ordinal(text, tokens, place)
        if other is not None:
            yield other
            place = other.last
        elif (token.number and not _is_code(text, token)) or is_month:
            one = _date(text, tokens, place)
            if one is None and not is_month:
                one = _clock(tokens, place) or _amount(text, tokens, place)
            if one is not None:
                yield one
                place = one.last
        place += 1


def _plain(first: int, last: int, value: float, kind: str, **more: Any) -> Quantity:
    """Make the quantity of a value that is neither bounded nor converted, and has no unit after it."""
    return Quantity(first, last, last + 1, value, value, value, kind, **more)


def _is_code(text: str, token: Token) -> bool:
    """Tell whether a number is that of a name such as "X2" or "A-4", of a citation, "[3]", or of a list, "1. "."""
    before, after = text[: token.start], text[token.end :]
    is_mark = before.endswith("[") or (not before.strip() and re.match(r"[.)]?\s\s|[.)]\s", after))
    return bool(is_mark) or re.search(r"[^\W\d_]-?$", before[-2:]) is not None


def _date(text: str, tokens: Sequence[Token], place: int) -> Quantity | None:
    """Read "3 March 2020", "March 3, 2020" and "March 2020"; of "03/05/2020", which may be either, the year alone."""
    after = tokens[place + 1 : place + 3]
    if len(after) == 2 and is_year(after[1]) and re.match(r"(\d\d?[-/]){2}\d{4}", text[tokens[place].start :]):
        year = int(after[1].text)
        return _plain(place, place + 2, 372.0 * year, "date", date=(year, 0, 0))
    is_day_first = _day(tokens[place]) > 0 and bool(after) and after[0].word in _MONTHS
    month_place = place + 1 if is_day_first else place
    if tokens[month_place].word not in _MONTHS:
        return None
    month, last, day, year = _MONTHS.index(tokens[month_place].word) + 1, month_place, 0, 0
    if is_day_first:
        day = _day(tokens[place])
    elif after and _day(after[0]):
        day, last = _day(after[0]), place + 1
    if last + 1 < len(tokens) and is_year(tokens[last + 1]):
        if between(text, tokens[last], tokens[last + 1]) in ("", ","):
            year, last = int(tokens[last + 1].word), last + 1
    value = 372.0 * year + 31 * month + day
    return _plain(place, last, value, "date", date=(year, month, day)) if day or year else None


def _day(token: Token) -> int:
    """Look up the day of the month that a number such as "3" or "3rd" may be; 0 for anything else."""
    number = int(token.word) if token.word.isdecimal() else ordinal_of(token) or 0
    return number if number <= 31 and token.text[0].isdigit() else 0


def _clock(tokens: Sequence[Token], place: int) -> Quantity | None:
    """Read a time of day in minutes; without "am" and "pm" it may be of either half."""
    token, after = tokens[place], tokens[place + 1 : place + 2]
    half = after[0].word if after and after[0].word in ("am", "pm", *NOON) else ""
    figures = _CLOCK.fullmatch(token.text)
    before = tokens[place - 1].word if place else ""
    is_time = half or ":" in token.text or ("." in token.text and before in ("at", "until", "till"))
    if figures is None or not is_time or int(figures[1] or figures[3]) > 24 or int(figures[2] or 0) > 59:
        return None
    number = 60.0 * int(figures[1] or figures[3]) + int(figures[2] or 0)
    minutes = number % HALF_DAY + HALF_DAY * (half in ("pm", "noon")) if half else number
    unit = "" if half or minutes >= HALF_DAY + 60 else EITHER
    return Quantity(place, place + bool(half), place + 1, number, minutes, minutes, "clock", unit=unit)


def _share(text: str, tokens: Sequence[Token], place: int) -> Quantity | None:
    """Read "half of", "two thirds of", "2/3 of" and "one in four" in percent."""
    part, name, *rest = [*(token.word for token in tokens[place : place + 3]), "", ""]
    parts, last = _PARTS.get(part, 0), place + 1
    if part == "half" and (name in ("of", "the") or _ends_clause(text, tokens, place)):
        parts, shares, last = 1, 2, place
    elif parts and name.removesuffix("s") in _SHARES and (rest[0] == "of" or _ends_clause(text, tokens, last)):
        shares = _SHARES[name.removesuffix("s")]
    elif part in ("one", "1") and name == "in" and rest[0].isdigit():
        shares, last = int(rest[0]), place + 2
    elif parts and name.isdigit() and rest[0] == "of" and between(text, *tokens[place : place + 2]) == "/":
        shares = int(name)
    else:
        return None
    if not parts < shares <= MOST:
        return None
    value = 100 * parts / shares
    room = 0.0 if value.is_integer() else NEARLY
    share = Quantity(place, last, last + 1, value, value - room, value + room, "share", unit="percent")
    return _bounded(text, tokens, share)


def _ends_clause(text: str, tokens: Sequence[Token], place: int) -> bool:
    """Tell whether a token is the last before a stop or comma, as in "members pay half"."""
    return place < len(tokens) and re.match(r"\s*(?:[.,;:!?]|$)", text[tokens[place].end :]) is not None


def _ordinal(text: str, tokens: Sequence[Token], place: int) -> Quantity | None:
    """Read an ordinal, but not "a second"."""
    number, before = ordinal_of(tokens[place]), tokens[place - 1] if place else None
    is_unit = tokens[place].word == "second" and before is not None and (before.number or before.word in _PER)
    if number is None or is_unit:
        return None
    counted = frozenset(token.stem for token in _adjoining(text, tokens, place + 1)[:1] if token.content)
    return _plain(place, place, number, "ordinal", counted=counted)


def _amount(text: str, tokens: Sequence[Token], first: int) -> Quantity | None:
    """Read a number, such as "45" or "45 thousand", with its unit."""
    if not re.fullmatch(r"\d+(?:\.\d+)?", tokens[first].word) and tokens[first].word != "one":
        return None
    value = 1.0 if tokens[first].word == "one" else float(tokens[first].word)
    stop, before = first + 1, tokens[first - 1] if first else None
    while stop < len(tokens) and tokens[stop].word in SCALES:
        if between(text, tokens[stop - 1], tokens[stop]) not in ("", "-"):
            break
        value, stop = value * SCALES[tokens[stop].word], stop + 1
    if tokens[first].text.isupper() and before is not None:  # a Roman numeral
        return Quantity(first, first, stop, value, value, value, "code", unit=before.stem)
    measured = _measured(text, tokens, first, stop, value)
    if stop == first + 1 and re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", tokens[first].text):
        measured = replace(measured, loosely=1000 * measured.low)
    return _bounded(text, tokens, measured)


def _measured(text: str, tokens: Sequence[Token], first: int, stop: int, value: float) -> Quantity:
    """Add what is measured, by the words after a number and the sign before it."""
    start, before = tokens[first].start, tokens[first - 1] if first else None
    plain = _plain(first, stop - 1, value, "bare")
    if re.search(r"(?:^|[\s(])-$", text[:start]) or _is_minus(tokens, first):
        plain = replace(plain, low=-value, high=-value)
    after = _adjoining(text, tokens, stop)
    rate = _rate(text, after)
    if before is not None and before.text in SYMBOLS:
        return replace(
            plain,
            first=first - 1,
            kind="money",
            unit=UNITS[before.word].name,
            rate=_rate(text, [tokens[stop - 1], *after]),
        )
    is_alone = is_year(tokens[first]) and stop == first + 1
    if is_alone and after and after[0].text == "s" and after[0].start == tokens[first].end:
        return replace(plain, last=stop, stop=stop + 1, kind="year", high=value + 9, bound="range")
    is_in_year = before is not None and before.word in _IN_YEAR
    if is_alone and (not after or not after[0].content or (is_in_year and after[0].word not in UNITS)):
        return replace(plain, kind="year")
    if before is not None and before.word in CLASSES["codes"] - {"no"} and (not after or after[0].word not in UNITS):
        return replace(plain, kind="code", unit=before.stem)
    if not after:
        return plain
    word = after[0].word
    if word in ("degree", "degrees"):
        scale = [t.word for t in after[1:2] if t.word in ("celsius", "fahrenheit")]
        return replace(plain, last=stop + len(scale), kind="temperature", unit="".join(scale))
    if word in ("square", "cubic") and len(after) > 1:
        return replace(plain, last=stop + 1, kind=word, unit=after[1].stem)
    if word in UNITS:
        plain = replace(plain, last=stop, kind=UNITS[word].quantity, unit=UNITS[word].name, rate=rate)
        return replace(plain, low=plain.low * size_of(plain), high=plain.high * size_of(plain))
    counted = frozenset(t.stem for t in after[:2] if t.content)
    return replace(plain, kind="count", counted=counted) if after[0].content else plain


def _is_minus(tokens: Sequence[Token], first: int) -> bool:
    """Tell whether "minus" stands before a number, but not in "plus or minus"."""
    before = [token.word for token in tokens[max(0, first - 2) : first]]
    return before[-1:] == ["minus"] and before[-2:-1] != ["or"]


def _adjoining(text: str, tokens: Sequence[Token], stop: int) -> Sequence[Token]:
    """Collect up to three words after a number that nothing separates from it."""
    adjoin = (
        between(text, before, token) in ("", "-", "/") and not token.number and token.word not in CLASSES["calendar"]
        for before, token in pairwise(tokens[stop - 1 : stop + 3])
    )
    return tokens[stop : stop + sum(takewhile(bool, adjoin))]


def _rate(text: str, words: Sequence[Token]) -> str:
    """Find the stem of the divisor of ``words[0]``, a unit or sum, as in "per hour", "an hour" and "/hour"."""
    if len(words) > 1 and between(text, words[0], words[1]) == "/" and words[1].text not in SYMBOLS:
        return words[1].stem
    is_rate = len(words) > 2 and words[1].word in _PER and (words[2].word in UNITS or words[1].word == "per")
    return words[2].stem if is_rate else ""


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
        return replace(one, low=-math.inf, bound="up to")
    word, rest = (before[-1], before[:-1]) if before else ("", [])
    if word in ("than", "of") and rest:
        word, rest = rest[-1], rest[:-1]
    if not word and not after:
        return one
    is_lower, is_upper = word in CLASSES["more"], word in CLASSES["less"]
    if rest[-1:] and rest[-1] in ("no", "not", "never", "cannot"):
        is_lower, is_upper = is_upper, is_lower
    if len(after) > 1 and after[0] in ("or", "and"):
        is_lower, is_upper = is_lower or after[1] in CLASSES["more"], is_upper or after[1] in CLASSES["less"]
    if is_lower or text.startswith("+", tokens[one.stop - 1].end):
        return replace(one, high=math.inf, bound="lower")
    if is_upper:
        is_below = before[-1:] and before[-1] in ("than", "under", "below") and before[-3:-2] not in (["no"], ["not"])
        is_below = is_below and one.kind in ("bare", "count") and one.high.is_integer()
        return replace(one, low=-math.inf, high=one.high - bool(is_below), bound="upper")
    return replace(one, bound="about") if word in CLASSES["about"] else one


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
    if claim.bound == other.bound == "up to":
        return abs(claim.high - other.high) <= EXACT * abs(other.high)
    claim, other = (replace(one, bound="upper") if one.bound == "up to" else one for one in (claim, other))
    bounds = {claim.bound, other.bound}
    if bounds == {"lower", "upper"}:
        return claim.low < other.high if claim.bound == "lower" else other.low < claim.high
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
    is_plain = claim.kind != "year" and bounds == {""}
    return is_plain and (rounds(claim.low, other.low) or rounds(other.low, claim.low))


def rounds(rounded: float, exact: float) -> bool:
    """Tell whether one number is another with fewer digits, two at least: 2.5 million for 2,512,000."""
    digits = len(f"{abs(rounded):.12g}".replace(".", "").strip("0"))
    exact_digits = len(f"{abs(exact):.12g}".replace(".", "").strip("0"))
    return 1 < digits < exact_digits and f"{exact:.{digits - 1}e}" == f"{rounded:.{digits - 1}e}"
