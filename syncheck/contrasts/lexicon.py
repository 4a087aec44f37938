"""Word lists of the rules: closed classes, units, inflection, and opposites such as "open" and "closed"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, NamedTuple, cast


def asset_lines(name: str) -> Iterator[tuple[str, str]]:
    """Yield name and words of each line of an asset; indented lines continue the one before, # begins a comment."""
    text = (files("syncheck") / "assets" / "contrasts" / name).read_text(encoding="utf-8")
    for line in re.sub(r"#.*", "", text).replace("\n    ", " ").splitlines():
        title, _, words = line.partition(": ")
        if words:
            yield title, words


class Unit(NamedTuple):
    """A unit: what it measures, its size in the basic unit, 0 if it is not converted, and its first name."""

    quantity: str
    size: float
    name: str


def _units() -> Iterator[tuple[str, Unit]]:
    for quantity, line in asset_lines("units.txt"):
        for entry in line.split(" / "):
            size, *names = entry.split()
            yield from ((name, Unit(quantity, float(size), names[0])) for name in names)


CLASSES: Mapping[str, frozenset[str]] = {name: frozenset(line.split()) for name, line in asset_lines("words.txt")}
"""Words of each class."""
UNITS: Mapping[str, Unit] = dict(_units())
"""Unit of each name."""
SYMBOLS = {"%": "percent", "$": "dollars", "€": "euros", "£": "pounds", "¥": "yen", "CHF": "francs"}
"""Names of signs."""
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
MAY = "may (month)"
"""Word and stem of the month, which the verb does not share."""
CALENDAR = CLASSES["calendar"]

WordClass = Literal["verb", "noun", "adjective"]

_LISTS = dict(asset_lines("inflection.txt"))


def _entries(*names: str) -> list[list[str]]:
    return [entry.split() for name in names for entry in _LISTS[name].split("/")]


IRREGULAR: Mapping[str, str] = {form: forms[0] for forms in _entries("verbs") for form in forms}
"""Infinitive of each form of an irregular verb."""
_PAST: Mapping[str, Sequence[str]] = {forms[0]: forms[1:] for forms in _entries("verbs", "formed")}
"""Past forms of irregular verbs; none where they are the infinitive."""
_DOUBLED = frozenset(_LISTS["doubled"].split())
_PLURALS: Mapping[str, str] = {noun: plural for noun, plural in _entries("plurals")}
_SINGLE_SYLLABLE_CVC = re.compile(r"[^aeiou]*(?:qu)?[aeiou][^aeiouwxy]")


def forms_of(word: str, word_class: WordClass) -> frozenset[str]:
    """Collect the forms of a word: those of a verb, the plural of a noun, the adverb of an adjective."""
    return frozenset({word, *_FORMS[word_class](word)})


def _verb_forms(verb: str) -> tuple[str, ...]:
    doubled = verb in _DOUBLED or _SINGLE_SYLLABLE_CVC.fullmatch(verb) is not None
    root = verb + verb[-1] if doubled else verb
    if root.endswith("e") and not root.endswith(("ee", "oe", "ye")):
        participle = (root[:-2] + "ying") if root.endswith("ie") else root[:-1] + "ing"
    else:
        participle = root + "ing"
    return (_with_s(verb), participle, *_PAST.get(verb, (_with_ed(root),)))


def _with_ed(root: str) -> str:
    if root.endswith("e"):
        return root + "d"
    return root[:-1] + "ied" if _ends_in_consonant_y(root) else root + "ed"


def _with_s(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    if _ends_in_consonant_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _noun_forms(noun: str) -> tuple[str, ...]:
    return (_with_s(noun),)


def _adjective_forms(adjective: str) -> tuple[str, ...]:
    if adjective.endswith("ly") or (adjective.endswith("ed") and not adjective.endswith("ted")):
        return ()
    if _ends_in_consonant_y(adjective):
        return (adjective[:-1] + "ily",)
    if adjective.endswith("ic"):
        return ("publicly" if adjective == "public" else adjective + "ally",)
    if adjective.endswith("ll") or (adjective.endswith("le") and adjective[-3] not in "aeiou"):
        return (adjective.removesuffix("e") + "y",)
    return (adjective + "ly",)


def _ends_in_consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"


_FORMS: Mapping[WordClass, Callable[[str], tuple[str, ...]]] = {
    "verb": _verb_forms,
    "noun": _noun_forms,
    "adjective": _adjective_forms,
}


OppositeKind = Literal["antonym", "comparison", "quantifier"]


def _lines() -> Iterator[tuple[str, str, list[str]]]:
    """Yield the kind, word class and groups of each line of the packaged lists."""
    for name, words in asset_lines("opposites.txt"):
        kind, _, word_class = name.partition(" ")
        yield kind, word_class, words.split("/")


@dataclass(frozen=True)
class _Opposed:
    opposites: Mapping[str, tuple[tuple[OppositeKind, frozenset[str]], ...]]
    exclusive: frozenset[frozenset[str]]
    converse: frozenset[str]


def _read() -> _Opposed:
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
    return _Opposed(
        {word: tuple(dict.fromkeys(pairs)) for word, pairs in found.items()}, frozenset(exclusive), frozenset(converse)
    )


def _forms(words: Sequence[str], word_class: str) -> frozenset[str]:
    """Collect words with all their forms, if their class is given; a month that is a verb too is one word."""
    if not word_class:
        return frozenset(word.replace("_", " ") for word in words)
    return frozenset().union(*(forms_of(word, cast(WordClass, word_class)) for word in words))


_OPPOSED = _read()
OPPOSITES = _OPPOSED.opposites
"""Opposites of each word, by kind."""
EXCLUSIVE = _OPPOSED.exclusive
"""Words that are not opposites but members of one class, such as colours: they do not say that the word is false."""
CONVERSE = frozenset("win wins won winning lose loses lost losing before after".split())
"""Words whose opposite says the same from the other side: "A lost to B", "B won"; "A before B", "B after A"."""
TRADE = _OPPOSED.converse
"""Verbs of which one always implies the other: A lends to B, B borrows from A."""
