"""Words that deny others, and exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncheck.contrasts.grammar import ARTICLES, AUXILIARIES, BE, NEGATORS
from syncheck.contrasts.tokens import Token, between

NOT_DENYING = frozenset(
    "only just merely simply solely limited necessarily mentioned stated specified clear known until all every always "
    "everyone entirely fully completely exactly quite very so too".split()
)
"""Words that, shortly after a negator, show that it does not deny the whole statement."""
BLOCKERS = frozenset(
    "avoid avoids avoided avoiding prevent prevents prevented preventing unlikely impossible rather instead against "
    "nor deny denies denied stop stops stopped ban bans banned forbid forbids forbidden prohibit prohibits prohibited "
    "exclude excludes excluded waive waives waived free exempt".split()
)
"""Words that may reverse a statement as a negator does, so that no negation is missing next to them."""
LACKED = frozenset("use order stock service action print".split())
"""Words after "out of" that make it a denial."""
EXCEPT = frozenset("unless except excepting excluding until apart".split())
"""Words before an exception to a denial."""
EXCEPTING = EXCEPT | {"but", "exception"}
"""Those, and words that begin an exception beside certain others."""
AFTER_NEGATOR = 5
"""Number of words after a negator of which it denies the first content word."""
IN_BOUNDS = frozenset("more less fewer later earlier sooner longer higher lower greater".split())
"""Words between "no" and "than" in a bound such as "no more than", which denies nothing."""
CONDITIONS = frozenset("who whoever that when whenever".split())
"""Words before a negator that make it part of a condition; "if" before it denies nothing."""
OBJECTS = frozenset("nobody nothing none".split())
"""Negators that, before a comma, deny nothing after it: "told nobody, ..."."""
SWEEPING = frozenset(
    "all any anything each every everybody everyone everything everywhere no nobody none nothing nowhere".split()
)
"""Words after which "but" begins an exception."""


@dataclass(frozen=True, slots=True)
class Denial:
    """A negator, where it stands, and the word that it denies."""

    negator: str
    start: int
    head: Token
    conditional: bool
    """True in a condition, such as "who do not pay" or "without a ticket"."""


def negates(token: Token) -> bool:
    """Return True for a word such as "not", or one that ends in n't."""
    return token.word in NEGATORS or token.word.endswith("n't")


def denial_at(text: str, tokens: Sequence[Token], place: int) -> Denial | None:
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


def exceptions_in(text: str, tokens: Sequence[Token]) -> set[int]:
    """Return the starts of the tokens after a word such as "unless" in their clause; before it, only up to a comma."""
    found: set[int] = set()
    if EXCEPTING.isdisjoint(token.word for token in tokens):
        return found
    clause, first, named = -1, False, False
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


def blocks(tokens: Sequence[Token], place: int) -> bool:
    """Return True if a token may reverse the statement of its clause: "free", or "out" in "out of use"."""
    word = tokens[place].word
    if word != "out":
        return word in BLOCKERS
    after = [other.word for other in tokens[place + 1 : place + 3]]
    return after[:1] == ["of"] and not LACKED.isdisjoint(after)


def starts_bound(tokens: Sequence[Token], place: int) -> bool:
    """Return True if a token is the "no" of a bound such as "no more than"."""
    after = tokens[place + 1 : place + 3]
    is_bound = len(after) == 2 and after[0].word in IN_BOUNDS and after[1].word == "than"
    return is_bound and tokens[place].word in {"no", "not"}
