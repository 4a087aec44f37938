"""Rules of contrasts: each compares the facts of a sentence with those of a chunk, and yields what differs, in words.

A new rule is a function ``(claim, chunk, sides)`` that yields differences, and an entry of :data:`RULES`; its line in
the ledger (``syncheck/assets/contrasts/ledger.txt``) says beside which verdicts of the reader it speaks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import combinations, pairwise, permutations
from math import isclose
from typing import Literal, cast

from syncheck.base.files import asset_lines
from syncheck.contrasts.lexicon import CLASSES, IRREGULAR, SYMBOLS
from syncheck.contrasts.parsing import Fact, ParsedText, facts_of, quantity_facts
from syncheck.contrasts.quantities import BOUNDED, NOON, Quantity, agree, are_comparable
from syncheck.reading.tables import cells_in
from syncheck.results.types import ContrastKind

HELD = 0.6  # share of a sentence's other content stems that a chunk must have to contradict it
NEARLY_HELD = 0.75  # the same where the sentence differs from the chunk by no word but a negator
REPEATED = 0.8  # share of a sentence's other words in the same order from which another number stands out
ELSEWHERE = 0.34  # share of a sentence's other stems from which a chunk with its value may be what it is about
MOST_COUNTED = 144  # largest product of two numbers that may be a count, as of "two rows of six"
ANSWERED = re.compile(r"\?\s+(Yes|No)\b")  # end of a question with its answer
NAMED = 0.5  # share of the words of a row's subject by which a sentence names it
REACH = 4  # number of words beside a verb, a negator or a bound that belong to it


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference; a side without a word for it is ``""``."""

    kind: ContrastKind
    sentence: str
    evidence: str
    rule: str = field(default="", compare=False)  # name of the rule that found it


Rule = Callable[[ParsedText, ParsedText, Sequence[ParsedText]], Iterator[Difference]]


def numbers(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Difference]:
    """Find quantities that no chunk has, in a sentence that repeats a chunk with another quantity."""
    if not claim.quantities or not chunk.quantities or _repeated(claim, chunk) < REPEATED:
        return
    for fact, one, same, rivals in _compared(claim, chunk):
        own = claim.stems_at(fact.span)
        others = [side for side in sides if side is not chunk and claim.held_by(side, own) >= ELSEWHERE]
        is_elsewhere = any(agree(one, quantity) for side in others for quantity in side.quantities)
        rival = _nearest(fact, [rival for rival in rivals if _are_rivals(claim, fact, chunk, rival)])
        if rival is not None and not same and not is_elsewhere and not _is_computed(claim, one, chunk):
            yield _differ(claim, fact, chunk, rival)


def crossed_numbers(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Difference]:
    """Find quantities that a chunk, but no row of a table, states of another thing than the sentence does."""
    for fact, _, same, rivals in _compared(claim, chunk) if _row_in(chunk) is None else ():
        rival, nearest = (_nearest(fact, facts) for facts in (rivals, same))
        if rival is None or nearest is None or claim.held_by(chunk, claim.stems_at(fact.span)) < HELD:
            continue
        is_told = rival.quantity is not None and any(agree(other, rival.quantity) for other in claim.quantities)
        if not is_told and nearest.subject and _is_closer(fact.stems, rival, nearest):
            yield _differ(claim, fact, chunk, rival)


def _compared(claim: ParsedText, chunk: ParsedText) -> Iterator[tuple[Fact, Quantity, list[Fact], list[Fact]]]:
    """Yield the facts of a sentence that have a quantity, with those of a chunk that agree, and that may not."""
    for one in claim.quantities:
        mates = [other for other in claim.quantities if other is one or are_comparable(one, other)]
        theirs = [other for other in chunk.quantities if are_comparable(one, other) or agree(one, other)]
        facts = quantity_facts(chunk, theirs)
        same = [fact for fact in facts if fact.quantity is not None and agree(one, fact.quantity)]
        fact = next(fact for fact in quantity_facts(claim, mates) if fact.quantity is one)
        yield fact, one, same, [other for other in facts if other not in same]


def _nearest(fact: Fact, others: Sequence[Fact]) -> Fact | None:
    """Find the fact that is most about the same as another."""
    return max(others, key=lambda other: other.about(fact.stems), default=None)


def _is_closer(said: frozenset[str], rival: Fact, nearest: Fact) -> bool:
    """Tell whether a sentence has more of the words that one fact has alone than of another's."""
    return len(said & (rival.subject - nearest.subject)) > len(said & (nearest.subject - rival.subject))


def _repeated(claim: ParsedText, chunk: ParsedText) -> float:
    """Compute the share of a sentence's words that a chunk has in the same order.

    Quantities are left out, with "of", "about" and the like before them, and pronouns that may stand for what the chunk
    names.
    """
    pronouns, leading = CLASSES["pronouns"] - chunk.words, CLASSES["leading"] | CLASSES["about"]
    ours, theirs = (
        [
            token.stem
            for place, token in enumerate(side.tokens)
            if place not in side.quantity_places
            and token.word not in pronouns
            and not (token.word in leading and place + 1 in side.quantity_places)
        ]
        for side in (claim, chunk)
    )
    return in_order(ours, theirs) / len(ours) if ours else 0.0


def in_order(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """Count the items that two sequences share in the same order."""
    return sum(block.size for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks())


def _are_rivals(claim: ParsedText, fact: Fact, chunk: ParsedText, rival: Fact) -> bool:
    """Tell whether two quantities stand in the same place, so that one excludes the other."""
    if rival.denied != fact.denied or not _beside(claim, fact) & _beside(chunk, rival):
        return False
    bounds = {fact.quantity.bound if fact.quantity else "", rival.quantity.bound if rival.quantity else ""}
    # The chunk must say the rest in the same clause: "drones under 250 grams may fly; heavier ones need a licence".
    is_opposite = "lower" in bounds and bool(bounds & {"upper", "up to"})
    return not is_opposite or len(fact.stems & rival.stems) >= HELD * len(fact.stems)


def _beside(side: ParsedText, fact: Fact) -> frozenset[tuple[int, str]]:
    """Find the words before a value (-1), one or a preposition and one, and that after it (1), "" at an end."""
    value = fact.span if fact.quantity is None else side.bounded(fact.quantity)
    before = value[0] - 1
    has_preposition = before > 0 and side.tokens[before].word in CLASSES["leading"]
    around = ((-1, before), (-1, before - has_preposition), (1, value[-1] + 1))
    return frozenset((step, side.tokens[n].stem if 0 <= n < len(side.tokens) else "") for step, n in around)


def _is_computed(claim: ParsedText, one: Quantity, chunk: ParsedText) -> bool:
    """Tell whether a number may follow from others: by a ratio, fraction or product, or in other words by a sum."""
    stated = [q for q in (*chunk.quantities, *claim.quantities) if q is not one and q.kind not in ("ordinal", "code")]
    others = {q.number for q in stated}
    loose = {
        token.word
        for side in (claim, chunk)
        for place, token in enumerate(side.tokens)
        if not any(place in range(q.first, q.last + 1) for q in side.quantities if q.kind in ("share", "ordinal"))
    }
    pairs = list(combinations(others, 2))
    made = [a * b for a, b in pairs if a * b <= MOST_COUNTED]
    if not CLASSES["fractions"].isdisjoint(loose):
        made += [value * share for value in others for share in (1 / 2, 1 / 3, 2 / 3, 1 / 4, 3 / 4, 2)]
    if any(q.kind == "share" for q in stated):
        made += [a * b / 100 for a, b in pairs]
    if one.kind == "share":
        made += [100 * min(pair) / max(pair) for pair in pairs if min(pair) > 0]
    if not claim.content - claim.stems_at(range(one.first, one.last + 1)) <= chunk.stems:
        if one.kind == "year" and not CLASSES["later"].isdisjoint(chunk.words):
            return True
        made += [m for a, b in pairs for m in (a + b, abs(a - b), a * b)]
    return any(isclose(one.number, m, rel_tol=1e-3) for m in made)


def _differ(claim: ParsedText, fact: Fact, chunk: ParsedText, rival: Fact) -> Difference:
    """Name the words that differ: bounds or units of equal numbers, or else numbers."""
    ours, theirs = fact.quantity, rival.quantity
    assert ours is not None and theirs is not None
    both = _number_of(claim, ours), _number_of(chunk, theirs)
    bounds, units = ((of(claim, ours), of(chunk, theirs)) for of in (_bound_of, _unit_of))
    if ours.number == theirs.number and all(bounds) and bounds[0] != bounds[1]:
        return Difference("comparison", *bounds)
    if ours.number == theirs.number and all(units) and units[0] != units[1]:
        return Difference("unit", *units)
    words = {claim.tokens[ours.first].word, chunk.tokens[theirs.first].word}
    if "date" in (ours.kind, theirs.kind) or not words.isdisjoint(NOON):
        both = claim.written(ours.first, ours.last), chunk.written(theirs.first, theirs.last)
    return Difference("number", *both)


def _bound_of(side: ParsedText, one: Quantity) -> str:
    places = side.bounded(one)
    if places[0] < one.first:
        return side.written(places[0], one.first - 1)
    return side.written(one.last + 1, places[-1]) if one.last < places[-1] else ""


def _number_of(side: ParsedText, one: Quantity) -> str:
    """Quote a number, with its sign."""
    written = side.written(one.first, one.stop - 1)
    signed = side.notation.quoted(max(0, side.tokens[one.first].start - 1), side.tokens[one.stop - 1].end)
    return signed if one.low < 0 and one.bound not in BOUNDED and len(signed) > len(written) else written


def _unit_of(side: ParsedText, one: Quantity) -> str:
    """Name the unit, the half of the day or the sign of a quantity."""
    if one.last >= one.stop:
        return side.written(one.stop, one.last)
    return side.written(one.first, one.first) if side.tokens[one.first].text in SYMBOLS else ""


OppositeKind = Literal["antonym", "comparison", "quantifier"]
_Opposites = Mapping[str, tuple[tuple[OppositeKind, frozenset[str]], ...]]


def _opposed() -> tuple[_Opposites, frozenset[frozenset[str]], frozenset[str]]:
    """Read the packaged opposites, those that exclude each other, and the converse verbs."""
    opposites: dict[str, list[tuple[OppositeKind, frozenset[str]]]] = {}
    exclusive: set[frozenset[str]] = set()
    converse: set[str] = set()
    for name, line in asset_lines("contrasts/opposites.txt"):
        sides = [frozenset(word.replace("_", " ") for word in group.split()) for group in line.split("/")]
        every = frozenset().union(*sides)
        kind = cast(OppositeKind, name if name in ("comparison", "quantifier") else "antonym")
        converse |= every if name == "converse" else frozenset()
        for side in sides:
            exclusive |= {every - side} if name == "exclusive" else set()
            for word in side:
                opposites.setdefault(word, []).append((kind, every - side))
    by_word = {word: tuple(dict.fromkeys(pairs)) for word, pairs in opposites.items()}
    return by_word, frozenset(exclusive), frozenset(converse)


OPPOSITES, EXCLUSIVE, TRADE = _opposed()
"""Opposites of each word, by kind; words of one class, such as colours, of which one does not say that another is
false; verbs of which one always implies the other: A lends to B, B borrows from A."""
CONVERSE = frozenset("win wins won winning lose loses lost losing before after".split())
"""Words whose opposite says the same from the other side: "A lost to B", "B won"; "A before B", "B after A"."""


def opposites(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Difference]:
    """Find words in whose place the evidence has their opposite, where neither or both are denied."""
    for place, token in enumerate(claim.tokens):
        if token.name or place in claim.quantity_places or token.word in TRADE | CONVERSE:
            continue
        for kind, others in OPPOSITES.get(token.word, ()):
            if others & claim.words or others.isdisjoint(chunk.words):
                continue
            rival = _opposite(claim, place, chunk, others)
            if rival is None:
                continue
            # "almost all", and "may not" beside "must not", do not exclude each other
            before = {side.tokens[n - 1].word for side, n in ((claim, place), (chunk, rival.span[0])) if n}
            is_relative = rival.denied or not before.isdisjoint(("not", *CLASSES["about"]))
            if kind != "quantifier" or not is_relative:
                yield Difference(kind, claim.written(place, place), chunk.written(rival.span[0], rival.span[-1]))
                break


def _opposite(claim: ParsedText, place: int, chunk: ParsedText, others: frozenset[str]) -> Fact | None:
    """Find the fact of a chunk that has the opposite of a word, said of the same, if there is one."""
    token = claim.tokens[place]
    rest = claim.content - {token.stem}
    if _clouds(claim, chunk) or "than" in claim.words & chunk.words or len(rest) < 2:
        return None
    if claim.held_by(chunk, {token.stem}) < HELD or ("if" in claim.words and claim.negators != chunk.negators):
        return None
    own = {pair for _, pair in OPPOSITES[token.word]}
    either = [
        range(n, n + 1)
        for n, t in enumerate(chunk.tokens)
        if not t.name and (t.word in others or t.stem == token.stem or own & {p for _, p in OPPOSITES.get(t.word, ())})
    ]
    facts, (fact,) = facts_of(chunk, either), facts_of(claim, [range(place, place + 1)])
    rivals = [other for other in facts if chunk.tokens[other.span[0]].word in others]
    same = [other for other in facts if other not in rivals]
    rival, nearest = _nearest(fact, rivals), _nearest(fact, same)
    if rival is None or rival.denied != fact.denied or (others in EXCLUSIVE and (same or fact.denied)):
        return None
    if any(abs(other.span[0] - rival.span[0]) == 2 for other in same):  # "the opening and closing galas"
        return None
    is_meant = rival.about(fact.stems) >= 1 if nearest is None else _is_closer(fact.stems, rival, nearest)
    return rival if is_meant else None


def _clouds(claim: ParsedText, chunk: ParsedText) -> bool:
    """Tell whether one side has a condition, an exception or the like that the other lacks."""
    return bool((claim.words ^ chunk.words) & CLASSES["clouding"])


def negations(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Difference]:
    """Find statements that only one side denies."""
    ours, theirs = claim.negators, chunk.negators
    if bool(ours) == bool(theirs) or max(len(ours), len(theirs)) > 1 or _clouds(claim, chunk):
        return
    denier, other, place = (claim, chunk, ours[0]) if ours else (chunk, claim, theirs[0])
    head = next((token for token in denier.tokens[place + 1 : place + REACH + 1] if token.content), None)
    said = denier.stems_at(n for n in denier.parts[denier.part_of[place]] if denier.tokens[n].content)
    is_told = min(claim.held_by(chunk), len(said & other.content) / max(1, len(said))) >= NEARLY_HELD
    if head is None or head.stem not in other.stems or len(denier.places[head.stem]) > 1 or not is_told:
        return
    is_counted_alike = {q.low for q in claim.quantities} <= {q.low for q in chunk.quantities}
    turned = (pair for token in denier.tokens for _, pair in OPPOSITES.get(token.word, ()))
    if len(claim.content) > 1 and is_counted_alike and all(pair.isdisjoint(other.words) for pair in turned):
        words = denier.written(place, place)
        yield Difference("negation", words if ours else "", "" if ours else words)


def answers(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Difference]:
    """Find statements that the answer to a question denies: "Is parking free? No."."""
    answered = ANSWERED.search(chunk.text)
    if answered is None:
        return
    asked = [token for token in chunk.tokens if token.start < answered.start()]
    is_asked = len(claim.content & {token.stem for token in asked}) >= NEARLY_HELD * len(claim.content)
    is_told = is_asked and all(token.stem in claim.stems for token in asked if token.content)
    is_turned = bool(claim.negators) != any(chunk.tokens[place] in asked for place in chunk.negators)
    if is_told and is_turned == (answered[1] == "Yes") and not _clouds(claim, chunk):
        yield Difference("negation", claim.written(*claim.negators[:1] * 2) if claim.negators else "", answered[1])


def exchanged(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Difference]:
    """Find a verb or comparative whose two sides have changed places."""
    if len(claim.negators) != len(chunk.negators):
        return
    for place, token in enumerate(claim.tokens):
        may_join = token.word in IRREGULAR or token.word.endswith(("ed", "s", "er", "ing"))  # a verb, a comparative
        if not token.content or token.name or not may_join or token.word in CLASSES["symmetric"]:
            continue
        ours = _sides_of(claim, place)
        others = [(other, _sides_of(chunk, other)) for other in chunk.places.get(token.stem, ())]
        if not all(ours) or any(_overlap(ours, theirs) for _, theirs in others):
            continue
        for other, (left, right) in others:
            if _overlap(ours, (right, left)):
                yield Difference("order", _around(claim, place), _around(chunk, other))
                return


_Sides = tuple[frozenset[str], frozenset[str]]


def _overlap(ours: _Sides, theirs: _Sides) -> bool:
    """Tell whether what distinguishes the two sides is on the same sides of both."""
    left, right = ours[0] - ours[1], ours[1] - ours[0]
    other_left, other_right = theirs[0] - theirs[1], theirs[1] - theirs[0]
    return bool(left & other_left) and bool(right & other_right)


def _sides_of(side: ParsedText, place: int) -> _Sides:
    """Collect the stems of who acts and of what is acted on, beside a verb; none for a passive that names no agent."""
    before, after = (side.stems_at(_actors(side, place, step)) for step in (-1, 1))
    by = any(a.word == "by" and not b.number for a, b in pairwise(side.tokens[place + 1 : place + 4]))
    is_passive = not CLASSES["be"].isdisjoint(token.word for token in side.tokens[max(0, place - 2) : place])
    if is_passive and not by and side.tokens[place].word.endswith("ed"):
        return frozenset(), frozenset()
    return (after, before) if by else (before, after)


def _actors(side: ParsedText, place: int, step: int) -> list[int]:
    """Find the places of the content words together on one side of a verb in its part, and of the names there."""
    places: list[int] = []
    for n in range(place + step, place + step * (2 * REACH), step):
        if side.part_of.get(n) != side.part_of[place]:
            break
        if side.tokens[n].content and not side.tokens[n].number:
            places.append(n)
        elif places or abs(n - place) >= REACH:
            break
    part = side.parts[side.part_of[place]]
    return [*places, *(n for n in part if side.tokens[n].name and (n - place) * step > 0)]


def _around(side: ParsedText, place: int) -> str:
    places = [*_actors(side, place, -1), *_actors(side, place, 1)]
    return side.written(min(places), max(places))


def other_rows(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Difference]:
    """Find a cell of one row of a table in a sentence about another row, which has another cell in its place."""
    if claim.negators or not CLASSES["clouding"].isdisjoint(claim.words) or "than" in claim.words:
        return
    rows = [(side, row) for side in sides if (row := _row_in(side)) is not None]
    for (side, row), (other_side, other) in permutations(rows, 2):
        named, unnamed = row[0] - other[0], other[0] - row[0]
        is_named = len(named & claim.stems) >= NAMED * max(1, len(named)) and claim.stems.isdisjoint(unnamed)
        if chunk not in (side, other_side) or not is_named:
            continue
        for column, ours, theirs in _in_one_column(side, row, other_side, other):
            right, wrong = _content(side, ours) - other_side.stems, _content(other_side, theirs) - side.stems
            if not wrong or not wrong <= claim.stems or not right or right & claim.stems:
                continue
            if claim.held_by(other_side, wrong) >= claim.held_by(side, wrong):
                continue
            if len(theirs) == 1 and other_side.tokens[theirs[0]].number and claim.stems.isdisjoint(column):
                continue
            if not any(wrong <= s.stems and claim.held_by(s, wrong) >= ELSEWHERE for s in sides if s is not other_side):
                yield Difference("row", other_side.written(theirs[0], theirs[-1]), side.written(ours[0], ours[-1]))


_Row = tuple[frozenset[str], Sequence[Sequence[int]]]
"""A row of a table: the stems of what it is about, and the places of the tokens of each cell with its column."""


def _row_in(side: ParsedText) -> _Row | None:
    found = cells_in(side.text)
    if found is None:
        return None
    subject, spans = found
    cells = [[n for n, t in enumerate(side.tokens) if start <= t.start and t.end <= end] for start, end in spans]
    stems = frozenset(t.stem for t in side.tokens if t.end <= len(subject) and t.content and not t.number)
    return stems, tuple(filter(None, cells))


def _in_one_column(
    side: ParsedText, row: _Row, other_side: ParsedText, other: _Row
) -> Iterator[tuple[frozenset[str], Sequence[int], Sequence[int]]]:
    """Yield the stems of a column's name, with which cells begin, and the places of the values of two rows in it."""
    for ours in row[1]:
        words = [side.tokens[place].word for place in ours]
        for theirs in other[1]:
            others = [other_side.tokens[place].word for place in theirs]
            shared = next((n for n, (a, b) in enumerate(zip(words, others, strict=False)) if a != b), 0)
            if shared:
                yield _content(side, ours[:shared]), ours[shared:], theirs[shared:]


def _content(side: ParsedText, places: Sequence[int]) -> frozenset[str]:
    """Collect the stems at some places, without initials and words such as "of"."""
    tokens = [side.tokens[place] for place in places]
    return frozenset(t.stem for t in tokens if t.number or (t.content and len(t.word) > 1))


RULES: Mapping[str, Rule] = {
    "numbers": numbers,
    "crossed numbers": crossed_numbers,
    "opposites": opposites,
    "negations": negations,
    "answers": answers,
    "exchanged": exchanged,
    "other rows": other_rows,
}
"""Rules by name, in the order in which they are tried."""
