"""Languages of texts: which passages and sentences an aligner reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from math import exp
from typing import TYPE_CHECKING

from syncheck.lexical import has_letter

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

SURE_NATS = 4.0
"""Lead that another language must have over all covered ones, in nats, normalised for the length of the text.

Chosen on Mu-SHROOM's validation part. Names, numbers and short phrases ("Paris, 1932.", "El Niño is a climate
pattern.") stay below it.
"""
NO_LANGUAGE = frozenset({"ext", "zxx"})
"""Labels with which the identifier marks text in no language."""
LONGEST_READ = 4000
"""Number of characters at the beginning of a text from which its language is identified."""


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@lru_cache(maxsize=256)
def _likelihoods(text: str) -> dict[str, float]:
    """Return the likelihood of each language; a sentence is asked about more than once."""
    return {code: p for code, p in _identifier().rank(text) if code not in NO_LANGUAGE}


def foreign_language(text: str, covered: Collection[str]) -> str | None:
    """Return the language code of a text in none of the covered languages; None if it is in one, or that is uncertain.

    Examples
    --------
    >>> foreign_language("Die Brücke wurde im Jahr 1932 eröffnet.", {"en"})
    'de'
    """
    if not has_letter(text):
        return None
    likelihoods = _likelihoods(text[:LONGEST_READ])
    likeliest = _likeliest(text)
    best_covered = max((likelihoods.get(code, 0.0) for code in covered), default=0.0)
    return likeliest if best_covered < likelihoods[likeliest] * exp(-SURE_NATS) else None


def _likeliest(text: str) -> str:
    likelihoods = _likelihoods(text[:LONGEST_READ])
    return max(likelihoods, key=likelihoods.__getitem__)


def readable(passages: Sequence[str], covered: Collection[str] | None) -> tuple[tuple[str, ...], str | None]:
    """Return the passages, those in none of the covered languages as "", and the context's language if it is in none.

    The context is in none if no passage is likely to be in a covered language, which short ones show together; then all
    passages are returned as they are. None covers all languages.

    Examples
    --------
    >>> readable(["It opened in 1932.", "Die Br\u00fccke wurde im Jahr 1932 er\u00f6ffnet."], {"en"})
    (('It opened in 1932.', ''), None)
    """
    given = tuple(passages)
    if covered is None:
        return given, None
    found = [foreign_language(passage, covered) for passage in given]
    read = tuple("" if language else passage for passage, language in zip(given, found, strict=True))
    rest = "\n".join(read)
    foreign = next(filter(None, found), None)
    if foreign is None or (has_letter(rest) and _likeliest(rest) in covered):
        foreign = foreign_language(rest, covered)
    return (read, None) if foreign is None else (given, foreign)
