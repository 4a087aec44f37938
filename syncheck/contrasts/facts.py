"""Facts: what a text states of something, as subject, relation, value and polarity; all rules compare these records.

"Adults pay 12 euros, students 8 euros" states two facts of the relation *pay*, with the values 12 and 8 euros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.quantities import Quantity

ACROSS = 6
"""Number of words that a comma or conjunction counts for in the distance of a word from a value."""
SHARED = 0.4
"""Weight of a word that several facts share, where one that a fact alone has counts 1."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One value in a text, with what it is stated of."""

    first: int
    last: int
    """Places of the first and last token of the value."""
    subject: frozenset[str]
    """Stems of what is said of this value alone."""
    relation: frozenset[str]
    """Stems of what is said of the other values of its clause as well."""
    denied: bool
    quantity: Quantity | None = None

    @property
    def span(self) -> range:
        """The places of the value's tokens."""
        return range(self.first, self.last + 1)

    @property
    def stems(self) -> frozenset[str]:
        """Stems of all that is said of it."""
        return self.subject | self.relation

    def about(self, stems: frozenset[str]) -> float:
        """Compute how much a text with these stems is about the same."""
        return len(stems & self.subject) + SHARED * len(stems & self.relation)


def facts_of(side: ParsedText, values: Sequence[range], quantities: Sequence[Quantity] = ()) -> list[Fact]:
    """Build the fact of each value, given by the places of its tokens; each other word belongs to the nearest value.

    What comes before the first value of a clause belongs to the later ones too, except as many words as these have in
    its place: "sells 400 loaves on weekdays and 650 on Saturdays", "adults pay 12 euros, students 8".
    """
    taken = {place for value in values for place in value}
    counted = {stem for one in quantities for stem in one.counted}
    owned: list[set[int]] = [set() for _ in values]
    shared: list[set[str]] = [set() for _ in values]
    for place, token in enumerate(side.tokens):
        if place in taken or not (token.content or token.number):
            continue
        near = [n for n, value in enumerate(values) if side.tokens[value[0]].clause == token.clause]
        if near:
            owned[min(near, key=lambda n: (_distance(side, place, values[n]), n))].add(place)
    for n, value in enumerate(values):
        clause = side.tokens[value[0]].clause
        mates = [m for m, other in enumerate(values) if side.tokens[other[0]].clause == clause]
        if n == mates[0] and len(mates) > 1:
            fewest = min(sum(place < values[m][0] for place in owned[m]) for m in mates[1:])
            head = sorted(place for place in owned[n] if place < value[0])[fewest:]
            owned[n] -= set(head)
            for m in mates:
                shared[m] |= {side.tokens[place].stem for place in head}
    found = []
    for n, value in enumerate(values):
        stems = {side.tokens[place].stem for place in owned[n]}
        common = (stems & counted) if len(values) > 1 else set()
        others = {side.tokens[place].stem for m, places in enumerate(owned) if m != n for place in places}
        relation = frozenset(shared[n] | common | (counted & others))
        of = quantities[n] if quantities else None
        found.append(Fact(value[0], value[-1], frozenset(stems - relation), relation, side.denied(value[0]), of))
    return found


def _distance(side: ParsedText, place: int, value: range) -> int:
    end = value[0] if place < value[0] else value[-1]
    return abs(place - end) + ACROSS * abs(side.part_of[place] - side.part_of[end])


def quantity_facts(side: ParsedText, quantities: Sequence[Quantity]) -> list[Fact]:
    """Build the facts whose values are some of the quantities; the others are what is said of these."""
    return facts_of(side, [range(one.first, one.last + 1) for one in quantities], quantities)
