"""What a sentence says otherwise than the chunk that it is closest to: the two words side by side.

Counting words cannot see that "1976" stands where the evidence has "1967". Here the sentence's words are laid beside
those of a chunk; what stands in one's place, and what turns the statement round, is found by rule. English.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Literal

from syncheck.features.opposites import NEGATIVE_PREFIXES, OPPOSITES, UNITS
from syncheck.features.sides import SYMBOLS, Side, Token, is_denied, likeness, matcher, side_of, starts_bound
from syncheck.lexical import stem

__all__ = ["Contrast", "ContrastKind", "Contrasted", "contrast_with"]

ContrastKind = Literal["negation", "number", "unit", "name", "antonym", "comparison", "quantifier"]

HELD_ENOUGH = 0.3
"""Share of its content stems that a chunk holds before it can be said to contradict a sentence."""
FITS = 1.0
"""How well another one must fit a place at least: what one word at the same distance counts."""
BETTER = 1.5
"""How much better it must fit than the one that the evidence has elsewhere."""
AS_CLOSE = 0.7
"""A chunk is looked at if it holds at least this share of what the closest one holds."""
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Contrast:
    """One difference; a side without a word of its own is ``""``."""

    kind: ContrastKind
    sentence: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Contrasted:
    """A sentence beside the chunk that agrees best with it.

    Attributes
    ----------
    chunk : int
        Place in the chunks given; -1 where there is none.
    agreement : float
        Share of the sentence's content stems that the chunk holds, half the share of its words that stand in it in
        order, less what contradicts; higher is better.
    inverted : float
        Share of pairs of held stems that stand in the other order, in [0, 1]; lower is better.
    found : tuple of Contrast
    """

    chunk: int
    agreement: float
    inverted: float
    found: tuple[Contrast, ...]

    def count(self, kind: ContrastKind) -> int:
        """Return how many of a kind were found."""
        return sum(contrast.kind == kind for contrast in self.found)


PENALTIES: dict[ContrastKind, float] = {
    "negation": 0.6,
    "number": 0.5,
    "unit": 0.5,
    "name": 0.3,
    "antonym": 0.5,
    "comparison": 0.4,
    "quantifier": 0.3,
}
INVERTED_PENALTY = 0.3


def contrast_with(sentence: str, chunks: Sequence[str]) -> Contrasted:
    """Lay a sentence beside each chunk, and return what differs from the one that agrees best.

    Parameters
    ----------
    sentence
    chunks
        The few that share most with the sentence, the best first; without any nothing agrees and nothing differs.
    """
    claim = side_of(sentence)
    sides = [side_of(chunk) for chunk in chunks]
    closest = max((_closeness(claim, side)[0] for side in sides), default=0.0)
    beside = [
        _beside(claim, side, place, frozenset().union(*(other.stems for other in sides)))
        for place, side in enumerate(sides)
        if _closeness(claim, side)[0] >= AS_CLOSE * closest
    ]
    return max(beside, key=lambda found: (found.agreement, -found.chunk), default=Contrasted(-1, 0.0, 0.0, ()))


def _beside(claim: Side, chunk: Side, place: int, context: frozenset[str]) -> Contrasted:
    closeness, held = _closeness(claim, chunk)
    if held < HELD_ENOUGH:
        return Contrasted(place, closeness, 0.0, ())
    found = tuple(dict.fromkeys(contrast for rule in _RULES for contrast in rule(claim, chunk, context)))
    inverted = _inverted(claim, chunk)
    penalty = sum(PENALTIES[contrast.kind] for contrast in found) + INVERTED_PENALTY * inverted
    return Contrasted(place, closeness - penalty, inverted, found)


def _closeness(claim: Side, chunk: Side) -> tuple[float, float]:
    """Return the share of content stems held and half the share of words held in order; and the first alone."""
    content = {token.stem for token in claim.tokens if token.content}
    held = len(content & chunk.stems) / len(content) if content else 0.0
    in_order = sum(block.size for block in matcher(claim, chunk).get_matching_blocks())
    return held + in_order / max(1, len(claim.tokens)) / 2, held


def _negations(claim: Side, chunk: Side, _: frozenset[str]) -> Iterator[Contrast]:
    """Find a statement that both make and only one denies, or a word beside its negative form."""
    ours, theirs = _relevant(claim, chunk), _relevant(chunk, claim)
    if len(ours) % 2 != len(theirs) % 2:  # two negators make none
        yield Contrast("negation", ours[0] if ours else "", theirs[0] if theirs else "")
        return
    for one, other, is_claim in ((claim, chunk, True), (chunk, claim, False)):
        denied = {token.stem for _, heads in other.denials for token in heads}
        for token in one.tokens:
            plain = _without_prefix(token.word)
            if plain and token.word not in other.words and plain in other.words and stem(plain) not in denied:
                met = next(o.text for o in other.tokens if o.word == plain)
                yield Contrast("negation", *((token.text, met) if is_claim else (met, token.text)))


def _relevant(side: Side, other: Side) -> list[str]:
    """Return the negators of what the other side speaks of, and this side does not say undenied too."""
    stems = [token.stem for token in side.tokens]
    return [
        negator
        for negator, heads in side.denials
        if any(head.stem in other.stems and stems.count(head.stem) == 1 for head in heads)
        and not any(_says_opposite(other, head) for head in heads)
    ]


def _says_opposite(side: Side, token: Token) -> bool:
    """Whether a side has an antonym of a word that the other denies: "not open" and "closed" agree."""
    return any(kind == "antonym" and others & side.words for kind, others in OPPOSITES.get(token.word, ()))


def _without_prefix(word: str) -> str:
    return next((word[len(p) :] for p in NEGATIVE_PREFIXES if word.startswith(p) and len(word) - len(p) > 3), "")


def _numbers(claim: Side, chunk: Side, context: frozenset[str]) -> Iterator[Contrast]:
    for is_year in (True, False):
        chosen = partial(_is_number, year=is_year)
        yield from _misplaced(claim, chunk, "number", chosen)
    for token in claim.tokens:
        if token.number and token.stem not in context:
            rivals = [o for o in chunk.tokens if _is_number(o, year=_is_year(token)) and o.stem not in claim.stems]
            if not rivals:
                yield Contrast("number", token.text, "")


def _is_number(token: Token, *, year: bool) -> bool:
    """Whether it is one, and a year or not; "one" is a pronoun too often."""
    return token.number and _is_year(token) == year and token.text.lower() != "one"


def _is_year(token: Token) -> bool:
    return bool(_YEAR.fullmatch(token.text))


def _name_words(claim: Side, chunk: Side, _: frozenset[str]) -> Iterator[Contrast]:
    yield from _misplaced(claim, chunk, "name", lambda token: token.name and not token.number)


def _misplaced(claim: Side, chunk: Side, kind: ContrastKind, of_kind: Callable[[Token], bool]) -> Iterator[Contrast]:
    """Find items whose place in the evidence another item of the kind has."""
    theirs = [place for place, token in enumerate(chunk.tokens) if of_kind(token)]
    for place, item in enumerate(claim.tokens):
        if not of_kind(item):
            continue
        fits = [(likeness(claim, place, chunk, other), chunk.tokens[other]) for other in theirs]
        same = max((fit for fit, token in fits if token.stem == item.stem), default=0.0)
        rivals = [(fit, token) for fit, token in fits if token.stem != item.stem]
        if item.stem not in chunk.stems:
            rivals = [(fit, token) for fit, token in rivals if token.stem not in claim.stems]
        elif not same:  # held, as a word of another kind
            continue
        best, rival = max(rivals, key=lambda found: found[0], default=(0.0, item))
        if best >= max(FITS, BETTER * same):
            yield Contrast(kind, item.text, rival.text)


def _units(claim: Side, chunk: Side, _: frozenset[str]) -> Iterator[Contrast]:
    ours, theirs = _measures(claim), _measures(chunk)
    for number, unit in ours.items():
        other = theirs.get(number)
        if other and UNITS[unit.word][0] == UNITS[other.word][0] and UNITS[unit.word][1] != UNITS[other.word][1]:
            yield Contrast("unit", unit.text, other.text)


def _measures(side: Side) -> dict[str, Token]:
    """Return the unit after, or the sign before, each number."""
    found: dict[str, Token] = {}
    for before, token in zip(side.tokens, side.tokens[1:], strict=False):
        if before.number and token.word in UNITS:
            found[before.word] = token
        elif token.number and before.text in SYMBOLS:
            found.setdefault(token.word, before)
    return found


def _turned(claim: Side, chunk: Side, _: frozenset[str]) -> Iterator[Contrast]:
    """Find words whose opposite the evidence has in their place, unless a negator turns one of them back."""
    for place, token in enumerate(claim.tokens):
        if starts_bound(claim.tokens, place):
            continue
        same = max(
            (likeness(claim, place, chunk, o) for o, t in enumerate(chunk.tokens) if t.word == token.word), default=0
        )
        for kind, opposites in OPPOSITES.get(token.word, ()):
            if opposites & claim.words:
                continue
            fits = [(likeness(claim, place, chunk, o), t) for o, t in enumerate(chunk.tokens) if t.word in opposites]
            best, opposite = max(fits, key=lambda found: found[0], default=(0.0, token))
            if best > BETTER * same and is_denied(claim, token) == is_denied(chunk, opposite):
                yield Contrast(kind, token.text, opposite.text)


def _inverted(claim: Side, chunk: Side) -> float:
    """Return the share of pairs of stems, each once on both sides, that stand in the other order."""
    ours, theirs = ([t.stem for t in side.tokens if t.content] for side in (claim, chunk))
    shared = [known for known in ours if ours.count(known) == 1 and theirs.count(known) == 1]
    places = [theirs.index(known) for known in shared]
    pairs = [first > second for first, second in combinations(places, 2)]
    return sum(pairs) / len(pairs) if pairs else 0.0


_RULES: tuple[Callable[[Side, Side, frozenset[str]], Iterator[Contrast]], ...] = (
    *(_negations, _numbers, _units, _name_words, _turned),
)
"""Each is given the sentence's side, the chunk's, and the stems of all chunks looked at."""
