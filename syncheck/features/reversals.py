"""Words that reverse what the evidence says: negations, opposites, and items that have changed places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from syncheck.features.coordination import says_elsewhere
from syncheck.features.differences import BETTER, FITS, REACH, Difference, Found, likeness
from syncheck.features.opposites import CONVERSE, NEGATIVE_PREFIXES, OPPOSITES, SYMMETRIC, TITLES
from syncheck.features.parsing import ARTICLES, AUXILIARIES, ParsedText, Token, starts_bound

BETWEEN = 4
"""Largest number of words between two items that have changed places."""
AT_LEAST = frozenset("least over above older minimum exceeds exceeding".split())
LESS = frozenset("under below younger fewer less".split())
"""Words of bounds on one side and on the other; who denies one states the other."""
CONNECTING = frozenset("to than over before after above below into".split())
"""Words that need no verb beside them to tell the items on both sides apart."""


def negations(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
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


def turned(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find words whose place in the evidence has their opposite, unless a negator reverses one of the two."""
    for place, token in enumerate(claim.tokens):
        if starts_bound(claim.tokens, place):
            continue
        for kind, opposites in OPPOSITES.get(token.word, ()):
            if opposites & claim.words or opposites.isdisjoint(chunk.words):
                continue
            same = max((likeness(claim, place, chunk, other) for other in chunk.places.get(token.stem, ())), default=0)
            fits = [(likeness(claim, place, chunk, o), t) for o, t in enumerate(chunk.tokens) if t.word in opposites]
            best, opposite = max(fits, key=lambda found: found[0])
            if says_elsewhere(claim, place, chunk, chunk.tokens.index(opposite)):
                continue
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


def exchanged(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find two items on both sides of the same words that have changed places."""
    once = [token for token in claim.tokens if token.content and _is_once(claim, token) and _is_once(chunk, token)]
    places = {token.stem: chunk.places[token.stem][0] for token in once}
    ours = {token.stem: claim.places[token.stem][0] for token in once}
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
        side.name_at(place) if side.tokens[place].name else range(place, place + 1) for place in (first, second)
    )
    return side.written(before[0], after[-1])


def _has_participle(between: Sequence[str], side: ParsedText, subject: int, item: int) -> bool:
    """Return True for "A ..., succeeding B" where the sentence has "B succeeded A"."""
    verb = side.name_at(item)[0] - 1
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


def _is_once(side: ParsedText, token: Token) -> bool:
    return len(side.places.get(token.stem, ())) == 1


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
