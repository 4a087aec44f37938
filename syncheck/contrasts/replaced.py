"""A name in place of the only one that the evidence has: "the team was led by Mertens", where Karim led it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncheck.contrasts.differences import Difference, Found, is_same_name, role
from syncheck.contrasts.grammar import CALENDAR
from syncheck.contrasts.misplaced import is_name
from syncheck.contrasts.parsing import ParsedText

REST = 2
"""Least number of other words that show that the evidence tells of the same."""
TOLD_THERE = 0.5
"""Largest share of these words that a chunk with the name may have."""
PRONOUNS = frozenset("it its he his him she her hers they their them i me my we us our".split())
"""Words that may stand for the name, if they come before the other."""


def replaced(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a name where the evidence has all other words of the sentence with another name, be it in another chunk."""
    if claim.negative_clauses:
        return
    for place, token in enumerate(claim.tokens):
        for side in sides if is_name(token) else ():
            rival = _rival(claim, place, side, sides)
            if rival is not None and (side is chunk or token.stem in chunk.stems):
                own = claim.full_name(place)
                about = own if side is chunk else {other.stem for other in claim.tokens} - own
                yield Difference("name", token.text, side.tokens[rival].text), about


def _rival(claim: ParsedText, place: int, chunk: ParsedText, sides: Sequence[ParsedText]) -> int | None:
    """Return where the evidence has its only other name, if it stands in the same role."""
    own = claim.full_name(place)
    others = {token.stem for token in claim.tokens if token.content} - own
    if chunk.negative_clauses or len(others) < REST or not others <= chunk.stems or not own.isdisjoint(chunk.stems):
        return None
    if any(len(others & side.stems) > TOLD_THERE * len(others) for side in sides if not own.isdisjoint(side.stems)):
        return None
    names = [n for n, token in enumerate(chunk.tokens) if is_name(token) and token.stem not in others]
    if len({chunk.name_at(n) for n in names}) != 1 or any(is_same_name(claim, place, chunk, n) for n in names):
        return None
    if any(token.word in PRONOUNS and token.start < chunk.tokens[names[0]].start for token in chunk.tokens):
        return None
    is_date = {side.tokens[n].word in CALENDAR for side, n in ((claim, place), (chunk, names[0]))}
    return names[0] if len(is_date) == 1 and role(claim, place) == role(chunk, names[0]) != "" else None
