"""Shallow parsing of an English text: words and numbers in order, their parts, names, and what is denied."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from syncheck.contrasts.quantities import Quantity, quantities_in
from syncheck.contrasts.tokens import Token, between, is_year, tokens_of
from syncheck.contrasts.words import CLASSES

_PART_ENDS = re.compile(r"[,;:()\u2013\u2014]")


@dataclass(frozen=True)
class ParsedText:
    """A text with its tokens in order, and what is derived from them at first use."""

    text: str
    tokens: tuple[Token, ...]

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
        found: dict[str, list[int]] = {}
        for place, token in enumerate(self.tokens):
            found.setdefault(token.stem, []).append(place)
        return found

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Numbers with their units, dates and times."""
        return tuple(quantities_in(self.text, self.tokens))

    @cached_property
    def quantity_places(self) -> frozenset[int]:
        """Indices of their tokens, with words of a bound such as "at least"."""
        return frozenset(place for one in self.quantities for place in range(self.bound_start(one), one.last + 1))

    def bound_start(self, one: Quantity) -> int:
        """Find the place where a quantity begins with the words of its bound, such as "at least"."""
        words = CLASSES["more"] | CLASSES["less"] | CLASSES["bounding"]
        first = one.first
        while one.bound in ("lower", "upper") and 0 < first and self.tokens[first - 1].word in words:
            first -= 1
        return first

    @cached_property
    def name_spans(self) -> tuple[range, ...]:
        """Indices of the tokens of each name, of one or more words."""
        found: list[range] = []
        for place, token in enumerate(self.tokens):
            if token.name and not (found and place in found[-1]):
                found.append(self.name_at(place))
        return tuple(found)

    @cached_property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the tokens between commas and conjunctions."""
        found: list[list[int]] = []
        for place in range(len(self.tokens)):
            if not found or _begins_part(self.text, *self.tokens[place - 1 : place + 2]):
                found.append([])
            found[-1].append(place)
        return tuple(map(tuple, found))

    @cached_property
    def part_of(self) -> Mapping[int, int]:
        """The number of each token's part."""
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
    def clouded(self) -> bool:
        """True if an exception, a condition or a word that denies in its own way makes polarity hard to tell."""
        return not CLASSES["clouding"].isdisjoint(self.words)

    @cached_property
    def negators(self) -> tuple[int, ...]:
        """Indices of the words that deny what follows, except "no more than" and an answer's "No,"."""
        return tuple(place for place in range(len(self.tokens)) if self._denies(place))

    def denied(self, place: int) -> bool:
        """Tell whether any word of a token's part denies."""
        return any(self.part_of[n] == self.part_of[place] for n in self.negators)

    def held_by(self, other: ParsedText, without: AbstractSet[str] = frozenset()) -> float:
        """Compute the share of the content stems, except some, that another text has; 0 if there are none."""
        content = self.content - without
        return len(content & other.stems) / len(content) if content else 0.0

    def with_names(self, names: AbstractSet[str], plain: AbstractSet[str]) -> ParsedText:
        """Build the text with names that others write with a capital, and without those that they write without one.

        Only the first word of a clause, which is written with a capital anyway, is changed.
        """
        found = []
        for place, token in enumerate(self.tokens):
            is_first = place == 0 or token.clause != self.tokens[place - 1].clause
            is_name = token.name if not is_first else token.text[0].isupper() and token.word not in plain
            is_name = is_name and (token.name or token.word in names)
            found.append(token if is_name == token.name else replace(token, name=is_name))
        return self if tuple(found) == self.tokens else ParsedText(self.text, tuple(found))

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
        return self.text[self.tokens[first].start : self.tokens[last].end]

    def _is_beside(self, place: int) -> bool:
        """Tell whether only white space is between a token and the next one."""
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
    return ParsedText(text, tuple(tokens_of(text)))


def _begins_part(text: str, *around: Token) -> bool:
    """Tell whether the second of two or three tokens begins a part; "15, 1915" and "30 and 40" are one part."""
    before, token, *after = around
    is_joined = token.word in CLASSES["joining"]
    following = after[0] if is_joined and after else token
    if before.number and following.number and is_year(before) <= is_year(following):
        return False
    if is_joined or token.clause != before.clause:
        return True
    gap = text[before.end : token.start]
    return gap != " " and _PART_ENDS.search(gap) is not None
