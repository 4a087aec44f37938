"""How a sentence is put: whether it speaks of its sources, denies, or is an item of a list.

Answers that name their sources mostly repeat them, and statements that something is not said are judged otherwise
than what is said. English only: in other languages the first two are 0, which an aggregator trained there learns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Phrasing", "has_letter", "phrasing"]

_SOURCE = re.compile(
    r"\b(?:passages?|contexts?|texts?|sources?|information|provided|mention(?:s|ed)?|stated?|according to|based on)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:no|not|none|neither|cannot|unable|without|however)\b|n['\u2019]t\b", re.IGNORECASE)
_LIST_ITEM = re.compile(r"\s*(?:\d+[.)](?!\d)|[-*\u2022])")


@dataclass(frozen=True, slots=True)
class Phrasing:
    """Each 1 where it is so, else 0."""

    source_mention: float
    negation: float
    list_item: float


def has_letter(sentence: str) -> bool:
    """Whether a sentence has a letter of any script; the number of a list item has none, and says nothing by itself."""
    return any(map(str.isalpha, sentence))


def phrasing(sentence: str) -> Phrasing:
    """Return how a sentence is put."""
    return Phrasing(
        source_mention=float(bool(_SOURCE.search(sentence))),
        negation=float(bool(_NEGATION.search(sentence))),
        list_item=float(bool(_LIST_ITEM.match(sentence))),
    )
