"""Statements that only one side denies, and words opposite their negative form."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from syncheck.contrasts.coordination import part_of
from syncheck.contrasts.denials import EXCEPT, Denial, blocks, negates
from syncheck.contrasts.differences import Difference, Found
from syncheck.contrasts.grammar import AUXILIARIES, ONLY
from syncheck.contrasts.misplaced import UP_TO, phrase_before
from syncheck.contrasts.opposites import EXCLUSIVE, OPPOSITES
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.ruled_out import is_chosen_instead
from syncheck.contrasts.spliced import splices
from syncheck.contrasts.tokens import Token

NEGATIVE_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non")
AT_LEAST = frozenset("least over above older minimum exceeds exceeding".split())
LESS = frozenset("under below younger fewer less".split())
"""Words of bounds on one side and on the other; who denies one states the other."""
MORE = frozenset("more over above exceed exceeds exceeding heavier longer larger".split())
"""Words that, denied, say the same as "up to"."""
FEW, MANY = frozenset("few minority seldom".split()), frozenset("most many majority usually often".split())
"""Words of which one, with a denial, says the same as the other: "few have", "most have no"."""
FAILING = frozenset("fail fails failed refuse refuses refused lack lacks lacked".split())
"""Verbs that deny, so that "no" before one affirms."""
NOT_YET = frozenset("before until till".split())
"""Words after a denial that say when it ends."""
TIME = 8
"""Number of words after "before" or "until" that say until when something is denied."""
LIMITS = 4
"""Number of words after them that say what it is limited to."""
PRONOUNS = frozenset("it they he she this that these those we you who which".split())
"""Words for a subject that was named before."""


def negations(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a statement that only one side denies, and a word opposite its negative form."""
    for one, other, is_claim in ((claim, chunk, True), (chunk, claim, False)):
        if is_excepted(claim, chunk) or one.exceptions & other.stems or _has_own_number(claim, chunk):
            continue
        for denial in one.denials:
            if is_claim and any(splices(claim, chunk, sides)):
                continue  # the tenant does not pay what the landlord pays
            if _is_said(denial.head, one, other) and not _agrees(denial, one, other, is_claim=is_claim):
                pair = (denial.negator, "") if is_claim else ("", denial.negator)
                yield Difference("negation", *pair), frozenset()
                break
    for one, other, is_claim in ((claim, chunk, True), (chunk, claim, False)):
        for token, plain in one.once(_prefixed):
            if token.word in other.words or plain in one.words or token.clause in one.denied_clauses:
                continue
            met = next((o for o in other.tokens if o.word == plain), None)
            if met is not None and met.clause not in other.negative_clauses:
                pair = (token.text, met.text) if is_claim else (met.text, token.text)
                yield Difference("negation", *pair), {token.stem, met.stem}


def _prefixed(side: ParsedText) -> list[tuple[Token, str]]:
    """Return the words with a negative prefix, and what they are without it."""
    return [(token, plain) for token in side.tokens if (plain := without_prefix(token.word))]


def excluded(side: ParsedText) -> list[tuple[int, Token]]:
    """Return the words after "non", with their places: the members of "non-members"."""
    return [(n, token) for n, token in enumerate(side.tokens) if n and side.tokens[n - 1].word == "non"]


def is_excepted(claim: ParsedText, chunk: ParsedText) -> bool:
    """Return True if a sentence is about an exception of the evidence: "closed on Mondays", "daily except Mondays"."""
    return bool((chunk.exceptions & claim.stems) - claim.exceptions)


def excepted(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a sentence that says of an exception what the evidence says of all else: "open on Mondays"."""
    word = next((token for token in chunk.tokens if token.word in EXCEPT and token.word != "until"), None)
    content = {token.stem for token in claim.tokens if token.content}
    named, rest = content & chunk.exceptions - claim.exceptions, content - chunk.exceptions
    if word is None or not named or not rest or claim.exceptions:
        return
    said = {token.stem for token in chunk.tokens if token.start < word.start}
    if rest <= said and not (claim.negative_clauses or chunk.negative_clauses):
        token = next(token for token in claim.tokens if token.stem in named)
        yield Difference("negation", token.text, word.text), frozenset(named)


def _has_own_number(claim: ParsedText, chunk: ParsedText) -> bool:
    """Return True if a sentence counts other things than the evidence: "five did not" next to "eleven did"."""
    return any(token.number and token.stem not in chunk.stems for token in claim.tokens)


def bounds_differ(claim: ParsedText, chunk: ParsedText) -> bool:
    """Return True if a sentence bounds from below what the evidence bounds from above: "at least 18", "under 18"."""
    sides = [(side.words & AT_LEAST, side.words & LESS) for side in (claim, chunk)]
    opposed = any(lower and not upper and other and not also for (lower, upper), (also, other) in (sides, sides[::-1]))
    limited = [_has_upper_limit(side) for side in (claim, chunk)]
    more = [bool(side.words & MORE) and not limit for side, limit in zip((claim, chunk), limited, strict=True)]
    return opposed or (limited[0] and more[1]) or (limited[1] and more[0])


def _has_upper_limit(side: ParsedText) -> bool:
    numbers = [place for place, token in enumerate(side.tokens) if token.number]
    return any(phrase_before(side.tokens, place, UP_TO) for place in numbers) or bool(
        numbers and "between" in side.words
    )


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
        and not any(_object(other, token) & _objects_elsewhere(head, denier) for token in same)
        and sum(denial.head.stem == head.stem for denial in denier.denials) == 1  # two negators make none
        and all(_is_affirmed(token, other, denier) for token in same)
        and not _has_antonym(other, head)  # "not open" and "closed" agree
        and not any(without_prefix(token.word)[: len(head.stem)] == head.stem for token in other.tokens)
    )


def _is_affirmed(token: Token, side: ParsedText, denier: ParsedText) -> bool:
    """Return True if nothing negates a word.

    A negator in a later part of its clause, as in "but not", negates what follows, which the denier may say as well.
    """
    if token.clause not in side.negative_clauses:
        return True
    part = part_of(side, token)
    until = [n for n, t in enumerate(side.tokens) if t.start <= part[-1].start and t.clause == token.clause]
    if any(negates(side.tokens[n]) or blocks(side.tokens, n) for n in until):
        return False
    after = [t for t in side.tokens if t.start > part[-1].start and t.clause == token.clause]
    return denier.stems.isdisjoint({t.stem for t in after if t.content} - {t.stem for t in part})


def _object(side: ParsedText, verb: Token) -> frozenset[str]:
    """Return the stem of the content word that follows a word in its clause; none if there is none."""
    after = (t for t in sorted(side.tokens, key=lambda t: t.start) if t.start > verb.start and t.clause == verb.clause)
    return frozenset(itertools.islice((token.stem for token in after if token.content), 1))


def _objects_elsewhere(head: Token, side: ParsedText) -> frozenset[str]:
    """Return what follows the same word in clauses without the denial: "do not use the lift; use the stairs"."""
    elsewhere = (token for token in side.tokens if token.stem == head.stem and token.clause != head.clause)
    return frozenset().union(*(_object(side, token) for token in elsewhere))


def _shared(clause: int, side: ParsedText, other: ParsedText) -> int:
    """Return the number of content words of a clause that the other side has too."""
    return len({token.stem for token in side.tokens if token.content and token.clause == clause} & other.stems)


def _has_antonym(side: ParsedText, token: Token) -> bool:
    return any(antonyms & side.words for antonyms in _antonyms(token.word))


def _antonyms(word: str) -> Iterator[frozenset[str]]:
    """Yield the words that are true where a word is not, so that they say the same as its denial."""
    for kind, others in OPPOSITES.get(word, ()):
        if kind == "antonym" and others not in EXCLUSIVE:
            yield others


def _agrees(denial: Denial, denier: ParsedText, other: ParsedText, *, is_claim: bool) -> bool:
    """Return True if a denial does not deny what the other side says, although both have the word."""
    return (
        bounds_differ(denier, other)
        or _is_denied_twice(denial, denier)
        or _is_lacking(denial, denier, other)
        or bool(other.words & FEW and denier.words & MANY)
        or _is_until(denial, denier, other)
        or _is_of_others(denial, denier, other)
        or (is_claim and (_is_limited(denial, denier, other) or is_chosen_instead(denier, denial.head.stem, other)))
        or reverses_condition(denial, denier, other)
        or _is_of_another(denial, denier, other)
    )


def _is_denied_twice(denial: Denial, denier: ParsedText) -> bool:
    """Return True for "no member failed to come"."""
    part = part_of(denier, denial.head)
    after = any(token.start > denial.head.start and token.word in FAILING for token in part)
    return after or (denial.negator.lower() in FAILING and any(d.start < denial.start for d in denier.denials))


def _is_lacking(denial: Denial, denier: ParsedText, other: ParsedText) -> bool:
    """Return True for "found the violin but not the bow" where the other side has "the bow is missing"."""
    before = [token for token in denier.tokens if token.start < denial.start]
    if [token.word for token in before[-1:]] != ["but"]:
        return False
    told = {t.word for known in other.tokens if known.stem == denial.head.stem for t in part_of(other, known)}
    return any(not antonyms.isdisjoint(told) for token in before for antonyms in _antonyms(token.word))


def _is_until(denial: Denial, denier: ParsedText, other: ParsedText) -> bool:
    """Return True for a denial up to a time that the other side gives: "not before May", "begins in May"."""
    times = {t.stem for t in _time_after(denier, denial.head) if t.content}
    ends = any(_time_after(other, token) for token in other.tokens if token.stem == denial.head.stem)
    return not ends and not times.isdisjoint(other.stems)


def _time_after(side: ParsedText, head: Token) -> Sequence[Token]:
    """Return the few words after a "before" or "until" that follows a word in the same part."""
    tokens = part_of(side, head)
    for place, token in enumerate(tokens):
        if token.word in NOT_YET and token.start > head.start and tokens[place - 1].word != "as":
            return tokens[place + 1 : place + 1 + TIME]
    return ()


def is_cut_short(side: ParsedText, other: ParsedText) -> bool:
    """Return True if one side has a denial without a verb, "but Lee did not", of something that the other names."""
    for token in side.tokens:
        if token.content and token.stem in other.stems and len(side.places[token.stem]) == 1:
            end = part_of(side, token)[-1].word
            if end in {"not", "cannot"} or end.endswith("n't"):
                return True
    return False


def _is_of_others(denial: Denial, denier: ParsedText, other: ParsedText) -> bool:
    """Return True if the subject of a denial is not that of the other side, which the denier tells something else of.

    "Books cannot be returned, films can" does not deny that films can be returned.
    """
    part = part_of(denier, denial.head)
    subject = [token for token in part if token.start < denial.start]
    negator = denial.negator.lower().replace("\u2019", "'")
    if not (negator == "cannot" or negator.endswith("n't") or (subject and subject[-1].word in AUXILIARIES)):
        return False
    stems = {token.stem for token in subject if token.content}
    rest = {token.stem for token in denier.tokens if token.content} - {token.stem for token in part}
    return (
        bool(stems)
        and stems.isdisjoint(other.stems)
        and not any(token.word in PRONOUNS for token in subject)
        and not rest.isdisjoint(token.stem for token in other.tokens if token.content)
    )


def _is_of_another(denial: Denial, denier: ParsedText, other: ParsedText) -> bool:
    """Return True if a denial is of another member of a class than the other side has: "not red", "blue"."""
    denied = [token for token in part_of(denier, denial.head) if token.start > denial.start]
    return NOT_YET.isdisjoint(token.word for token in denied) and any(
        opposites in EXCLUSIVE
        and token.stem not in other.stems
        and not opposites.isdisjoint(other.words)
        and opposites.isdisjoint(denier.words)
        for token in denied
        for _, opposites in OPPOSITES.get(token.word, ())
    )


def _is_limited(denial: Denial, claim: ParsedText, chunk: ParsedText) -> bool:
    """Return True if the evidence says it of some only, and a sentence denies it of others, or of who is not such."""
    said = [token for token in chunk.tokens if token.stem == denial.head.stem]
    for place, token in enumerate(chunk.tokens):
        if token.word not in ONLY or not any(token in part_of(chunk, known, with_commas=True) for known in said):
            continue
        after = chunk.tokens[place + 1 : place + 1 + LIMITS]
        limits = {t.stem for t in after if t.clause == token.clause and (t.content or t.text.isupper())}
        without = denial.head.stem in limits and denial.negator.lower() == "without"
        denied = any(d.start < denial.start and d.head.stem in limits for d in claim.denials)
        denied |= any(t.start < denial.start and t.stem in limits for _, t in excluded(claim))
        if denied or not (without or limits <= claim.stems):
            return True
    return False


def reverses_condition(denial: Denial, denier: ParsedText, other: ParsedText) -> bool:
    """Return True if a denial is part of a condition, and what follows from it is reversed as well.

    "Who does not pay cannot vote" agrees with "Who pays can vote", and so does "Who does not pay loses the vote" with
    "Who pays keeps it".
    """
    if not denial.conditional or denial.head.stem not in other.stems or other.negative_clauses:
        return False
    others = [d for d in denier.denials if d.head.clause == denial.head.clause and d.head.stem != denial.head.stem]
    turned = any(antonyms & denier.words for word in other.words for antonyms in _antonyms(word))
    return turned or any(d.head.stem in other.stems for d in others)


def without_prefix(word: str) -> str:
    """Return a word without its negative prefix; "" if it has none."""
    if not word.startswith(NEGATIVE_PREFIXES):
        return ""
    return next((word[len(p) :] for p in NEGATIVE_PREFIXES if word.startswith(p) and len(word) - len(p) > 3), "")
