"""Differences between a sentence and the chunk that agrees best with it, found word by word. English.

Counting words cannot see a "1976" in the place of the evidence's "1967". Here a sentence is aligned with a chunk,
and rules find words that take the place of others or reverse the statement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache, partial
from itertools import combinations, zip_longest

from syncheck.features.groundedness import NUMBER_WORDS
from syncheck.features.opposites import (
    BLOCKERS,
    CONVERSE,
    EXCEPT,
    IRREGULAR,
    NEGATIVE_PREFIXES,
    NEGATORS,
    NOT_DENYING,
    OPPOSITES,
    SYMMETRIC,
    UNITS,
)
from syncheck.lexical import content_words, stem, words
from syncheck.types import ContrastKind

HELD_ENOUGH = 0.6
"""Share of a sentence's content stems, those of the contrast apart, that a chunk must hold to contradict it."""
FITS = 0.6
"""Smallest likeness of a rival's place; one shared word at the same distance counts 1."""
BETTER = 1.5
"""Factor by which a rival's place must be more alike than that of the same word."""
AS_CLOSE = 0.7
"""Chunks with at least this share of the greatest closeness are compared."""
REACH = 8
"""Words on either side of a place that show what it belongs to."""
AFTER_NEGATOR = 5
"""Words after a negator of which it denies the first content word."""
LONG = 4
"""Letters of a word that is no abbreviation."""
BETWEEN = 4
"""Most words between two items that have changed places."""
ROUNDED = 0.15
"""Largest relative difference of a number that is said to be rounded."""
IN_BOUNDS = frozenset("more less fewer later earlier sooner longer higher lower greater".split())
"""Words between "no" and "than" in a bound such as "no more than", which denies nothing."""
BOUNDS = frozenset(
    "than over under least most exceed exceeds exceeding up below above beyond before after until by".split()
)
"""Words before a number that is a bound."""
DIFFERENCES = IN_BOUNDS | {"times", "cheaper", "dearer", "older", "younger"}
"""Words after a number that compares two others."""
SAME = 4
"""First letters that names have in common if they are of the same thing."""
LOOSE = frozenset("a an the and or of".split())
"""Words that show nothing of what is beside them."""
ABOUT = frozenset("about around approximately roughly nearly almost some over".split())
"""Words before a number that is rounded."""
BE = frozenset("is are was were be been being".split())
ARTICLES = frozenset("a an the".split())
TITLES = frozenset("mr mrs ms dr".split())
CONNECTING = frozenset("to than over before after above below into".split())
"""Words that need no verb beside them to tell the items on both sides apart."""

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|%|[$€£]|[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
SYMBOLS = {"%": "percent", "$": "dollars", "€": "euros", "£": "pounds"}
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_VALUE = re.compile(r"\d+(?:\.\d+)?")
_STOP = re.compile(r"[.!?;:\n](?=\s)|\n")


@dataclass(frozen=True, slots=True)
class Token:
    """A word or number: as written, normalised, its stem, and whether it is a content word and looks like a name."""

    text: str
    word: str
    stem: str
    content: bool
    name: bool
    start: int
    clause: int
    """Number of stops, colons and semicolons before it."""

    @property
    def number(self) -> bool:
        """True if it is a number, in figures or spelled out."""
        return self.word[0].isdigit()


@dataclass(frozen=True, slots=True)
class Denial:
    """A negator and the word that it denies."""

    negator: str
    head: Token


@dataclass(frozen=True, slots=True)
class Side:
    """A text with its tokens in order, what it denies, and what it takes out with "unless" and the like."""

    text: str
    tokens: tuple[Token, ...]
    stems: frozenset[str]
    words: frozenset[str]
    denials: tuple[Denial, ...]
    negative_clauses: frozenset[int]
    exceptions: frozenset[str]
    """Stems that occur in an exception alone."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference; ``""`` on a side that has no word for it."""

    kind: ContrastKind
    sentence: str
    evidence: str


Found = tuple[Difference, AbstractSet[str]]
"""A difference and the stems of the sentence that it is about."""


@dataclass(frozen=True, slots=True)
class Contrasted:
    """A sentence compared with the chunk that agrees best with it."""

    chunk: int
    """Index of the chunk; -1 where there is none."""
    agreement: float
    """Share of the sentence's content stems that the chunk holds, plus half the share of its words that the chunk has
    in the same order, less the penalties of contrasts; higher is better."""
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


def contrast_with(sentence: str, chunks: Sequence[str], *, read: Callable[[str], Side] | None = None) -> Contrasted:
    """Compare a sentence with the few chunks that share most with it, the best first; return the one that agrees best.

    Without chunks the agreement is 0 and nothing is found. ``read`` is a :func:`side_of` that remembers what it read.
    """
    read = read or side_of
    claim, sides = read(sentence), [read(chunk) for chunk in chunks]
    near = [_closeness(claim, side) for side in sides]
    context = frozenset().union(*(side.stems for side in sides))
    beside = [
        _beside(claim, side, place, context, closeness)
        for place, (side, closeness) in enumerate(zip(sides, near, strict=True))
        if closeness >= AS_CLOSE * max(near)
    ]
    return max(beside, key=lambda found: (found.agreement, -found.chunk), default=Contrasted(-1, 0.0, 0.0, ()))


def _beside(claim: Side, chunk: Side, place: int, context: frozenset[str], closeness: float) -> Contrasted:
    found = tuple(
        dict.fromkeys(
            contrast
            for rule in _RULES
            for contrast, about in rule(claim, chunk, context)
            if _held(claim, chunk, about) >= HELD_ENOUGH
        )
    )
    inverted = _inverted(claim, chunk)
    penalty = sum(PENALTIES[contrast.kind] for contrast in found) + INVERTED_PENALTY * inverted
    return Contrasted(place, closeness - penalty, inverted, found)


def _closeness(claim: Side, chunk: Side) -> float:
    """Return the share of content stems held plus half the share of words held in order."""
    ours, theirs = ([token.stem for token in side.tokens] for side in (claim, chunk))
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    in_order = sum(block.size for block in blocks)
    return _held(claim, chunk) + in_order / max(1, len(claim.tokens)) / 2


def _held(claim: Side, chunk: Side, without: AbstractSet[str] = frozenset()) -> float:
    """Return the share of the sentence's content stems that the chunk holds; 0 if there is none."""
    content = {token.stem for token in claim.tokens if token.content} - without
    return len(content & chunk.stems) / len(content) if content else 0.0


def _negations(claim: Side, chunk: Side, _: frozenset[str]) -> Iterator[Found]:
    """Find a statement that only one side denies, and a word opposite its negative form."""
    for one, other, is_claim in ((claim, chunk, True), (chunk, claim, False)):
        if one.exceptions & other.stems or _has_own_number(claim, chunk):
            continue
        for denial in one.denials:
            if _is_said(denial.head, one, other):
                pair = (denial.negator, "") if is_claim else ("", denial.negator)
                yield Difference("negation", *pair), frozenset()
                break
    for one, other, is_claim in ((claim, chunk, True), (chunk, claim, False)):
        for token in one.tokens:
            plain = _without_prefix(token.word)
            if not plain or token.word in other.words or plain in one.words or token.clause in _denied_clauses(one):
                continue
            met = next((o for o in other.tokens if o.word == plain), None)
            if met is not None and met.clause not in other.negative_clauses:
                pair = (token.text, met.text) if is_claim else (met.text, token.text)
                yield Difference("negation", *pair), {token.stem, met.stem}


def _has_own_number(claim: Side, chunk: Side) -> bool:
    """Return whether a sentence counts something else than the evidence, as "five did not" beside "eleven did"."""
    return any(token.number and token.text.lower() != "one" and token.stem not in chunk.stems for token in claim.tokens)


def _is_said(head: Token, denier: Side, other: Side) -> bool:
    """Return whether a side says, without any negation, what the other side denies once."""
    same = [token for token in other.tokens if token.stem == head.stem]
    return (
        bool(same)
        and sum(token.stem == head.stem for token in denier.tokens) == 1
        and sum(denial.head.stem == head.stem for denial in denier.denials) == 1  # two negators make none
        and other.negative_clauses.isdisjoint(token.clause for token in same)
        and not _has_antonym(other, head)  # "not open" and "closed" agree
        and not any(_without_prefix(token.word)[: len(head.stem)] == head.stem for token in other.tokens)
    )


def _denied_clauses(side: Side) -> frozenset[int]:
    return frozenset(denial.head.clause for denial in side.denials)


def _has_antonym(side: Side, token: Token) -> bool:
    return any(kind == "antonym" and others & side.words for kind, others in OPPOSITES.get(token.word, ()))


def _without_prefix(word: str) -> str:
    return next((word[len(p) :] for p in NEGATIVE_PREFIXES if word.startswith(p) and len(word) - len(p) > 3), "")


def _numbers(claim: Side, chunk: Side, context: frozenset[str]) -> Iterator[Found]:
    for is_year in (True, False):
        yield from _misplaced(claim, chunk, context, "number", partial(_is_number, year=is_year))


def _is_number(token: Token, *, year: bool) -> bool:
    """Return numbers that are years, or those that are not; "one" is a pronoun too often."""
    return token.number and bool(_YEAR.fullmatch(token.text)) == year and token.text.lower() != "one"


def _name_words(claim: Side, chunk: Side, context: frozenset[str]) -> Iterator[Found]:
    yield from _misplaced(claim, chunk, context, "name", _is_name)


def _is_name(token: Token) -> bool:
    """Return whether a token is a name; an initial or an abbreviation may stand for a written one."""
    return token.name and not token.number and not token.text.isupper()


def _misplaced(
    claim: Side, chunk: Side, context: frozenset[str], kind: ContrastKind, of_kind: Callable[[Token], bool]
) -> Iterator[Found]:
    """Find items whose place in the evidence is taken by another item of their kind.

    A place is known by the words around it; one of those beside it has to be the same.
    """
    for place, item in enumerate(claim.tokens):
        if not of_kind(item):
            continue
        fits = {other: _likeness(claim, place, chunk, other) for other, t in enumerate(chunk.tokens) if of_kind(t)}
        same = max((fit for other, fit in fits.items() if chunk.tokens[other].stem == item.stem), default=0.0)
        if _is_elsewhere(item, claim, chunk, context, kind, same):
            continue
        exchanged = same and not (kind == "name" and _in_list(claim, item))
        held = {item.stem} if exchanged else claim.stems
        rivals = {
            other: fit
            for other, fit in fits.items()
            if chunk.tokens[other].stem not in held
            and not (kind == "name" and chunk.tokens[other].word[:SAME] == item.word[:SAME])  # "France", "French"
            and _has_neighbour(claim, place, chunk, other)
        }
        best = max(rivals, key=rivals.__getitem__, default=None)
        if best is None or rivals[best] < max(FITS, BETTER * same):
            continue
        if exchanged and kind == "number" and not _is_closer(claim, chunk, item, best):
            continue
        alike = _is_bound(claim.tokens, place) == _is_bound(chunk.tokens, best)
        if kind == "name" or (alike and not _is_rounded(claim, place, chunk.tokens[best])):
            yield Difference(kind, item.text, chunk.tokens[best].text), {item.stem}


def _is_closer(claim: Side, chunk: Side, item: Token, rival: int) -> bool:
    """Return whether more of the sentence's content words are closer to the rival than to the same number.

    Orders differ: beside "at 6:30 on weekdays and at 9 on Sundays" it is true that "on Sundays it opens at nine".
    """
    own = [place for place, token in enumerate(chunk.tokens) if token.stem == item.stem]
    content = {token.stem for token in claim.tokens if token.content and not token.number and token.word not in UNITS}
    votes = 0
    for known in content:
        places = [place for place, token in enumerate(chunk.tokens) if token.stem == known]
        if places:
            to_rival = min(abs(place - rival) for place in places)
            to_own = min(abs(place - other) for place in places for other in own)
            votes += (to_rival < to_own) - (to_own < to_rival)
    return votes > 0 or (votes == 0 and sum(token.number for token in claim.tokens) > 1)


def _is_elsewhere(
    item: Token, claim: Side, chunk: Side, context: frozenset[str], kind: ContrastKind, same: float
) -> bool:
    """Return whether the evidence has an item in another place, so that only a closer match may contradict it."""
    if item.stem not in context:
        return False
    return _held(claim, chunk, {item.stem}) < 1 if kind == "name" else not same


def _in_list(side: Side, token: Token) -> bool:
    """Return whether there is a comma beside a token."""
    return side.text[: token.start].rstrip().endswith(",") or side.text.startswith(",", token.start + len(token.text))


def _has_neighbour(claim: Side, place: int, chunk: Side, other: int) -> bool:
    """Return whether the word before or after is the same; different units are of different things."""
    for step in (1, -1):
        if 0 <= place + step < len(claim.tokens) and 0 <= other + step < len(chunk.tokens):
            ours, theirs = claim.tokens[place + step], chunk.tokens[other + step]
            if step > 0 and ours.word in UNITS and theirs.word in UNITS:
                return UNITS[ours.word] == UNITS[theirs.word]
            if ours.stem == theirs.stem and ours.word not in LOOSE:
                return True
    return False


def _is_bound(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a number is a bound, as in "up to 5", or a difference, as in "5 more"."""
    before, after = tokens[max(0, place - 2) : place], tokens[place + 1 : place + 4]
    return any(token.word in BOUNDS for token in before) or any(token.word in DIFFERENCES for token in after)


def _is_rounded(claim: Side, place: int, exact: Token) -> bool:
    """Return whether a number follows a word such as "about" and is near the exact one."""
    given = claim.tokens[place]
    if not given.number or not any(token.word in ABOUT for token in claim.tokens[max(0, place - 2) : place]):
        return False
    values = [_VALUE.match(token.word) for token in (given, exact)]
    ours, theirs = (float(value.group()) if value else math.inf for value in values)
    return abs(ours - theirs) <= ROUNDED * max(ours, theirs)


def _units(claim: Side, chunk: Side, _: frozenset[str]) -> Iterator[Found]:
    ours, theirs = _measures(claim), _measures(chunk)
    for number, unit in ours.items():
        other = theirs.get(number)
        if other and UNITS[unit.word][0] == UNITS[other.word][0] and UNITS[unit.word][1] != UNITS[other.word][1]:
            yield Difference("unit", unit.text, other.text), {unit.stem}


def _measures(side: Side) -> dict[str, Token]:
    """Return the unit after each number, or the symbol before it."""
    found: dict[str, Token] = {}
    for before, token in zip(side.tokens, side.tokens[1:], strict=False):
        if before.number and token.word in UNITS:
            found[before.word] = token
        elif token.number and before.text in SYMBOLS:
            found.setdefault(token.word, before)
    return found


def _turned(claim: Side, chunk: Side, _: frozenset[str]) -> Iterator[Found]:
    """Find words whose place in the evidence is taken by their opposite, unless a negator reverses one of them."""
    for place, token in enumerate(claim.tokens):
        if _starts_bound(claim.tokens, place):
            continue
        same = max(
            (_likeness(claim, place, chunk, o) for o, t in enumerate(chunk.tokens) if t.word == token.word), default=0
        )
        for kind, opposites in OPPOSITES.get(token.word, ()):
            if opposites & claim.words:
                continue
            fits = [(_likeness(claim, place, chunk, o), t) for o, t in enumerate(chunk.tokens) if t.word in opposites]
            best, opposite = max(fits, key=lambda found: found[0], default=(0.0, token))
            if token.word in CONVERSE and _has_crossed(claim, token, chunk, opposite):
                continue
            alike = _is_denied(claim, token) == _is_denied(chunk, opposite)
            if alike and best >= max(FITS, BETTER * same):
                yield Difference(kind, token.text, opposite.text), {token.stem}


def _has_crossed(claim: Side, token: Token, chunk: Side, opposite: Token) -> bool:
    """Return whether a content word before the word is after its opposite."""
    return any(
        ours.stem == theirs.stem and ours.content and ours.start < token.start and theirs.start > opposite.start
        for ours in claim.tokens
        for theirs in chunk.tokens
    )


def _exchanged(claim: Side, chunk: Side, _: frozenset[str]) -> Iterator[Found]:
    """Find two items on both sides of the same words that have changed places."""
    once = [token for token in claim.tokens if token.content and _times(claim, token) == _times(chunk, token) == 1]
    places = {token.stem: place for place, token in enumerate(chunk.tokens)}
    ours = {token.stem: place for place, token in enumerate(claim.tokens)}
    for first, second in combinations(once, 2):
        between = _between(claim, ours[first.stem], ours[second.stem])
        if between and between == _between(chunk, places[second.stem], places[first.stem]):
            yield (
                Difference(
                    "order",
                    _written(claim, ours[first.stem], ours[second.stem]),
                    _written(chunk, places[second.stem], places[first.stem]),
                ),
                frozenset(),
            )
            return


def _times(side: Side, token: Token) -> int:
    return sum(other.stem == token.stem for other in side.tokens)


def _between(side: Side, first: int, second: int) -> tuple[str, ...]:
    """Return the stems between two items that a verb or a word such as "than" joins; none where they may be exchanged.

    Items of different clauses, in reversed order, or far apart have nothing between them.
    """
    inner = [t for t in side.tokens[first + 1 : second] if t.word not in BE | ARTICLES | TITLES]
    if not 0 < len(inner) <= BETWEEN or side.tokens[first].clause != side.tokens[second].clause:
        return ()
    ends = (side.tokens[first], side.tokens[second])
    if "," in _written(side, first, second) or any(t.word.endswith("ly") for t in ends):
        return ()
    if any(t.word in SYMMETRIC for t in inner) or not any(t.content or t.word in CONNECTING for t in inner):
        return ()
    return tuple(t.stem for t in inner)


def _written(side: Side, first: int, second: int) -> str:
    """Return the text from one token to another as it was written."""
    tokens = side.tokens[first : second + 1]
    last = max(tokens, key=lambda token: token.start)
    return side.text[min(token.start for token in tokens) : last.start + len(last.text)]


def _inverted(claim: Side, chunk: Side) -> float:
    """Return the share of pairs of stems, each once on both sides, whose order is reversed."""
    ours, theirs = ([t.stem for t in side.tokens if t.content] for side in (claim, chunk))
    shared = [known for known in ours if ours.count(known) == 1 and theirs.count(known) == 1]
    places = [theirs.index(known) for known in shared]
    pairs = [first > second for first, second in combinations(places, 2)]
    return sum(pairs) / len(pairs) if pairs else 0.0


_RULES: tuple[Callable[[Side, Side, frozenset[str]], Iterator[Found]], ...]
_RULES = (_negations, _numbers, _units, _name_words, _turned, _exchanged)


def side_of(text: str) -> Side:
    """Read a text; a passive with an agent is put into the active."""
    written = list(_tokens(text))
    denials = [found for place in range(len(written)) if (found := _denial(text, written, place))]
    blocked = {token.clause for token in written if token.word in BLOCKERS}
    tokens = _active(written)
    excepted = _excepted(written)
    stated = {token.stem for token in written if token.start not in excepted}
    return Side(
        text,
        tuple(tokens),
        stems=frozenset(token.stem for token in tokens),
        words=frozenset(token.word for token in tokens),
        denials=tuple(denials),
        negative_clauses=frozenset(blocked | {token.clause for token in written if _negates(token)}),
        exceptions=frozenset(token.stem for token in written if token.content) - stated,
    )


def _negates(token: Token) -> bool:
    return token.word in NEGATORS or token.word.endswith("n't")


def _denial(text: str, tokens: Sequence[Token], place: int) -> Denial | None:
    """Return what the negator at a place denies: the first content word soon after it."""
    negator = tokens[place]
    if not _negates(negator) or _starts_bound(tokens, place):
        return None
    answers = negator.word == "no" and text[negator.start + len(negator.text) :].startswith(",")
    before = tokens[max(0, place - 1) : place]
    if negator.word == "failed" and any(token.word in ARTICLES for token in before):
        return None
    hypothetical = any(t.word == "if" and t.clause == negator.clause for t in tokens[:place])
    if answers or hypothetical:
        return None
    for later in tokens[place + 1 : place + 1 + AFTER_NEGATOR]:
        if later.clause != negator.clause or later.word in NOT_DENYING:
            return None
        if later.content and later.word not in IN_BOUNDS:
            return Denial(negator.text, later)
    return None


def _excepted(tokens: Sequence[Token]) -> set[int]:
    """Return the starts of the tokens after a word such as "unless" in their clause."""
    found, clause = set(), -1
    for token in tokens:
        if token.clause == clause:
            found.add(token.start)
        elif token.word in EXCEPT:
            clause = token.clause
    return found


def _starts_bound(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a token is the "no" of a bound such as "no more than"."""
    after = tokens[place + 1 : place + 3]
    is_bound = len(after) == 2 and after[0].word in IN_BOUNDS and after[1].word == "than"
    return is_bound and tokens[place].word in {"no", "not"}


def _active(tokens: list[Token]) -> list[Token]:
    """Put the agent of a passive first and its subject last: "B was beaten by A" becomes "A was beaten B"."""
    if sum(token.word == "by" for token in tokens) > 1:
        return tokens
    for by, token in enumerate(tokens[:-1]):
        verbs = [place for place in range(max(0, by - 4), by) if tokens[place].word in BE]
        if token.word == "by" and verbs and not tokens[by + 1].number:
            stop = by + 1
            while stop < len(tokens) and (tokens[stop].content or stop == by + 1):
                stop += 1
            return [*tokens[by + 1 : stop], *tokens[verbs[0] : by], *tokens[: verbs[0]], *tokens[stop:]]
    return tokens


def _tokens(text: str) -> Iterator[Token]:
    """Read the words and numbers; a short capitalised word before a full stop, such as "Dr.", ends no clause."""
    found, start, clause, end, last = list(_TOKEN.finditer(text)), True, 0, 0, ""
    for match, following in zip_longest(found, found[1:]):
        written = match.group()
        stop = _STOP.search(text, end, match.start() + 1)
        if stop and not (stop.group() == "." and last.istitle() and len(last) < LONG):
            clause, start = clause + 1, True
        word, root, content = _word_of(written)
        begins_name = start and following is not None and following.group()[0].isupper()
        name = written[0].isupper() and content and (begins_name or not start)
        yield Token(written, word, root, content, name, match.start(), clause)
        start, end, last = False, match.end(), written


def _time(found: str) -> str:
    """Return a time of day without leading zero and full hour; "" for anything else."""
    return found.lstrip("0").removesuffix(":00") if ":" in found and found[0].isdigit() else ""


@lru_cache(4096)
def _word_of(found: str) -> tuple[str, str, bool]:
    """Return the normalised form of a word as written, its stem, and whether it is a content word."""
    known = SYMBOLS.get(found) or NUMBER_WORDS.get(found.lower()) or _time(found)
    word = known or next(iter(words(found.replace("\u2019", "'"))), found)
    return word, stem(IRREGULAR.get(word, word)), bool(content_words(word)) and word not in NEGATORS


def _likeness(claim: Side, place: int, chunk: Side, other: int) -> float:
    """Return how alike the words around two places are; a shared word counts less the more its offsets differ."""
    around = {
        (token.stem, number - place)
        for number, token in enumerate(claim.tokens[max(0, place - REACH) : place + REACH + 1], max(0, place - REACH))
        if number != place and token.content and token.word not in UNITS
    }
    offsets: dict[str, list[int]] = {}
    for number, token in enumerate(chunk.tokens):
        if number != other:
            offsets.setdefault(token.stem, []).append(number - other)
    nearest = (min(abs(offset - o) for o in offsets[known]) for known, offset in around if known in offsets)
    return sum(1 / (1 + distance) for distance in nearest)


def _is_denied(side: Side, token: Token) -> bool:
    """Return whether a negator comes shortly before a word."""
    return any(token == denial.head for denial in side.denials)
