"""Denials that leave out what they deny: "chalk in balls is allowed, loose chalk is not"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncheck.contrasts.coordination import is_verb
from syncheck.contrasts.denials import negates
from syncheck.contrasts.differences import Difference, Found
from syncheck.contrasts.grammar import AUXILIARIES
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import Token

_NONE: tuple[frozenset[str], str] = (frozenset(), "")
TOLD = 0.7
"""Least share of the other words of a sentence that the evidence says of what it denies them of."""


def denied_in_short(claim: ParsedText, chunk: ParsedText, _: Sequence[ParsedText]) -> Iterator[Found]:
    """Find a sentence that says of one thing what the evidence says of another, and denies of this one in short."""
    if claim.negative_clauses:
        return
    content = claim.content
    for said, part in zip(chunk.parts, chunk.parts[1:], strict=False):
        if not _is_not(chunk.tokens[part[-1]]):
            continue
        subject, negator = _short_denial(chunk, part, said)
        told = {chunk.tokens[place].stem for place in said if chunk.tokens[place].content}
        rest = content - subject
        if negator and subject <= content and rest and len(rest & told) >= TOLD * len(rest):
            if any(negates(chunk.tokens[place]) for place in said):
                continue
            yield Difference("negation", "", chunk.written(part[0], part[-1])), subject
            return


def _short_denial(side: ParsedText, part: Sequence[int], said: Sequence[int]) -> tuple[frozenset[str], str]:
    """Return the stems of the subject and the negator of "loose chalk is not", or of "pensioners get none"."""
    tokens = [side.tokens[place] for place in part]
    repeated = {side.tokens[place].stem for place in said}
    between = [token for token in tokens[:-1] if token.word in AUXILIARIES or token.stem in repeated or negates(token)]
    named = [token for token in tokens[:-1] if token not in between and token.content]
    is_short = _is_not(tokens[-1]) and named and (not between or named[-1].start < between[0].start)
    return (frozenset(token.stem for token in named), tokens[-1].text) if is_short and not is_verb(named[-1]) else _NONE


def _is_not(token: Token) -> bool:
    return token.word in {"not", "cannot", "never", "none", "nothing"} or token.word.endswith("n't")
