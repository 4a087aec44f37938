"""A sentence or chunk as words in order, laid so that it can be compared with another. English."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from syncheck.features.groundedness import NUMBER_WORDS
from syncheck.features.opposites import NEGATORS, UNITS
from syncheck.lexical import content_words, stem, words

__all__ = ["SYMBOLS", "Side", "Token", "is_denied", "likeness", "matcher", "side_of", "starts_bound"]

REACH = 8
"""Words around a number or name that tell what it belongs to."""
AFTER_NEGATOR = 2
"""Content words that a negator denies."""
IN_BOUNDS = frozenset("more less fewer later earlier longer higher lower greater".split())
"""What follows "no" in "no more than", which denies nothing."""
BE = frozenset("is are was were be been being".split())

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|%|[$€£]|[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
SYMBOLS = {"%": "percent", "$": "dollars", "€": "euros", "£": "pounds"}


@dataclass(frozen=True, slots=True)
class Token:
    """A word or number as it is written, normalised, and its stem; whether it has content, and looks like a name."""

    text: str
    word: str
    stem: str
    content: bool
    name: bool

    @property
    def number(self) -> bool:
        """Whether it is one, in figures or spelled out."""
        return self.word[0].isdigit()


@dataclass(frozen=True, slots=True)
class Side:
    """One text's tokens, and each of its negators with the words that it denies."""

    tokens: tuple[Token, ...]
    stems: frozenset[str]
    words: frozenset[str]
    denials: tuple[tuple[str, tuple[Token, ...]], ...]


def matcher(claim: Side, chunk: Side) -> SequenceMatcher[str]:
    """Return what finds the stems that stand in both, in order."""
    ours, theirs = ([token.stem for token in side.tokens] for side in (claim, chunk))
    return SequenceMatcher(None, ours, theirs, autojunk=False)


def side_of(text: str) -> Side:
    """Read a text; a passive with its agent runs as the active does."""
    tokens = _active(list(_tokens(text)))
    denials = []
    for number, token in enumerate(tokens):
        after = tokens[number + 1 : number + 6]
        if not starts_bound(tokens, number) and (token.word in NEGATORS or token.word.endswith(("n't", "n\u2019t"))):
            denials.append((token.text, tuple([later for later in after if later.content][:AFTER_NEGATOR])))
    stems, known = (frozenset(getattr(token, name) for token in tokens) for name in ("stem", "word"))
    return Side(tuple(tokens), stems, known, tuple(denials))


def starts_bound(tokens: Sequence[Token], place: int) -> bool:
    """Whether it is the "no" of "no more than"."""
    return tokens[place].word == "no" and any(after.word in IN_BOUNDS for after in tokens[place + 1 : place + 2])


def _active(tokens: list[Token]) -> list[Token]:
    """Put the agent of a passive first and its subject last, so that "B was beaten by A" runs as "A beat B" does."""
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
        word = SYMBOLS.get(found) or NUMBER_WORDS.get(found.lower()) or next(iter(words(found)), found)
        content = bool(content_words(word)) and word not in NEGATORS
        yield Token(found, word, stem(word), content, found[0].isupper() and content and not start)
        start = text[match.end() : match.end() + 1] in {".", "!", "?", ":"}


def likeness(claim: Side, place: int, chunk: Side, other: int) -> float:
    """Return how alike the words around two places are: each that both have counts less the more its offset differs."""
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


def is_denied(side: Side, token: Token) -> bool:
    """Whether a negator stands shortly before a word."""
    return any(token in heads for _, heads in side.denials)
