"""Opposites: words of which only one can be true, such as "open" and "closed" or the colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from syncheck.contrasts.inflection import WordClass, forms_of
from syncheck.contrasts.words import asset_lines

OppositeKind = Literal["antonym", "comparison", "quantifier"]


def _lines() -> Iterator[tuple[str, str, list[str]]]:
    """Yield the kind, word class and groups of each line of the packaged lists."""
    for name, words in asset_lines("opposites.txt"):
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
    """Collect words with all their forms, if their class is given; a month that is a verb too is one word."""
    if not word_class:
        return frozenset(word.replace("_", " ") for word in words)
    return frozenset().union(*(forms_of(word, cast(WordClass, word_class)) for word in words))


_LISTS = _read()
OPPOSITES = _LISTS.opposites
"""Opposites of each word, by kind."""
EXCLUSIVE = _LISTS.exclusive
"""Words that are not opposites but members of one class, such as colours: they do not say that the word is false."""
CONVERSE = frozenset("win wins won winning lose loses lost losing before after".split())
"""Words whose opposite says the same from the other side: "A lost to B", "B won"; "A before B", "B after A"."""
TRADE = _LISTS.converse
"""Verbs of which one always implies the other: A lends to B, B borrows from A."""
