"""Languages of texts: which passages and sentences an aligner reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from math import exp
from typing import TYPE_CHECKING

import numpy as np
import regex

from syncheck.base.files import file_sha256
from syncheck.base.model_files import kept_arrays
from syncheck.text.words import has_letter

if TYPE_CHECKING:
    from pathlib import Path

    from py3langid.langid import LanguageIdentifier
    from torch import Tensor

SURE_NATS = 4.0
"""Lead that another language must have over all covered ones, in nats, normalised for the length of the text.

Chosen on Mu-SHROOM's validation part. Names, numbers and short phrases ("Paris, 1932.", "El Niño is a climate
pattern.") stay below it.
"""
LIKELY_NATS = 2.5
"""The same for a short sentence with a function word of one of the languages in :data:`FUNCTION_WORDS`, where English
alone is covered. Names in an English sentence reach this lead, but have no such word; see ``benchmarks/languages.py``.
"""
SHORT = 8
"""Largest number of words of a short sentence. A longer one in another language reaches :data:`SURE_NATS`, unless it
has a good deal of English too."""
FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    "de": frozenset(
        """
        auch auf aus bei beim das dem den der die ein eine einem einen einer er es für haben hat im ist kein keine mit
        nach nicht noch nur oder sehr sich sie sind und vom werden wie wir wird wurde wurden zum zur
        """.split()
    ),
    "es": frozenset("con el en está están fue hay la las lo los muy más para por que se su sus tiene un una".split()),
    "fr": frozenset(
        """
        au aux avec ce ces cette dans des du elle elles est il ils la le les ne où pas que qui sa ses sont sur un une
        été
        """.split()
    ),
    "it": frozenset(
        "alla che da dal dei della delle di fu gli ha hanno il la le lo nel nella non più si sono un una uno è".split()
    ),
    "nl": frozenset("aan bij de een er heeft het hij naar niet ook op uit van voor werd wordt ze zijn".split()),
}
"""Frequent function words, by language, that are rare in English."""
IN_NAMES = frozenset("au con da de dei del della den der des di du el en la le van von".split())
"""Those that occur inside names of people and places: they count only at the beginning of a sentence."""
NO_LANGUAGE = frozenset({"ext", "zxx"})
"""Labels with which the identifier marks text in no language."""
LONGEST_READ = 4000
"""Number of characters at the beginning of a text from which its language is identified."""
_AUTOMATON = ("moves", "rows", "features")
"""Names of the arrays by which the identifier finds the features of a text."""
_FUNCTION_WORDS = frozenset().union(*FUNCTION_WORDS.values())
_WORD = regex.compile(r"[\p{L}\p{M}'’]+")


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier

    model = MODEL_DIR / MODEL_FILE
    arrays = kept_arrays("languages", [version("py3langid"), file_sha256(model)], lambda: _unpacked(model))
    kept = {name: array.numpy() for name, array in arrays.items()}
    moves, rows, features = (kept[name].data for name in _AUTOMATON)  # memoryviews, of Python's integers
    labels = kept["labels"].tobytes().decode().split()
    return LanguageIdentifier(kept["weights"], kept["prior"], labels, moves, features, norm_probs=True, tk_row=rows)


def _unpacked(model: Path) -> dict[str, Tensor]:
    """Read the identifier's packed model, which takes half a second."""
    import torch
    from py3langid.modelio import load_model

    weights, prior, labels, *automaton = load_model(model)
    arrays = {"weights": weights, "prior": prior, "labels": np.frombuffer(" ".join(labels).encode(), dtype=np.uint8)}
    arrays |= {name: np.asarray(part, dtype=np.int32) for name, part in zip(_AUTOMATON, automaton, strict=True)}
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


@lru_cache(maxsize=256)
def _label(text: str) -> str:
    """Find the likeliest label, which takes less time than :func:`_likelihoods` of all."""
    label: str = _identifier().classify(text)[0]
    return label


@lru_cache(maxsize=256)
def _likelihoods(text: str) -> dict[str, float]:
    """Compute the likelihood of each language, cached since a sentence is asked about more than once."""
    return {code: p for code, p in _identifier().rank(text) if code not in NO_LANGUAGE}


def foreign_language(text: str, covered: Collection[str]) -> str | None:
    """Find the language code of a text in none of the covered languages; None if it is in one, or that is uncertain.

    Examples
    --------
    >>> foreign_language("Die Brücke wurde im Jahr 1932 eröffnet.", {"en"})
    'de'
    """
    if not has_letter(text) or _label(text[:LONGEST_READ]) in covered:
        return None
    likelihoods = _likelihoods(text[:LONGEST_READ])
    likeliest = _likeliest(text)
    best_covered = max((likelihoods.get(code, 0.0) for code in covered), default=0.0)
    if best_covered < likelihoods[likeliest] * exp(-SURE_NATS):
        return likeliest
    known = max(FUNCTION_WORDS, key=lambda code: likelihoods.get(code, 0.0))
    is_likely = best_covered < likelihoods.get(known, 0.0) * exp(-LIKELY_NATS)
    return known if is_likely and set(covered) == {"en"} and _has_function_word(text) else None


def _has_function_word(text: str) -> bool:
    """Tell whether a short text has a function word of a language other than English that is in no name."""
    words = _WORD.findall(text)
    if not 1 < len(words) <= SHORT:
        return False
    first, second = words[:2]
    # "La Scala" is a name; German nouns have a capital, but few names begin with "Ein".
    opens = first.lower() in _FUNCTION_WORDS and (second[0].islower() or first.lower() in ("ein", "eine"))
    return opens or any(word in _FUNCTION_WORDS and word not in IN_NAMES for word in words[1:])


def _likeliest(text: str) -> str:
    likelihoods = _likelihoods(text[:LONGEST_READ])
    return max(likelihoods, key=likelihoods.__getitem__)


def readable(passages: Sequence[str], covered: Collection[str] | None) -> tuple[tuple[str, ...], str | None]:
    """Replace passages in none of the covered languages with "", and name the context's language if it is in none.

    The context is in none if no passage is likely to be in a covered language, short ones judged together; then all
    passages are returned as they are. None covers all languages.

    Examples
    --------
    >>> readable(["It opened in 1932.", "Die Br\u00fccke wurde im Jahr 1932 er\u00f6ffnet."], {"en"})
    (('It opened in 1932.', ''), None)
    """
    given = tuple(passages)
    if covered is None:
        return given, None
    foreign_languages = [foreign_language(passage, covered) for passage in given]
    read = tuple("" if language else passage for passage, language in zip(given, foreign_languages, strict=True))
    rest = "\n".join(read)
    foreign = next(filter(None, foreign_languages), None)
    if foreign is None or (has_letter(rest) and _likeliest(rest) in covered):
        foreign = foreign_language(rest, covered)
    return (read, None) if foreign is None else (given, foreign)
