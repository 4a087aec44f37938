"""How rare words are, from the counts that ``wordfreq`` brings (Speer, 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncheck.errors import MissingExtraError

__all__ = ["word_rarity"]

_SEGMENTED = frozenset({"zh", "ja", "ko"})
"""Languages whose counts need a segmenter of their own."""


def word_rarity(words: Sequence[str], lang: str) -> NDArray[np.float64]:
    """Return the Zipf frequency of each word: log10 of its occurrences in a billion words, (W,) float64, 0 to 8.

    0 is a word never seen; NaN stands for all words of a language without counts (Basque among others).

    Raises
    ------
    MissingExtraError
        If ``wordfreq`` is not installed.
    """
    counts = _wordfreq()
    code = lang.casefold()
    if code in _SEGMENTED or code not in counts.available_languages():
        return np.full(len(words), np.nan)
    return np.array([float(counts.zipf_frequency(word, code)) for word in words])


def _wordfreq() -> Any:
    try:
        import wordfreq
    except ImportError as error:
        raise MissingExtraError("wordfreq", "rarity") from error
    return wordfreq
