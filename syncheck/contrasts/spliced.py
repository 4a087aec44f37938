"""The beginning of one fact with the end of another: "Dinner is served in the garden room" where breakfast is.

"Breakfast is served in the garden room, and dinner in the restaurant" states two facts, each of a thing that it begins
with. A sentence that begins with the thing of one fact and goes on with words of another, whose thing it leaves out,
says of one what holds for the other.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from syncheck.contrasts.coordination import is_verb
from syncheck.contrasts.differences import Difference, Found
from syncheck.contrasts.grammar import ARTICLES, BE, CONJUNCTIONS, PREPOSITIONS, STANDING_IN, TITLES
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import Token

COVERED = 0.5
"""Least share of what the evidence says of the other thing that a sentence has."""
DETERMINERS = ARTICLES | frozenset("all each every both our my your".split())
OPENERS = DETERMINERS | CONJUNCTIONS | frozenset("their his her its".split())
"""Words before the thing that a fact begins with."""
NO_THINGS = TITLES | PREPOSITIONS | STANDING_IN | frozenset("other others rest same latter former even against".split())
"""Words that name nothing of their own."""
QUALITIES = frozenset("new old next last first second third further more several many few some early late".split())
"""Words that tell a thing from others of its kind; one is parallel to another only: "the old line, the new line"."""
GIVING = frozenset(
    """
    pay pays paid give gives gave given send sends sent sell sells sold lend lends lent grant grants granted award
    awards awarded offer offers offered hand hands handed charge charges charged
    """.split()
)
TAKING = frozenset(
    """
    receive receives received get gets got earn earns earned collect collects collected buy buys bought borrow borrows
    borrowed obtain obtains obtained
    """.split()
)


@dataclass(frozen=True, slots=True)
class _Fact:
    """A fact of the evidence."""

    side: ParsedText
    tokens: Sequence[Token]
    """In the order of the text."""
    own: Sequence[Token]
    """Those that tell something which no other fact has."""

    @property
    def thing(self) -> Token:
        """The first word that this fact alone has."""
        return self.own[0]

    @property
    def before(self) -> list[str]:
        """Stems between the words that open the fact and its thing, as in "version 3.2"."""
        return [token.stem for token in self.tokens[_opening(self.tokens) : self.tokens.index(self.thing)]]

    @property
    def is_determined(self) -> bool:
        """True if the thing has an article or the like."""
        return any(token.word in DETERMINERS for token in self.tokens[: _opening(self.tokens)])

    def role(self, token: Token) -> str:
        """Return the preposition before a word, with nothing but articles between; "" without one."""
        before = [t.word for t in self.tokens if t.start < token.start and t.word not in ARTICLES]
        return before[-1] if before and before[-1] in PREPOSITIONS else ""


def spliced(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a sentence that says of the thing of one fact what the evidence says of that of another.

    Both facts are in the chunk, or one is there and the other in another chunk.
    """
    if not claim.negative_clauses:
        yield from splices(claim, chunk, sides)


def splices(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Found]:
    """Find the beginning of one fact with the end of another, be it denied that they belong together."""
    if "than" in claim.words or len(claim.once(_parted)) > 1:
        return
    begins = claim.tokens[_opening(claim.tokens) :]
    said = {token.stem for token in claim.tokens if _tells(token)}
    for beside in ([], *([side] for side in sides if side is not chunk)):
        if not any(begins and begins[0].stem in side.once(_beginnings) for side in (chunk, *beside)):
            continue
        facts = _facts([chunk, *beside])
        told = [fact for fact in facts if any(token.stem in said for token in fact.own)]
        if len(told) != 2 or (told[0].side is told[1].side) == bool(beside):
            continue
        if beside and not all(fact.is_determined for fact in told):
            continue
        for first, other in (told, told[::-1]):
            if _changes_hands(claim, other):
                continue
            if _begins_with(claim, first) and _are_parallel(first, other) and _is_of_other(said, first, other):
                about = {first.thing.stem} if other.side is chunk else {token.stem for token in other.own}
                yield Difference("order", _as_written(claim, first.thing), other.thing.text), about
                return


def _changes_hands(claim: ParsedText, other: _Fact) -> bool:
    """Return True if a sentence says of one that it takes what the evidence says the other gives, or the reverse."""
    theirs = {t.word for before, t in itertools.pairwise(other.tokens) if before.word not in BE}  # "was given" takes
    return any(
        not claim.words.isdisjoint(ours) and not theirs.isdisjoint(opposite) and theirs.isdisjoint(ours)
        for ours, opposite in ((GIVING, TAKING), (TAKING, GIVING))
    )


def _begins_with(claim: ParsedText, fact: _Fact) -> bool:
    """Return True if a sentence begins with the thing of a fact."""
    wanted = [*fact.before, fact.thing.stem]
    begins = itertools.islice(claim.tokens, _opening(claim.tokens), None)
    return [token.stem for token in itertools.islice(begins, len(wanted))] == wanted


def _are_parallel(first: _Fact, other: _Fact) -> bool:
    """Return True if two facts begin alike, as with "the tenant" and "the landlord", or "nurses" and "doctors"."""
    if any(fact.thing.word in NO_THINGS or is_verb(fact.thing) for fact in (first, other)):
        return False
    if any(fact.thing.number and not fact.before for fact in (first, other)):
        return False
    if len({fact.thing.word in QUALITIES for fact in (first, other)}) > 1:
        return False
    return first.before == other.before and first.is_determined == other.is_determined


def _is_of_other(said: AbstractSet[str], first: _Fact, other: _Fact) -> bool:
    """Return True if a sentence with the thing of the first fact goes on with what is said of the other thing.

    Where both facts have a word after the same preposition, as in "nurses work in three shifts, doctors in two", that
    word decides.
    """
    missing = [token for token in first.own if token.stem not in said]
    rest = [token.stem for token in other.own[1:]]
    if not missing or not rest or other.thing.stem in said:
        return False
    if any(denial.head in fact.tokens for fact in (first, other) for denial in fact.side.denials):
        return False
    role = first.role(missing[0])
    rival = next((token for token in other.own[1:] if role and other.role(token) == role), None)
    if rival is not None:
        return rival.stem in said
    covered = sum(stem in said for stem in rest) / len(rest)
    if covered >= COVERED and len(missing) == len(first.own) - 1:
        return True
    return rest[-1] in said and (covered == 1 or (covered >= COVERED and missing[-1] == first.own[-1]))


def _as_written(claim: ParsedText, thing: Token) -> str:
    return next(token.text for token in claim.tokens if token.stem == thing.stem)


def _facts(sides: Sequence[ParsedText]) -> list[_Fact]:
    parted = [(side, tokens) for side in sides for tokens in side.once(_parted)]
    telling = [list(filter(_tells, tokens)) for _, tokens in parted]
    holders = Counter(stem for found in telling for stem in {token.stem for token in found})
    return [
        _Fact(side, tokens, [token for token in found if holders[token.stem] == 1])
        for (side, tokens), found in zip(parted, telling, strict=True)
    ]


def _parted(side: ParsedText) -> list[list[Token]]:
    """Return the parts that begin with a thing and say something of it, each with those after it that do not."""
    found: list[list[Token]] = []
    for part in side.parts:
        tokens = [side.tokens[place] for place in part]
        if _states_a_fact(tokens) or not found:
            found.append(tokens)
        else:
            found[-1] += tokens
    return found


def _beginnings(side: ParsedText) -> frozenset[str]:
    """Return the stems that a part begins with, up to the first word that does not open it."""
    return frozenset(t.stem for tokens in side.once(_parted) for t in tokens[: _opening(tokens) + 1])


def _states_a_fact(tokens: Sequence[Token]) -> bool:
    begins = tokens[_opening(tokens) :]
    return bool(begins) and begins[0].content and sum(map(_tells, tokens)) > 1


def _opening(tokens: Sequence[Token]) -> int:
    """Return the place of the first word after articles, conjunctions and the like."""
    return next((n for n, token in enumerate(tokens) if token.word not in OPENERS), len(tokens))


def _tells(token: Token) -> bool:
    return (token.content or token.number) and token.word not in STANDING_IN
