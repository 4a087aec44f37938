"""Words that reverse what the evidence says: opposites, and items that have changed places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations, pairwise, product

from syncheck.contrasts.coordination import is_of_its_thing, joins, says_elsewhere, says_otherwise_elsewhere
from syncheck.contrasts.denials import starts_bound
from syncheck.contrasts.differences import BETTER, FITS, REACH, Difference, Found, likeness
from syncheck.contrasts.grammar import (
    ARTICLES,
    AUXILIARIES,
    BE,
    DATES,
    NEGATORS,
    STANDING_IN,
    SYMMETRIC,
    TITLES,
)
from syncheck.contrasts.misplaced import BOUNDS
from syncheck.contrasts.negations import bounds_differ, is_cut_short, is_excepted
from syncheck.contrasts.opposites import CONVERSE, EXCLUSIVE, OPPOSITES, TRADE, OppositeKind
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.sequence import are_in_same_order
from syncheck.contrasts.tokens import Token
from syncheck.contrasts.units import UNITS
from syncheck.results.types import ContrastKind

COMPARING = 8
"""Largest number of words between two items that are compared by "than"."""
BETWEEN = 4
"""Largest number of words between two items that have changed places."""
RANGES = frozenset("from to and or between".split())
"""Words before days and months that begin or end a range, besides bounds."""
ORDINALS = frozenset("ground first second third fourth fifth sixth seventh eighth ninth tenth".split())
REST = 2
"""Least number of content words beside a word by which a chunk is about the same."""
MODALS = frozenset("must shall may might".split())
"""Verbs that say what has to be and what may be."""
ASIDE = frozenset("also ever even still then only always".split())
"""Words between such a verb and what it is about."""
NOT_QUITE = frozenset("not almost nearly practically virtually".split())
"""Words before "all" and "every" that leave some out."""
DEGREES = frozenset("more less as".split())
"""Words before an adjective that is compared."""
TIMES = frozenset("before after".split())
HANDED = frozenset("given taught sent".split())
"""Participles whose subject may be who gets something: "they were given it"."""
ASIDE_OF_ITEMS = AUXILIARIES | ARTICLES | TITLES | STANDING_IN
"""Words between two items that do not join them."""
CONNECTING = frozenset("to than over before after above below into".split())
"""Words that need no verb beside them to tell the items on both sides apart."""


def turned(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find words whose place in the evidence has their opposite, unless a negator reverses one of the two.

    A place is recognised by the words around it, or because the evidence has all the rest of the sentence and only one
    opposite.
    """
    if is_excepted(claim, chunk) or _condition_is_reversed(claim, chunk):
        return
    for place, token in enumerate(claim.tokens):
        if token.word not in OPPOSITES or starts_bound(claim.tokens, place):
            continue
        for kind, opposites in OPPOSITES[token.word]:
            if opposites & claim.words or opposites.isdisjoint(chunk.words):
                continue
            best = _place_of(kind, claim, place, chunk, opposites)
            if best is not None and not _agree(kind, claim, place, chunk, best, exclusive=opposites in EXCLUSIVE):
                named: ContrastKind = "name" if token.word in DATES else kind
                yield Difference(named, token.text, chunk.tokens[best].text), {token.stem}
                break


def _place_of(
    kind: OppositeKind, claim: ParsedText, place: int, chunk: ParsedText, opposites: AbstractSet[str]
) -> int | None:
    """Return where the evidence has an opposite of a word in the same place, if it does."""
    token = claim.tokens[place]
    alike = [
        other
        for other, t in enumerate(chunk.tokens)
        if t.stem == token.stem or (kind, opposites) in OPPOSITES.get(t.word, ())
    ]
    if alike and (opposites in EXCLUSIVE or token.word in TRADE):
        return None
    same = max((likeness(claim, place, chunk, other) for other in alike), default=0)
    fits = {other: likeness(claim, place, chunk, other) for other, t in enumerate(chunk.tokens) if t.word in opposites}
    best = max(fits, key=fits.__getitem__)
    if any(joins(chunk, other, best) for other in alike):
        return None
    is_only = not alike and len({chunk.tokens[other].stem for other in fits}) == 1
    if opposites in EXCLUSIVE and not _is_of_same_sort(claim, place, chunk, best, is_only=is_only):
        return None
    if fits[best] >= max(FITS, BETTER * same) and token.word not in DATES:
        return best
    told = is_only and kind == "antonym" and _is_rest_told(claim, token, chunk)
    return best if told and token.content and UNITS.keys().isdisjoint((token.word, chunk.tokens[best].word)) else None


def _is_rest_told(claim: ParsedText, token: Token, chunk: ParsedText) -> bool:
    """Return True if the evidence has all other words of a sentence, which are a few at least."""
    others = {t.stem for t in claim.tokens if t.content and not t.number and t.start != token.start}
    return len(others) >= REST and others <= chunk.stems


def _is_of_same_sort(claim: ParsedText, place: int, chunk: ParsedText, other: int, *, is_only: bool) -> bool:
    """Return True if two members of a class may stand for each other.

    They are no part of a name, such as "White House"; the first and the second are so of the same; days and months come
    after the same word, and bound nothing.
    """
    token, rival = claim.tokens[place], chunk.tokens[other]
    if token.word in DATES:
        ours, theirs = _before_date(claim, place), _before_date(chunk, other)
        return ours == theirs and ours not in BOUNDS | RANGES
    if token.word in ORDINALS:
        ours, theirs = (
            next((t.stem for t in side.tokens[n + 1 : n + 2]), "") for side, n in ((claim, place), (chunk, other))
        )
        return is_only and ours == theirs
    return not token.name and not rival.name


def _before_date(side: ParsedText, place: int) -> str:
    """Return the word before a day or month, and before its number."""
    before = [t.word for t in side.tokens[max(0, place - 2) : place] if not t.number]
    return before[-1] if before else ""


def _agree(
    kind: OppositeKind, claim: ParsedText, place: int, chunk: ParsedText, other: int, *, exclusive: bool
) -> bool:
    """Return True if a word and its opposite may both be true."""
    token, opposite = claim.tokens[place], chunk.tokens[other]
    if _is_compared(claim, place) != _is_compared(chunk, other):
        return True
    if says_elsewhere(claim, place, chunk, other) or _is_denied(claim, token) != _is_denied(chunk, opposite):
        return True
    if kind == "antonym" and (
        _is_said_otherwise(claim, place, chunk, other) or is_of_its_thing(claim, place, chunk, other)
    ):
        return True
    if exclusive and _has_denial(claim, token) != _has_denial(chunk, opposite):
        return True
    if kind == "quantifier":
        return _amounts_agree(claim, place, chunk, other)
    if token.word in TIMES and are_in_same_order(claim, chunk):
        return True
    if kind == "comparison" and (_is_converse(claim, token, chunk, opposite) or _bound_is_denied(claim, chunk)):
        return True
    if token.word in TRADE:
        passives = [side.tokens[n].word for side, n in ((claim, place), (chunk, other)) if _is_passive(side, n)]
        return (
            len(passives) == 2
            or not HANDED.isdisjoint(passives)
            or any(
                known.content and n < place and any(p > other for p in chunk.places.get(known.stem, ()))
                for n, known in enumerate(claim.tokens)
            )
        )
    return token.word in CONVERSE and _has_crossed(claim, token, chunk, opposite)


def _is_compared(side: ParsedText, place: int) -> bool:
    """Return True for "common" in "more common than", which calls nothing common, and for "more" in "more than 5"."""
    if any(token.word in DEGREES for token in side.tokens[max(0, place - 1) : place]):
        return any(token.word in {"than", "as"} and token.start > side.tokens[place].start for token in side.tokens)
    after = [*side.tokens[place + 1 : place + 4]]
    is_bound = len(after) > 1 and after[0].word == "than" and (after[1].number or after[1].word == "one")
    return is_bound and not any(token.word == "times" for token in after)


def _is_passive(side: ParsedText, place: int) -> bool:
    """Return True for a passive that names no agent: tickets that are sold here are bought here."""
    return "by" not in side.words and any(t.word in BE for t in side.tokens[max(0, place - 2) : place])


def _has_denial(side: ParsedText, token: Token) -> bool:
    """Return True if something else in the clause of a word is denied."""
    return any(d.head.clause == token.clause and d.start != token.start for d in side.denials)


def _is_said_otherwise(claim: ParsedText, place: int, chunk: ParsedText, other: int) -> bool:
    """Return True if the evidence says in other words what an opposite of its words says.

    "Lee did not" says that Lee failed where Kim passed, and what is open from 9 to 17 closes at 17.
    """
    if claim.tokens[place].stem not in chunk.stems and says_otherwise_elsewhere(claim, place, chunk, other):
        return True
    return is_cut_short(chunk, claim) or (
        not _range_ends(claim) and any(t.stem in claim.stems for t in _range_ends(chunk))
    )


def _range_ends(side: ParsedText) -> Sequence[Token]:
    """Return the numbers after "to" or "until"."""
    pairs = zip(side.tokens, side.tokens[1:], strict=False)
    return [token for before, token in pairs if token.number and before.word in {"to", "until", "till"}]


def _is_denied(side: ParsedText, token: Token) -> bool:
    """Return True if a word is denied, or its object is, as in "pay nothing"."""
    after = next((later.word for later in side.tokens if later.start > token.start), "")
    return side.denies(token) or after in {"no", "nothing", "none"} or side.negated(token)


def _condition_is_reversed(claim: ParsedText, chunk: ParsedText) -> bool:
    """Return True if only one side denies a condition, so that the other may say the opposite of what follows."""
    ours, theirs = claim.denied_conditions, chunk.denied_conditions
    return bool((ours & chunk.stems) - theirs or (theirs & claim.stems) - ours)


def _amounts_agree(claim: ParsedText, place: int, chunk: ParsedText, other: int) -> bool:
    """Return True if two quantifiers or modal verbs do not exclude each other.

    "Must" and "may" do before the same verb only, unless both are denied. "Not all" and "some" agree, and so do "few
    have" and "most have no".
    """
    sides = ((claim, place), (chunk, other))
    if claim.tokens[place].word in MODALS:
        ours, theirs = (_modal(side, n) for side, n in sides)
        return ours[0] != theirs[0] or (ours[1] and theirs[1]) or bounds_differ(claim, chunk)
    if any(n and side.tokens[n - 1].word in NOT_QUITE for side, n in sides):
        return True
    ours_denied, theirs_denied = (_has_denial(side, side.tokens[n]) for side, n in sides)
    return ours_denied != theirs_denied


def _modal(side: ParsedText, place: int) -> tuple[tuple[str, ...], bool]:
    """Return the verb after a modal verb, with the word after "be", and whether it is denied."""
    after = [t for t in side.tokens[place + 1 : place + 5] if t.word not in ASIDE]
    verbs = [t for t in after if t.word not in NEGATORS]
    return tuple(t.stem for t in verbs[: 2 if verbs and verbs[0].word in BE else 1]), bool(
        after and after[0].word in NEGATORS
    )


def _bound_is_denied(claim: ParsedText, chunk: ParsedText) -> bool:
    """Return True if one side allows below a bound what the other denies above it."""
    return bounds_differ(claim, chunk) and bool(claim.denials) != bool(chunk.denials)


def _is_converse(claim: ParsedText, token: Token, chunk: ParsedText, opposite: Token) -> bool:
    """Return True if two comparisons have changed sides: "A is longer than B", "B is shorter than A"."""
    (ours, than_ours), (theirs, than_theirs) = _compared(claim, token), _compared(chunk, opposite)
    if not than_theirs or ours.isdisjoint(than_theirs - theirs):
        return False
    return not than_ours or not than_ours.isdisjoint(theirs - than_theirs)


def _compared(side: ParsedText, token: Token) -> tuple[frozenset[str], frozenset[str]]:
    """Return the stems of a clause before "than", or before the word if there is none, and those after it."""
    inside = [other for other in side.tokens if other.clause == token.clause and other.content]
    than = next((t.start for t in side.tokens if t.word == "than" and t.clause == token.clause), None)
    before = frozenset(other.stem for other in inside if other.start < (token.start if than is None else than))
    after = frozenset(other.stem for other in inside if than is not None and other.start > than)
    return before - after, after - before


def _has_crossed(claim: ParsedText, token: Token, chunk: ParsedText, opposite: Token) -> bool:
    """Return True if a content word that is before the word comes after its opposite."""
    return any(
        ours.stem == theirs.stem and ours.content and ours.start < token.start and theirs.start > opposite.start
        for ours in claim.tokens
        for theirs in chunk.tokens
    )


def exchanged(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find two items on both sides of the same words that have changed places."""
    items = [t for t in claim.tokens if t.content and len(claim.places[t.stem]) == 1 and t.stem in chunk.stems]
    terms = claim.once(_pairs) & chunk.once(_pairs)
    for first, second in combinations(items, 2):
        if chunk.places[second.stem][0] > chunk.places[first.stem][-1]:  # nowhere in the reversed order
            continue
        ours = (claim.places[first.stem][0], claim.places[second.stem][0])
        joining = _between(claim, *ours, terms)
        theirs = _reversed(joining, first, second, chunk, terms) if joining else None
        if theirs is not None and not _is_compared_otherwise(claim, chunk):
            yield Difference("order", _written(claim, *ours), _written(chunk, *theirs)), frozenset()
            return


def _reversed(
    joining: Sequence[str], first: Token, second: Token, side: ParsedText, terms: AbstractSet[tuple[str, str]]
) -> tuple[int, int] | None:
    """Return where the evidence has the second item, the same words and then the first, and nowhere the other order."""
    pairs = list(product(side.places[second.stem], side.places[first.stem]))
    if any(_between(side, after, before, terms) == joining for before, after in pairs):
        return None
    for before, after in pairs:
        if _between(side, before, after, terms) == joining:
            return before, after
    (before, after), *more = pairs
    joins_them = _has_participle(joining, side, before, after) or (
        first.name and second.name and _joins(joining, side, before, after)
    )
    return (before, after) if joins_them and not more else None


def _is_compared_otherwise(claim: ParsedText, chunk: ParsedText) -> bool:
    """Return True if a sentence has the opposite of a comparison with its sides exchanged."""
    return any(
        kind == "comparison" and _is_converse(claim, token, chunk, opposite)
        for token in claim.tokens
        if token.stem not in chunk.stems
        for kind, opposites in OPPOSITES.get(token.word, ())
        for opposite in chunk.tokens
        if opposite.word in opposites - claim.words
    )


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


def _pairs(side: ParsedText) -> frozenset[tuple[str, str]]:
    """Return the stems of content words that stand side by side, which may be one term: "harbour master"."""
    pairs = ((a, b) for a, b in pairwise(side.tokens) if a.content and b.content)
    return frozenset((a.stem, b.stem) for a, b in pairs if side.text[a.start + len(a.text) : b.start].isspace())


def _between(side: ParsedText, first: int, second: int, terms: AbstractSet[tuple[str, str]]) -> tuple[str, ...]:
    """Return the stems between two items that a verb or a word such as "than" joins; none where they may be exchanged.

    Items of different clauses, in reversed order, or far apart have nothing between them; the other words of a term
    belong to the item.
    """
    ends = (side.tokens[first], side.tokens[second])
    if ends[0].clause != ends[1].clause or any(t.word.endswith("ly") for t in ends):
        return ()
    begin, end = first + 1, second
    while begin < end and (side.tokens[begin - 1].stem, side.tokens[begin].stem) in terms:
        begin += 1
    while begin < end and (side.tokens[end - 1].stem, side.tokens[end].stem) in terms:
        end -= 1
    inner = [t for t in side.tokens[begin:end] if t.word not in ASIDE_OF_ITEMS]
    farthest = COMPARING if any(t.word == "than" for t in inner) else BETWEEN
    if not 0 < len(inner) <= farthest or "," in side.written(first, second):
        return ()
    if any(t.word in SYMMETRIC for t in inner) or not any(t.content or t.word in CONNECTING for t in inner):
        return ()
    return tuple(t.stem for t in inner)
