"""Notation: one way to write what texts write in many ways, such as "16 181" and "$890M"; for the rules and the reader.

:func:`levelled` keeps every character in its place, so that what is found in it can be quoted from the text itself.
:func:`written_out` may change the length.
"""

from __future__ import annotations

import re

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
GROUPED = r"\d{1,3}(?:(?P<mark>[,' ])\d{3})(?:(?P=mark)\d{3})*(?![\d'])"
"""A number with its thousands set apart by commas, apostrophes or spaces; by full stops from a million on."""
_GROUPED = re.compile(rf"(?<![\w.,])(?:{GROUPED}|\d{{1,3}}(?:\.\d{{3}}){{2,}}(?!\d))")
MAGNITUDES = {"k": "thousand", "m": "million", "mn": "million", "bn": "billion", "b": "billion", "tn": "trillion"}
_MAGNITUDE = re.compile(
    r"([$€£]\s?\d+(?:[.,]\d+)*)\s?(k|mn?|bn?|tn)\b|(?<![\w$€£.])(\d+(?:[.,]\d+)*)\s?(bn|mn|tn)\b", re.I
)
_SIGNS = (
    (re.compile(r"\s*(?:°\s?[Cc]\b|℃)"), " degrees Celsius"),
    (re.compile(r"\s*(?:°\s?[Ff]\b|℉)"), " degrees Fahrenheit"),
    (re.compile(r"(?<=\d)\s*°"), " degrees "),
    (re.compile(r"\s*(?:≥|>=)\s*(?=\d)"), " at least "),
    (re.compile(r"\s*(?:≤|<=)\s*(?=\d)"), " at most "),
    (re.compile(r"(?<=\d)\s?\u00b5g\b"), " micrograms"),
)


def levelled(text: str) -> str:
    """Replace typographic quotes, hyphens and spaces with plain ones, character by character.

    Examples
    --------
    >>> levelled("the “old” 10 000‑seat hall")
    'the "old" 10 000-seat hall'
    """
    return text.translate(_LEVEL)


def number_of(written: str) -> float:
    """Parse a number in figures; thousands may be set apart in any way.

    Examples
    --------
    >>> number_of("16,181"), number_of("16'181"), number_of("1.234.567"), number_of("0.05"), number_of("2,5")
    (16181.0, 16181.0, 1234567.0, 0.05, 2.5)
    """
    if _GROUPED.fullmatch(written):
        return float(re.sub(r"\D", "", written))
    whole, point, rest = written.rpartition("." if "." in written else ",")
    return float(re.sub(r"\D", "", whole) + "." + rest) if point else float(written)


def written_out(text: str) -> str:
    """Rewrite a text as the reader reads it: signs in words, thousands set apart by commas, magnitudes spelled out.

    Examples
    --------
    >>> written_out("between 2 and 8 °C, ≥ 5 times; $890M for 16 181 people")
    'between 2 and 8 degrees Celsius, at least 5 times; $890 million for 16,181 people'
    """
    text = _GROUPED.sub(lambda found: re.sub(r"\D", ",", found[0]), levelled(text))
    text = _MAGNITUDE.sub(lambda m: f"{m[1] or m[3]} {MAGNITUDES[(m[2] or m[4]).lower()]}", text)
    for sign, words in _SIGNS:
        text = sign.sub(words, text)
    return text
