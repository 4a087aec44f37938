"""What the rules of contrasts share: a difference, and how alike the places of two words are."""

from __future__ import annotations

import unicodedata
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from syncheck.contrasts.grammar import ARTICLES, CONJUNCTIONS, PREPOSITIONS, TITLES
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.units import UNITS
from syncheck.results.types import ContrastKind

FITS = 0.6
"""Least similarity of a rival's place; one shared word at the same distance counts 1."""
BETTER = 1.5
"""Factor by which a rival's place must be more similar than that of the same word."""
REACH = 8
"""Number of words on either side of a place that show what it belongs to."""
SAME = 4
"""Number of first letters that names of the same thing share."""


SKIPPED = TITLES | ARTICLES | CONJUNCTIONS
"""Words between a name and what tells its role."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference; a side without a word for it is ``""``."""

    kind: ContrastKind
    sentence: str
    evidence: str
    rule: str = field(default="", compare=False)
    """Name of the rule that found it."""


Found = tuple[Difference, AbstractSet[str]]
"""A difference and the stems of the sentence that it is about."""


def likeness(claim: ParsedText, place: int, chunk: ParsedText, other: int) -> float:
    """Return the similarity of the words around two places; a shared word counts less the more its offsets differ."""
    own, first = claim.name_at(place), max(0, place - REACH)
    total = 0.0
    for number, token in enumerate(claim.tokens[first : place + REACH + 1], first):
        if number not in own and token.content and token.word not in UNITS:
            offset = number - place
            apart = [abs(known - other - offset) for known in chunk.places.get(token.stem, ()) if known != other]
            total += 1 / (1 + min(apart)) if apart else 0.0
    return total


def is_same_name(claim: ParsedText, place: int, chunk: ParsedText, other: int) -> bool:
    """Return True if two names may be of the same thing.

    One is a part of the other ("Anna", "Anna Lee"), they begin with the same letters ("France", "French"), or the
    evidence has more of the full name in another place: with "the league" in it, "Australian Capital Territory" does
    not contradict "Australian Football League".
    """
    if _plain(chunk.tokens[other].word)[:SAME] == _plain(claim.tokens[place].word)[:SAME]:
        return True
    item = claim.tokens[place].stem
    if item in chunk.full_name(other):
        return True
    rest = claim.full_name(place) - chunk.full_name(other) - {item}
    return item not in chunk.stems and not rest.isdisjoint(chunk.stems)


def _plain(word: str) -> str:
    """Return a word without accents."""
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))


def role(side: ParsedText, place: int) -> str:
    """Return the preposition before a name, or "first" for who acts: at the beginning of a part, or after "by".

    After any other word, it is "".
    """
    first = side.name_at(place)[0]
    if all(token.word in SKIPPED for token in side.tokens[:first]):  # who acts comes first, also in a passive
        return "first"
    part = next(part for part in side.parts if first in part)
    before = [side.tokens[p].word for p in part[: part.index(first)]]
    while before and before[-1] in SKIPPED:
        before.pop()
    if not before:
        return "first"
    if before[-1] == "by":
        return "first"
    return before[-1] if before[-1] in PREPOSITIONS - {"of"} else ""
