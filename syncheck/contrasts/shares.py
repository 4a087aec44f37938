"""Shares of a group: "all staff were offered jobs" where the evidence has "120 of the 180 staff"."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from syncheck.contrasts.coordination import part_of
from syncheck.contrasts.differences import Difference, Found
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import Token

_Share = Literal["all", "most", "some", "part", "none"]

SHARES: dict[str, _Share] = {
    **dict.fromkeys("all every each both".split(), "all"),
    **dict.fromkeys("most majority".split(), "most"),
    **dict.fromkeys("some several many".split(), "some"),
    **dict.fromkeys("half few minority".split(), "part"),
    **dict.fromkeys("no none neither".split(), "none"),
}
"""Words for a share; a number before "of" is one too, see :func:`_counted`."""
OPPOSED: dict[_Share, frozenset[_Share]] = {
    "all": frozenset(("most", "some", "part", "none")),
    "most": frozenset(("part", "none")),
    "some": frozenset(("none",)),
    "part": frozenset(("all", "most", "none")),
    "none": frozenset(("all", "most", "some", "part")),
}
"""Shares of the evidence that exclude each share of a sentence; "some" may be all of them, "half" may not."""
TOLD = 0.6
"""Least share of the other words of a sentence that the evidence says of its share."""
GROUP = 5
"""Number of words after the word for a share that say of what."""
BETWEEN = frozenset("of the these those its his her their our my your".split())
"""Words between a share and its group."""
HEDGES = frozenset("not almost nearly practically virtually but except".split())
"""Words beside "all" that leave some out."""


@dataclass(frozen=True, slots=True)
class _ShareOf:
    word: Token
    share: _Share
    group: frozenset[str]
    part: Sequence[Token]
    """Words that say something of the share."""
    beside: frozenset[str] = frozenset()
    """Stems that are said of the whole group."""


def shares(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a share of a group of which the evidence says the same of another share."""
    for ours, theirs in itertools.product(claim.once(_shares), chunk.once(_shares)):
        is_opposed = theirs.share in OPPOSED[ours.share] and not ours.group.isdisjoint(theirs.group)
        if is_opposed and _tell_the_same(claim, ours, chunk, theirs):
            yield Difference("quantifier", ours.word.text, theirs.word.text), {ours.word.stem}
            return


def _tell_the_same(claim: ParsedText, ours: _ShareOf, chunk: ParsedText, theirs: _ShareOf) -> bool:
    if any(denial.start != ours.word.start for denial in claim.denials):
        return False
    if any(denial.start != theirs.word.start and denial.head in theirs.part for denial in chunk.denials):
        return False
    words = {token.stem for token in claim.tokens if token.content and not token.number}
    said = words - (ours.group & theirs.group) - theirs.beside - {ours.word.stem}
    return bool(said) and len(said & {token.stem for token in theirs.part}) >= TOLD * len(said)


def _shares(side: ParsedText) -> list[_ShareOf]:
    return [*_named(side), *_of_all(side)]


def _named(side: ParsedText) -> Iterator[_ShareOf]:
    """Yield the shares that words and numbers before "of" say."""
    for place, token in enumerate(side.tokens):
        if not token.number and token.word != "one" and token.word not in SHARES:
            continue
        share = _counted(side, place) or SHARES.get(token.word)
        if share is None:
            continue
        after = side.tokens[place + 1 : place + 1 + GROUP]
        before = side.tokens[max(0, place - 1) : place]
        beside = {t.word for t in (*before, *after[:2])}
        if (share != "all" or beside.isdisjoint(HEDGES)) and (group := _group(token, after)):
            word = before[0] if share == "none" and token.word == "one" else token
            yield _ShareOf(word, share, group, part_of(side, word))


def _of_all(side: ParsedText) -> Iterator[_ShareOf]:
    """Yield the shares that numbers say after "Of the 40 households, 11 signed and 29 did not"."""
    values = {amount.first: amount.value for amount in side.amounts}
    tokens = side.tokens
    for place in range(len(tokens) - 2):
        opens = place + 2 in values and (place == 0 or tokens[place - 1].clause != tokens[place].clause)
        if not opens or [t.word for t in tokens[place : place + 2]] != ["of", "the"]:
            continue
        whole, group = values[place + 2], _group(tokens[place], tokens[place + 2 : place + 2 + GROUP])
        comma = side.text.find(",", tokens[place].start)
        for n, value in values.items():
            if group and tokens[n].clause == tokens[place].clause and tokens[n].start > comma > 0 and value <= whole:
                named = frozenset(t.stem for t in tokens[place:n] if t.content and t.start < comma)
                part = part_of(side, tokens[n], with_commas=True)
                yield _ShareOf(tokens[n], _share_of(value, whole), group, part, named)


def _counted(side: ParsedText, place: int) -> _Share | None:
    """Return the share that a number says: "14 of its 60 shops" are a part, and "not one" is none."""
    token = side.tokens[place]
    if not token.number and token.word != "one":
        return None
    before = side.tokens[max(0, place - 1) : place]
    if any(t.word in SHARES for t in before):  # "all 40 of them"
        return None
    if token.word == "one" and any(t.word == "not" for t in before):
        return "none"
    after = side.tokens[place + 1 : place + 4]
    if not after or after[0].word != "of":
        return None
    values = {amount.first: amount.value for amount in side.amounts}
    whole = next((values[place + n] for n, t in enumerate(after, 1) if t.number and place + n in values), None)
    if whole is None or place not in values or values[place] > whole:
        return "some"
    return _share_of(values[place], whole)


def _share_of(part: float, whole: float) -> _Share:
    return "all" if part == whole else "most" if part > whole / 2 else "part"


def _group(share: Token, after: Sequence[Token]) -> frozenset[str]:
    """Return the stems of what a share is of: those of "keepers' cottages" in "all the keepers' cottages"."""
    named = itertools.dropwhile(lambda t: t.word in BETWEEN or t.number, after)
    nouns = itertools.takewhile(lambda t: t.content and not t.number and t.clause == share.clause, named)
    return frozenset(token.stem for token in nouns)
