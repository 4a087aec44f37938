"""Groundedness: how much of a sentence's wording occurs in the chunks of its context, with more weight on rare words.

All features are counts and nothing is learnt, so they carry over to sources that were not seen in training.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import log1p, nan
from typing import TypeVar

from syncheck.reading.wording import BEST_CHUNKS, ContextChunks, bigrams, digits, pieces
from syncheck.text.rarity import Rarity
from syncheck.text.statements import says_not_stated
from syncheck.text.words import stem, without_stop_words, words

_NAME = re.compile(r"(?<=[a-z,] )[A-Z][^\W\d_]+")
"""A capitalised word after a lower-case letter or a comma: not the first of a sentence or title."""
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Groundedness:
    """Features of one sentence, described in :data:`~syncheck.features.schemas.FEATURES`; NaN with nothing to count.

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
    stems = dict.fromkeys(stem(digits(word)) for word in read)
    content = dict.fromkeys(stem(digits(word)) for word in without_stop_words(read))
    weights = {known: rarity(known) for known in stems}
    own = pieces(sentence)
    held = [chunks.wording(number)[0] for number in best]
    first = [chunks.stems[number] for number in best]
    missing = [weight for known, weight in weights.items() if known not in chunks.held_in]
    names = {word for name in _NAME.findall(sentence) for word in words(name)}
    times = Counter(number for known in content for number in chunks.held_in.get(known, ()))
    novel = sum(known not in chunks.held_in for known in content)
    return Groundedness(
        rarity_nearby=_nearby(weights, chunks),
        rarity_best=_mass(weights, first[0] if first else frozenset()),
        pieces_1=_covered(own, held[:1]),
        pieces_2=_covered(own, held[:2]),
        pieces_4=_covered(own, held[:BEST_CHUNKS]),
        stems_2=_covered(frozenset(content), first[:2]),
        stems_1=max(times.values(), default=0) / len(content) if content else nan,
        bigrams_2=_covered(bigrams(read), [chunks.wording(number)[1] for number in best[:2]]),
        missing_rarity=log1p(sum(missing)),
        missing_numbers=float(sum(known[0].isdigit() for known in stems if known not in chunks.held_in)),
        missing_names=float(sum(stem(name) not in chunks.held_in for name in names)),
        absence=(novel / len(content) if content else nan) if says_not_stated(sentence) else 0.0,
    )


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
