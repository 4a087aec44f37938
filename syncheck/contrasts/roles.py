"""Who does it to whom: "Daehan sold it to Arvex" where the evidence has "Arvex said that it had sold it to Daehan"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from syncheck.contrasts.coordination import is_verb
from syncheck.contrasts.differences import Difference, Found
from syncheck.contrasts.grammar import BE, SYMMETRIC
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import Token

REPORTING = frozenset(
    "said says told tells added asked replied wrote announced reported explained claimed thought".split()
)
"""Verbs whose subject may stand after what is reported: "he had won, said Ruiz"."""
REACH = 16
"""Number of words on either side of a verb that are compared."""


def turned_roles(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a verb of which subject and object, or a later word, have changed places."""
    if claim.denials or chunk.denials or any(re.search(r"\bby\b", side.text) for side in (claim, chunk)):
        return  # "by" makes a passive, which turns them as well
    names = claim.once(_names) & chunk.once(_names)
    for verb in claim.tokens if len(names) > 1 else ():
        others = [chunk.tokens[place] for place in chunk.places.get(verb.stem, ())]
        if len(others) != 1 or not _joins(verb, claim) or not _joins(others[0], chunk):
            continue
        (before, after), (earlier, later) = _around(claim, verb), _around(chunk, others[0])
        subject, item = names & before & later - earlier, names & after & earlier - later
        if subject and item and not before & earlier and not any(map(_is_passive, (claim, chunk), (verb, others[0]))):
            yield Difference("order", _written(claim, subject | item), _written(chunk, subject | item)), frozenset()
            return


def _names(side: ParsedText) -> frozenset[str]:
    return frozenset(token.stem for token in side.tokens if token.name)


def _written(side: ParsedText, names: AbstractSet[str]) -> str:
    """Return the text from the first to the last of some names."""
    places = [place for place, token in enumerate(side.tokens) if token.stem in names]
    return side.written(places[0], places[-1])


def _joins(token: Token, side: ParsedText) -> bool:
    """Return True for a verb with a subject and an object, of which there is no other."""
    is_one = len(side.places[token.stem]) == 1 and not token.name
    return is_one and is_verb(token) and token.content and token.word not in SYMMETRIC | REPORTING


def _around(side: ParsedText, verb: Token) -> tuple[frozenset[str], frozenset[str]]:
    """Return the stems before and after a verb in its clause."""
    inside = sorted((t for t in side.tokens if t.clause == verb.clause), key=lambda token: token.start)
    place = inside.index(verb)
    parts = inside[max(0, place - REACH) : place], inside[place + 1 : place + 1 + REACH]
    before, after = (frozenset(t.stem for t in part if t.content and not t.number) for part in parts)
    return before, after


def _is_passive(side: ParsedText, verb: Token) -> bool:
    before = [token.word for token in side.tokens if token.start < verb.start]
    return bool(before) and before[-1] in BE
