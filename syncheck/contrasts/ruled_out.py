"""What the evidence rules out in favour of something else: "the shop, not the courier, texts the recipient"."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from syncheck.contrasts.denials import NOT_DENYING
from syncheck.contrasts.differences import Difference, Found
from syncheck.contrasts.grammar import AUXILIARIES, PREPOSITIONS, RELATIVE
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import between

MARKERS = (("rather", "than"), ("instead", "of"), ("not",), ("never",))
"""Words before what is ruled out; "not" and "never" only after a comma or bracket, or "and"."""
FIRST_WORDS = frozenset(marker[0] for marker in MARKERS)
TOLD = 0.7
"""Least share of the other words of a sentence that the evidence says of what it rules out."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """One thing that is said and another that is not."""

    said: frozenset[str]
    """Stem of the last word before the marker that is not after it too."""
    ruled_out: frozenset[str]
    """Stems of the term after it, without those of the term before it."""
    after: frozenset[str]
    """All stems after it."""
    about: frozenset[str]
    """Stems of what is said of the one and not of the other."""
    written: str


def ruled_out(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a sentence that says what the evidence rules out, or rules out what the evidence says instead."""
    ours = list(_choices(claim))
    for theirs in _choices(chunk):
        is_turned = any(
            theirs.after & one.said and one.after & theirs.said and not one.after & theirs.after for one in ours
        )
        if is_turned or (not ours and not claim.denials and _says_other(claim, theirs)):
            other = next(token.text for token in claim.tokens if token.stem in theirs.after)
            yield Difference("negation", other, theirs.written), frozenset()
            return
    for one in ours:
        content = {token.stem for token in chunk.tokens if token.content}
        if one.said.isdisjoint(content) and one.ruled_out <= content and not chunk.negative_clauses:
            if one.about and len(one.about & content) >= TOLD * len(one.about):
                yield Difference("negation", one.written, ""), one.said
                return


def is_chosen_instead(claim: ParsedText, head: str, chunk: ParsedText) -> bool:
    """Return True if a sentence rules a thing out, given by its stem, in favour of one that the evidence names."""
    return any(head in one.after and not one.said.isdisjoint(chunk.stems) for one in _choices(claim))


def _says_other(claim: ParsedText, choice: _Choice) -> bool:
    rest = {token.stem for token in claim.tokens if token.content} - choice.ruled_out
    told = len(rest & choice.about)
    return choice.ruled_out <= claim.stems and rest.isdisjoint(choice.said) and 0 < told >= TOLD * len(rest)


def _choices(side: ParsedText) -> Iterator[_Choice]:
    if FIRST_WORDS.isdisjoint(side.words):
        return
    for place in range(1, len(side.tokens)):
        marker = next((m for m in MARKERS if m == tuple(t.word for t in side.tokens[place : place + len(m)])), ())
        if not marker or (len(marker) == 1 and not _is_set_apart(side, place)):
            continue
        number, part = next((n, part) for n, part in enumerate(side.parts) if place in part)
        rest = (p for p in part if p >= place + len(marker))
        after = list(itertools.takewhile(lambda p: side.tokens[p].word not in RELATIVE, rest))
        if any(side.tokens[p].word in AUXILIARIES | NOT_DENYING for p in after):
            continue
        before, other = (_term(side, places) for places in (range(place - 1, -1, -1), after))
        said = [stem for stem in before if stem not in other][:1]
        if said and not set(other) <= set(before):
            about = _about(side, number, other).difference(said)
            ruled = frozenset(other) - frozenset(before)
            yield _Choice(frozenset(said), ruled, _stems(side, after), about, side.written(place, part[-1]))


def _is_set_apart(side: ParsedText, place: int) -> bool:
    """Return True if a comma, a bracket or "and" stands before a word."""
    before = side.tokens[place - 1]
    return before.word == "and" or not {",", "("}.isdisjoint(between(side.text, before, side.tokens[place]))


def _term(side: ParsedText, places: Iterable[int]) -> list[str]:
    """Return the stems of the first words that stand together: of "corner shop" in "the corner shop, not"."""

    def belongs(place: int) -> bool:
        return side.tokens[place].content and side.tokens[place].word not in PREPOSITIONS

    term = itertools.takewhile(belongs, itertools.dropwhile(lambda place: not belongs(place), places))
    return [side.tokens[place].stem for place in term]


def _about(side: ParsedText, number: int, other: Sequence[str]) -> frozenset[str]:
    """Return the stems of the parts around a part; of the whole clause if what is ruled out is nowhere else in it."""
    clause = side.tokens[side.parts[number][0]].clause
    parts = [part for part in side.parts if side.tokens[part[0]].clause == clause]
    elsewhere = frozenset[str]().union(*(_stems(side, part) for part in parts if part != side.parts[number]))
    chosen = parts if elsewhere.isdisjoint(other) else side.parts[max(0, number - 1) : number + 2]
    return frozenset().union(*(_stems(side, part) for part in chosen))


def _stems(side: ParsedText, places: Iterable[int]) -> frozenset[str]:
    return frozenset(side.tokens[p].stem for p in places if side.tokens[p].content)
