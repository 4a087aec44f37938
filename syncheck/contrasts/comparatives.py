"""Comparisons that a sentence makes: which word compares which two things, and which quantities the word fits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from syncheck.contrasts.grammar import NEGATORS
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import Token, is_year

_GENERAL = "mass area volume money time temperature speed data share count bare"
_FITS = f"""
faster quicker: speed+ time- timed- / slower
longer: time+ length+long / shorter
taller: length+high / shorter
higher: length+high {_GENERAL} / lower
wider broader: length+wide / narrower
deeper: length+deep / shallower
thicker: length+thick / thinner
larger bigger: area volume money data share people / smaller
heavier: mass / lighter
older elder: age+ origin- / younger newer
later after: year date clock / earlier before sooner
dearer pricier costlier: money / cheaper
warmer hotter: temperature / colder cooler
more greater exceeds exceeded: length {_GENERAL} / less fewer
expensive costly: money / =
populous: people / =
recent recently: year date / =
"""
"""Words for more of some quantities, or less of those with a minus, and their opposites; "=": words after "more"."""
Signs = Mapping[tuple[str, str], int]
"""1 or -1 for each quantity, with the kind of length, that a word fits: 1 if more of it is meant."""


def _read() -> tuple[Mapping[str, Signs], frozenset[str]]:
    found: dict[str, dict[tuple[str, str], int]] = {}
    adjectives: set[str] = set()
    for names, fits, opposites in re.findall(r"(.+): (.+) / (.+)", _FITS):
        read = re.findall(r"([a-z]+)([+-]?)([a-z]*)", fits)
        signs = {(quantity, aspect): -1 if sign == "-" else 1 for quantity, sign, aspect in read}
        if opposites == "=":
            adjectives.update(names.split())
        for word in names.split():
            found.setdefault(word, {}).update(signs)
        for word in opposites.replace("=", "").split():
            found.setdefault(word, {}).update({key: -sign for key, sign in signs.items()})
    return found, frozenset(adjectives)


_SIGNS, _ADJECTIVES = _read()
_AMOUNTS = frozenset("more less fewer".split())
GENERAL = _AMOUNTS | frozenset("greater higher lower larger bigger smaller exceeds exceeded".split())
"""Words that do not tell by themselves what is compared."""
_BETWEEN = frozenset("after before exceeds exceeded".split())
"""Words that stand between the two things without "than"."""
_TIMES = frozenset(("after", "before"))
"""Words that, beside a comparative, tell when it holds."""
_HEDGES = frozenset(
    "if whether may might can could only unless without including excluding counting together combined".split()
)
"""Words with which a sentence claims no comparison of two things, or of sums."""


@dataclass(frozen=True, slots=True)
class Comparative:
    """A comparison of a sentence."""

    first: int
    last: int
    """Places of the first and last comparative word."""
    than: int
    """Place of "than", or of the word itself where it stands between the two things; -1 in "the larger of the two"."""
    left: tuple[int, ...]
    right: tuple[int, ...]
    """Places of the words before and after it."""
    signs: Signs
    counted: str
    """Stem of the noun after "more" or "fewer"; "" if there is none."""
    general: bool
    """True if the word does not tell by itself what is compared."""


def comparatives(claim: ParsedText) -> Iterator[Comparative]:
    """Yield the comparisons that a sentence claims."""
    thans = [place for place, token in enumerate(claim.tokens) if token.word == "than"]
    if len(thans) > 1 or not _HEDGES.isdisjoint(claim.words):
        return
    for place, token in enumerate(claim.tokens):
        if token.word not in _SIGNS or token.word in _ADJECTIVES:
            continue
        than = thans[0] if thans else place if token.word in _BETWEEN else -1
        is_placed = place < than if thans else than == place or "of the two" in claim.text.lower()
        is_clear = _TIMES.isdisjoint(claim.words - {token.word})
        if is_placed and is_clear and (_is_denied(claim, place) or not claim.negated(token)):
            yield from _comparative(claim, place, than)


def _comparative(claim: ParsedText, place: int, than: int) -> Iterator[Comparative]:
    """Yield the comparison by the word at a place, if it is told what it is about."""
    token, after = claim.tokens[place], claim.tokens[place + 1 : place + 2]
    signs, last, counted = _SIGNS[token.word], place, ""
    if token.word in _AMOUNTS and after and after[0].word != "than":
        if after[0].word in _ADJECTIVES:
            signs, last = _turned(_SIGNS[after[0].word], turn=token.word != "more"), place + 1
        elif than > 0 and after[0].content:
            counted = after[0].stem
        else:
            return
    clause = [n for n, other in enumerate(claim.tokens) if other.clause == token.clause and not place <= n <= last]
    part = next((part for part in claim.parts if than + 1 in part), ())
    left, right = tuple(n for n in clause if than < 0 or n < than), tuple(n for n in part if n > than >= 0)
    if than < 0 or (right and not _is_bound(claim.tokens[right[0]])):
        general = token.word in GENERAL and last == place
        yield Comparative(
            place, last, than, left, right, _turned(signs, turn=_is_denied(claim, place)), counted, general
        )


def _turned(signs: Signs, *, turn: bool) -> Signs:
    return {key: -sign for key, sign in signs.items()} if turn else signs


def _is_bound(token: Token) -> bool:
    """Return True for a number after "than" that is no year: "more than 5"."""
    return token.number and not is_year(token)


def _is_denied(claim: ParsedText, place: int) -> bool:
    """Return True if a negator stands directly before a comparative word, or with one word between."""
    before = claim.tokens[max(0, place - 2) : place]
    return any(token.word in NEGATORS or token.word.endswith("n't") for token in before)
