"""Opposites: small hand-made lists of English words that reverse a statement, and of units that exclude each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, cast

from syncheck.features.contrasts.inflection import WordClass, forms_of

NEGATORS = frozenset(
    "not no non never none nobody nothing nowhere neither without cannot hardly rarely fail fails failed refuse "
    "refuses refused lack lacks lacked unable".split()
)
"""Words that deny what follows, besides all words that end in n't."""

NOT_DENYING = frozenset(
    "only just merely simply solely limited necessarily mentioned stated specified clear known until all every always "
    "everyone entirely fully completely exactly quite very so too".split()
)
"""Words that, shortly after a negator, show that it does not deny the whole statement."""

BLOCKERS = frozenset(
    "avoid avoids avoided avoiding prevent prevents prevented preventing unlikely impossible rather instead against "
    "nor deny denies denied stop stops stopped ban bans banned forbid forbids forbidden prohibit prohibits prohibited "
    "exclude excludes excluded waive waives waived free exempt".split()
)
"""Words that may reverse a statement as a negator does, so that no negation is missing next to them."""

EXCEPT = frozenset("unless except excepting excluding until apart".split())
"""Words before an exception to a denial."""

SYMMETRIC = frozenset(
    "and or with near between both as meet meets met marry married marries play plays played join joined equal equals "
    "like resemble resembles border borders bordered".split()
)
"""Words whose two sides may be exchanged."""

NEGATIVE_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non")

OppositeKind = Literal["antonym", "comparison", "quantifier"]


def _lines() -> Iterator[tuple[str, str, list[str]]]:
    """Yield the kind, word class and groups of each line of the packaged lists."""
    text = (files("syncheck") / "assets" / "opposites.txt").read_text(encoding="utf-8")
    for line in re.sub(r"#.*", "", text).replace("\n    ", " ").splitlines():
        name, _, words = line.partition(": ")
        if words:
            kind, _, word_class = name.partition(" ")
            yield kind, word_class, words.split("/")


@dataclass(frozen=True)
class _Lists:
    opposites: Mapping[str, tuple[tuple[OppositeKind, frozenset[str]], ...]]
    exclusive: frozenset[frozenset[str]]
    converse: frozenset[str]


def _read() -> _Lists:
    found: dict[str, list[tuple[OppositeKind, frozenset[str]]]] = {}
    exclusive: set[frozenset[str]] = set()
    converse: set[str] = set()
    for name, word_class, groups in _lines():
        sides = [_forms(group.split(), word_class) for group in groups]
        every = frozenset().union(*sides)
        kind = cast(OppositeKind, name if name in ("comparison", "quantifier") else "antonym")
        converse |= every if name == "converse" else frozenset()
        for side in sides:
            exclusive |= {every - side} if name == "exclusive" else set()
            for word in side:
                found.setdefault(word, []).append((kind, every - side))
    return _Lists(
        {word: tuple(dict.fromkeys(pairs)) for word, pairs in found.items()}, frozenset(exclusive), frozenset(converse)
    )


def _forms(words: Sequence[str], word_class: str) -> frozenset[str]:
    """Return words with all their forms, if their class is given; a month that is a verb too is one word."""
    if not word_class:
        return frozenset(word.replace("_", " ") for word in words)
    return frozenset().union(*(forms_of(word, cast(WordClass, word_class)) for word in words))


_LISTS = _read()
OPPOSITES = _LISTS.opposites
"""Opposites of each word, by kind."""
EXCLUSIVE = _LISTS.exclusive
"""Those that are no opposites but other members of a class, such as colours: they do not say that the word is false."""
CONVERSE = frozenset("win wins won winning lose loses lost losing before after".split())
"""Words whose opposite says the same from the other side: "A lost to B", "B won"; "A before B", "B after A"."""
TRADE = _LISTS.converse
"""Verbs of which one always implies the other: A lends to B, B borrows from A."""

_UNITS = """
mg milligram milligrams / g gram grams / kg kilogram kilograms kilo kilos / lb lbs pound pounds / oz ounce ounces /
    tonne tonnes ton tons
mm millimetre millimetres millimeter millimeters / cm centimetre centimetres centimeter centimeters /
    m metre metres meter meters /
    km kilometre kilometres kilometer kilometers / mile miles / ft foot feet / inch inches / yard yards
ml millilitre millilitres milliliter milliliters /
    l litre litres liter liters / gallon gallons / cup cups / tablespoon tablespoons / teaspoon teaspoons
second seconds sec / minute minutes min mins / hour hours hr hrs / day days / week weeks /
    month months / year years / decade decades / century centuries
hundred / thousand / million / billion / trillion / percent
am / pm
dollar dollars / euro euros / pence cents cent / pounds pound / yen
celsius / fahrenheit
kb kilobyte kilobytes / mb megabyte megabytes / gb gigabyte gigabytes / tb terabyte terabytes
daily / weekly / monthly / yearly annually
"""
UNITS: Mapping[str, tuple[int, int]] = {
    word: (group, number)
    for group, line in enumerate(_UNITS.replace("\n    ", " ").strip().splitlines())
    for number, names in enumerate(line.split("/"))
    for word in names.split()
}
"""Quantity and number of each unit; different units of the same quantity contradict each other."""

_SIZES: Mapping[str, Mapping[str, float]] = {
    "mass": {"mg": 1, "g": 1e3, "kg": 1e6},
    "length": {"mm": 1, "cm": 10, "m": 1e3, "km": 1e6},
    "volume": {"ml": 1, "l": 1e3},
    "time": {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800},
    "months": {"month": 1, "year": 12, "decade": 120, "century": 1200},
}
SIZES: Mapping[str, tuple[str, float]] = {
    word: (quantity, size)
    for quantity, sizes in _SIZES.items()
    for name, size in sizes.items()
    for word, unit in UNITS.items()
    if unit == UNITS[name]
}
"""Quantity and size of units that can be converted into each other."""

TITLES = frozenset("mr mrs ms dr sir dame lord lady prof professor honorable honourable chief justice".split())
"""Words before names that are not part of them."""
CALENDAR = frozenset(
    """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    """.split()
)
"""Months and days of the week, which take the place of no other names."""
MAY = "may (month)"
"""Word and stem of the month, which the verb does not share."""
DATES = CALENDAR - {"may"} | {MAY} | {f"{word}s" for word in CALENDAR if word.endswith("day")}
"""Words for months and days of the week as they are parsed."""
