"""Shallow parsing of an English text: words and numbers in order, clauses, denials and exceptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from syncheck.features.contrasts.inflection import IRREGULAR
from syncheck.features.contrasts.opposites import BLOCKERS, EXCEPT, MAY, NEGATORS, NOT_DENYING, SIZES, UNITS
from syncheck.features.groundedness import NUMBER_WORDS, packaged_names, packaged_rarity
from syncheck.lexical import content_words, stem, words

if TYPE_CHECKING:
    from nltk.stem.snowball import SnowballStemmer

AFTER_NEGATOR = 5
"""Number of words after a negator of which it denies the first content word."""
LONG = 4
"""Number of letters from which a word is no abbreviation."""
LONG_TITLES = frozenset("Prof Capt Messrs Supt".split())
"""Those that are abbreviations nevertheless."""
IN_BOUNDS = frozenset("more less fewer later earlier sooner longer higher lower greater".split())
"""Words between "no" and "than" in a bound such as "no more than", which denies nothing."""
BE = frozenset("is are was were be been being".split())
AUXILIARIES = BE | frozenset("had has have having will would can could may might shall should must do does did".split())
ARTICLES = frozenset("a an the".split())
CONJUNCTIONS = frozenset("and but or while whereas then".split())
CONDITIONS = frozenset("who whoever that when whenever".split())
"""Words before a negator that make it part of a condition; "if" before it denies nothing."""
OBJECTS = frozenset("nobody nothing none".split())
"""Negators that, before a comma, deny nothing after it: "told nobody, ..."."""
SWEEPING = frozenset(
    "all any anything each every everybody everyone everything everywhere no nobody none nothing nowhere".split()
)
"""Words after which "but" begins an exception."""
NOT_YET = frozenset("before until till".split())
"""Words after a denial that say when it ends."""
BEFORE_MONTHS = frozenset("in of on since until by from during last next early late mid to and every each".split())
"""Words after which "May" is the month."""

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|%|[$€£]|\b[AaPp]\.[Mm]\b|[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
SYMBOLS = {"%": "percent", "$": "dollars", "€": "euros", "£": "pounds"}
HALVES_OF_DAY = {"a.m": "am", "p.m": "pm"}
SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_PART_ENDS = re.compile(r"[,;:()\u2013\u2014]")
_CLOCK = re.compile(r"(?P<hour>\d{1,2})(?:[:.](?P<minute>[0-5]\d))?")
_PLAIN = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_FORMULA = re.compile(r"\$(\d+(?:[.,]\d+)*)\$")
"""A number between the marks of a formula, which are no dollars."""
_STOP = re.compile(r"[.!?;:\n](?=\s)|\n")


@dataclass(frozen=True, slots=True)
class Token:
    """A word or number as written, normalised and as a stem; ``content`` and ``name`` are flags of its kind."""

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
        """True if it is a number, in figures or spelled out; "one" only before a unit, since it is often a pronoun."""
        return self.word[0].isdigit()


@dataclass(frozen=True, slots=True)
class Denial:
    """A negator, where it stands, and the word that it denies."""

    negator: str
    start: int
    head: Token
    conditional: bool
    """True in a condition, such as "who do not pay" or "without a ticket"."""


class Amount(NamedTuple):
    """A number in figures or words, such as "45", "45 thousand" or "forty-five thousand": tokens and value."""

    first: int
    stop: int
    value: float


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A text with its tokens in order, its denials, and its exceptions after "unless" and the like."""

    text: str
    tokens: tuple[Token, ...]
    stems: frozenset[str]
    words: frozenset[str]
    denials: tuple[Denial, ...]
    negative_clauses: frozenset[int]
    exceptions: frozenset[str]
    """Stems that occur only in exceptions."""
    places: Mapping[str, Sequence[int]]
    """Indices of the tokens with each stem."""
    amounts: tuple[Amount, ...]
    """Numbers of one or more words."""
    parts: tuple[tuple[int, ...], ...]
    """Indices of the tokens between commas and conjunctions, in the order of the text."""

    @property
    def names(self) -> frozenset[str]:
        """Words that are names, or parts of names."""
        return frozenset(token.word for token in self.tokens if token.name)

    def with_names(self, names: AbstractSet[str]) -> ParsedText:
        """Return the text with these words as names where they are capitalised, be it at the start of a sentence."""
        found = [
            replace(token, name=True) if token.text[0].isupper() and token.word in names else token
            for token in self.tokens
        ]
        return replace(self, tokens=tuple(found))

    @property
    def plain_words(self) -> frozenset[str]:
        """Words that are written without a capital."""
        return frozenset(token.word for token in self.tokens if token.text.islower())

    def without_names(self, words: AbstractSet[str]) -> ParsedText:
        """Return the text with these words as no names where they begin a sentence, which capitalises any word."""
        firsts = {clause: min(t.start for t in self.tokens if t.clause == clause) for clause in self.clauses}
        found = [
            replace(token, name=False) if token.word in words and token.start == firsts[token.clause] else token
            for token in self.tokens
        ]
        return replace(self, tokens=tuple(found))

    @property
    def clauses(self) -> frozenset[int]:
        """Numbers of the clauses."""
        return frozenset(token.clause for token in self.tokens)

    @property
    def denied_clauses(self) -> frozenset[int]:
        """Numbers of the clauses with a denied word."""
        return frozenset(denial.head.clause for denial in self.denials)

    def denies(self, token: Token) -> bool:
        """Return True if a negator comes shortly before a token."""
        return any(token.start == denial.head.start for denial in self.denials)

    def negated(self, token: Token, *, reach: int = AFTER_NEGATOR) -> bool:
        """Return True if a negator stands a few words before a token, with no comma between, whatever it denies."""
        before = [other for other in self.tokens if other.start < token.start][-reach:]
        negators = (other for other in before if negates(other) and other.clause == token.clause)
        return any("," not in self.text[other.start : token.start] for other in negators)

    @property
    def denied_conditions(self) -> frozenset[str]:
        """Stems that a condition denies: those of "register" in "who do not register" and "if you do not register"."""
        return frozenset(
            next((t.stem for t in self.tokens[n + 1 :] if t.content), "")
            for n, token in enumerate(self.tokens)
            if negates(token)
            and any(t.word in CONDITIONS | {"if"} and t.clause == token.clause for t in self.tokens[max(0, n - 4) : n])
        )

    def held_by(self, other: ParsedText, without: AbstractSet[str] = frozenset()) -> float:
        """Return the share of the content stems, but for some, that another text has; 0 if there are none."""
        content = {token.stem for token in self.tokens if token.content} - without
        return len(content & other.stems) / len(content) if content else 0.0

    def name_at(self, place: int) -> range:
        """Return the places of the name, of one or more words, that a token belongs to."""
        first = last = place
        while first > 0 and self.tokens[first - 1].name and self._is_beside(first - 1):
            first -= 1
        while last + 1 < len(self.tokens) and self.tokens[last + 1].name and self._is_beside(last):
            last += 1
        return range(first, last + 1)

    def full_name(self, place: int) -> frozenset[str]:
        """Return the stems of the name that a token belongs to."""
        return frozenset(self.tokens[n].stem for n in self.name_at(place))

    def _is_beside(self, place: int) -> bool:
        """Return True if only white space is between a token and the next one."""
        return not between(self.text, *self.tokens[place : place + 2])

    def written(self, first: int, second: int) -> str:
        """Return the text from one token to another as it was written."""
        tokens = self.tokens[first : second + 1]
        last = max(tokens, key=lambda token: token.start)
        return self.text[min(token.start for token in tokens) : last.start + len(last.text)]


def parse(text: str) -> ParsedText:
    """Parse a text; a passive with an agent is turned into the active."""
    written = list(_tokens(text))
    denials = [found for place in range(len(written)) if (found := _denial(text, written, place))]
    blocked = {token.clause for token in written if token.word in BLOCKERS}
    tokens = _active(written)
    excepted = _excepted(text, written)
    stated = {token.stem for token in written if token.start not in excepted}
    places: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        places.setdefault(token.stem, []).append(place)
    return ParsedText(
        text,
        tuple(tokens),
        stems=frozenset(token.stem for token in tokens),
        words=frozenset(token.word for token in tokens),
        denials=tuple(denials),
        negative_clauses=frozenset(blocked | {token.clause for token in written if negates(token)}),
        exceptions=frozenset(token.stem for token in written if token.content) - stated,
        places=places,
        amounts=tuple(_amounts(text, tokens)),
        parts=tuple(_parts(text, tokens)),
    )


def _parts(text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, ...]]:
    order = sorted(range(len(tokens)), key=lambda place: tokens[place].start)
    starts = [n for n in range(1, len(order)) if _begins_part(text, [tokens[p] for p in order[n - 1 : n + 2]])]
    for first, stop in pairwise([0, *starts, len(order)]):
        yield tuple(order[first:stop])


def _begins_part(text: str, around: Sequence[Token]) -> bool:
    """Return True if a part begins with the second of two or three tokens.

    "15, 1915" and "30 and 40" are one part, "in 2022 and 7 million" are two.
    """
    before, token, *after = around
    is_joined = token.word in CONJUNCTIONS
    following = after[0] if is_joined and after else token
    if before.number and following.number and is_year(before) <= is_year(following):
        return False
    gap = text[before.start + len(before.text) : token.start]
    return is_joined or token.clause != before.clause or _PART_ENDS.search(gap) is not None


def respelled(claim: ParsedText, sides: Sequence[ParsedText]) -> str:
    """Return a sentence with numbers and units as other texts write them: "24 months" for "two years".

    What no other text has stays as it is.
    """
    text, taken = claim.text, len(claim.text)
    theirs = {key: written for side in sides for key, _, written in _quantities(side)}
    for key, start, written in sorted(_quantities(claim), key=lambda found: (-found[1], -len(found[2]))):
        is_new = start + len(written) <= taken and not any(_has_words(side.text, written) for side in sides)
        if is_new and key in theirs:
            text, taken = text[:start] + theirs[key] + text[start + len(written) :], start
    return text


def _quantities(side: ParsedText) -> Iterator[tuple[object, int, str]]:
    """Yield what numbers with units, numbers, and units mean, where they begin and how they are written."""
    for first, stop, value in side.amounts:
        start, unit = side.tokens[first].start, side.tokens[stop : stop + 1]
        if unit and unit[0].word in SIZES:
            quantity, size = SIZES[unit[0].word]
            yield (quantity, round(value * size, 6)), start, side.written(first, stop)
        yield value, start, side.written(first, stop - 1)
    yield from _times(side)
    for token in side.tokens:
        if token.word in UNITS and token.text.isalpha():
            yield UNITS[token.word], token.start, token.text


def _times(side: ParsedText) -> Iterator[tuple[object, int, str]]:
    """Yield the times of day, in minutes: "2:30 p.m." is "14:30"."""
    for token, after in zip_longest(side.tokens, side.tokens[1:]):
        clock = _CLOCK.fullmatch(token.text)
        half = after.word if after is not None and after.word in HALVES_OF_DAY.values() else ""
        if clock and (half or ":" in token.text):
            hour = int(clock["hour"]) % 12 + 12 * (half == "pm") if half else int(clock["hour"])
            written = side.text[token.start : after.start + len(after.text)] if half and after else token.text
            yield ("time", 60 * hour + int(clock["minute"] or 0)), token.start, written


def _has_words(text: str, written: str) -> bool:
    return re.search(rf"(?<![\w.,]){re.escape(written)}(?!\w)", text, re.IGNORECASE) is not None


def negates(token: Token) -> bool:
    """Return True for a word such as "not", or one that ends in n't."""
    return token.word in NEGATORS or token.word.endswith("n't")


def _denial(text: str, tokens: Sequence[Token], place: int) -> Denial | None:
    """Return the denial by the negator at a place: that of the first content word shortly after it."""
    negator = tokens[place]
    if not negates(negator) or starts_bound(tokens, place):
        return None
    answers = negator.word == "no" and text[negator.start + len(negator.text) :].startswith(",")
    before = tokens[max(0, place - 1) : place]
    if negator.word == "non" and not any(token.word in BE for token in before):  # "non-members" are denied nothing
        return None
    if negator.word == "failed" and any(token.word in ARTICLES for token in before):
        return None
    hypothetical = any(t.word == "if" and t.clause == negator.clause for t in tokens[:place])
    is_alternative = negator.word == "not" and any(token.word == "or" for token in before)
    is_object = negator.word in OBJECTS and text[negator.start + len(negator.text) :].startswith(",")
    if answers or hypothetical or is_alternative or is_object:
        return None
    conditional = negator.word == "without" or any(
        token.word in CONDITIONS and token.clause == negator.clause for token in tokens[max(0, place - 4) : place]
    )
    for later in tokens[place + 1 : place + 1 + AFTER_NEGATOR]:
        if later.clause != negator.clause or later.word in NOT_DENYING:
            return None
        if later.content and later.word not in IN_BOUNDS:
            return Denial(negator.text, negator.start, later, conditional)
    return None


def _excepted(text: str, tokens: Sequence[Token]) -> set[int]:
    """Return the starts of the tokens after a word such as "unless" in their clause; before it, only up to a comma."""
    found, clause, first, named = set(), -1, False, False
    for place, token in enumerate(tokens):
        last = tokens[place - 1] if place else None
        if (first and last is not None and "," in between(text, last, token)) or (named and token.word in AUXILIARIES):
            clause = -1
        if token.clause == clause:
            found.add(token.start)
        elif _excepts(tokens, place):
            clause, first = token.clause, last is None or last.clause != token.clause
            named = token.word not in {"unless", "until"}
    return found


def _excepts(tokens: Sequence[Token], place: int) -> bool:
    """Return True if a token begins an exception; "but" does after "all" and the like: "all seats but two"."""
    token, before = tokens[place], tokens[max(0, place - 2) : place]
    if token.word == "but":
        return any(other.word in SWEEPING and other.clause == token.clause for other in before)
    if token.word == "exception":
        return any(other.word == "with" for other in before)
    is_past = token.word == "until" and any(other.word == "now" for other in tokens[place + 1 : place + 2])
    return token.word in EXCEPT and not is_past


def starts_bound(tokens: Sequence[Token], place: int) -> bool:
    """Return True if a token is the "no" of a bound such as "no more than"."""
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
    """Read the words and numbers; a full stop after "Dr.", or "p.m." before a small letter, ends no clause."""
    marked = _FORMULA.sub(r" \1 ", text)
    found, start, clause, end, last = list(_TOKEN.finditer(marked)), True, 0, 0, ""
    for match, following in zip_longest(found, found[1:]):
        written = match.group()
        stop = _STOP.search(text, end, match.start() + 1)
        abbreviated = last.istitle() and (len(last) < LONG or last in LONG_TITLES)
        abbreviated |= last.lower() in HALVES_OF_DAY and written[0].islower()
        if stop and not (stop.group() == "." and abbreviated):
            clause, start = clause + 1, True
        word, root, content = _word_of(written)
        if written == "May" and _is_month("" if start else last, following):
            word, root, content = MAY, MAY, True
        if written.lower() == "one" and (following is None or following.group().lower() not in UNITS):
            word = "one"
        begins_name = start and following is not None and following.group()[0].isupper()
        speaks = start and text[match.end() : match.end() + 1] == ":"
        name = (
            written[0].isupper() and content and (begins_name or speaks or not start or _is_like_a_name(written, word))
        )
        yield Token(written, word, root, content, name, match.start(), clause)
        start, end, last = False, match.end(), written


def _amounts(text: str, tokens: Sequence[Token]) -> Iterator[Amount]:
    """Read the numbers; "10:30" is none."""
    place = 0
    while place < len(tokens):
        found = _amount(text, tokens, place)
        if found is not None:
            yield found
        place = place + 1 if found is None else found.stop


def _amount(text: str, tokens: Sequence[Token], first: int) -> Amount | None:
    """Read the number that begins at a place."""
    if not _PLAIN.fullmatch(tokens[first].word):
        return None
    total, part, place = 0.0, _value(tokens[first]), first + 1
    while place < len(tokens) and between(text, tokens[place - 1], tokens[place]) in ("", "-"):
        token, after = tokens[place], tokens[place + 1 : place + 2]
        if token.word == "hundred":
            part *= 100
        elif token.word in SCALES:
            total, part = total + part * SCALES[token.word], 0.0
        elif _is_spelled(token) and tokens[first].text.isalpha():
            part += _value(token)
        elif not (
            token.word == "and" and tokens[place - 1].word in {"hundred", *SCALES} and any(map(_is_spelled, after))
        ):
            break
        place += 1
    return Amount(first, place, total + part)


def _is_spelled(token: Token) -> bool:
    return token.text.isalpha() and (token.number or token.word == "one")


def _value(token: Token) -> float:
    return 1.0 if token.word == "one" else float(token.word.replace(",", ""))


def is_year(token: Token) -> bool:
    """Return True for a number from 1000 to 2099 in four figures."""
    return _YEAR.fullmatch(token.text) is not None


def between(text: str, before: Token, after: Token) -> str:
    """Return what stands between two tokens, without white space; any other text if they are in reversed order."""
    return text[before.start + len(before.text) : after.start].strip() if before.start < after.start else "<"


def _is_like_a_name(written: str, word: str) -> bool:
    """Return True if the first word of a sentence is a name, or unknown: "Laudo founded it"."""
    return (
        written.istitle()
        and len(written) >= LONG - 1
        and (word in packaged_names() or not packaged_rarity().counts.get(stem(word)))
    )


def _is_month(before: str, following: re.Match[str] | None) -> bool:
    """Return True if a "May" stands beside a number or after a word that dates have."""
    beside = (before, "" if following is None else following.group())
    return before.lower() in BEFORE_MONTHS or any(word[:1].isdigit() for word in beside)


def _time(found: str) -> str:
    """Return a time of day without leading zero and without ":00"; "" for anything else."""
    return found.lstrip("0").removesuffix(":00") if ":" in found and found[0].isdigit() else ""


@lru_cache(4096)
def _word_of(found: str) -> tuple[str, str, bool]:
    """Return the normalised form of a word as written, its stem, and whether it is a content word."""
    known = SYMBOLS.get(found) or HALVES_OF_DAY.get(found.lower()) or NUMBER_WORDS.get(found.lower()) or _time(found)
    word = known or next(iter(words(found.replace("\u2019", "'"))), found)
    root = word if word[0].isdigit() else _stemmer().stem(IRREGULAR.get(word, word))
    return word, root, bool(content_words(word)) and word not in NEGATORS


@lru_cache(maxsize=1)
def _stemmer() -> SnowballStemmer:
    from nltk.stem.snowball import SnowballStemmer

    return SnowballStemmer("english")
