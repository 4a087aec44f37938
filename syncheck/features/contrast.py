"""Differences between a sentence and the chunk that agrees best with it, found word by word. English.

Counting words cannot see a "1976" in the place of the evidence's "1967". Here a sentence is aligned with a chunk,
and rules find words that take the place of others or reverse the statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache, partial
from itertools import combinations

from syncheck.features.groundedness import NUMBER_WORDS
from syncheck.features.opposites import NEGATIVE_PREFIXES, NEGATORS, OPPOSITES, UNITS
from syncheck.lexical import content_words, stem, words
from syncheck.types import ContrastKind

HELD_ENOUGH = 0.3
"""Share of a sentence's content stems that a chunk must hold to contradict it."""
FITS = 1.0
"""Smallest likeness of a rival's place: that of one shared word at the same distance."""
BETTER = 1.5
"""Factor by which a rival's place must be more alike than that of the same word."""
AS_CLOSE = 0.7
"""Chunks with at least this share of the greatest closeness are compared."""
REACH = 8
"""Words on either side of a place that show what it belongs to."""
AFTER_NEGATOR = 2
"""Content words that a negator denies."""
IN_BOUNDS = frozenset("more less fewer later earlier longer higher lower greater".split())
"""Words after the "no" of a bound such as "no more than", which denies nothing."""
BE = frozenset("is are was were be been being".split())

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|%|[$€£]|[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
SYMBOLS = {"%": "percent", "$": "dollars", "€": "euros", "£": "pounds"}
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Token:
    """A word or number: as written, normalised, its stem, and whether it is a content word and looks like a name."""

    text: str
    word: str
    stem: str
    content: bool
    name: bool

    @property
    def number(self) -> bool:
        """True if it is a number, in figures or spelled out."""
        return self.word[0].isdigit()


@dataclass(frozen=True, slots=True)
class Side:
    """The tokens of a text in order, and each negator with the words that it denies."""

    tokens: tuple[Token, ...]
    stems: frozenset[str]
    words: frozenset[str]
    denials: tuple[tuple[str, tuple[Token, ...]], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference; ``""`` on a side that has no word for it."""

    kind: ContrastKind
    sentence: str
    evidence: str


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
    **dict.fromkeys(("number", "unit", "antonym"), 0.5),
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
    closest = max((closeness for closeness, _ in near), default=0.0)
    context = frozenset().union(*(side.stems for side in sides))
    beside = [
        _beside(claim, side, place, context, near[place])
        for place, side in enumerate(sides)
        if near[place][0] >= AS_CLOSE * closest
    ]
    return max(beside, key=lambda found: (found.agreement, -found.chunk), default=Contrasted(-1, 0.0, 0.0, ()))


def _beside(claim: Side, chunk: Side, place: int, context: frozenset[str], near: tuple[float, float]) -> Contrasted:
    closeness, held = near
    if held < HELD_ENOUGH:
        return Contrasted(place, closeness, 0.0, ())
    found = tuple(dict.fromkeys(contrast for rule in _RULES for contrast in rule(claim, chunk, context)))
    inverted = _inverted(claim, chunk)
    penalty = sum(PENALTIES[contrast.kind] for contrast in found) + INVERTED_PENALTY * inverted
    return Contrasted(place, closeness - penalty, inverted, found)


def _closeness(claim: Side, chunk: Side) -> tuple[float, float]:
    """Return the share of content stems held plus half the share of words held in order, and the former alone."""
    content = {token.stem for token in claim.tokens if token.content}
    held = len(content & chunk.stems) / len(content) if content else 0.0
    ours, theirs = ([token.stem for token in side.tokens] for side in (claim, chunk))
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    in_order = sum(block.size for block in blocks)
    return held + in_order / max(1, len(claim.tokens)) / 2, held


def _negations(claim: Side, chunk: Side, _: frozenset[str]) -> Iterator[Difference]:
    """Find a statement that only one side denies, and a word opposite its negative form."""
    ours, theirs = _relevant(claim, chunk), _relevant(chunk, claim)
    if len(ours) % 2 != len(theirs) % 2:  # two negators make none
        yield Difference("negation", ours[0] if ours else "", theirs[0] if theirs else "")
        return
    for one, other, is_claim in ((claim, chunk, True), (chunk, claim, False)):
        denied = {token.stem for _, heads in other.denials for token in heads}
        for token in one.tokens:
            plain = _without_prefix(token.word)
            if plain and token.word not in other.words and plain in other.words and stem(plain) not in denied:
                met = next(o.text for o in other.tokens if o.word == plain)
                yield Difference("negation", *((token.text, met) if is_claim else (met, token.text)))


def _relevant(side: Side, other: Side) -> list[str]:
    """Return the negators of words that the other side has and that this side does not also use undenied."""
    stems = [token.stem for token in side.tokens]
    return [
        negator
        for negator, heads in side.denials
        if any(head.stem in other.stems and stems.count(head.stem) == 1 for head in heads)
        and not any(_has_antonym(other, head) for head in heads)  # "not open" and "closed" agree
    ]


def _has_antonym(side: Side, token: Token) -> bool:
    return any(kind == "antonym" and others & side.words for kind, others in OPPOSITES.get(token.word, ()))


def _without_prefix(word: str) -> str:
    return next((word[len(p) :] for p in NEGATIVE_PREFIXES if word.startswith(p) and len(word) - len(p) > 3), "")


def _numbers(claim: Side, chunk: Side, context: frozenset[str]) -> Iterator[Difference]:
    for is_year in (True, False):
        yield from _misplaced(claim, chunk, "number", partial(_is_number, year=is_year))
    for token in claim.tokens:
        if token.number and token.stem not in context:
            rivals = [o for o in chunk.tokens if _is_number(o, year=_is_year(token)) and o.stem not in claim.stems]
            if not rivals:
                yield Difference("number", token.text, "")


def _is_number(token: Token, *, year: bool) -> bool:
    """Return numbers that are years, or those that are not; "one" is a pronoun too often."""
    return token.number and _is_year(token) == year and token.text.lower() != "one"


def _is_year(token: Token) -> bool:
    return bool(_YEAR.fullmatch(token.text))


def _name_words(claim: Side, chunk: Side, _: frozenset[str]) -> Iterator[Difference]:
    yield from _misplaced(claim, chunk, "name", lambda token: token.name and not token.number)


def _misplaced(claim: Side, chunk: Side, kind: ContrastKind, of_kind: Callable[[Token], bool]) -> Iterator[Difference]:
    """Find items whose place in the evidence is taken by another item of their kind."""
    theirs = [place for place, token in enumerate(chunk.tokens) if of_kind(token)]
    for place, item in enumerate(claim.tokens):
        if not of_kind(item):
            continue
        fits = [(_likeness(claim, place, chunk, other), chunk.tokens[other]) for other in theirs]
        same = max((fit for fit, token in fits if token.stem == item.stem), default=0.0)
        rivals = [(fit, token) for fit, token in fits if token.stem != item.stem]
        if item.stem not in chunk.stems:
            rivals = [(fit, token) for fit, token in rivals if token.stem not in claim.stems]
        elif not same:  # held, as a word of another kind
            continue
        best, rival = max(rivals, key=lambda found: found[0], default=(0.0, item))
        if best >= max(FITS, BETTER * same):
            yield Difference(kind, item.text, rival.text)


def _units(claim: Side, chunk: Side, _: frozenset[str]) -> Iterator[Difference]:
    ours, theirs = _measures(claim), _measures(chunk)
    for number, unit in ours.items():
        other = theirs.get(number)
        if other and UNITS[unit.word][0] == UNITS[other.word][0] and UNITS[unit.word][1] != UNITS[other.word][1]:
            yield Difference("unit", unit.text, other.text)


def _measures(side: Side) -> dict[str, Token]:
    """Return the unit after each number, or the symbol before it."""
    found: dict[str, Token] = {}
    for before, token in zip(side.tokens, side.tokens[1:], strict=False):
        if before.number and token.word in UNITS:
            found[before.word] = token
        elif token.number and before.text in SYMBOLS:
            found.setdefault(token.word, before)
    return found


def _turned(claim: Side, chunk: Side, _: frozenset[str]) -> Iterator[Difference]:
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
            if best > BETTER * same and _is_denied(claim, token) == _is_denied(chunk, opposite):
                yield Difference(kind, token.text, opposite.text)


def _inverted(claim: Side, chunk: Side) -> float:
    """Return the share of pairs of stems, each once on both sides, whose order is reversed."""
    ours, theirs = ([t.stem for t in side.tokens if t.content] for side in (claim, chunk))
    shared = [known for known in ours if ours.count(known) == 1 and theirs.count(known) == 1]
    places = [theirs.index(known) for known in shared]
    pairs = [first > second for first, second in combinations(places, 2)]
    return sum(pairs) / len(pairs) if pairs else 0.0


_RULES: tuple[Callable[[Side, Side, frozenset[str]], Iterator[Difference]], ...]
_RULES = (_negations, _numbers, _units, _name_words, _turned)
"""Each takes the sentence, the chunk, and the stems of all chunks that are compared."""


def side_of(text: str) -> Side:
    """Read a text; a passive with an agent is put into the active."""
    tokens = _active(list(_tokens(text)))
    denials = []
    for number, token in enumerate(tokens):
        after = tokens[number + 1 : number + 6]
        if not _starts_bound(tokens, number) and (token.word in NEGATORS or token.word.endswith(("n't", "n\u2019t"))):
            denials.append((token.text, tuple([later for later in after if later.content][:AFTER_NEGATOR])))
    stems, known = (frozenset(getattr(token, name) for token in tokens) for name in ("stem", "word"))
    return Side(tuple(tokens), stems, known, tuple(denials))


def _starts_bound(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a token is the "no" of a bound such as "no more than"."""
    return tokens[place].word == "no" and any(after.word in IN_BOUNDS for after in tokens[place + 1 : place + 2])


def _active(tokens: list[Token]) -> list[Token]:
    """Put the agent of a passive first and its subject last: "B was beaten by A" becomes "A was beaten B"."""
    for by, token in enumerate(tokens):
        verbs = [place for place in range(max(0, by - 4), by) if tokens[place].word in BE]
        if token.word == "by" and verbs:
            stop = by + 1
            while stop < len(tokens) and (tokens[stop].content or stop == by + 1):
                stop += 1
            return [*tokens[by + 1 : stop], *tokens[verbs[0] : by], *tokens[: verbs[0]], *tokens[stop:]]
    return tokens


def _tokens(text: str) -> Iterator[Token]:
    start = True
    for match in _TOKEN.finditer(text):
        found = match.group()
        word, root, content = _word_of(found)
        yield Token(found, word, root, content, found[0].isupper() and content and not start)
        start = text[match.end() : match.end() + 1] in {".", "!", "?", ":"}


@lru_cache(4096)
def _word_of(found: str) -> tuple[str, str, bool]:
    """Return the normalised form of a word as written, its stem, and whether it is a content word."""
    word = SYMBOLS.get(found) or NUMBER_WORDS.get(found.lower()) or next(iter(words(found)), found)
    return word, stem(word), bool(content_words(word)) and word not in NEGATORS


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
    return any(token in heads for _, heads in side.denials)
