"""What the rules of contrasts share: a difference, and how alike the places of two words are."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from syncheck.features.opposites import UNITS
from syncheck.features.parsing import ParsedText
from syncheck.types import ContrastKind

FITS = 0.6
"""Least similarity of a rival's place; one shared word at the same distance counts 1."""
BETTER = 1.5
"""Factor by which a rival's place must be more similar than that of the same word."""
REACH = 8
"""Number of words on either side of a place that show what it belongs to."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference; a side without a word for it is ``""``."""

    kind: ContrastKind
    sentence: str
    evidence: str


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
