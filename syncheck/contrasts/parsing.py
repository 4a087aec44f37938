"""Shallow parsing of an English text: words and numbers in order, names, what is denied, and the facts stated.

A fact is what a text states of something, as subject, relation, value and polarity; all rules compare these records.
"Adults pay 12 euros, students 8 euros" states two facts of the relation *pay*, with the values 12 and 8 euros.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from syncheck.contrasts.lexicon import CLASSES, Token, between, is_year, tokens_of
from syncheck.contrasts.quantities import BOUNDED, UNIT_KINDS, Quantity, agree, quantities_in, rounds, size_of
from syncheck.text.notation import WrittenOut

ABOUT = 0.05  # largest relative difference of a number that is "about" another, and is written as that one
ACROSS = 6  # number of words that a comma or conjunction counts for in the distance of a word from a value
GRADUAL_KINDS = UNIT_KINDS - {"money", "share"}  # what takes every value between the ends of a range
SHARED = 0.4  # weight of a word that several facts share, where one that a fact alone has counts 1

_BETWEEN_ENDS = re.compile(r"\s*(?:-|\u2013|\b(?:to|and|until|till)\b)\s*")
_PART_ENDS = re.compile(r"[,;:()\u2013\u2014]")


@dataclass(frozen=True)
class ParsedText:
    """A text with its tokens in order, and what is derived from them at first use."""

    notation: WrittenOut
    tokens: tuple[Token, ...]

    @property
    def text(self) -> str:
        """The text in one notation, where the tokens have their places."""
        return self.notation.text

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of all words."""
        return frozenset(token.stem for token in self.tokens)

    @cached_property
    def words(self) -> frozenset[str]:
        """All words."""
        return frozenset(token.word for token in self.tokens)

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of the content words."""
        return frozenset(token.stem for token in self.tokens if token.content)

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """Indices of the tokens with each stem."""
        places: dict[str, list[int]] = {}
        for place, token in enumerate(self.tokens):
            places.setdefault(token.stem, []).append(place)
        return places

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Numbers with their units, dates and times."""
        return tuple(quantities_in(self.text, self.tokens))

    @cached_property
    def quantity_places(self) -> frozenset[int]:
        """Indices of their tokens, with words of a bound such as "at least"."""
        return frozenset(place for one in self.quantities for place in self.bounded(one))

    def bounded(self, one: Quantity) -> range:
        """Find the places of a quantity with the words of its bound, as in "at least 5" and "18 or older"."""
        words = CLASSES["more"] | CLASSES["less"]
        first, last = one.first, one.last
        if one.bound in BOUNDED:
            while 0 < first and self.tokens[first - 1].word in words | CLASSES["bounding"]:
                first -= 1
            after = [token.word for token in self.tokens[last + 1 : last + 3]]
            last += 2 * (len(after) > 1 and after[0] in ("or", "and") and after[1] in words)
        return range(first, last + 1)

    @cached_property
    def name_spans(self) -> tuple[range, ...]:
        """Indices of the tokens of each name, of one or more words."""
        return tuple(dict.fromkeys(self.name_at(place) for place, token in enumerate(self.tokens) if token.name))

    @cached_property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the tokens between commas and conjunctions."""
        parts: list[list[int]] = []
        for place in range(len(self.tokens)):
            if not parts or _begins_part(self.text, *self.tokens[place - 1 : place + 2]):
                parts.append([])
            parts[-1].append(place)
        return tuple(map(tuple, parts))

    @cached_property
    def part_of(self) -> Mapping[int, int]:
        """Number of each token's part."""
        return {place: number for number, part in enumerate(self.parts) for place in part}

    @cached_property
    def names(self) -> frozenset[str]:
        """Words that are names, or parts of names."""
        return frozenset(token.word for token in self.tokens if token.name)

    @cached_property
    def plain_words(self) -> frozenset[str]:
        """Words that are written without a capital."""
        return frozenset(token.word for token in self.tokens if token.text.islower())

    @cached_property
    def negators(self) -> tuple[int, ...]:
        """Indices of the words that deny what follows, except "no more than" and an answer's "No,"."""
        return tuple(place for place in range(len(self.tokens)) if self._denies(place))

    def denied(self, place: int) -> bool:
        """Tell whether any word of a token's part denies."""
        return any(self.part_of[n] == self.part_of[place] for n in self.negators)

    def stems_at(self, places: Iterable[int]) -> frozenset[str]:
        """Collect the stems of the tokens at some places."""
        return frozenset(self.tokens[place].stem for place in places)

    def held_by(self, other: ParsedText, without: AbstractSet[str] = frozenset()) -> float:
        """Compute the share of the content stems, except some, that another text has; 0 if there are none."""
        content = self.content - without
        return len(content & other.stems) / len(content) if content else 0.0

    def with_names(self, names: AbstractSet[str], plain: AbstractSet[str]) -> ParsedText:
        """Correct which first words of clauses, written with a capital anyway, are names, by how others write them."""
        tokens, clause = list(self.tokens), -1
        for place, token in enumerate(tokens):
            is_known = token.text[0].isupper() and token.word not in plain and (token.name or token.word in names)
            if token.clause != clause and is_known != token.name:
                tokens[place] = replace(token, name=is_known)
            clause = token.clause
        return self if tuple(tokens) == self.tokens else ParsedText(self.notation, tuple(tokens))

    def name_at(self, place: int) -> range:
        """Find the places of the name, of one or more words, that a token belongs to."""
        first = last = place
        while first > 0 and self.tokens[first - 1].name and self._is_beside(first - 1):
            first -= 1
        while last + 1 < len(self.tokens) and self.tokens[last + 1].name and self._is_beside(last):
            last += 1
        return range(first, last + 1)

    def written(self, first: int, last: int) -> str:
        """Quote the text from one token to another as it was written."""
        return self.notation.quoted(self.tokens[first].start, self.tokens[last].end)

    def _is_beside(self, place: int) -> bool:
        return not between(self.text, *self.tokens[place : place + 2])

    def _denies(self, place: int) -> bool:
        token, after = self.tokens[place], self.tokens[place + 1 : place + 3]
        if token.word not in CLASSES["negators"] and not token.word.endswith("n't"):
            return False
        if after and after[0].word in CLASSES["than"] and (len(after) == 1 or after[1].word == "than"):
            return False
        if after and after[0].word in ("only", "exceed", "necessarily"):
            return False
        return not (token.word == "no" and self.text[token.end :].startswith((",", ".")))


def parse(text: str) -> ParsedText:
    """Read a text."""
    notation = WrittenOut.of(text)
    return ParsedText(notation, tuple(tokens_of(notation.text)))


def _begins_part(text: str, *around: Token) -> bool:
    """Tell whether the second of two or three tokens begins a part; "15, 1915" and "30 and 40" are one part."""
    before, token, *after = around
    is_joined = token.word in CLASSES["joining"]
    following = after[0] if is_joined and after else token
    if before.number and following.number and is_year(before) <= is_year(following):
        return False
    has_mark = _PART_ENDS.search(text, before.end, token.start) is not None
    return is_joined or token.clause != before.clause or has_mark


@dataclass(frozen=True, slots=True)
class Fact:
    """One value in a text, with what it is stated of."""

    span: range  # the places of the value's tokens
    subject: frozenset[str]  # stems of what is said of this value alone
    relation: frozenset[str]  # stems of what is said of the other values of its clause as well
    denied: bool
    quantity: Quantity | None = None

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
    its place: "adults pay 12 euros, students 8".
    """
    taken = {place for value in values for place in value}
    counted = {stem for one in quantities for stem in one.counted}
    owned: list[set[int]] = [set() for _ in values]
    shared: list[set[str]] = [set() for _ in values]
    for place, token in enumerate(side.tokens):
        if place in taken or not (token.content or token.number):
            continue
        distances = []
        for n, value in enumerate(values):
            if side.tokens[value[0]].clause == token.clause:
                end = value[0] if place < value[0] else value[-1]
                distances.append((abs(place - end) + ACROSS * abs(side.part_of[place] - side.part_of[end]), n))
        if distances:
            owned[min(distances)[1]].add(place)
    for clause in {side.tokens[value[0]].clause for value in values}:
        first, *others = (n for n, value in enumerate(values) if side.tokens[value[0]].clause == clause)
        if others:
            fewest = min(sum(place < values[m][0] for place in owned[m]) for m in others)
            head = sorted(place for place in owned[first] if place < values[first][0])[fewest:]
            owned[first] -= set(head)
            for m in (first, *others):
                shared[m] |= side.stems_at(head)
    facts = []
    for n, value in enumerate(values):
        stems = side.stems_at(owned[n])
        relation = shared[n] | (counted & side.stems_at(set().union(*owned)) if len(values) > 1 else set())
        of = quantities[n] if quantities else None
        facts.append(Fact(value, stems - relation, frozenset(relation), side.denied(value[0]), of))
    return facts


def quantity_facts(side: ParsedText, quantities: Sequence[Quantity]) -> list[Fact]:
    """Build the facts whose values are some of the quantities."""
    return facts_of(side, [range(one.first, one.last + 1) for one in quantities], quantities)


def in_notation_of(claim: ParsedText, sides: Sequence[ParsedText]) -> str:
    """Rewrite a sentence so that its quantities are written as in texts that have the same ones.

    "It starts at half past two." beside "Doors open at 14:30." is "It starts at 14:30.", and "About 40 % voted." beside
    "41.2 % voted." is "41.2 % voted.", if no other number may be meant.
    """
    end, pieces = 0, []
    for one in claim.quantities:
        others = [(side, other) for side in sides for other in side.quantities]
        same = [_written(side, other, of=one) for side, other in others if _is_said_by(one, other)]
        near = {_written(side, other) for side, other in others if not same and _is_near(one, other)}
        first, last = _ends(claim, one, with_bound=len(near) == 1)
        put = same[0] if same else near.pop() if len(near) == 1 else ""
        if first >= end and put and claim.text[first:last].lower() not in map(str.lower, same):
            pieces += [claim.text[end:first], put if first else put[0].upper() + put[1:]]
            end = last
    return "".join((*pieces, claim.text[end:])) if pieces else claim.notation.source


def _written(side: ParsedText, one: Quantity, *, of: Quantity | None = None) -> str:
    """Quote a quantity in one notation; of a range of hours, only the end that equals ``of``."""
    quoted = side.text[slice(*_ends(side, one))]
    if of is None or one.kind != "clock" or one.bound != "range" or of.bound:
        return quoted
    low, _, high = _BETWEEN_ENDS.sub("\n", quoted.removeprefix("between ").removeprefix("from "), count=1).partition(
        "\n"
    )
    return high if math.isclose(of.low, one.high) else low


def _ends(side: ParsedText, one: Quantity, *, with_bound: bool = False) -> tuple[int, int]:
    """Find where a quantity begins and ends, with its sign, the word before a range and the full stop of "p.m."."""
    before = side.tokens[one.first - 1].word if one.first else ""
    has_word = (one.bound == "range" and before in ("between", "from")) or before == "minus"
    places = range(one.first, one.last + 1)
    if with_bound:
        has_word, places = one.bound == "about" and before in CLASSES["about"], side.bounded(one)
    start, end = side.tokens[places[0] - has_word].start, side.tokens[places[-1]].end
    start -= one.low < 0 and one.bound not in BOUNDED and side.text[start - 1 : start] == "-"
    return start, end + (side.tokens[one.last].text[1:2] == "." and side.text[end : end + 2] == ". ")


def _is_said_by(claim: Quantity, other: Quantity) -> bool:
    """Tell whether a quantity of the evidence says what one of a claim says, whatever both are said of."""
    is_end = any(math.isclose(claim.low, end) for end in (other.low, other.high))
    if other.bound == "range" and not claim.bound and is_end:
        return claim.kind == "clock"  # "opens at 8 a.m." beside "8:00 to 17:00"; other numbers are said as they are
    if claim.kind == other.kind == "date":
        return claim.date == other.date
    if claim.kind == other.kind == "clock":
        return agree(claim, other)
    if not _are_alike(claim, other) or claim.bound not in ("", other.bound):
        return False
    if other.bound == "range" and not claim.bound:
        return claim.kind in GRADUAL_KINDS and agree(claim, other)
    is_rounded = claim.bound == "" == other.bound and rounds(claim.low, other.low)
    return is_rounded or all(math.isclose(*ends) for ends in ((claim.low, other.low), (claim.high, other.high)))


def _are_alike(claim: Quantity, other: Quantity) -> bool:
    """Tell whether two quantities are of one kind and rate, and in the same unit or one that it is converted to."""
    is_alike = (claim.kind == other.kind and claim.rate == other.rate) or {claim.kind, other.kind} == {"bare", "count"}
    is_measured = claim.unit == other.unit or (claim.kind in UNIT_KINDS and agree(claim, other))
    return is_alike and claim.change == other.change and is_measured


def _is_near(claim: Quantity, other: Quantity) -> bool:
    """Tell whether an exact number is what "about 40", "more than 40" or "fewer than 40" is said of.

    Of more and fewer, it is one that 40 rounds. "About half" is said of too many.
    """
    is_fraction = claim.kind == "share" and claim.stop > claim.last
    if is_fraction or other.bound != "" or not _are_alike(claim, other):
        return False
    if claim.bound == "about":
        return math.isclose(claim.low, other.low, rel_tol=ABOUT)
    size, step = size_of(claim), (1 if claim.bound == "lower" else -1)
    exact, limit = other.low / size, claim.number
    if claim.bound not in ("lower", "upper") or not step * limit < step * exact or exact <= 0:
        return False
    units = (10.0 ** (math.floor(math.log10(exact)) - digit) for digit in range(2))
    return any(math.isclose(step * math.floor(step * exact / unit) * unit, limit) for unit in units)
