"""How rare a word is in English prose, from counts over Wikipedia articles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from math import log

__all__ = ["Rarity", "TABLE", "packaged_rarity"]

TABLE = "articles_by_stem.txt"
"""First line: the number of articles; then lines of a count and the stems that stand in so many of them."""


@dataclass(frozen=True, slots=True)
class Rarity:
    """Inverse document frequency of stems.

    Attributes
    ----------
    articles : int
        How many were read.
    counts : mapping of str to int
        In how many of them a stem of :func:`syncheck.lexical.stem` stands; rarer ones than those it has may be left
        out.
    """

    articles: int
    counts: Mapping[str, int]

    def __call__(self, stem: str) -> float:
        """Return ln((N + 1) / (n + 1)), in nats, for a stem that n of N articles have; n = 0 for an unknown one."""
        return log((self.articles + 1) / (self.counts.get(stem, 0) + 1))


@lru_cache(maxsize=1)
def packaged_rarity() -> Rarity:
    """Return the counts that ship with the package, of 4,000 articles of the English Wikipedia of spring 2024."""
    text = (files("syncheck") / "assets" / "rarity" / TABLE).read_text(encoding="utf-8")
    first, *lines = text.splitlines()
    counts: dict[str, int] = {}
    for line in lines:
        count, *stems = line.split(" ")
        counts |= dict.fromkeys(stems, int(count))
    return Rarity(int(first.split(" ")[0]), counts)
