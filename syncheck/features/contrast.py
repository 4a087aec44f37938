"""Contrasts: differences between an English sentence and the chunk that agrees best with it, found word by word.

Counts of words hardly notice a "1976" where the evidence has "1967". Here a sentence is aligned with a chunk, and rules
find words that take the place of others or reverse the statement.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from itertools import combinations

from syncheck.features.opposites import CONVERSE, NEGATIVE_PREFIXES, OPPOSITES, SIZES, SYMMETRIC, UNITS
from syncheck.features.parsing import ARTICLES, AUXILIARIES, IN_BOUNDS, SYMBOLS, ParsedText, Token, parse, starts_bound
from syncheck.types import ContrastKind

HELD_ENOUGH = 0.6
"""Share of a sentence's content stems, without those of the contrast, that a chunk must have to contradict it."""
FITS = 0.6
"""Least similarity of a rival's place; one shared word at the same distance counts 1."""
TOLD = 0.5
"""Share of a sentence's other content stems from which a chunk that has a name of it may tell of the same."""
BETTER = 1.5
"""Factor by which a rival's place must be more similar than that of the same word."""
AS_CLOSE = 0.7
"""Share of the greatest closeness from which chunks are compared."""
REACH = 8
"""Number of words on either side of a place that show what it belongs to."""
NEAR = 3
"""Number of words before a number that are likely to belong to it, and not to all that follows."""
BETWEEN = 4
"""Largest number of words between two items that have changed places."""
ROUNDED = 0.15
"""Largest relative difference of a number that is called approximate."""
BOUNDS = frozenset(
    "than over under least most exceed exceeds exceeding up below above beyond before after until by".split()
)
"""Words before a number that make it a bound."""
AT_LEAST = frozenset("least over above older minimum exceeds exceeding".split())
LESS = frozenset("under below younger fewer less".split())
"""Words of bounds on one side and on the other; who denies one states the other."""
UP_TO = [phrase.split() for phrase in ("up to", "at most", "no more than", "not more than", "not exceed", "maximum of")]
FROM = [phrase.split() for phrase in ("at least", "no less than", "no fewer than", "not less than", "minimum of")]
"""Phrases before a number that make it the largest, and the smallest, that is meant."""
DIFFERENCES = IN_BOUNDS | {"times", "cheaper", "dearer", "older", "younger"}
"""Words after a number that make it a difference of two others."""
SAME = 4
"""Number of first letters that names of the same thing share."""
LOOSE = frozenset("a an the and or of only".split())
"""Words that say nothing about their neighbours."""
ABOUT = frozenset("about around approximately roughly nearly almost some over".split())
"""Words before a number that make it approximate."""
TITLES = frozenset("mr mrs ms dr sir dame lord lady prof professor honorable honourable chief justice".split())
"""Words before names that are not part of them."""
RELATIVE = frozenset("who which that".split())
"""Words that begin a clause about the name before them."""
CONNECTING = frozenset("to than over before after above below into".split())
"""Words that need no verb beside them to tell the items on both sides apart."""

_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_VALUE = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference; a side without a word for it is ``""``."""

    kind: ContrastKind
    sentence: str
    evidence: str


Found = tuple[Difference, AbstractSet[str]]
"""A difference and the stems of the sentence that it is about."""


@dataclass(frozen=True, slots=True)
class Contrasted:
    """A sentence compared with the chunk that agrees best with it."""

    chunk: int
    """Index of the chunk; -1 if there is none."""
    agreement: float
    """Share of the sentence's content stems that the chunk has, plus half the share of its words that the chunk has in
    the same order, minus the penalties of contrasts; higher is better."""
    inverted: float
    """Share of pairs of shared stems whose order is reversed, in [0, 1]; lower is better."""
    found: tuple[Difference, ...]

    def count(self, kind: ContrastKind) -> int:
        """Return the number of contrasts of a kind."""
        return sum(contrast.kind == kind for contrast in self.found)


PENALTIES: dict[ContrastKind, float] = {
    **dict.fromkeys(("number", "unit", "antonym", "order"), 0.5),
    **dict.fromkeys(("name", "quantifier"), 0.3),
    "negation": 0.6,
    "comparison": 0.4,
}
INVERTED_PENALTY = 0.3


def contrast_with(sentence: str, chunks: Sequence[str], *, read: Callable[[str], ParsedText] = parse) -> Contrasted:
    """Compare a sentence with the few chunks that share most with it, best first; return the best agreement.

    Without chunks, the agreement is 0 and nothing is found. ``read`` may be a cached :func:`parse`.
    """
    sides = [read(chunk) for chunk in chunks]
    claim = read(sentence).with_names(frozenset().union(*(side.names for side in sides)))
    near = [_closeness(claim, side) for side in sides]
    beside = [
        _beside(claim, side, place, sides, closeness)
        for place, (side, closeness) in enumerate(zip(sides, near, strict=True))
        if closeness >= AS_CLOSE * max(near)
    ]
    return max(beside, key=lambda found: (found.agreement, -found.chunk), default=Contrasted(-1, 0.0, 0.0, ()))


def _beside(
    claim: ParsedText, chunk: ParsedText, place: int, sides: Sequence[ParsedText], closeness: float
) -> Contrasted:
    found = tuple(
        dict.fromkeys(
            contrast
            for rule in _RULES
            for contrast, about in rule(claim, chunk, sides)
            if _held(claim, chunk, about) >= HELD_ENOUGH
        )
    )
    inverted = _inverted(claim, chunk)
    penalty = sum(PENALTIES[contrast.kind] for contrast in found) + INVERTED_PENALTY * inverted
    return Contrasted(place, closeness - penalty, inverted, found)


def _closeness(claim: ParsedText, chunk: ParsedText) -> float:
    """Return the share of content stems that the chunk has plus half the share of words that it has in order."""
    ours, theirs = ([token.stem for token in side.tokens] for side in (claim, chunk))
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    in_order = sum(block.size for block in blocks)
    return _held(claim, chunk) + in_order / max(1, len(claim.tokens)) / 2


def _held(claim: ParsedText, chunk: ParsedText, without: AbstractSet[str] = frozenset()) -> float:
    """Return the share of the sentence's content stems that the chunk has; 0 if there are none."""
    content = {token.stem for token in claim.tokens if token.content} - without
    return len(content & chunk.stems) / len(content) if content else 0.0


def _negations(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a statement that only one side denies, and a word opposite its negative form."""
    for one, other, is_claim in ((claim, chunk, True), (chunk, claim, False)):
        if one.exceptions & other.stems or _has_own_number(claim, chunk) or _bounds_differ(claim, chunk):
            continue
        for denial in one.denials:
            if _is_said(denial.head, one, other):
                pair = (denial.negator, "") if is_claim else ("", denial.negator)
                yield Difference("negation", *pair), frozenset()
                break
    for one, other, is_claim in ((claim, chunk, True), (chunk, claim, False)):
        for token in one.tokens:
            plain = _without_prefix(token.word)
            if not plain or token.word in other.words or plain in one.words or token.clause in one.denied_clauses:
                continue
            met = next((o for o in other.tokens if o.word == plain), None)
            if met is not None and met.clause not in other.negative_clauses:
                pair = (token.text, met.text) if is_claim else (met.text, token.text)
                yield Difference("negation", *pair), {token.stem, met.stem}


def _has_own_number(claim: ParsedText, chunk: ParsedText) -> bool:
    """Return True if a sentence counts other things than the evidence: "five did not" next to "eleven did"."""
    return any(token.number and token.stem not in chunk.stems for token in claim.tokens)


def _bounds_differ(claim: ParsedText, chunk: ParsedText) -> bool:
    """Return True if a sentence bounds from below what the evidence bounds from above: "at least 18", "under 18"."""
    sides = [(side.words & AT_LEAST, side.words & LESS) for side in (claim, chunk)]
    return any(lower and not upper and other and not also for (lower, upper), (also, other) in (sides, sides[::-1]))


def _is_said(head: Token, denier: ParsedText, other: ParsedText) -> bool:
    """Return True if one side says without negation what the other side denies once.

    Where the denier has the word in several clauses, the one with the denial must share most with the other side.
    """
    same = [token for token in other.tokens if token.stem == head.stem]
    times = Counter(token.clause for token in denier.tokens if token.stem == head.stem)
    shared = {clause: _shared(clause, denier, other) for clause in times}
    return (
        bool(same)
        and times[head.clause] == 1
        and all(shared[clause] < shared[head.clause] for clause in times if clause != head.clause)
        and sum(denial.head.stem == head.stem for denial in denier.denials) == 1  # two negators make none
        and other.negative_clauses.isdisjoint(token.clause for token in same)
        and not _has_antonym(other, head)  # "not open" and "closed" agree
        and not any(_without_prefix(token.word)[: len(head.stem)] == head.stem for token in other.tokens)
    )


def _shared(clause: int, side: ParsedText, other: ParsedText) -> int:
    """Return the number of content words of a clause that the other side has too."""
    return len({token.stem for token in side.tokens if token.content and token.clause == clause} & other.stems)


def _has_antonym(side: ParsedText, token: Token) -> bool:
    return any(kind == "antonym" and others & side.words for kind, others in OPPOSITES.get(token.word, ()))


def _without_prefix(word: str) -> str:
    return next((word[len(p) :] for p in NEGATIVE_PREFIXES if word.startswith(p) and len(word) - len(p) > 3), "")


def _is_number(token: Token, *, year: bool) -> bool:
    """Return True for a number that is a year, or is not."""
    return token.number and bool(_YEAR.fullmatch(token.text)) == year


def _is_name(token: Token) -> bool:
    """Return True if a token is a name; an initial or an abbreviation may stand for a full name, a title for none."""
    return token.name and not token.number and not token.text.isupper() and token.word not in TITLES


def _misplaced(
    claim: ParsedText,
    chunk: ParsedText,
    sides: Sequence[ParsedText],
    kind: ContrastKind,
    of_kind: Callable[[Token], bool],
) -> Iterator[Found]:
    """Find items whose place in the evidence has another item of their kind.

    A place is recognised by the words around it; a neighbour of it must be the same.
    """
    for place, item in enumerate(claim.tokens):
        if not of_kind(item):
            continue
        fits = {other: _likeness(claim, place, chunk, other) for other, t in enumerate(chunk.tokens) if of_kind(t)}
        same = max((fit for other, fit in fits.items() if chunk.tokens[other].stem == item.stem), default=0.0)
        if _is_elsewhere(place, claim, chunk, sides, kind, same):
            continue
        exchanged = same and not (kind == "name" and _in_list(claim, place))
        held = {item.stem} if exchanged else claim.stems
        rivals = {
            other: fit
            for other, fit in fits.items()
            if chunk.tokens[other].stem not in held
            and not (kind == "name" and _is_same_name(claim, place, chunk, other))
            and _has_neighbour(claim, place, chunk, other)
        }
        best = max(rivals, key=rivals.__getitem__, default=None)
        if best is None or rivals[best] < max(FITS, BETTER * same):
            continue
        if exchanged and kind == "number" and (_is_part(chunk, item, best) or not _is_closer(claim, chunk, item, best)):
            continue
        if exchanged and kind == "name" and not _is_exchanged(claim, place, chunk, best):
            continue
        alike = _is_bound(claim.tokens, place) == _is_bound(chunk.tokens, best)
        differs = alike and not _is_rounded(claim, place, chunk.tokens[best])
        if kind == "name" or differs or _is_out_of_bounds(claim, place, chunk, best):
            yield Difference(kind, item.text, chunk.tokens[best].text), {item.stem}


def _is_same_name(claim: ParsedText, place: int, chunk: ParsedText, other: int) -> bool:
    """Return True if two names may be of the same thing.

    They begin with the same letters ("France", "French"), or the evidence has more of the full name in another place:
    with "the league" in it, "Australian Capital Territory" does not contradict "Australian Football League".
    """
    if _plain(chunk.tokens[other].word)[:SAME] == _plain(claim.tokens[place].word)[:SAME]:
        return True
    item = claim.tokens[place].stem
    rest = _full_name(claim, place) - _full_name(chunk, other) - {item}
    return item not in chunk.stems and not rest.isdisjoint(chunk.stems)


def _plain(word: str) -> str:
    """Return a word without accents."""
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))


def _run(side: ParsedText, place: int) -> range:
    """Return the places of the name, of one or more words, that a token belongs to."""
    first = last = place
    while first > 0 and side.tokens[first - 1].name and _is_beside(side, first - 1):
        first -= 1
    while last + 1 < len(side.tokens) and side.tokens[last + 1].name and _is_beside(side, last):
        last += 1
    return range(first, last + 1)


def _is_beside(side: ParsedText, place: int) -> bool:
    """Return True if only white space is between a token and the next one."""
    before, after = side.tokens[place : place + 2]
    return before.start < after.start and not side.text[before.start + len(before.text) : after.start].strip()


def _is_exchanged(claim: ParsedText, place: int, chunk: ParsedText, other: int) -> bool:
    """Return True if a name stands beside a word that, in the evidence, stands beside another name.

    The other name must not stand beside the same word in both.
    """
    rival = chunk.tokens[other].stem
    ours, theirs = (
        {beside for n, token in enumerate(side.tokens) if token.stem == rival for beside in _next_to(side, n)}
        for side in (claim, chunk)
    )
    return ours.isdisjoint(theirs) and not set(_next_to(claim, place)).isdisjoint(_next_to(chunk, other))


def _next_to(side: ParsedText, place: int) -> Iterator[tuple[int, str]]:
    """Yield the words before (-1) and after (1) a name as stems."""
    run = _run(side, place)
    for step, end in ((-1, run[0]), (1, run[-1])):
        other = _neighbour(side, end, step)
        if other is not None and other.word not in LOOSE:
            yield step, other.stem


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
    own = [place for place, token in enumerate(chunk.tokens) if token.stem == item.stem]
    comes_first = own[0] < rival
    content = {token.stem for token in claim.tokens if token.content and not token.number and token.word not in UNITS}
    votes = 0
    for known in content:
        places = [place for place, token in enumerate(chunk.tokens) if token.stem == known]
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
    """Return True if the evidence has an item in another place, so that only a closer match may contradict it."""
    item = claim.tokens[place].stem
    holders = [side for side in sides if item in side.stems]
    if kind == "number" or not holders:
        return bool(holders) and not same
    name = _full_name(claim, place) | {token.stem for token in claim.tokens if token.word in TITLES}
    told = max((_held(claim, side, name) for side in holders if side is not chunk), default=0.0)
    return told >= TOLD or _held(claim, chunk, name) < 1


def _full_name(side: ParsedText, place: int) -> frozenset[str]:
    return frozenset(side.tokens[n].stem for n in _run(side, place))


def _in_list(side: ParsedText, place: int) -> bool:
    """Return True if there is a comma next to a name."""
    run = _run(side, place)
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
    """Return the next word (1) or the one before (-1); after a name, "who had" and the like are passed over."""
    other = place + step
    if step > 0 and side.tokens[place].name and side.tokens[other : other + 1] and side.tokens[other].word in RELATIVE:
        other += 1
        while other < len(side.tokens) and side.tokens[other].word in AUXILIARIES:
            other += 1
    return side.tokens[other] if 0 <= other < len(side.tokens) else None


def _likeness(claim: ParsedText, place: int, chunk: ParsedText, other: int) -> float:
    """Return the similarity of the words around two places; a shared word counts less the more its offsets differ."""
    own = _run(claim, place)
    around = {
        (token.stem, number - place)
        for number, token in enumerate(claim.tokens[max(0, place - REACH) : place + REACH + 1], max(0, place - REACH))
        if number not in own and token.content and token.word not in UNITS
    }
    offsets: dict[str, list[int]] = {}
    for number, token in enumerate(chunk.tokens):
        if number != other:
            offsets.setdefault(token.stem, []).append(number - other)
    nearest = (min(abs(offset - o) for o in offsets[known]) for known, offset in around if known in offsets)
    return sum(1 / (1 + distance) for distance in nearest)


def _is_bound(tokens: Sequence[Token], place: int) -> bool:
    """Return True if a number is a bound, as in "up to 5", or a difference, as in "5 more"."""
    before, after = tokens[max(0, place - 2) : place], tokens[place + 1 : place + 4]
    if before and before[-1].word in LOOSE - ARTICLES:
        before = ()
    return any(token.word in BOUNDS for token in before) or any(token.word in DIFFERENCES for token in after)


def _is_out_of_bounds(claim: ParsedText, place: int, chunk: ParsedText, other: int) -> bool:
    """Return True if no value meets both sides: 130 is not "up to 120", and "at least 5" is not 4."""
    (low, high), (least, most) = _range(claim.tokens, place), _range(chunk.tokens, other)
    return low > most or least > high


def _range(tokens: Sequence[Token], place: int) -> tuple[float, float]:
    """Return the smallest and the largest value that a number with the words before it allows."""
    value = _VALUE.fullmatch(tokens[place].word)
    words = [token.word for token in tokens[max(0, place - 3) : place]]
    if value is None or any(token.word in DIFFERENCES for token in tokens[place + 1 : place + 4]):
        return -math.inf, math.inf
    number = float(value.group())
    if _phrase_before(tokens, place, UP_TO):
        return -math.inf, number
    if _phrase_before(tokens, place, FROM):
        return number, math.inf
    return (-math.inf, math.inf) if set(words[-2:]) & (BOUNDS | ABOUT) else (number, number)


def _phrase_before(tokens: Sequence[Token], place: int, phrases: Iterable[Sequence[str]]) -> str:
    """Return which of the phrases stands before a token; "" if none does."""
    before = [token.word for token in tokens[max(0, place - 3) : place]]
    return next((" ".join(phrase) for phrase in phrases if before[-len(phrase) :] == phrase), "")


def _turned_bounds(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a number that one side has as the smallest value and the other as the largest."""
    for place, item in enumerate(claim.tokens):
        others = [other for other, token in enumerate(chunk.tokens) if token.number and token.stem == item.stem]
        if not item.number or len(others) != 1:
            continue
        for ours, theirs in ((UP_TO, FROM), (FROM, UP_TO)):
            found = _phrase_before(claim.tokens, place, ours), _phrase_before(chunk.tokens, others[0], theirs)
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


def _units(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Found]:
    ours, theirs = _measures(claim), _measures(chunk)
    amounts = {_amount(*measure) for side in sides for measure in _measures(side).items()}
    for number, unit in ours.items():
        other = theirs.get(number)
        if (
            _amount(number, unit) not in amounts
            and other
            and UNITS[unit.word][0] == UNITS[other.word][0]
            and UNITS[unit.word][1] != UNITS[other.word][1]
        ):
            yield Difference("unit", unit.text, other.text), {unit.stem}


def _amount(number: str, unit: Token) -> tuple[str, float]:
    """Return quantity and amount, so that three years are as much as 36 months."""
    quantity, size = SIZES.get(unit.word, (unit.word, 1))
    value = _VALUE.fullmatch(number)
    return (quantity, round(float(number) * size, 6)) if value else (f"{number} {unit.word}", 0.0)


def _measures(side: ParsedText) -> dict[str, Token]:
    """Return the unit after each number, or the symbol before it."""
    found: dict[str, Token] = {}
    for before, token in zip(side.tokens, side.tokens[1:], strict=False):
        if before.number and token.word in UNITS:
            found[before.word] = token
        elif token.number and before.text in SYMBOLS:
            found.setdefault(token.word, before)
    return found


def _turned(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find words whose place in the evidence has their opposite, unless a negator reverses one of the two."""
    for place, token in enumerate(claim.tokens):
        if starts_bound(claim.tokens, place):
            continue
        same = max(
            (_likeness(claim, place, chunk, o) for o, t in enumerate(chunk.tokens) if t.stem == token.stem), default=0
        )
        for kind, opposites in OPPOSITES.get(token.word, ()):
            if opposites & claim.words:
                continue
            fits = [(_likeness(claim, place, chunk, o), t) for o, t in enumerate(chunk.tokens) if t.word in opposites]
            best, opposite = max(fits, key=lambda found: found[0], default=(0.0, token))
            if token.word in CONVERSE and _has_crossed(claim, token, chunk, opposite):
                continue
            if _is_denied(claim, token) == _is_denied(chunk, opposite) and best >= max(FITS, BETTER * same):
                yield Difference(kind, token.text, opposite.text), {token.stem}


def _is_denied(side: ParsedText, token: Token) -> bool:
    """Return True if a word is denied, or its object is, as in "pay nothing"."""
    after = next((later.word for later in side.tokens if later.start > token.start), "")
    return side.denies(token) or after in {"no", "nothing", "none"}


def _has_crossed(claim: ParsedText, token: Token, chunk: ParsedText, opposite: Token) -> bool:
    """Return True if a content word that is before the word comes after its opposite."""
    return any(
        ours.stem == theirs.stem and ours.content and ours.start < token.start and theirs.start > opposite.start
        for ours in claim.tokens
        for theirs in chunk.tokens
    )


def _exchanged(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find two items on both sides of the same words that have changed places."""
    once = [token for token in claim.tokens if token.content and _times(claim, token) == _times(chunk, token) == 1]
    places = {token.stem: place for place, token in enumerate(chunk.tokens)}
    ours = {token.stem: place for place, token in enumerate(claim.tokens)}
    for first, second in combinations(once, 2):
        between = _between(claim, ours[first.stem], ours[second.stem])
        if between and (
            between == _between(chunk, places[second.stem], places[first.stem])
            or _has_participle(between, chunk, places[second.stem], places[first.stem])
            or (first.name and second.name and _joins(between, chunk, places[second.stem], places[first.stem]))
        ):
            yield (
                Difference(
                    "order",
                    _written(claim, ours[first.stem], ours[second.stem]),
                    _written(chunk, places[second.stem], places[first.stem]),
                ),
                frozenset(),
            )
            return


def _written(side: ParsedText, first: int, second: int) -> str:
    """Return the text from one item to another, with the whole of each name."""
    before, after = (
        _run(side, place) if side.tokens[place].name else range(place, place + 1) for place in (first, second)
    )
    return side.written(before[0], after[-1])


def _has_participle(between: Sequence[str], side: ParsedText, subject: int, item: int) -> bool:
    """Return True for "A ..., succeeding B" where the sentence has "B succeeded A"."""
    verb = _run(side, item)[0] - 1
    if not 0 <= subject < verb or side.tokens[subject].clause != side.tokens[item].clause:
        return False
    token = side.tokens[verb]
    begins = side.text[: token.start].rstrip().endswith(",") and side.tokens[subject].name
    names = {other.stem for other in side.tokens if other.name}
    return begins and token.word.endswith("ing") and [known for known in between if known not in names] == [token.stem]


def _joins(between: Sequence[str], side: ParsedText, first: int, second: int) -> bool:
    """Return True if the same words stand between two names of a clause, perhaps with an apposition: "the sprinter"."""
    inner = [t.stem for t in side.tokens[first + 1 : second]]
    left = iter(inner)
    return (
        0 < len(inner) <= REACH
        and side.tokens[first].clause == side.tokens[second].clause
        and all(known in left for known in between)
        and ("by" in inner) == ("by" in between)
    )


def _times(side: ParsedText, token: Token) -> int:
    return sum(other.stem == token.stem for other in side.tokens)


def _between(side: ParsedText, first: int, second: int) -> tuple[str, ...]:
    """Return the stems between two items that a verb or a word such as "than" joins; none where they may be exchanged.

    Items of different clauses, in reversed order, or far apart have nothing between them.
    """
    inner = [t for t in side.tokens[first + 1 : second] if t.word not in AUXILIARIES | ARTICLES | TITLES]
    if not 0 < len(inner) <= BETWEEN or side.tokens[first].clause != side.tokens[second].clause:
        return ()
    ends = (side.tokens[first], side.tokens[second])
    if "," in side.written(first, second) or any(t.word.endswith("ly") for t in ends):
        return ()
    if any(t.word in SYMMETRIC for t in inner) or not any(t.content or t.word in CONNECTING for t in inner):
        return ()
    return tuple(t.stem for t in inner)


def _inverted(claim: ParsedText, chunk: ParsedText) -> float:
    """Return the share of pairs of stems, each once on both sides, whose order is reversed."""
    ours, theirs = ([t.stem for t in side.tokens if t.content] for side in (claim, chunk))
    shared = [known for known in ours if ours.count(known) == 1 and theirs.count(known) == 1]
    places = [theirs.index(known) for known in shared]
    pairs = [first > second for first, second in combinations(places, 2)]
    return sum(pairs) / len(pairs) if pairs else 0.0


_RULES: tuple[Callable[[ParsedText, ParsedText, Sequence[ParsedText]], Iterator[Found]], ...] = (
    _negations,
    *(partial(_misplaced, kind="number", of_kind=partial(_is_number, year=year)) for year in (True, False)),
    _units,
    _turned_bounds,
    partial(_misplaced, kind="name", of_kind=_is_name),
    _turned,
    _exchanged,
)
