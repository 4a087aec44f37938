"""Words and quantities of an English text: tokens with normal forms and clauses, and numbers with what they measure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, takewhile, zip_longest
from typing import Any, Literal, NamedTuple

import snowballstemmer

from syncheck.base.files import asset_lines, asset_words
from syncheck.text.notation import MONTHS, ORDINALS, number_of, roman_value
from syncheck.text.words import NUMBER_WORDS, content_words, packaged_names, packaged_rarity, stem, word_pattern, words


class Unit(NamedTuple):
    """A unit: what it measures, its size in the basic unit, 0 if it is not converted, and its first name."""

    quantity: str
    size: float
    name: str


CLASSES: Mapping[str, frozenset[str]] = asset_words("contrasts/words.txt")  # words of each class
UNITS: Mapping[str, Unit] = {
    name: Unit(quantity, float(size), names[0])
    for quantity, line in asset_lines("contrasts/units.txt")
    for size, *names in map(str.split, line.split(" / "))
    for name in names
}
SYMBOLS = {"%": "percent", "$": "dollars", "€": "euros", "£": "pounds", "¥": "yen", "CHF": "francs"}
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
MAY = "may (month)"  # word and stem of the month, which the verb does not share

IRREGULAR: Mapping[str, str] = {
    form: entry.split()[0]
    for _, line in asset_lines("contrasts/inflection.txt")
    for entry in line.split("/")
    for form in entry.split()
}
"""Infinitive of each form of an irregular verb."""
LONG = 4  # number of letters from which a word is not an abbreviation
LONG_TITLES = frozenset("Prof Capt Messrs Supt".split())  # those that are abbreviations nevertheless
HALVES_OF_DAY = {"a.m": "am", "p.m": "pm"}

_SIGNS = r"[%$€£¥]|\b[AaPp]\.[Mm]\b|\b(?:km/h|m/s)\b|"
_NUMBER = r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?(?![^\W\d_]*\d)|\d+"
_ORDINALS = {f"{n}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(n, 'th') }": word for word, n in ORDINALS.items()}
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_KNOWN = {**HALVES_OF_DAY, **NUMBER_WORDS, **_ORDINALS}
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_STOP = re.compile(r"[.!?;:\n](?=\s)|\n")


@dataclass(frozen=True, slots=True)
class Token:
    """A word or number as written, normalised and as a stem; ``content`` and ``name`` are flags of its kind."""

    text: str
    word: str
    stem: str
    content: bool
    name: bool
    start: int
    clause: int  # number of stops, colons and semicolons before it
    number: bool  # in figures or spelled out; "one" only before a unit, since it is often a pronoun

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


def tokens_of(text: str) -> Iterator[Token]:
    """Read the words and numbers of a text that is written out (:class:`~syncheck.text.notation.WrittenOut`)."""
    matches, start, clause, end, last = list(word_pattern(_SIGNS, _NUMBER).finditer(text)), True, 0, 0, ""
    for match, following in zip_longest(matches, matches[1:]):
        written = match.group()
        stop = None if text[end : match.start()] in ("", " ") else _STOP.search(text, end, match.start() + 1)
        if stop and not (stop.group() == "." and _is_abbreviated(last, written)):
            clause, start = clause + 1, True
        word, root, content = _word_of(written)
        after = "" if following is None else following.group().lower()
        beside_number = after[:1].isdigit() or (not start and last[:1].isdigit())
        if written == "May" and (beside_number or (not start and last.lower() in CLASSES["before_months"])):
            word, root, content = MAY, MAY, True
        # A Roman numeral after a name, as in "Louis XIV" and "World War I", is written in figures.
        is_numeral = last.istitle() and (len(written) > 1 or last == "War" or written in "VX")
        if is_numeral and (value := roman_value(written)) is not None:
            word, root, content = str(value), str(value), True
        if written.lower() == "one" and after not in UNITS and after not in SCALES:
            word = "one"
        begins_name = start and following is not None and following.group()[0].isupper()
        is_free = begins_name or not start or text.startswith(":", match.end())
        name = written[0].isupper() and content and (is_free or _is_like_a_name(written, word))
        yield Token(written, word, root, content, name, match.start(), clause, word[0].isdigit())
        start, end, last = False, match.end(), written


def is_year(token: Token) -> bool:
    """Tell whether a token is a number from 1000 to 2099 in four figures."""
    return _YEAR.fullmatch(token.text) is not None


def ordinal_of(token: Token) -> int | None:
    """Look up the number of an ordinal, such as "3rd" or "third"; None for any other word."""
    figures = _ORDINAL.fullmatch(token.word)
    return int(figures[1]) if figures else ORDINALS.get(token.word)


def between(text: str, before: Token, after: Token) -> str:
    """Quote what stands between two tokens, without white space; any other text if they are in reversed order."""
    return text[before.end : after.start].strip() if before.start < after.start else "<"


def _is_abbreviated(word: str, following: str) -> bool:
    """Tell whether a full stop after a word ends no clause: after "Dr.", or after "p.m." before a small letter."""
    is_title = word.istitle() and (len(word) < LONG or word in LONG_TITLES)
    return is_title or (word.lower() in HALVES_OF_DAY and following[0].islower())


def _is_like_a_name(written: str, word: str) -> bool:
    """Tell whether the first word of a sentence is a name, or unknown: "Laudo founded it"."""
    may_be = written.istitle() and len(written) >= LONG - 1
    return may_be and (word in packaged_names() or not packaged_rarity().counts.get(stem(word)))


@lru_cache(1 << 14)
def _word_of(written: str) -> tuple[str, str, bool]:
    """Find a word's normal form, its stem, and whether it is a content word."""
    lower = written.lower()
    known = lower if lower in UNITS else SYMBOLS.get(written) or _KNOWN.get(lower) or _figures(written)
    word = known or next(iter(words(written)), written)
    stemmer = snowballstemmer.stemmer("english")  # made anew, since a stemmer is for one thread
    root = word if word[0].isdigit() else str(stemmer.stemWord(IRREGULAR.get(word, word)))
    return word, root, bool(content_words(word)) and word not in CLASSES["negators"]


def _figures(written: str) -> str:
    """Write a number in figures without marks of thousands, a time of day without ":00"; "" for anything else."""
    if not written[0].isdigit():
        return ""
    if ":" in written:
        return written.lstrip("0").removesuffix(":00") or "0"
    try:
        return f"{number_of(written):.12g}"
    except ValueError:  # an ordinal, an address or a date, such as 1st, 1.2.3 or 12,5,7
        return written


BOUNDED = frozenset({"lower", "upper", "up to"})  # bounds that words beside a number express
YEARS_ROUNDED = 5  # largest difference of a year that is called approximate
HALF_DAY = 720  # minutes
MOST = 100  # largest number of "one in ten" and the like
NEARLY = 1.0  # percentage points by which a third and other shares of no whole percent may be rounded
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
    is_span = before == "from" and (one.kind == after.kind or one.kind == "bare") and after.kind in UNIT_KINDS
    is_span = word == "to" and (is_span or before not in ("from", "by", "rose", "fell"))
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
    if figures is None or not is_time or int(figures[2] or 0) > 59:
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
        return replace(_plain(first, first, value, "code", unit=before.stem), stop=stop)
    measured = _measured(text, tokens, first, stop, value)
    if stop == first + 1 and re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", tokens[first].text):
        measured = replace(measured, loosely=1000 * measured.low)
    return _bounded(text, tokens, measured)


def _measured(text: str, tokens: Sequence[Token], first: int, stop: int, value: float) -> Quantity:
    """Add what is measured, by the words after a number and the sign before it."""
    start, before = tokens[first].start, tokens[first - 1] if first else None
    plain = _plain(first, stop - 1, value, "bare")
    if re.search(r"(?:^|[\s(])-$", text[:start]) or (before is not None and before.word == "minus"):
        plain = replace(plain, low=-value, high=-value)
    after = _adjoining(text, tokens, stop)
    rate = _rate(after[1:])
    if before is not None and before.text in SYMBOLS:
        return replace(plain, first=first - 1, kind="money", unit=UNITS[before.word].name, rate=_rate(after))
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


def _adjoining(text: str, tokens: Sequence[Token], stop: int) -> Sequence[Token]:
    """Collect up to three words after a number that nothing separates from it."""
    adjoin = (
        between(text, before, token) in ("", "-", "/") and not token.number and token.word not in CLASSES["calendar"]
        for before, token in pairwise(tokens[stop - 1 : stop + 3])
    )
    return tokens[stop : stop + sum(takewhile(bool, adjoin))]


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
