"""What holds for some, or on a condition: "everyone may vote" where the evidence has "only members may vote"."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from syncheck.contrasts.differences import Difference, Found
from syncheck.contrasts.grammar import AUXILIARIES, ONLY, RELATIVE
from syncheck.contrasts.negations import excluded
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import Token

EVERY = frozenset("all any each every".split())
EVERYONE = frozenset("everyone everybody anyone anybody".split())
"""Words for a group without limit."""
MADE_WITH = frozenset("if when with where after".split())
"""Words after "only" that begin a condition."""
MANY = frozenset("several many numerous various".split())
"""Words for more than one, besides numbers in letters."""
ONES = frozenset("one place person way thing".split())
"""Words after "the only" that stand for anything."""
CONDITION = 8
"""Number of words after "if" that say on what condition."""
WHATEVER = {("whether", "or", "not"): frozenset({"if", "unless"}), ("even", "if"): frozenset({"unless"})}
"""Words that set a condition aside, and those that the evidence makes it with."""


def limited(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a sentence that goes beyond what the evidence is limited to, or sets a condition aside."""
    yield from _whatever(claim, chunk)
    yield from _several(claim, chunk)
    denied = [denial for denial in claim.denials if denial.negator.lower() != "without"]
    if denied or chunk.denials or not ONLY.isdisjoint(claim.words):
        return
    for place, token in enumerate(() if ONLY.isdisjoint(chunk.words) else chunk.tokens):
        limit = _limit(chunk, place) if token.word in ONLY else []
        is_condition = any(after.word in MADE_WITH for after in chunk.tokens[place + 1 : place + 2])
        beyond = next(_beyond(claim, limit, is_condition=is_condition), None) if limit else None
        if beyond is not None:
            yield Difference("negation", claim.written(beyond[0], beyond[-1]), token.text), _stems(claim, beyond)
            return


def _limit(side: ParsedText, place: int) -> list[Token]:
    """Return the words after "only" that say to what: those of "members" in "only members may vote"."""
    part = next(part for part in side.parts if place in part)
    after = (side.tokens[p] for p in part if p > place)
    return [t for t in itertools.takewhile(lambda t: t.word not in AUXILIARIES, after) if t.content or t.number]


def _beyond(claim: ParsedText, limit: Sequence[Token], *, is_condition: bool) -> Iterator[Sequence[int]]:
    """Yield the places of what is said of more than a limit: of "non-members", "everyone", "without a card"."""
    named = {token.stem for token in limit}
    for place, token in excluded(claim):
        if token.stem == limit[0].stem:
            yield place - 1, place
    for place, token in enumerate(claim.tokens[:-1]):
        after = claim.tokens[place + 1 : place + 3]
        if token.word == "without":
            if is_condition and any(d.start == token.start and d.head.stem in named for d in claim.denials):
                yield (place,)
        elif named <= claim.stems or claim.denials or any(other.word in RELATIVE for other in after):
            continue
        elif token.word in EVERYONE and named.isdisjoint(claim.stems):
            yield (place,)
        elif token.word in EVERY and after[0].stem in named:
            yield place, place + 1


def _several(claim: ParsedText, chunk: ParsedText) -> Iterator[Found]:
    """Find "several lines" where the evidence has "the only one", or "the only line"."""
    if claim.denials or chunk.denials or "only" not in chunk.words:
        return
    words = itertools.pairwise(zip(chunk.tokens, chunk.tokens[1:], strict=False))
    single = [
        token
        for (the, token), (_, after) in words
        if the.word == "the" and token.word == "only" and (after.word in ONES or after.stem in claim.stems)
    ]
    for token, after in itertools.pairwise(claim.tokens):
        is_several = token.word in MANY or (token.number and token.text.isalpha())
        if single and is_several and after.content:
            yield Difference("quantifier", token.text, single[0].text), {token.stem, after.stem}
            return


def _stems(side: ParsedText, places: Sequence[int]) -> frozenset[str]:
    return frozenset(side.tokens[place].stem for place in places)


def _whatever(claim: ParsedText, chunk: ParsedText) -> Iterator[Found]:
    """Find "whether or not" in place of the "if" of the same condition, and "even if" in place of "unless"."""
    if claim.words.isdisjoint(phrase[0] for phrase in WHATEVER):
        return
    words = [token.word for token in claim.tokens]
    for place, (phrase, made_with) in itertools.product(range(len(words)), WHATEVER.items()):
        stop = place + len(phrase)
        if tuple(words[place:stop]) != phrase:
            continue
        wanted = {t.stem for t in claim.tokens[stop : stop + CONDITION] if t.content}
        for other, token in enumerate(chunk.tokens):
            after = chunk.tokens[other + 1 : other + 1 + CONDITION]
            if token.word in made_with and any(t.stem in wanted for t in after):
                yield Difference("negation", claim.written(place, stop - 1), token.text), frozenset()
                return
