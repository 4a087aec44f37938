"""How rare English words are, which of them are mostly names, and numbers by their words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from math import log

NAMES = "names.txt"
"""Asset with words that are mostly written with a capital, in lower case, one a line."""
TABLE = "articles_by_stem.txt"
"""Asset with the number of articles read, then in each line a count and the stems that occur in that many articles."""


_TEENS = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_SPELLED = f"one two three four five six seven eight nine ten eleven twelve {_TEENS} twenty"
_TENS = "thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {word: str(number) for number, word in enumerate(_SPELLED.split(), 1)} | {
    word: str(10 * number) for number, word in enumerate(_TENS.split(), 3)
}
"""Numbers in digits by their words."""


@dataclass(frozen=True, slots=True)
class Rarity:
    """Inverse document frequency of stems."""

    articles: int
    """Number of articles that were counted."""
    counts: Mapping[str, int]
    """Number of articles in which a stem (:func:`syncheck.text.words.stem`) occurs; the rarest stems may be left out."""

    def __call__(self, stem: str) -> float:
        """Return ln((N + 1) / (n + 1)), in nats, of a stem in n of N articles; n is 0 for an unknown stem."""
        return log((self.articles + 1) / (self.counts.get(stem, 0) + 1))


@lru_cache(maxsize=1)
def packaged_rarity() -> Rarity:
    """Return the package's counts over 4,000 articles of the English Wikipedia, spring 2024."""
    text = (files("syncheck") / "assets" / "rarity" / TABLE).read_text(encoding="utf-8")
    first, *lines = text.splitlines()
    counts: dict[str, int] = {}
    for line in lines:
        count, *stems = line.split(" ")
        counts |= dict.fromkeys(stems, int(count))
    return Rarity(int(first.split(" ")[0]), counts)


@lru_cache(maxsize=1)
def packaged_names() -> frozenset[str]:
    """Return words that the English Wikipedia mostly writes with a capital, in lower case."""
    return frozenset((files("syncheck") / "assets" / "rarity" / NAMES).read_text(encoding="utf-8").split())
