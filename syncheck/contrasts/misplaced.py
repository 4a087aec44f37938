"""Numbers and names of a sentence whose place in the evidence has another, and numbers outside its bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from syncheck.contrasts.computed import is_computed
from syncheck.contrasts.coordination import says_elsewhere
from syncheck.contrasts.denials import IN_BOUNDS
from syncheck.contrasts.differences import BETTER, FITS, Difference, Found, is_same_name, likeness
from syncheck.contrasts.grammar import ARTICLES, AUXILIARIES, RELATIVE, SYMMETRIC, TITLES
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import SYMBOLS, Token, between, is_year
from syncheck.contrasts.units import SIZES, UNITS
from syncheck.results.types import ContrastKind

TOLD = 0.5
"""Share of a sentence's other content stems from which a chunk that has a name of it may tell of the same."""
TOLD_HERE, TOLD_THERE = 0.75, 0.34
"""The same, of a chunk that has another item in its place and, at most, of those that have the item."""
NEAR = 3
"""Number of words before a number that are likely to belong to it, and not to all that follows."""
ROUNDED = 0.15
"""Largest relative difference of a number that is called approximate."""
BOUNDS = frozenset(
    "than over under least most exceed exceeds exceeding up below above beyond before after until by".split()
)
"""Words before a number that make it a bound."""
UP_TO = [phrase.split() for phrase in ("up to", "at most", "no more than", "not more than", "not exceed", "maximum of")]
FROM = [phrase.split() for phrase in ("at least", "no less than", "no fewer than", "not less than", "minimum of")]
"""Phrases before a number that make it the largest, and the smallest, that is meant."""
DIFFERENCES = IN_BOUNDS | {"times", "cheaper", "dearer", "older", "younger"}
"""Words after a number that make it a difference of two others."""
LOOSE = frozenset("a an the and or of only".split())
"""Words that say nothing about their neighbours."""
BEYOND = frozenset(
    """
    others rest else otherwise larger bigger longer older younger smaller shorter higher lower heavier lighter greater
    more above below
    """.split()
)
"""Words that may go on after a bound with what lies beyond it."""
ABOUT = frozenset("about around approximately roughly nearly almost some over".split())
"""Words before a number that make it approximate."""

_VALUE = re.compile(r"\d+(?:\.\d+)?")


def is_number(token: Token, *, year: bool) -> bool:
    """Return True for a number that is a year, or is not."""
    return token.number and is_year(token) == year


def is_name(token: Token) -> bool:
    """Return True if a token is a name; an initial or an abbreviation may stand for a full name, a title for none."""
    return token.name and not token.number and not token.text.isupper() and token.word not in TITLES


def misplaced(
    claim: ParsedText,
    chunk: ParsedText,
    sides: Sequence[ParsedText],
    kind: ContrastKind,
    of_kind: Callable[[Token], bool],
) -> Iterator[Found]:
    """Find items whose place in the evidence has another item of their kind.

    A place is recognised by the words around it; a neighbour of it must be the same.
    """
    for place, item in enumerate(claim.tokens if claim.has_number or kind == "name" else ()):
        if not of_kind(item):
            continue
        fits = {other: likeness(claim, place, chunk, other) for other, t in enumerate(chunk.tokens) if of_kind(t)}
        same = max((fit for other, fit in fits.items() if chunk.tokens[other].stem == item.stem), default=0.0)
        if _is_elsewhere(place, claim, chunk, sides, kind, same):
            continue
        exchanged = same and not (kind == "name" and _in_list(claim, place))
        held = {item.stem} if exchanged else claim.stems
        only = _only_number(claim, place, chunk, of_kind)
        rivals = {
            other: fit
            for other, fit in fits.items()
            if chunk.tokens[other].stem not in held
            and not (kind == "name" and is_same_name(claim, place, chunk, other))
            and (other == only or _has_neighbour(claim, place, chunk, other))
        }
        best = max(rivals, key=rivals.__getitem__, default=None)
        if best is None or (best != only and rivals[best] < max(FITS, BETTER * same)):
            continue
        is_open = exchanged and kind == "number" and (best != only or _unit_after(claim, place) is None)
        if is_open and (_is_part(chunk, item, best) or not _is_closer(claim, chunk, item, best)):
            continue
        if exchanged and kind == "name" and not _is_exchanged(claim, place, chunk, best):
            continue
        if says_elsewhere(claim, place, chunk, best) or (kind == "number" and is_computed(claim, place, chunk)):
            continue
        if kind == "name" and claim.negated(item, reach=NEAR) != chunk.negated(chunk.tokens[best], reach=NEAR):
            continue
        alike = is_bound(claim.tokens, place) == is_bound(chunk.tokens, best)
        differs = alike and not _is_rounded(claim, place, chunk.tokens[best])
        if kind == "name" or differs or _is_out_of_bounds(claim, place, chunk, best):
            yield Difference(kind, item.text, chunk.tokens[best].text), {item.stem}


def _only_number(claim: ParsedText, place: int, chunk: ParsedText, of_kind: Callable[[Token], bool]) -> int | None:
    """Return the place in the evidence of its only number, if it has all other words of the sentence; else None.

    On both sides it must be the only one of its unit. The words around the two may then differ: "Parking: 3 euros an
    hour" where the evidence has "Parking costs 2 euros an hour".
    """
    if not claim.tokens[place].number:
        return None
    unit = _unit_after(claim, place)
    ours, theirs = (
        [n for n, token in enumerate(side.tokens) if of_kind(token) and _unit_after(side, n) == unit]
        for side in (claim, chunk)
    )
    others = {token.stem for token in claim.tokens if token.content and not token.number and token.word not in UNITS}
    return theirs[0] if len(ours) == len(theirs) == 1 and others and others <= chunk.stems else None


def _unit_after(side: ParsedText, place: int) -> tuple[int, int] | None:
    after = side.tokens[place + 1 : place + 2]
    return UNITS.get(after[0].word) if after else None


def _is_exchanged(claim: ParsedText, place: int, chunk: ParsedText, other: int) -> bool:
    """Return True if a name stands beside a word that, in the evidence, stands beside another name.

    The other name must not stand beside the same word in both, and the sides of "met" and the like may be exchanged.
    """
    if any(token.word in SYMMETRIC for _, token in _next_to(claim, place)) or _is_listed_with(
        chunk, claim, place, other
    ):
        return False
    rival = chunk.tokens[other].stem
    ours, theirs = (
        {beside for n in side.places.get(rival, ()) for beside in _stems_at(side, n)} for side in (claim, chunk)
    )
    return ours.isdisjoint(theirs) and not _stems_at(claim, place).isdisjoint(_stems_at(chunk, other))


def _is_listed_with(chunk: ParsedText, claim: ParsedText, place: int, other: int) -> bool:
    """Return True if the evidence joins two names by "and" or "or", so that the same is said of both."""
    item = claim.tokens[place].stem
    run = chunk.name_at(other)
    beside = (chunk.tokens[run[0] - 2 : run[0]] if run[0] > 1 else (), chunk.tokens[run[-1] + 1 : run[-1] + 3][::-1])
    return any(len(pair) == 2 and pair[1].word in {"and", "or"} and pair[0].stem == item for pair in beside)


def _stems_at(side: ParsedText, place: int) -> frozenset[tuple[int, str]]:
    return frozenset((step, token.stem) for step, token in _next_to(side, place))


def _next_to(side: ParsedText, place: int) -> Iterator[tuple[int, Token]]:
    """Yield the words before (-1) and after (1) a name."""
    run = side.name_at(place)
    for step, end in ((-1, run[0]), (1, run[-1])):
        other = _neighbour(side, end, step)
        if other is not None and other.word not in LOOSE:
            yield step, other


def _is_part(chunk: ParsedText, item: Token, whole: int) -> bool:
    """Return True if the same number is given as a part of the other: "nine of the 20 acids"."""
    before = chunk.tokens[max(0, whole - 4) : whole]
    parts = [n for n, token in enumerate(before) if token.stem == item.stem]
    return bool(parts) and any(token.word == "of" for token in before[parts[-1] + 1 :])


def _is_closer(claim: ParsedText, chunk: ParsedText, item: Token, rival: int) -> bool:
    """Return True if more of the sentence's content words are closer to the rival than to the same number.

    Word order may differ: with "at 6:30 on weekdays and at 9 on Sundays", "on Sundays it opens at nine" is true. Words
    well before the same number, such as the subject, do not count where it comes first.
    """
    own = chunk.places[item.stem]
    comes_first = own[0] < rival
    content = {token.stem for token in claim.tokens if token.content and not token.number and token.word not in UNITS}
    votes = 0
    for known in content:
        places = chunk.places.get(known, ())
        if comes_first:
            places = [place for place in places if place > own[0] - NEAR]
        if places:
            to_rival = min(abs(place - rival) for place in places)
            to_own = min(abs(place - other) for place in places for other in own)
            votes += (to_rival < to_own) - (to_own < to_rival)
    undecided = votes == 0 and not comes_first
    return votes > 0 or (undecided and sum(token.number for token in claim.tokens) > 1)


def _is_elsewhere(
    place: int, claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText], kind: ContrastKind, same: float
) -> bool:
    """Return True if the evidence has an item in another place, so that only a closer match may contradict it.

    The same holds if a number may lie beyond a bound of the evidence.
    """
    if kind == "number" and is_beyond(claim, chunk):
        return True
    item = claim.tokens[place].stem
    holders = [side for side in sides if item in side.stems]
    if not holders or (kind == "number" and same):
        return False
    name = {item}
    if kind == "name":
        name |= claim.full_name(place) | {token.stem for token in claim.tokens if token.word in TITLES}
    here = claim.held_by(chunk, name)
    there = max((claim.held_by(side, name) for side in holders if side is not chunk), default=0.0)
    if item not in chunk.stems and here >= TOLD_HERE and there <= TOLD_THERE:
        return False
    return kind == "number" or here < 1 or there >= TOLD


def _in_list(side: ParsedText, place: int) -> bool:
    """Return True if there is a comma next to a name."""
    run = side.name_at(place)
    first, last = side.tokens[run[0]], side.tokens[run[-1]]
    return side.text[: first.start].rstrip().endswith(",") or side.text.startswith(",", last.start + len(last.text))


def _has_neighbour(claim: ParsedText, place: int, chunk: ParsedText, other: int) -> bool:
    """Return True if the word before or after is the same; different units belong to different things."""
    for step in (1, -1):
        ours, theirs = _neighbour(claim, place, step), _neighbour(chunk, other, step)
        if ours is not None and theirs is not None:
            if step > 0 and ours.word in UNITS and theirs.word in UNITS:
                return UNITS[ours.word] == UNITS[theirs.word]
            if ours.stem == theirs.stem and ours.word not in LOOSE:
                return True
    return False


def _neighbour(side: ParsedText, place: int, step: int) -> Token | None:
    """Return the next word (1) or the one before (-1).

    After a name, "who had" and the like are passed over. What a comma parts from a name does not belong to it: in
    "Novak, a biologist from Brno, found it", nothing follows Brno.
    """
    other = place + step
    if not 0 <= other < len(side.tokens):
        return None
    if step > 0 and side.tokens[place].name and side.tokens[other].word in RELATIVE:
        other += 1
        while other < len(side.tokens) and side.tokens[other].word in AUXILIARIES:
            other += 1
        return side.tokens[other] if other < len(side.tokens) else None
    if side.tokens[place].name and "," in between(
        side.text, side.tokens[min(place, other)], side.tokens[max(place, other)]
    ):
        return None
    return side.tokens[other]


def is_bound(tokens: Sequence[Token], place: int) -> bool:
    """Return True if a number is a bound, as in "up to 5" and "3 to 5", or a difference, as in "5 more"."""
    before = tokens[max(0, place - 2) : place]
    if before and before[-1].word == "to" and any(token.number for token in tokens[max(0, place - 3) : place]):
        return True
    if before and before[-1].word in LOOSE - ARTICLES:
        before = ()
    return any(token.word in BOUNDS for token in before) or _is_difference(tokens, place)


def is_beyond(claim: ParsedText, chunk: ParsedText) -> bool:
    """Return True if a number of a sentence may lie where the evidence goes on beyond a bound.

    "Orders up to 120 euros are shipped by post; larger ones by courier" says nothing against "an order of 400 euros".
    """
    bounds = [place for place, token in enumerate(chunk.tokens) if token.number and is_bound(chunk.tokens, place)]
    goes_on = bounds and any(token.word in BEYOND for token in chunk.tokens[bounds[0] + 1 :])
    return bool(goes_on) and any(
        token.number and token.stem not in chunk.stems and not is_bound(claim.tokens, place)
        for place, token in enumerate(claim.tokens)
    )


def _is_difference(tokens: Sequence[Token], place: int) -> bool:
    """Return True if a number is a difference of two others: "5 more", "25 metres taller than"."""
    after = [token.word for token in tokens[place + 1 : place + 5]]
    compared = [word for word, then in pairwise(after) if word.endswith("er") and then == "than"]
    return bool(compared) or not DIFFERENCES.isdisjoint(after[:3])


def _is_out_of_bounds(claim: ParsedText, place: int, chunk: ParsedText, other: int) -> bool:
    """Return True if no value meets both sides: 130 is not "up to 120", and "at least 5" is not 4."""
    (low, high), (least, most) = _range(claim.tokens, place), _range(chunk.tokens, other)
    return low > most or least > high


def _range(tokens: Sequence[Token], place: int) -> tuple[float, float]:
    """Return the smallest and the largest value that a number with the words before it allows."""
    value = _VALUE.fullmatch(tokens[place].word)
    words = [token.word for token in tokens[max(0, place - 3) : place]]
    if value is None or _is_difference(tokens, place):
        return -math.inf, math.inf
    number = float(value.group())
    if phrase_before(tokens, place, UP_TO):
        return -math.inf, number
    if phrase_before(tokens, place, FROM):
        return number, math.inf
    return (-math.inf, math.inf) if set(words[-2:]) & (BOUNDS | ABOUT) else (number, number)


def phrase_before(tokens: Sequence[Token], place: int, phrases: Iterable[Sequence[str]]) -> str:
    """Return which of the phrases stands before a token; "" if none does."""
    before = [token.word for token in tokens[max(0, place - 3) : place]]
    return next((" ".join(phrase) for phrase in phrases if before[-len(phrase) :] == phrase), "")


def turned_bounds(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a number that one side has as the smallest value and the other as the largest."""
    for place, item in enumerate(claim.tokens):
        others = chunk.places.get(item.stem, ()) if item.number else ()
        if len(others) != 1:
            continue
        for ours, theirs in ((UP_TO, FROM), (FROM, UP_TO)):
            found = phrase_before(claim.tokens, place, ours), phrase_before(chunk.tokens, others[0], theirs)
            if all(found):
                yield Difference("comparison", *found), frozenset()


def _is_rounded(claim: ParsedText, place: int, exact: Token) -> bool:
    """Return True if a number follows a word such as "about" and is near the exact one."""
    given = claim.tokens[place]
    if not given.number or not any(token.word in ABOUT for token in claim.tokens[max(0, place - 2) : place]):
        return False
    values = [_VALUE.match(token.word) for token in (given, exact)]
    ours, theirs = (float(value.group()) if value else math.inf for value in values)
    return abs(ours - theirs) <= ROUNDED * max(ours, theirs)


def units(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a number that the evidence has with another unit of the same quantity."""
    theirs = chunk.once(_measures)
    for number, unit in claim.once(_measures).items():
        other = theirs.get(number)
        if (
            other
            and UNITS[unit.word][0] == UNITS[other.word][0]
            and UNITS[unit.word][1] != UNITS[other.word][1]
            and not any(_amount(number, unit) in side.once(_amounts) for side in sides)
        ):
            yield Difference("unit", unit.text, other.text), {unit.stem}


def _amount(number: str, unit: Token) -> tuple[str, float]:
    """Return quantity and amount, so that three years are as much as 36 months."""
    quantity, size = SIZES.get(unit.word, (unit.word, 1))
    value = _VALUE.fullmatch(number)
    return (quantity, round(float(number) * size, 6)) if value else (f"{number} {unit.word}", 0.0)


def _amounts(side: ParsedText) -> frozenset[tuple[str, float]]:
    """Return the amounts that its numbers with units make."""
    return frozenset(_amount(*measure) for measure in side.once(_measures).items())


def _measures(side: ParsedText) -> dict[str, Token]:
    """Return the unit after each number, or the symbol before it."""
    found: dict[str, Token] = {}
    if not side.has_number:
        return found
    for before, token in zip(side.tokens, side.tokens[1:], strict=False):
        if before.number and token.word in UNITS:
            found[before.word] = token
        elif token.number and before.text in SYMBOLS:
            found.setdefault(token.word, before)
    return found
