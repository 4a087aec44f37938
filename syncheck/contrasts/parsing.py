"""Shallow parsing of an English text: words and numbers in order, clauses, denials and exceptions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

from syncheck.contrasts.amounts import Amount, amounts_in
from syncheck.contrasts.denials import (
    AFTER_NEGATOR,
    CONDITIONS,
    Denial,
    blocks,
    denial_at,
    exceptions_in,
    negates,
)
from syncheck.contrasts.grammar import BE, CONJUNCTIONS
from syncheck.contrasts.tokens import Token, between, is_year, tokens_of

_PART_ENDS = re.compile(r"[,;:()\u2013\u2014]")
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class ParsedText:
    """A text with its tokens, and what is derived from them at first use: denials, exceptions, parts and the like."""

    text: str
    given: tuple[Token, ...]
    """The tokens in the order of the text."""
    tokens: tuple[Token, ...]
    """The same, with the agent of a passive first."""
    _known: dict[Callable[[ParsedText], Any], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, read: Callable[[ParsedText], _Read]) -> _Read:
        """Return what a function reads in the text, which it does only once."""
        if read not in self._known:
            self._known[read] = read(self)
        known: _Read = self._known[read]
        return known

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of all words."""
        return frozenset(token.stem for token in self.tokens)

    @cached_property
    def words(self) -> frozenset[str]:
        """All words."""
        return frozenset(token.word for token in self.tokens)

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """Indices of the tokens with each stem."""
        found: dict[str, list[int]] = {}
        for place, token in enumerate(self.tokens):
            found.setdefault(token.stem, []).append(place)
        return found

    @cached_property
    def denials(self) -> tuple[Denial, ...]:
        """Words that are denied, with their negators."""
        found = (denial_at(self.text, self.given, n) for n, token in enumerate(self.given) if negates(token))
        return tuple(denial for denial in found if denial is not None)

    @cached_property
    def negative_clauses(self) -> frozenset[int]:
        """Numbers of the clauses with a negator, or a word that may reverse the statement."""
        return frozenset(t.clause for n, t in enumerate(self.given) if negates(t) or blocks(self.given, n))

    @cached_property
    def exceptions(self) -> frozenset[str]:
        """Stems of the content words that occur only in exceptions, after "unless" and the like."""
        excepted = exceptions_in(self.text, self.given)
        found = frozenset(token.stem for token in self.given if token.content and token.start in excepted)
        return found - {token.stem for token in self.given if token.start not in excepted} if found else found

    @cached_property
    def amounts(self) -> tuple[Amount, ...]:
        """Numbers of one or more words."""
        return tuple(amounts_in(self.text, self.tokens)) if self.has_number else ()

    @cached_property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the tokens between commas and conjunctions, in the order of the text."""
        return tuple(_parts(self.text, self.tokens))

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of the content words."""
        return frozenset(token.stem for token in self.tokens if token.content)

    @cached_property
    def has_number(self) -> bool:
        """True if there is a number."""
        return any(token.number for token in self.tokens)

    @cached_property
    def names(self) -> frozenset[str]:
        """Words that are names, or parts of names."""
        return frozenset(token.word for token in self.tokens if token.name)

    def with_names(self, names: AbstractSet[str]) -> ParsedText:
        """Return the text with these words as names where they are capitalised, be it at the start of a sentence."""
        found = [
            replace(token, name=True) if not token.name and token.text[0].isupper() and token.word in names else token
            for token in self.tokens
        ]
        return self._with(found)

    @cached_property
    def plain_words(self) -> frozenset[str]:
        """Words that are written without a capital."""
        return frozenset(token.word for token in self.tokens if token.text.islower())

    def without_names(self, words: AbstractSet[str]) -> ParsedText:
        """Return the text with these words as no names where they begin a sentence, which capitalises any word."""
        found = [
            replace(token, name=False)
            if token.name and token.word in words and token.start in self._clause_starts
            else token
            for token in self.tokens
        ]
        return self._with(found)

    def _with(self, tokens: list[Token]) -> ParsedText:
        """Return the text with other tokens in the same places; itself if they are its own."""
        changed = any(token is not own for token, own in zip(tokens, self.tokens, strict=True))
        return replace(self, tokens=tuple(tokens)) if changed else self

    @cached_property
    def _clause_starts(self) -> frozenset[int]:
        """Starts of the first token of each clause."""
        firsts: dict[int, int] = {}
        for token in self.tokens:
            firsts[token.clause] = min(token.start, firsts.get(token.clause, token.start))
        return frozenset(firsts.values())

    @cached_property
    def denied_clauses(self) -> frozenset[int]:
        """Numbers of the clauses with a denied word."""
        return frozenset(denial.head.clause for denial in self.denials)

    def denies(self, token: Token) -> bool:
        """Return True if a negator comes shortly before a token."""
        return any(token.start == denial.head.start for denial in self.denials)

    def negated(self, token: Token, *, reach: int = AFTER_NEGATOR) -> bool:
        """Return True if a negator stands a few words before a token, with no comma between, whatever it denies."""
        before = [other for other in self.tokens if other.start < token.start][-reach:]
        negators = (other for other in before if negates(other) and other.clause == token.clause)
        return any("," not in self.text[other.start : token.start] for other in negators)

    @cached_property
    def denied_conditions(self) -> frozenset[str]:
        """Stems that a condition denies: those of "register" in "who do not register" and "if you do not register"."""
        return frozenset(
            next((t.stem for t in self.tokens[n + 1 :] if t.content), "")
            for n, token in enumerate(self.tokens)
            if negates(token)
            and any(t.word in CONDITIONS | {"if"} and t.clause == token.clause for t in self.tokens[max(0, n - 4) : n])
        )

    def held_by(self, other: ParsedText, without: AbstractSet[str] = frozenset()) -> float:
        """Return the share of the content stems, but for some, that another text has; 0 if there are none."""
        content = self.content - without
        return len(content & other.stems) / len(content) if content else 0.0

    def name_at(self, place: int) -> range:
        """Return the places of the name, of one or more words, that a token belongs to."""
        first = last = place
        while first > 0 and self.tokens[first - 1].name and self._is_beside(first - 1):
            first -= 1
        while last + 1 < len(self.tokens) and self.tokens[last + 1].name and self._is_beside(last):
            last += 1
        return range(first, last + 1)

    def full_name(self, place: int) -> frozenset[str]:
        """Return the stems of the name that a token belongs to."""
        return frozenset(self.tokens[n].stem for n in self.name_at(place))

    def _is_beside(self, place: int) -> bool:
        """Return True if only white space is between a token and the next one."""
        return not between(self.text, *self.tokens[place : place + 2])

    def written(self, first: int, second: int) -> str:
        """Return the text from one token to another as it was written."""
        first, second = sorted((first, second))  # a passive has its words in another order
        tokens = self.tokens[first : second + 1]
        last = max(tokens, key=lambda token: token.start)
        return self.text[min(token.start for token in tokens) : last.start + len(last.text)]


def parse(text: str) -> ParsedText:
    """Parse a text; a passive with an agent is turned into the active."""
    given = tuple(tokens_of(text))
    return ParsedText(text, given, _active(given))


def _parts(text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, ...]]:
    order = sorted(range(len(tokens)), key=lambda place: tokens[place].start)
    ordered = [tokens[place] for place in order]
    starts = [n for n in range(1, len(order)) if _begins_part(text, ordered[n - 1 : n + 2])]
    for first, stop in pairwise([0, *starts, len(order)]):
        yield tuple(order[first:stop])


def _begins_part(text: str, around: Sequence[Token]) -> bool:
    """Return True if a part begins with the second of two or three tokens.

    "15, 1915" and "30 and 40" are one part, "in 2022 and 7 million" are two.
    """
    before, token, *after = around
    is_joined = token.word in CONJUNCTIONS
    following = after[0] if is_joined and after else token
    if before.number and following.number and is_year(before) <= is_year(following):
        return False
    if is_joined or token.clause != before.clause:
        return True
    gap = text[before.start + len(before.text) : token.start]
    return gap != " " and _PART_ENDS.search(gap) is not None


def _active(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Put the agent of a passive first and its subject last: "B was beaten by A" becomes "A was beaten B"."""
    if sum(token.word == "by" for token in tokens) > 1:
        return tokens
    for by, token in enumerate(tokens[:-1]):
        if token.word != "by":
            continue
        verbs = [place for place in range(max(0, by - 4), by) if tokens[place].word in BE]
        if verbs and not tokens[by + 1].number:
            stop = by + 1
            while stop < len(tokens) and (tokens[stop].content or stop == by + 1):
                stop += 1
            return (*tokens[by + 1 : stop], *tokens[verbs[0] : by], *tokens[: verbs[0]], *tokens[stop:])
    return tokens
