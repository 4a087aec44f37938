"""Parts of a coordination: "4 percent in Turku and 2 percent in Oulu" says each number of one town."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from syncheck.contrasts.grammar import RELATIVE
from syncheck.contrasts.inflection import IRREGULAR
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import Token, between
from syncheck.contrasts.units import UNITS

JOINING = frozenset("and but while whereas whilst".split())
"""Words that begin a new part of a coordination."""
LISTING = frozenset("and or in on at by with the a an".split())
"""Words between the items of a list."""
PARTICLES = frozenset("off out".split())
"""Words that tell parts apart although they are no content words: "on when it gets dark and off when it gets light"."""


def says_elsewhere(claim: ParsedText, place: int, chunk: ParsedText, rival: int) -> bool:
    """Return True if the evidence has the same word in another part than the rival, and a sentence is about that part.

    It is if it has words of that part alone, and none of the rival's part alone. What comes before a rival may be meant
    in a later part too, and so may the word after a number: "sells 400 loaves on weekdays and 650 on Saturdays".
    """
    item = claim.tokens[place].stem
    exchanged = chunk.tokens[rival].stem in claim.stems
    about = _around(claim, place, finest=exchanged) - {item}
    return any(_is_about(about, chunk, own, rival, exchanged=exchanged) for own in chunk.places.get(item, ()))


def is_of_its_thing(claim: ParsedText, place: int, chunk: ParsedText, rival: int) -> bool:
    """Return True if a sentence names the thing that the part with its own word begins with, and not the rival's.

    "The church is west of the river" agrees with "The school stands east of the river and the church west of it".
    """
    about = {token.stem for token in claim.tokens if token.content} - {claim.tokens[place].stem}
    parts = next(_divisions(chunk))
    theirs = _thing(chunk, parts, parts[rival])
    return any(
        parts[own] != parts[rival] and _thing(chunk, parts, parts[own]) in about - {theirs} and theirs not in about
        for own in chunk.places.get(claim.tokens[place].stem, ())
    )


def _thing(side: ParsedText, parts: Sequence[int], number: int) -> str:
    """Return the stem of the first word that tells something in a part."""
    inside = sorted((t.start, t.stem) for n, t in enumerate(side.tokens) if parts[n] == number and _tells(side, n))
    return inside[0][1] if inside else ""


def part_of(side: ParsedText, token: Token, *, with_commas: bool = False) -> Sequence[Token]:
    """Return the words of the part that a token belongs to, in the order of the text."""
    coarse, fine = _divisions(side)
    parts = fine if with_commas else coarse
    number = next((parts[n] for n, other in enumerate(side.tokens) if other.start == token.start), 0)
    inside = (other for n, other in enumerate(side.tokens) if parts[n] == number)
    return sorted(inside, key=lambda other: other.start)


def _is_about(about: frozenset[str], chunk: ParsedText, own: int, rival: int, *, exchanged: bool) -> bool:
    parts = next((parts for parts in _divisions(chunk) if parts[own] != parts[rival]), None)
    if parts is None:
        return False
    ours, theirs = ([n for n, part in enumerate(parts) if part == parts[place]] for place in (own, rival))
    own_stems, all_theirs = _stems(chunk, ours), _stems(chunk, theirs) - {chunk.tokens[rival].stem}
    subject = _stems(chunk, (n for n in ours if n < own))
    if parts[rival] < parts[own] and not exchanged and (not subject or subject & about):
        first = rival + 2 if chunk.tokens[rival].number else rival + 1
        after = [n for n in theirs if n >= first and _tells(chunk, n)]
        theirs = after[-max(1, len(own_stems) - 1) :]  # the verb of the first part may be left out in the others
    rest = _stems(chunk, theirs) - {chunk.tokens[rival].stem}
    return about.isdisjoint(rest - own_stems) and (not about.isdisjoint(own_stems - all_theirs) or about <= own_stems)


def joins(side: ParsedText, first: int, second: int) -> bool:
    """Return True if a text joins two words by "and" or "or", "in spring and in autumn", so that it says both."""
    between_them = {token.word for token in side.tokens[min(first, second) + 1 : max(first, second)]}
    return between_them <= LISTING and not between_them.isdisjoint({"and", "or"})


def says_otherwise_elsewhere(claim: ParsedText, place: int, chunk: ParsedText, rival: int) -> bool:
    """Return True if a sentence is about another part, which has a verb of its own, and not about the rival's.

    In "the shares fell on Monday and recovered on Tuesday", nothing about Tuesday contradicts "fell".
    """
    about = _around(claim, place, finest=False) - {claim.tokens[place].stem}
    parts = next(_divisions(chunk))
    rest = _stems(chunk, (n for n, part in enumerate(parts) if part == parts[rival] and n > rival))
    for number in set(parts) - {parts[rival]}:
        there = [n for n, part in enumerate(parts) if part == number and _tells(chunk, n)]
        has_subject = bool(there) and not is_verb(chunk.tokens[there[0]])
        if has_subject and chunk.tokens[there[0]].stem not in about:
            continue
        stems, others = _stems(chunk, there), _stems(chunk, (n for n, part in enumerate(parts) if part != number))
        has_verb = any(is_verb(chunk.tokens[n]) for n in there)
        if has_verb and about & (stems - others) and about.isdisjoint(rest - stems):
            return True
    return False


def is_verb(token: Token) -> bool:
    """Return True for a past form, and for forms of irregular verbs; other verbs are not told from nouns."""
    return token.word.endswith("ed") or token.word in IRREGULAR


def _around(side: ParsedText, place: int, *, finest: bool) -> frozenset[str]:
    """Return the stems of the part that a token belongs to."""
    coarse, fine = _divisions(side)
    parts = fine if finest else coarse
    return _stems(side, (n for n, part in enumerate(parts) if part == parts[place]))


def _divisions(side: ParsedText) -> Iterator[Sequence[int]]:
    """Yield the number of each token's part: parted by words and stops, then by commas as well."""
    for with_commas in (False, True):
        parts, number, last = [0] * len(side.tokens), 0, None
        for place in sorted(range(len(side.tokens)), key=lambda n: side.tokens[n].start):
            token = side.tokens[place]
            number += last is not None and _begins_part(side, last, token, with_commas=with_commas)
            parts[place], last = number, token
        yield parts


def _begins_part(side: ParsedText, last: Token, token: Token, *, with_commas: bool) -> bool:
    comma = with_commas and token.word not in RELATIVE and "," in between(side.text, last, token)
    return comma or token.clause != last.clause or token.word in JOINING


def _stems(side: ParsedText, places: Iterable[int]) -> frozenset[str]:
    return frozenset(side.tokens[n].stem for n in places if _tells(side, n))


def _tells(side: ParsedText, place: int) -> bool:
    """Return True for a content word or particle, but not for the unit of a number."""
    token = side.tokens[place]
    measured = place > 0 and side.tokens[place - 1].number and token.word in UNITS
    return token.word in PARTICLES or (token.content and not measured)
