"""Measures of the evidence that belong to one or the other of two things, by words that each thing alone has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from syncheck.contrasts.grammar import CALENDAR
from syncheck.contrasts.measures import Measure, measures
from syncheck.contrasts.parsing import ParsedText

_TURNS = frozenset(("anbn", "bnan", "nanb", "nbna"))
"""Orders of the words of two things and their numbers that tell which number is whose."""
_LISTED = frozenset(("abnn", "bann"))
"""Those in a sentence with "respectively"."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A measure with the number of its text and of its part."""

    measure: Measure
    text: int
    part: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """One or two texts with their parts, and the measures that the sentence does not give itself."""

    texts: tuple[ParsedText, ...]
    parts: tuple[tuple[int, tuple[int, ...]], ...]
    """Number of the text, and places."""
    stems: tuple[frozenset[str], ...]
    """Those of each part."""
    placed: tuple[Placed, ...]

    @classmethod
    def of(cls, claim: ParsedText, texts: tuple[ParsedText, ...]) -> Evidence:
        """Read one or two texts."""
        parts = tuple((n, part) for n, text in enumerate(texts) for part in text.parts)
        placed = tuple(
            Placed(measure, n, parts.index((n, next(part for part in text.parts if measure.first in part))))
            for n, text in enumerate(texts)
            for measure in measures(text)
            if text.tokens[measure.first].stem not in claim.stems
        )
        stems = tuple(frozenset(texts[n].tokens[p].stem for p in part) for n, part in parts)
        return cls(texts, parts, stems, placed)

    @property
    def clauses(self) -> list[frozenset[str]]:
        """Stems of the clause of each part."""
        every = range(len(self.parts))
        return [frozenset().union(*(self.stems[n] for n in every if _goes_on(part, n, self))) for part in every]

    @property
    def held(self) -> frozenset[str]:
        """All stems."""
        return frozenset().union(*self.stems)

    @property
    def times(self) -> frozenset[str]:
        """Stems of the numbers, months and days of the week."""
        return frozenset(t.stem for text in self.texts for t in text.tokens if t.number or t.word in CALENDAR)

    @property
    def words(self) -> frozenset[str]:
        """All words."""
        return frozenset().union(*(text.words for text in self.texts))

    def with_any(self, stems: AbstractSet[str]) -> set[int]:
        """Return the parts that have any of some stems."""
        return {n for n, part in enumerate(self.stems) if not part.isdisjoint(stems)}


Pair = tuple[list[Placed], list[Placed]]
"""The measures of both things."""

Keys = tuple[frozenset[str], frozenset[str]]
"""Stems by which the evidence tells the two things that are compared; none for the other one "of the two"."""


def pair_of(
    claim: ParsedText, group: Sequence[Placed], keys: Keys, said: AbstractSet[str], evidence: Evidence
) -> Pair | None:
    """Return the measures that belong to each of two things; None if this cannot be told."""
    ours, theirs = (evidence.with_any(stems) for stems in keys)
    if not keys[1]:
        theirs = {one.part for one in group} - ours
    text = evidence.texts[0]
    if len(evidence.texts) == 1 and "respectively" in text.words:
        return _in_turn(group, text, range(len(text.tokens)), keys)
    both = ours & theirs
    mixed = [
        _in_turn([one for one in group if one.part == part], evidence.texts[evidence.parts[part][0]], places, keys)
        for part, (_, places) in enumerate(evidence.parts)
        if part in both
    ]
    if any(one is None for one in mixed):
        return None
    found: Pair = ([], [])
    for pair in filter(None, mixed):
        found[0].extend(pair[0])
        found[1].extend(pair[1])
    for side, own in zip(found, (ours - both, theirs - both), strict=True):
        side += [one for one in group if one.part in own]
        if not side:
            side += [one for one in group if _follows(one.part, own, ours | theirs, evidence, claim)]
    nearest = [_with_most(side, own, evidence.stems) for side, own in zip(found, keys, strict=True)]
    dated = [_with_most(side, said & evidence.times, evidence.stems) for side in nearest]
    narrowed = [_with_most(side, said, evidence.clauses) for side in dated]
    return (narrowed[0], narrowed[1]) if all(narrowed) else None


def _in_turn(group: Sequence[Placed], text: ParsedText, places: Sequence[int], keys: Keys) -> Pair | None:
    """Return the measures of both things in words that have both, in turn: "5 in Bern and 7 in Basel"."""
    numbers = {one.measure.first: one for one in group}
    letters = [
        "n" if n in numbers else "".join(letter for letter, own in zip("ab", keys, strict=True) if stem in own)
        for n, stem in ((n, text.tokens[n].stem) for n in places)
    ]
    order = re.sub(r"(a|b)\1+", r"\1", "".join(letters))
    found = [numbers[n] for n in places if n in numbers]
    if not found:
        return [], []
    if order not in (_LISTED if "respectively" in text.words else _TURNS):
        return None
    return (found[:1], found[1:]) if order.index("a") < order.index("b") else (found[1:], found[:1])


def _follows(
    part: int, own: AbstractSet[int], anchored: AbstractSet[int], evidence: Evidence, claim: ParsedText
) -> bool:
    """Return True if a part without words of either thing goes on with one of theirs, or leads to it if it is first.

    A part with a name that the sentence lacks may be about a third thing.
    """
    number, places = evidence.parts[part]
    tokens = evidence.texts[number].tokens
    if part in anchored or any(tokens[p].name and tokens[p].stem not in claim.stems for p in places):
        return False
    for step in (-1, 1):
        other = part
        while 0 <= other < len(evidence.parts) and other not in anchored and _goes_on(part, other, evidence):
            other += step
        if other in anchored and _goes_on(part, other, evidence):
            return other in own
    return False


def _goes_on(part: int, other: int, evidence: Evidence) -> bool:
    """Return True if two parts are of one clause."""
    (number, places), (text, others) = evidence.parts[part], evidence.parts[other]
    tokens = evidence.texts[number].tokens
    return number == text and tokens[places[0]].clause == tokens[others[0]].clause


def _with_most(side: list[Placed], stems: AbstractSet[str], around: Sequence[AbstractSet[str]]) -> list[Placed]:
    """Return the measures with most of some stems around them, given what is around each part."""
    shared = [len(stems & around[one.part]) for one in side]
    return [one for one, count in zip(side, shared, strict=True) if count == max(shared)]
