"""The language of a text that is surely in none of the languages that an aligner reads."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from math import exp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

SURE_NATS = 4.0
"""How much likelier another language must be than all covered ones, in nats, normalised for the length of the text.

Chosen on Mu-SHROOM's validation part. Names, numbers and short phrases ("Paris, 1932.", "El Niño is a climate
pattern.") stay below it.
"""
NO_LANGUAGE = frozenset({"ext", "zxx"})
"""Labels of the identifier for text in no language."""
LONGEST_READ = 4000
"""Characters of a text that are looked at."""


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def foreign_language(text: str, covered: Collection[str]) -> str | None:
    """Return the language of a text that is in none of the covered ones, None where that is uncertain.

    Examples
    --------
    >>> foreign_language("Die Brücke wurde im Jahr 1932 eröffnet.", {"en"})
    'de'
    """
    if not any(map(str.isalpha, text)):
        return None
    likelihoods = {code: p for code, p in _identifier().rank(text[:LONGEST_READ]) if code not in NO_LANGUAGE}
    likeliest = max(likelihoods, key=likelihoods.__getitem__)
    best_covered = max((likelihoods.get(code, 0.0) for code in covered), default=0.0)
    return likeliest if best_covered < likelihoods[likeliest] * exp(-SURE_NATS) else None
