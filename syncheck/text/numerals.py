"""Numerals: the values of numbers in figures, in words and in Roman letters."""

from __future__ import annotations

import re

GROUPED = re.compile(
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
    if GROUPED.fullmatch(written):
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
