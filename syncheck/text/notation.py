"""Notation: one way to write what texts write in many ways, such as "16 181", "$890M" and "half past two".

The reader reads texts as :func:`written_out` gives them; the rules of contrasts read the same through
:class:`WrittenOut`, which quotes each piece as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from operator import methodcaller

from syncheck.base.files import asset_lines

_WORDS = {title: content.split() for title, content in asset_lines("english/words.txt")}
SMALL = {word: number for number, word in enumerate(_WORDS["numbers"])}  # numbers below twenty by their words
TENS = {word: 10 * number for number, word in enumerate(_WORDS["tens"], 2)}
ORDINALS = {word: number for number, word in enumerate(_WORDS["ordinals"], 1)}
"""Numbers of ordinals by their words."""
MONTHS = tuple(_WORDS["months"])
_WEEKDAYS = _WORDS["weekdays"]
_ROMAN = re.compile(r"(?=[IVXLC])(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def number_of(written: str) -> float:
    """Parse a number in figures, such as "16'181" or "1.234,5"; thousands may be set apart in any way."""
    if _GROUPED.fullmatch(written):
        return float(re.sub(r"\D", "", written))
    whole, point, rest = written.rpartition(max(".,", key=written.rfind))
    return float(re.sub(r"[.,](?=\d{3})", "", whole) + "." + rest) if point else float(written)


def roman_value(written: str) -> int | None:
    """Compute the value of a Roman numeral below a hundred; None for anything else, such as "IIX"."""
    if not _ROMAN.fullmatch(written):
        return None
    values = [_ROMAN_VALUES[letter] for letter in written]
    return sum(-value if value < max(values[n:]) else value for n, value in enumerate(values))


def counted(words: str) -> int | None:
    """Compute the value of a number below a million in words or in small figures.

    None if it is not one number: "three hundred and fifty" is 350, "nineteen eighty-four" None.
    """
    total, part, room = 0, 0, 1000  # room: what the next word must be smaller than
    for word in re.split(r"[\s-]+", words.lower()):
        value = int(word) if word.isdecimal() else 1 if word in ("a", "an") else SMALL.get(word, TENS.get(word))
        if word == "thousand" and 0 < part < 1000 and not total:
            total, part, room = 1000 * part, 0, 1000
        elif word == "hundred" and 0 < part < 100:
            part, room = 100 * part, 100
        elif value is not None and value < room:
            part, room = part + value, 10 if word in TENS else 0 if value else 1
        elif word != "and" or room not in (100, 1000):
            return None
        room = 100 if word == "and" else room
    return total + part


_LEVEL = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2212\ufe63\uff0d", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2008\u2009\u200a\u202f", " "),
        "\u03bc": "\u00b5",
        "\uff05": "%",
    }
)


def levelled(text: str) -> str:
    """Replace typographic quotes, hyphens and spaces with plain ones, character by character."""
    return text.translate(_LEVEL)


@dataclass(frozen=True, slots=True)
class WrittenOut:
    """A text in one notation, and as it was written."""

    text: str
    source: str  # the text as it was written
    spans: tuple[tuple[int, int], ...] | None  # of each character in ``source``; None if each has kept its place

    @classmethod
    def of(cls, source: str) -> WrittenOut:
        """Write a text out."""
        text, spans = levelled(source), None
        if _TO_REWRITE.search(text):
            for pattern, written in _REWRITINGS:
                text, spans = _rewritten(text, spans, pattern, written)
        return cls(text, source, None if spans is None else tuple(spans))

    def quoted(self, start: int, end: int) -> str:
        """Quote the source of a piece of the text."""
        if self.spans is None:
            return self.source[start:end]
        return self.source[self.spans[start][0] : self.spans[end - 1][1]].strip()


def written_out(text: str) -> str:
    """Rewrite a text as the reader reads it: signs in words, thousands set apart by commas, magnitudes spelled out.

    Examples
    --------
    >>> written_out("between 2 and 8 °C, ≥ 5 times; $890M for 16 181 people")
    'between 2 and 8 degrees Celsius, at least 5 times; $890 million for 16,181 people'
    >>> written_out("from 2021-05-03 at half past two, for twenty-five people; see chapter IV")
    'from 3 May 2021 at 2:30, for 25 people; see chapter 4'
    """
    return WrittenOut.of(text).text


_Spans = list[tuple[int, int]]
_Written = Callable[[re.Match[str]], str]


def _rewritten(
    text: str, spans: _Spans | None, pattern: re.Pattern[str], written: _Written
) -> tuple[str, _Spans | None]:
    """Rewrite what a pattern matches; what stays the same at both ends of a match keeps its place."""
    pieces: list[str] = []
    places: _Spans = []
    end = 0
    for match in pattern.finditer(text):
        old, new = match[0], written(match)
        if old == new:
            continue
        if spans is None:
            spans = [(n, n + 1) for n in range(len(text))]
        inner = match.start() + old.find(new) if new and new in old else None
        if inner is not None:  # emphasis, without its marks
            pieces += [text[end : match.start()], new]
            places += [*spans[end : match.start()], *spans[inner : inner + len(new)]]
            end = match.end()
            continue
        head = _shared(old, new)
        tail = _shared(old[head:][::-1], new[head:][::-1])
        first, last, put = match.start() + head, match.end() - tail, new[head : len(new) - tail]
        if first < last:
            span = spans[first][0], spans[last - 1][1]
        else:
            span = (spans[first - 1][1],) * 2 if first else (0, 0)
        pieces += [text[end:first], put]
        places += [*spans[end:first], *[span] * len(put)]
        end = last
    if spans is None or not pieces:
        return text, spans
    return "".join((*pieces, text[end:])), places + spans[end:]


def _shared(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _date(match: re.Match[str]) -> str:
    """Name the month of a date in figures, unless it may be either of two."""
    if match["y"]:
        year, month, day = match["y"], int(match["m"]), int(match["d"])
    else:
        year, day, month = match["z"], int(match["a"]), int(match["b"])
        if match["t"] != "." and day <= len(MONTHS) and month <= len(MONTHS) and day != month:
            return match[0]
        if match["t"] != "." and month > len(MONTHS):
            day, month = month, day
    return f"{day} {MONTHS[month - 1]} {year}" if 0 < month <= len(MONTHS) and 0 < day <= 31 else match[0]


def _clock(match: re.Match[str]) -> str:
    """Write "half past two" and "a quarter to nine" in figures."""
    part, hour = match[1].lower(), counted(match[3]) or 0
    minutes = 30 if part == "half" else 15 if part.endswith("quarter") else counted(part) or 0
    if match[2].lower() == "to":
        hour, minutes = (hour - 2) % 12 + 1, 60 - minutes
    return f"{hour}:{minutes:02d}"


def _hours(match: re.Match[str]) -> str:
    """Write "Monday 9-17" as hours, which cannot be a score or a size."""
    opens, closes = int(match[2]), int(match[3])
    return f"{match[1]}{opens}:00 to {closes}:00" if 4 < opens < closes < 25 else match[0]


def _figures(value: float) -> str:
    return f"{value:,.12g}" if value >= 10_000 else f"{value:.12g}"


def _ordinal(match: re.Match[str]) -> str:
    number = TENS[match[1].lower()] + ORDINALS[match[2].lower()]
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def _camel(match: re.Match[str]) -> str:
    """Write "maxUploadSizeMB" as "max upload size_MB": a short last part may be a unit."""
    first, *others = (word[0] for word in re.finditer(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", match[0]))
    words = [word if word.isupper() else word.lower() for word in others]
    is_short = len(words[-1]) < 4 or words[-1] in ("secs", "mins")
    return " ".join([first, *words[:-1]]) + ("_" if is_short else " ") + words[-1]


_MAGNITUDES = {"m": "million", "b": "billion", "t": "trillion"}
_CURRENCIES = {"US": "$", "USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥"}
_QUARTERS = {"¼": ".25", "½": ".5", "¾": ".75"}
_POWERS = {"²": "square", "³": "cubic"}
_LENGTHS = {"m": "metres", "km": "kilometres", "cm": "centimetres", "mm": "millimetres", "ft": "feet"}
_HALVES = {"million": "500,000", "billion": "500 million", "trillion": "500 billion"}
_WRITTEN: Mapping[str, _Written] = {
    "camel": _camel,
    "commas": lambda m: re.sub(r"\D", ",", m[0]),
    "quarters": lambda m: (m[1] or "0") + _QUARTERS[m[2]],
    "date": _date,
    "month": lambda m: next(month for month in MONTHS if month.startswith(m[1][:3])),
    "day": lambda m: f"{ORDINALS[m[1].lower()]} ",
    "clock": _clock,
    "hours": _hours,
    "hour": lambda m: f"{counted(m[1])}:00",
    "keyed": lambda m: f"{m[1]}: {m[3]} {m[2]}",
    "weekday": lambda m: next(day for day in _WEEKDAYS if day.startswith(m[1][:3])),
    "quarters of an hour": lambda m: f"{45 if m[1] else 15} minutes",
    "half of": lambda m: _HALVES[m[1].lower()],
    "dozen": lambda m: _figures(6 if m[1].lower() == "half a" else 12 * (counted(m[1]) or float(m[1]))),
    "and a half": lambda m: m[0] if (value := counted(m[1])) is None else f"{value}.5",
    "ordinal": _ordinal,
    "number": lambda m: m[0] if (value := counted(m[0])) is None else _figures(value),
    "currency": lambda m: "" if m[1] else _CURRENCIES[m[2]],
    "magnitude": lambda m: f"{m[1]} {_MAGNITUDES[(m[2] or m[3]).lower()]}",
    "thousands": lambda m: m[1] + _figures(1000 * number_of(m[2])),
    "power": lambda m: f" {_POWERS[m[2]]} {_LENGTHS[m[1]]}",
    "square": lambda m: f" square {_LENGTHS[m[1]]}",
    "coded": lambda m: m[0] if (value := roman_value(m[2])) is None else f"{m[1]}{value}",
}
"""What a match becomes, by the names in ``assets/english/notation.txt``."""


def _any(words: Iterable[str]) -> str:
    return rf"(?:{'|'.join(sorted(words, key=len, reverse=True))})"


_NAMED = {
    "month": _any(MONTHS),
    "spelled": _any([*SMALL, *TENS]),
    "tens": _any(TENS),
    "ordinal": _any(ORDINALS),
    "unit ordinal": _any(list(ORDINALS)[:9]),
    "twelve": rf"({_any(list(SMALL)[1:13])}|1[0-2]|[1-9])\b",
}
"""Patterns by name, those of the packaged list too."""


def _rewritings() -> Iterator[tuple[re.Pattern[str], _Written]]:
    for becomes, line in asset_lines("english/notation.txt", joint=""):
        pattern = re.sub(r"\{([a-z ]+)\}", lambda name: _NAMED[name[1]], line)
        if becomes[0] == "{":
            _NAMED[becomes[1:-1]] = pattern
        else:
            write: _Written = methodcaller("expand", becomes[1:-1]) if becomes[0] == '"' else _WRITTEN[becomes]
            yield re.compile(pattern), write


_REWRITINGS = tuple(_rewritings())
"""Patterns, each with what its matches are rewritten to, in the order in which they are applied."""
_TO_REWRITE = re.compile(_NAMED["to rewrite"])  # what each text has that is rewritten
_GROUPED = re.compile(_NAMED["grouped"])
"""A number with its thousands set apart by commas, apostrophes or spaces; by full stops from a million on."""
