"""Facts of one sentence of the evidence that are crossed: the number of one is given with the words of another.

"Adults pay 12 euros, students 8 euros" states two facts, of which the second leaves out the verb. Facts are told apart
at commas, semicolons and conjunctions, each with a number or name of its own. A sentence is about the fact of which it
has words that no other fact has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from itertools import product

from syncheck.contrasts.amounts import SCALES
from syncheck.contrasts.coordination import joins
from syncheck.contrasts.differences import Difference, Found, is_same_name, role
from syncheck.contrasts.grammar import CALENDAR, CONJUNCTIONS, DATES
from syncheck.contrasts.misplaced import is_beyond, is_bound
from syncheck.contrasts.opposites import OPPOSITES, TRADE
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import Token
from syncheck.contrasts.units import UNITS
from syncheck.results.types import ContrastKind

OfKind = Callable[[Token], bool]

COVERED = 0.5
"""Least share of a fact's own words that a sentence has which is about it."""
MONEY = frozenset(UNITS[name] for name in ("dollars", "euros", "pence", "pounds", "yen"))
"""Units of prices."""
PAYING = frozenset("cost pay charg price fee".split())
"""Stems of words before a price."""
NEAR = 3
"""Number of words before a number among which they stand."""
SHORT = 3
"""Largest number of words of a part that goes on with the next: "In 2023, ..."."""


@dataclass(frozen=True, slots=True)
class _Fact:
    """The places of the tokens of a fact in the order of the text, and the stems that it alone has."""

    places: tuple[int, ...]
    own: frozenset[str]


def crossed(
    claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText], kind: ContrastKind, of_kind: OfKind
) -> Iterator[Found]:
    """Find items that stand in one fact of the evidence where the sentence has the words of another."""
    items = [place for place, token in enumerate(claim.tokens) if token.stem in chunk.stems and of_kind(token)]
    if not items or (kind == "number" and is_beyond(claim, chunk)):
        return
    facts = _facts(chunk, of_kind)
    for place in items if len(facts) > 1 else ():
        item, held = claim.tokens[place], _held(claim, place, chunk, facts, of_kind)
        told = None if held is None else _told(claim, place, facts, *held)
        if held is None or told is None:
            continue
        beside = {claim.tokens[p].stem for p in _part_of(claim, place)}
        for other in facts[told].places:
            rival = chunk.tokens[other]
            if (
                of_kind(rival)
                and rival.stem not in beside
                and _are_alike(claim, place, chunk, other)
                and (kind != "number" or is_bound(claim.tokens, place) == is_bound(chunk.tokens, other))
                and _is_free(claim, chunk, other, facts, held[0], of_kind)
            ):
                yield Difference(kind, item.text, rival.text), {item.stem}
                break


def _told(
    claim: ParsedText, place: int, facts: Sequence[_Fact], fact: int, words: Sequence[AbstractSet[str]]
) -> int | None:
    """Return the fact that a sentence tells instead of the one that has its item, if any.

    The first fact may have words that hold for all. So its item is out of place if the sentence has words of a later
    fact and lacks some of the first; the item of a later fact, if the sentence has none of that fact's own words.
    """
    others = [n for n, said in enumerate(words) if said and n != fact]
    found = [n for n in others if n] or others
    lacks = any(fact == 0 or not stem[0].isdigit() for stem in facts[fact].own - claim.stems)
    if len(found) != 1 or not lacks or (fact and words[fact]) or _names_own(claim, place, facts[fact]):
        return None
    return found[0] if len(words[found[0]]) >= COVERED * len(facts[found[0]].own) else None


def _is_free(
    claim: ParsedText, chunk: ParsedText, rival: int, facts: Sequence[_Fact], fact: int, of_kind: OfKind
) -> bool:
    """Return True if a sentence lacks a rival, or has it with words of the fact whose item stands in its place."""
    held = [_held(claim, place, chunk, facts, of_kind) for place in claim.places.get(chunk.tokens[rival].stem, ())]
    return not held or any(found is not None and found[1][fact] for found in held)


def crossed_opposites(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Found]:
    """Find words that stand in one fact, where the sentence has the words of another, which has their opposite."""
    for token in claim.tokens:
        if not token.content or token.stem not in chunk.stems or token.clause in claim.negative_clauses:
            continue
        for kind, opposites in OPPOSITES.get(token.word, ()):
            if token.word in DATES | TRADE or (opposites.isdisjoint(chunk.words) and opposites.isdisjoint(claim.words)):
                continue
            if _is_listed(chunk, token.stem, opposites):
                continue
            if not any(other.word in opposites and chunk.denies(other) for other in chunk.tokens):
                of_kind = partial(_is_either, stem=token.stem, opposites=opposites)
                yield from crossed(claim, chunk, sides, kind=kind, of_kind=of_kind)


def _is_listed(chunk: ParsedText, item: str, opposites: frozenset[str]) -> bool:
    rivals = [place for place, token in enumerate(chunk.tokens) if token.word in opposites]
    return any(joins(chunk, place, rival) for place in chunk.places[item] for rival in rivals)


def _is_either(token: Token, stem: str, opposites: frozenset[str]) -> bool:
    return token.stem == stem or token.word in opposites


def _held(
    claim: ParsedText, place: int, chunk: ParsedText, facts: Sequence[_Fact], of_kind: OfKind
) -> tuple[int, list[frozenset[str]]] | None:
    """Return the only fact that has an item of the sentence, and which words of each fact the sentence has."""
    item = claim.tokens[place]
    if not of_kind(item):
        return None
    holders = [n for n, fact in enumerate(facts) if any(chunk.tokens[p].stem == item.stem for p in fact.places)]
    said = _said(claim, place, of_kind) - {item.stem}
    return (holders[0], [fact.own & said for fact in facts]) if len(holders) == 1 else None


def _said(claim: ParsedText, place: int, of_kind: OfKind) -> frozenset[str]:
    """Return the stems of what a sentence says of an item."""
    return frozenset(claim.tokens[p].stem for p in _part_of(claim, place) if _tells(claim.tokens[p], of_kind))


def _part_of(claim: ParsedText, place: int) -> list[int]:
    """Return the places of the part of a sentence that an item is in, with a short one before it."""
    found: list[int] = []
    for part in claim.parts:
        found = [*found, *part] if len(found) <= SHORT else list(part)
        if place in part:
            break
    return found


def _names_own(claim: ParsedText, place: int, fact: _Fact) -> bool:
    """Return True if the word that follows a number, or its unit, is one that its fact alone has."""
    after = [t for t in _after(claim, claim.tokens[place]) if t.word not in UNITS and t.word not in SCALES]
    return bool(after) and after[0].stem in fact.own


def _tells(token: Token, of_kind: OfKind) -> bool:
    return (token.content or token.number) and not of_kind(token) and token.word not in SCALES


def _facts(side: ParsedText, of_kind: OfKind) -> list[_Fact]:
    """Return the facts, each with an item of a kind.

    A part without an item goes on with the fact before it, or belongs to the next if there is none or it begins with a
    conjunction.
    """
    merged: list[list[int]] = []
    waiting: list[int] = []
    for part in side.parts:
        if any(of_kind(side.tokens[p]) for p in part):
            merged.append([*waiting, *part])
            waiting = []
        elif merged and not waiting and side.tokens[part[0]].word not in CONJUNCTIONS:
            merged[-1] += part
        else:
            waiting += part
    if merged:
        merged[-1] += waiting
    stems = [{side.tokens[p].stem for p in part if _tells(side.tokens[p], of_kind)} for part in merged]
    return [
        _Fact(tuple(part), frozenset(own.difference(*(other for other in stems if other is not own))))
        for part, own in zip(merged, stems, strict=True)
    ]


def _are_alike(claim: ParsedText, place: int, chunk: ParsedText, other: int) -> bool:
    """Return True if two numbers may count the same, or two names stand in the same role."""
    ours, theirs = claim.tokens[place], chunk.tokens[other]
    if not ours.number and not (ours.name and theirs.name):
        return any(theirs.word in opposites for _, opposites in OPPOSITES.get(ours.word, ()))
    if not ours.number:
        pairs = product(claim.name_at(place), chunk.name_at(other))
        is_same = any(is_same_name(claim, first, chunk, second) for first, second in pairs)
        of_one_sort = (ours.word in CALENDAR) == (theirs.word in CALENDAR)
        return not is_same and of_one_sort and role(claim, place) == role(chunk, other) != ""
    if (":" in ours.word) != (":" in theirs.word):
        return False
    first, second = _counted(claim, ours), _counted(chunk, theirs)
    if first is None or second is None:
        counted = first or second
        if counted is not None and _unit(counted) and _is_price(*((claim, ours) if first is None else (chunk, theirs))):
            return _unit(counted) in MONEY
        used = {_unit(found) for t in chunk.tokens if t.number and (found := _counted(chunk, t)) is not None}
        return counted is None or _unit(counted) is None or used <= {_unit(counted)}
    return first.stem == second.stem or (_unit(first) is not None and _unit(first) == _unit(second))


def _is_price(side: ParsedText, number: Token) -> bool:
    """Return True if a number without a unit stands shortly after a word such as "costs"."""
    before = [token.stem for token in side.tokens if token.start < number.start and token.clause == number.clause]
    return not PAYING.isdisjoint(before[-NEAR:])


def _unit(token: Token) -> object:
    return UNITS.get(token.word)


def _counted(side: ParsedText, number: Token) -> Token | None:
    """Return the content word directly after a number, as in "5 euros" and "5 million euros"."""
    end = number.start + len(number.text)
    for token in _after(side, number):
        if side.text[end : token.start].strip(" -"):
            return None
        if token.word not in SCALES:
            return token if token.content and not token.number else None
        end = token.start + len(token.text)
    return None


def _after(side: ParsedText, first: Token) -> list[Token]:
    """Return the tokens after one in the order of the text."""
    return sorted((token for token in side.tokens if token.start > first.start), key=lambda token: token.start)
