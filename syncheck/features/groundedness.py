"""Groundedness: how much of a sentence's wording occurs in the chunks of its context, with more weight on rare words.

All features are counts and nothing is learnt, so they carry over to sources that were not seen in training.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from math import log1p, nan
from typing import TypeVar

from syncheck.text.rarity import NUMBER_WORDS, Rarity
from syncheck.text.words import stem, without_stop_words, words

BEST_CHUNKS = 4
"""Number of chunks that are compared with a sentence; the bundled aligner reads as many."""
PIECE = 5
"""Number of characters of a piece: enough to distinguish words, few enough to ignore their endings."""

_NAME = re.compile(r"(?<=[a-z,] )[A-Z][^\W\d_]+")
"""A capitalised word after a lower-case letter or a comma: not the first of a sentence or title."""
_SOURCE = r"(?:passages?|contexts?|texts?|sources?|documents?|articles?|excerpts?|information)"
_TELLS = (
    r"(?:mention|specif|provid|state|say|tell|contain|includ|indicat|address|discuss|describ|explain|clear|given|list)"
)
_NOT_STATED = re.compile(
    rf"""
    (?<!\bhe\ )(?<!\bshe\ )
        \b(?:do(?:es)?|is|are|was|were|has|have|can)(?:\s+not|n['\u2019]t)\s+(?:\w+\s+){{0,2}}?{_TELLS}
    | \b{_SOURCE}\s+(?:\w+\s+){{0,2}}?did(?:\s+not|n['\u2019]t)\s+(?:\w+\s+){{0,2}}?{_TELLS}
    | \b(?:none\s+of|nothing\s+in)\s+(?:\w+\s+){{0,2}}?{_SOURCE}
    | \b{_SOURCE}\s+(?:\w+\s+)?(?:gives?|provides?|contains?|makes?|offers?)\s+no\b
    | \bI(?:\s+(?:do|can|could)\s*not|\s+(?:do|ca|could)n['\u2019]t)\s+(?:know|answer|help|find|tell|say|determine)
    | \bimpossible\s+to\s+(?:answer|determine|know|say|tell)
    | \bno\s+(?:\w+\s+){{0,2}}?(?:information|evidence|details?|mention|indication|data)\b
    | \bun(?:able\s+to\s+(?:answer|determine|find|provide|say|tell)|clear|known|specified)\b
    | \bcannot\s+(?:be\s+)?(?:answer|determin|sa(?:y|id)|tell|told|find|found)
    | \bnot\s+(?!be\s)(?:\w+\s+)?(?:mentioned|specified|provided|stated|given|clear|known|available|addressed)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class ContextChunks:
    """Chunks of a context, the stems of each (function words included), and the chunks in which each stem occurs."""

    texts: tuple[str, ...]
    stems: tuple[frozenset[str], ...]
    held_in: Mapping[str, tuple[int, ...]]
    _words: Sequence[Sequence[str]] = field(repr=False)
    _wordings: dict[int, tuple[frozenset[str], frozenset[tuple[str, str]]]] = field(default_factory=dict, repr=False)
    _near: dict[str, frozenset[int]] = field(default_factory=dict, repr=False)

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> ContextChunks:
        """Read the chunks, of which there may be none."""
        read = [words(text) for text in texts]
        stems = tuple(frozenset(stem(_digits(word)) for word in found) for found in read)
        held_in: dict[str, list[int]] = defaultdict(list)
        for number, chunk in enumerate(stems):
            for known in chunk:
                held_in[known].append(number)
        return cls(tuple(texts), stems, {known: tuple(found) for known, found in held_in.items()}, read)

    def wording(self, number: int) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
        """Return the pieces and the pairs of neighbouring words of a chunk, which are read at first use."""
        if number not in self._wordings:
            self._wordings[number] = _pieces(self.texts[number]), _bigrams(self._words[number])
        return self._wordings[number]

    def near(self, known: str) -> frozenset[int]:
        """Return the chunks that have a stem and their neighbours, from -1 up to the number of chunks."""
        if known not in self._near:
            found = self.held_in.get(known, ())
            self._near[known] = frozenset(n for place in found for n in (place - 1, place, place + 1))
        return self._near[known]


@dataclass(frozen=True, slots=True)
class Groundedness:
    """Features of one sentence, described in :data:`~syncheck.features.schemas.FEATURES`; NaN if there is nothing to count.

    A sentence that says that something is not stated may name things that the context lacks without being unfaithful;
    ``absence`` accounts for that.
    """

    rarity_nearby: float
    rarity_best: float
    pieces_1: float
    pieces_2: float
    pieces_4: float
    stems_2: float
    stems_1: float
    bigrams_2: float
    missing_rarity: float
    missing_numbers: float
    missing_names: float
    absence: float


def groundedness(sentence: str, chunks: ContextChunks, best: Sequence[int], *, rarity: Rarity) -> Groundedness:
    """Return how much of a sentence occurs in the chunks; ``best`` has at most :data:`BEST_CHUNKS`, closest first."""
    read = words(sentence)
    stems = dict.fromkeys(stem(_digits(word)) for word in read)
    content = dict.fromkeys(stem(_digits(word)) for word in without_stop_words(read))
    weights = {known: rarity(known) for known in stems}
    pieces = _pieces(sentence)
    held = [chunks.wording(number)[0] for number in best]
    first = [chunks.stems[number] for number in best]
    missing = [weight for known, weight in weights.items() if known not in chunks.held_in]
    names = {word for name in _NAME.findall(sentence) for word in words(name)}
    times = Counter(number for known in content for number in chunks.held_in.get(known, ()))
    novel = sum(known not in chunks.held_in for known in content)
    return Groundedness(
        rarity_nearby=_nearby(weights, chunks),
        rarity_best=_mass(weights, first[0] if first else frozenset()),
        pieces_1=_covered(pieces, held[:1]),
        pieces_2=_covered(pieces, held[:2]),
        pieces_4=_covered(pieces, held[:BEST_CHUNKS]),
        stems_2=_covered(frozenset(content), first[:2]),
        stems_1=max(times.values(), default=0) / len(content) if content else nan,
        bigrams_2=_covered(_bigrams(read), [chunks.wording(number)[1] for number in best[:2]]),
        missing_rarity=log1p(sum(missing)),
        missing_numbers=float(sum(known[0].isdigit() for known in stems if known not in chunks.held_in)),
        missing_names=float(sum(stem(name) not in chunks.held_in for name in names)),
        absence=(novel / len(content) if content else nan) if says_not_stated(sentence) else 0.0,
    )


@lru_cache(maxsize=256)
def says_not_stated(sentence: str) -> bool:
    """Return True if an English sentence calls something not stated: "The passages do not mention a price.".

    A sentence is asked about more than once.
    """
    return bool(_NOT_STATED.search(sentence))


def _digits(word: str) -> str:
    return NUMBER_WORDS.get(word, word)


def _pieces(text: str) -> frozenset[str]:
    padded = " ".join(["", *re.findall(r"\w+", text.lower()), ""])
    return frozenset(padded[start : start + PIECE] for start in range(len(padded) - PIECE + 1))


def _bigrams(read: Sequence[str]) -> frozenset[tuple[str, str]]:
    return frozenset(pairwise(read))


def _covered(items: frozenset[_Item], known: Sequence[frozenset[_Item]]) -> float:
    """Return the share of items that any of some sets has; NaN without items."""
    return (len(items) - len(items.difference(*known))) / len(items) if items else nan


def _nearby(weights: Mapping[str, float], chunks: ContextChunks) -> float:
    """Return the largest share of the weights that a chunk has together with its neighbours."""
    held = [0.0] * (len(chunks.texts) + 2)  # the last one is that of chunk -1
    for known, weight in weights.items():
        for number in chunks.near(known):
            held[number] += weight
    total = sum(weights.values())
    return max(held) / total if total else nan


def _mass(weights: Mapping[str, float], known: AbstractSet[str]) -> float:
    total = sum(weights.values())
    return sum(weight for item, weight in weights.items() if item in known) / total if total else nan
