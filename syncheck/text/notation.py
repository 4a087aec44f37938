"""Notation: one way to write what texts write in many ways, such as "16 181", "$890M" and "half past two".

The reader reads texts as :func:`written_out` gives them; the rules of contrasts read the same through
:class:`WrittenOut`, which quotes each piece as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile

_GROUPED = re.compile(
    r"(?<![\w.,])(?:\d{1,3}(?P<mark>[,' ])\d{3}(?:(?P=mark)\d{3})*(?![\d'])|\d{1,3}(?:\.\d{3}){2,}(?!\d))"
)
"""A number with its thousands set apart by commas, apostrophes or spaces; by full stops from a million on."""
SMALL = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
}
"""Numbers below twenty by their words."""
TENS = {word: 10 * n for n, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}
ORDINALS = {
    word: number
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split(),
        1,
    )
}
"""Numbers of ordinals by their words."""
_ROMAN = re.compile(r"(?=[IVXLC])(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def number_of(written: str) -> float:
    """Parse a number in figures; thousands may be set apart in any way.

    Examples
    --------
    >>> number_of("16,181"), number_of("16'181"), number_of("1.234.567"), number_of("0.05"), number_of("1.234,5")
    (16181.0, 16181.0, 1234567.0, 0.05, 1234.5)
    """
    if _GROUPED.fullmatch(written):
        return float(re.sub(r"\D", "", written))
    whole, point, rest = written.rpartition(max(".,", key=written.rfind))
    return float(re.sub(r"[.,](?=\d{3})", "", whole) + "." + rest) if point else float(written)


def roman_value(written: str) -> int | None:
    """Compute the value of a Roman numeral below a hundred; None for anything else.

    Examples
    --------
    >>> roman_value("XIV"), roman_value("IIX")
    (14, None)
    """
    if not _ROMAN.fullmatch(written):
        return None
    values = [_ROMAN_VALUES[letter] for letter in written]
    return sum(-value if value < max(values[n:]) else value for n, value in enumerate(values))


def counted(words: str) -> int | None:
    """Compute the value of a number below a million in words or in small figures; None if it is not one number.

    Examples
    --------
    >>> counted("three hundred and fifty"), counted("a hundred"), counted("twenty-five thousand"), counted("7")
    (350, 100, 25000, 7)
    >>> counted("nineteen eighty-four") is None
    True
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
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def _any(words: list[str]) -> str:
    return rf"(?:{'|'.join(sorted(words, key=len, reverse=True))})"


_MONTH, _SHORT = _any(list(MONTHS)), r"(Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)(?:\b\.|\b)"
_SPELLED, _ORDINAL = _any([*SMALL, *TENS]), _any(list(ORDINALS))
_TWELVE = rf"({_any(list(SMALL)[1:13])}|1[0-2]|[1-9])\b"
_FIGURES = r"\d+(?:[.,]\d+)*"
_LONE = r"(?<![\w.,:/$€£¥-])"
_LENGTHS = {"m": "metres", "km": "kilometres", "cm": "centimetres", "mm": "millimetres", "ft": "feet"}
_MEASURED = (
    "litre liter kilo kilometre kilometer mile day week month year century cup teaspoon tablespoon pound gram metre "
    "meter tonne ton"
).split()
_CODED = (
    "chapter part section article volume title type phase stage appendix annex schedule grade class level table figure"
).split()
_NUMERIC_DATE = (
    r"(?<![\d./-])(?:(?P<y>[12]\d{3})(?P<s>[-/.])(?P<m>\d\d?)(?P=s)(?P<d>\d\d?)"
    r"|(?P<a>\d\d?)(?P<t>[-/.])(?P<b>\d\d?)(?P=t)(?P<z>[12]\d{3}))(?![\d/-]|\.\d)"
)


def levelled(text: str) -> str:
    """Replace typographic quotes, hyphens and spaces with plain ones, character by character.

    Examples
    --------
    >>> levelled("the “old” 10 000‑seat hall")
    'the "old" 10 000-seat hall'
    """
    return text.translate(_LEVEL)


@dataclass(frozen=True, slots=True)
class WrittenOut:
    """A text in one notation, and as it was written."""

    text: str
    source: str
    """The text as it was written."""
    spans: tuple[tuple[int, int], ...] | None
    """Where in ``source`` each character of ``text`` comes from; None if each has kept its place."""

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


def _month(match: re.Match[str]) -> str:
    return next(month for month in MONTHS if month.startswith(match[1][:3]))


def _clock(match: re.Match[str]) -> str:
    """Write "half past two" and "a quarter to nine" in figures."""
    part, hour = match[1].lower(), counted(match[3]) or 0
    minutes = 30 if part == "half" else 15 if part.endswith("quarter") else counted(part) or 0
    if match[2].lower() == "to":
        hour, minutes = (hour - 2) % 12 + 1, 60 - minutes
    return f"{hour}:{minutes:02d}"


def _number(match: re.Match[str]) -> str:
    value = counted(match[0])
    return match[0] if value is None else _figures(value)


def _figures(value: float) -> str:
    return f"{value:,.12g}" if value >= 10_000 else f"{value:.12g}"


def _and_a_half(match: re.Match[str]) -> str:
    return match[0] if (value := counted(match[1])) is None else f"{value}.5"


def _half_of(match: re.Match[str]) -> str:
    return "500,000" if match[1] == "million" else f"500 {'million' if match[1] == 'billion' else 'billion'}"


def _dozen(match: re.Match[str]) -> str:
    number = match[1].lower()
    return _figures(6 if number == "half a" else 12 * (counted(number) or 0))


def _ordinal(match: re.Match[str]) -> str:
    number = TENS[match[1].lower()] + ORDINALS[match[2].lower()]
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def _coded(match: re.Match[str]) -> str:
    value = roman_value(match[2])
    return match[0] if value is None else f"{match[1]}{value}"


_MAGNITUDES = {"m": "million", "b": "billion", "t": "trillion"}
_CURRENCIES = {"US": "$", "USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥"}
_QUARTERS = {"¼": ".25", "½": ".5", "¾": ".75"}
_POWERS = {"²": "square", "³": "cubic"}

_TO_REWRITE = re.compile(
    rf"[\d½¼¾]|\b(?:half|quarter|dozen|hundred|thousand|{_any(list(TENS))}|o'clock|per cent|past {_TWELVE})\b"
    rf"|(?-i:\b[IVX]+\b)|\b{_ORDINAL} of\b",
    re.IGNORECASE,
)
"""What each text has that is rewritten."""
_REWRITINGS: tuple[tuple[re.Pattern[str], _Written], ...] = (
    # Figures
    (re.compile(r"\$(\d+(?:[.,]\d+)*)\$"), lambda m: m[1]),  # a formula, which means no money
    (_GROUPED, lambda m: re.sub(r"\D", ",", m[0])),
    (re.compile(r"(?<![\w.,])\.(?=\d)"), lambda m: "0."),
    (re.compile(r"(?:(\d+)\s?)?([½¼¾])"), lambda m: (m[1] or "0") + _QUARTERS[m[2]]),
    (re.compile(r"(?<![^\s(])(?<!\d\s)\u2013(?=\d)"), lambda m: "-"),
    # Dates and times
    (re.compile(_NUMERIC_DATE), _date),
    (re.compile(rf"(?<=\d\s){_SHORT}"), _month),
    (re.compile(rf"\b{_SHORT}(?=\s\d)"), _month),
    (re.compile(rf"\b(?:the )?(\d\d?)(?:st|nd|rd|th) of (?={_MONTH})"), lambda m: f"{m[1]} "),
    (re.compile(rf"\b(?:the )?({_ORDINAL}) of (?={_MONTH})"), lambda m: f"{ORDINALS[m[1].lower()]} "),
    (re.compile(r"(?<![\d.:])(\d\d?)\.([0-5]\d)(?=\s?[ap]\.?m\b)", re.I), lambda m: f"{m[1]}:{m[2]}"),
    (re.compile(r"(?<=\d)(?=[ap]\.?m\b)", re.I), lambda m: " "),
    (re.compile(r"(?<![\w.:])([01]?\d|2[0-4])h([0-5]\d)\b"), lambda m: f"{m[1]}:{m[2]}"),
    (re.compile(rf"\b(half|(?:a )?quarter|five|ten|twenty|twenty-five) (past) {_TWELVE}", re.I), _clock),
    (re.compile(rf"\b((?:a )?quarter) (to) {_TWELVE}", re.I), _clock),
    (re.compile(rf"\b{_TWELVE} o'clock\b", re.I), lambda m: f"{counted(m[1])}:00"),
    # Numbers in words
    (re.compile(r"\bhalf an hour\b", re.I), lambda m: "30 minutes"),
    (re.compile(r"\b(three )?quarters? of an hour\b", re.I), lambda m: f"{45 if m[1] else 15} minutes"),
    (re.compile(rf"\bhalf an? (?={_any(_MEASURED)}\b)", re.I), lambda m: "0.5 "),
    (re.compile(r"\b(?:half a|a half) (million|billion|trillion)\b", re.I), _half_of),
    (re.compile(r"\b(half a|an?|one|two|three|four|five|six|ten|\d+) dozen\b", re.I), _dozen),
    (
        re.compile(rf"\b(an?|one) (hour|{_any(_MEASURED)}) and a half\b", re.I),
        lambda m: f"1.5 {m[2]}s",
    ),
    (re.compile(rf"\b({_SPELLED}|\d+) and a half\b", re.I), _and_a_half),
    (re.compile(rf"\b({_any(list(TENS))})[- ]({_any(list(ORDINALS)[:9])})\b", re.I), _ordinal),
    (
        re.compile(
            rf"\b(?:an?|{_SPELLED})(?:[ -](?:(?:and )?{_SPELLED}\b|(?:hundred|thousand)\b))+(?![- ]{_ORDINAL})", re.I
        ),
        _number,
    ),
    # Money and magnitudes
    (re.compile(r"\b(?:(US)(?=\$)|(USD|EUR|GBP|JPY)\s?(?=\d))"), lambda m: "" if m[1] else _CURRENCIES[m[2]]),
    (
        re.compile(rf"([$€£¥]\s?{_FIGURES})\s?(?:([mb])n?|(t)n)\b", re.I),
        lambda m: f"{m[1]} {_MAGNITUDES[(m[2] or m[3]).lower()]}",
    ),
    (re.compile(rf"{_LONE}({_FIGURES})\s?([mbt])n\b", re.I), lambda m: f"{m[1]} {_MAGNITUDES[m[2].lower()]}"),
    (re.compile(rf"{_LONE}({_FIGURES})M\b"), lambda m: f"{m[1]} million"),
    (re.compile(rf"((?:[$€£¥]\s?)|{_LONE})({_FIGURES})k\b", re.I), lambda m: m[1] + _figures(1000 * number_of(m[2]))),
    # Signs and units
    (re.compile(r"\s*(?:[°º]\s?[Cc]\b|℃)"), lambda m: " degrees Celsius"),
    (re.compile(r"\s*(?:[°º]\s?[Ff]\b|℉)"), lambda m: " degrees Fahrenheit"),
    (re.compile(r"(?<=\d)\s*°"), lambda m: " degrees "),
    (re.compile(r"\s*(?:≥|>=)\s*(?=[\d$€£])"), lambda m: " at least "),
    (re.compile(r"\s*(?:≤|<=)\s*(?=[\d$€£])"), lambda m: " at most "),
    (re.compile(r"(?<=\d)\s?(?:\u00b5g|mcg)\b"), lambda m: " micrograms"),
    (re.compile(r"(?<=\d)\s?(m|km|cm|mm|ft)([²³])"), lambda m: f" {_POWERS[m[2]]} {_LENGTHS[m[1]]}"),
    (re.compile(r"(?<=\d)\s?sq\.? ?(m|km|ft)\b"), lambda m: f" square {_LENGTHS[m[1]]}"),
    (re.compile(r"(?<=\d)\s?(?:kph|kmh|kilomet(?:re|er)s (?:per|an) hour)\b"), lambda m: " km/h"),
    (re.compile(r"(?<=\d)\s?miles (?:per|an) hour\b"), lambda m: " mph"),
    (re.compile(r"\bper cent\b"), lambda m: "percent"),
    (re.compile(r"(?<=\d)\s?pct\b\.?"), lambda m: " percent"),
    # Roman numerals
    (re.compile(rf"\b((?i:{_any(_CODED)}) )([IVX]+)\b(?!')"), _coded),
)
"""Patterns, each with what its matches are rewritten to, in the order in which they are applied."""
