"""What comes first: "wipe the phone before you move the accounts" where the evidence has them the other way round."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from syncheck.contrasts.differences import Difference, Found
from syncheck.contrasts.grammar import RELATIVE
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import Token

FIRST_BEFORE = frozenset("before then".split())
"""Words before which stands what comes first."""
FIRST_AFTER = frozenset("after once".split())
"""Words after which stands what comes first; at the beginning of a clause it ends with a comma."""
PRONOUNS = frozenset("he she it they".split())
TIMES = FIRST_BEFORE | FIRST_AFTER


class _Sequence(NamedTuple):
    first: frozenset[str]
    then: frozenset[str]
    written: str


def turned_sequence(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find two events that follow each other in the reversed order."""
    ours, theirs = _sequence(claim), _sequence(chunk)
    if ours and theirs and not claim.denials and not chunk.denials and _are_turned(ours, theirs):
        yield Difference("order", ours.written, theirs.written), frozenset()


def are_in_same_order(claim: ParsedText, chunk: ParsedText) -> bool:
    """Return True if two events follow each other in the same order, be it with "before" and "after"."""
    ours, theirs = _sequence(claim), _sequence(chunk)
    return (
        ours is not None
        and theirs is not None
        and _are_turned(ours, theirs._replace(first=theirs.then, then=theirs.first))
    )


def _are_turned(ours: _Sequence, theirs: _Sequence) -> bool:
    turned = ours.first & theirs.then - theirs.first, ours.then & theirs.first - theirs.then
    kept = ours.first & theirs.first - theirs.then, ours.then & theirs.then - theirs.first
    return all(turned) and not any(kept)


def _subject(part: Sequence[Token], other: Sequence[Token]) -> frozenset[str]:
    """Return the stems of the name that a part begins with, if a pronoun stands for it in the other."""
    name = itertools.takewhile(lambda token: token.name, part)
    return frozenset(token.stem for token in name) if any(t.word in PRONOUNS for t in other) else frozenset()


def _sequence(side: ParsedText) -> _Sequence | None:
    """Return the events of a text that names two; None if there are no such words, or several."""
    if TIMES.isdisjoint(side.words):
        return None
    order = sorted(side.tokens, key=lambda token: token.start)
    places = [place for place, token in enumerate(order) if token.word in TIMES]
    if len(places) != 1:
        return None
    word = order[places[0]]
    before = [t for t in order[: places[0]] if t.clause == word.clause]
    after = [t for t in order[places[0] + 1 :] if t.clause == word.clause]
    if before:
        comma = side.text.rfind(",", 0, before[-1].start)
        before = [t for t in before if t.start > comma]
    else:  # "After you have moved the accounts, wipe the phone"
        comma = side.text.find(",", word.start)
        before, after = [t for t in after if t.start > comma > 0], [t for t in after if t.start < comma]
    first, then = (
        frozenset(t.stem for t in part if t.content) - _subject(part, other)
        for part, other in ((before, after), (after, before))
    )
    is_relative = order[places[0] + 1 : places[0] + 2] and order[places[0] + 1].word in RELATIVE
    if (word.word in FIRST_AFTER) != bool(is_relative):  # "after which" comes what is second
        first, then = then, first
    return _Sequence(first, then, word.text) if first and then else None
