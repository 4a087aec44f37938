"""Words of a text: their overlap with the context, how rare they are, and the language they are of.

Shares are in [0, 1]; NaN means that the sentence has nothing of the kind to count, such as no number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from itertools import pairwise
from math import exp, log, log1p, nan
from typing import TYPE_CHECKING

import numpy as np
import regex

from syncheck.base.files import asset_text, asset_words, file_sha256
from syncheck.base.pretrained import kept_arrays
from syncheck.text.notation import SMALL, TENS

if TYPE_CHECKING:
    from pathlib import Path

    from py3langid.langid import LanguageIdentifier
    from torch import Tensor

_STEM = 5  # number of a word's first characters that count as its stem
_NEAR = 8  # distance, in words, up to which two words of a passage are near each other
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and Han: each character counts as a word
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese and Khmer, also without spaces, in which each letter with its marks counts as a word."""
_LETTER = rf"[^\W\d_{_CJK}{_UNSPACED}]"
_POSSESSIVE = re.compile(r"['\u2019]s?$")
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")
_WORDS = asset_words("english/words.txt")
_STOP_WORDS = _WORDS["stop words"]  # English function words, and words with which answers refer to sources


@dataclass(frozen=True, slots=True)
class ContextLexicon:
    """The words of the passages of a prompt, read once for all its sentences."""

    words: frozenset[str]
    bigrams: frozenset[tuple[str, str]]  # pairs of neighbouring words in one passage, function words included
    numbers: frozenset[str]  # the numbers among the normalised ``words``
    stems: frozenset[str]  # see :func:`stem`
    places: Mapping[str, tuple[int, ...]]  # positions of each word, with a gap between one passage and the next
    stem_places: Mapping[str, tuple[int, ...]]  # positions of each stem

    @classmethod
    def from_passages(cls, passages: Iterable[str]) -> ContextLexicon:
        """Read the passages; without passages, every share is 0."""
        texts = [words(passage) for passage in passages]
        bigrams = frozenset(pair for text in texts for pair in pairwise(text))
        places = _places(texts)
        stem_places = _places([[stem(word) for word in text] for text in texts])
        numbers = frozenset(filter(_is_number, places))
        return cls(frozenset(places), bigrams, numbers, frozenset(stem_places), places, stem_places)


@dataclass(frozen=True, slots=True)
class LexicalShares:
    """Shares of one sentence's wording that occur in the context, each in [0, 1]; NaN where there is nothing to count.

    Only ``novel_words`` is not a share: it is ln(1 + distinct stems of content words that the context lacks).
    """

    content_overlap: float = nan
    bigram_overlap: float = nan
    number_overlap: float = nan
    name_overlap: float = nan
    stem_overlap: float = nan
    pair_overlap: float = nan
    copied_run: float = nan
    novel_words: float = nan


def lexical_shares(sentence: str, lexicon: ContextLexicon) -> LexicalShares:
    """Compute the shares of a sentence's content words, word pairs, numbers and names that occur in the context.

    Names are the capitalised words after the first word or number, except a lone "I"; the context may have them in any
    case. ``pair_overlap`` is the share of pairs of neighbouring content words whose stems are within eight words of
    each other in a passage, in either order, ``copied_run`` that of words in the longest run copied from a passage.
    """
    written = _raw_words(sentence)
    normalised = [_normalised(word) for word in written]
    names = [word for word, raw in zip(normalised[1:], written[1:], strict=True) if raw[0].isupper() and raw != "I"]
    content = without_stop_words(normalised)
    stems = [stem(word) for word in content]
    pairs = [_are_near(pair, lexicon) for pair in pairwise(stems)]
    return LexicalShares(
        stem_overlap=share(stems, lexicon.stems),
        pair_overlap=sum(pairs) / len(pairs) if pairs else nan,
        copied_run=_longest_run(normalised, lexicon) / len(normalised) if normalised else nan,
        novel_words=log1p(len(set(stems) - lexicon.stems)),
        content_overlap=share(content, lexicon.words),
        bigram_overlap=share(list(pairwise(normalised)), lexicon.bigrams),
        number_overlap=share([word for word in normalised if _is_number(word)], lexicon.numbers),
        name_overlap=share(names, lexicon.words),
    )


def novel_pairs(sentence: str, lexicon: ContextLexicon) -> float:
    """Compute ln(1 + number of pairs of neighbouring content words whose stems are near each other in no passage)."""
    stems = [stem(word) for word in content_words(sentence)]
    pairs = [_are_near(pair, lexicon) for pair in pairwise(stems)]
    return log1p(len(pairs) - sum(pairs))


@lru_cache(maxsize=4)
def word_pattern(first: str = "", number: str = r"\d+(?:[.,]\d+)*") -> re.Pattern[str]:
    """Build the pattern of words and numbers, at first use since it scans 130,000 characters.

    ``first`` is an alternative that is tried before words, and ``number`` another pattern of numbers.
    """
    # Accents, vowel signs and the like, which \w leaves out: they belong to the letter before them.
    marks = "".join(c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c)[0] == "M")
    # What letters continue with; a zero-width (non-)joiner is inside a word, not at its end.
    more = rf"['\u2019][^\W\d_]+|[{marks}]+{_LETTER}*|[\u200c\u200d]+(?={_LETTER}|[{marks}]){_LETTER}*"
    return re.compile(
        # Most words end before an ASCII character, which is quicker to check than that nothing continues.
        rf"{first}{_LETTER}+(?:(?![\0-&(-~])(?:{more})+)?"
        rf"|{number}|[{_CJK}]|[{_UNSPACED}](?<=[^\W\d_])[{marks}]*"
    )


def _raw_words(text: str) -> list[str]:
    return list(word_pattern().findall(unicodedata.normalize("NFKC", text)))


def words(text: str) -> list[str]:
    """List the normalised words and numbers of a text, in order."""
    if text.isascii() and text.isalpha():  # a single word, which has nothing to be normalised but its case
        return [text.lower()]
    return list(_words(text))


@lru_cache(maxsize=64)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_normalised(word) for word in _raw_words(text))


def content_words(text: str) -> list[str]:
    """List the normalised words and numbers of a text, without stop words, in order."""
    return without_stop_words(words(text))


def without_stop_words(read: Iterable[str]) -> list[str]:
    """List the normalised words that are not stop words, in order."""
    return [word for word in read if word not in _STOP_WORDS]


def has_letter(text: str) -> bool:
    """Tell whether a text has a letter of any script; a sentence without one, such as a list number, has no claim."""
    return any(map(str.isalpha, text))


def share(items: Collection[object], known: AbstractSet[object]) -> float:
    """Compute the share of items that are known; NaN when there are none."""
    return sum(item in known for item in items) / len(items) if items else nan


def stem(word: str) -> str:
    """Cut a longer word that is not a number to its first five characters, which approximate its stem."""
    return word if _is_number(word) else word[:_STEM]


def _places(texts: Sequence[Sequence[str]]) -> dict[str, tuple[int, ...]]:
    places_of: dict[str, list[int]] = {}
    start = 0
    for text in texts:
        for place, word in enumerate(text, start):
            places_of.setdefault(word, []).append(place)
        start += len(text) + _NEAR  # so that nothing is near, or in a run, across passages
    return {word: tuple(places) for word, places in places_of.items()}


def _are_near(pair: tuple[str, str], lexicon: ContextLexicon) -> bool:
    first, second = (lexicon.stem_places.get(stem, ()) for stem in pair)
    i = j = 0
    while i < len(first) and j < len(second):
        if 0 < abs(first[i] - second[j]) <= _NEAR:
            return True
        # If both stems are the same, a place is not its own neighbour.
        if first[i] <= second[j]:
            i += 1
        else:
            j += 1
    return False


def _longest_run(words: Sequence[str], lexicon: ContextLexicon) -> int:
    longest = 0
    ends: dict[int, int] = {}  # place in the context -> length of the run that ends there
    for word in words:
        ends = {place: ends.get(place - 1, 0) + 1 for place in lexicon.places.get(word, ())}
        longest = max([longest, *ends.values()])
    return longest


def _normalised(word: str) -> str:
    """Fold case, drop a possessive ending and the commas between thousands."""
    folded = word.casefold()
    return folded if folded.isalnum() else _THOUSANDS.sub("", _POSSESSIVE.sub("", folded))


def _is_number(word: str) -> bool:
    return word[0].isdigit()


NAMES = "names.txt"  # asset with words that are mostly written with a capital, in lower case, one a line
TABLE = "articles_by_stem.txt"
"""Asset with the number of articles read, then in each line a count and the stems that occur in that many articles."""
NUMBER_WORDS = {word: str(number) for word, number in (SMALL | TENS | {"twenty": 20}).items() if number}


@dataclass(frozen=True, slots=True)
class Rarity:
    """Inverse document frequency of stems."""

    articles: int  # number of articles that were counted
    counts: Mapping[str, int]  # of articles in which a stem (:func:`stem`) occurs; the rarest may be left out

    def __call__(self, stem: str) -> float:
        """Compute ln((N + 1) / (n + 1)), in nats, of a stem in n of N articles; n is 0 for an unknown stem."""
        return log((self.articles + 1) / (self.counts.get(stem, 0) + 1))


@lru_cache(maxsize=1)
def packaged_rarity() -> Rarity:
    """Read the package's counts over 4,000 articles of the English Wikipedia, spring 2024."""
    first, *lines = asset_text(f"rarity/{TABLE}").splitlines()
    counts = {stem: int(count) for count, *stems in (line.split(" ") for line in lines) for stem in stems}
    return Rarity(int(first.split(" ")[0]), counts)


@lru_cache(maxsize=1)
def packaged_names() -> frozenset[str]:
    """Read the words that the English Wikipedia mostly writes with a capital, in lower case."""
    return frozenset(asset_text(f"rarity/{NAMES}").split())


SURE_NATS = 4.0
"""Lead that another language must have over all covered ones, in nats, normalised for the length of the text.

Chosen on Mu-SHROOM's validation part. Names, numbers and phrases such as "Paris, 1932." stay below it."""
LIKELY_NATS = 2.5
"""The same for a short sentence with a function word of another language, where English alone is covered. Names in an
English sentence reach this lead, but have no such word; see ``benchmarks/languages.py``."""
SHORT = 8
"""Largest number of words of a short sentence. A longer one in another language reaches :data:`SURE_NATS`, unless it
has a good deal of English too."""
FUNCTION_WORDS = {code: _WORDS[code] for code in ("de", "es", "fr", "it", "nl")}  # by language; rare in English
IN_NAMES = _WORDS["in names"]  # they are in names of people and places, and count only at a sentence's beginning
NO_LANGUAGE = frozenset({"ext", "zxx"})  # labels with which the identifier marks text in no language
LONGEST_READ = 4000  # number of characters at the beginning of a text from which its language is identified
_AUTOMATON = ("moves", "rows", "features")  # arrays by which the identifier finds a text's features
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
    """Find the likeliest label, in less time than :func:`_likelihoods` takes."""
    return str(_identifier().classify(text)[0])


@lru_cache(maxsize=256)
def _likelihoods(text: str) -> dict[str, float]:
    """Compute the likelihood of each language, cached since a sentence is asked about more than once."""
    return {code: p for code, p in _identifier().rank(text) if code not in NO_LANGUAGE}


def foreign_language(text: str, covered: Collection[str]) -> str | None:
    """Find the language code of a text in none of the covered languages; None if it is in one, or that is uncertain."""
    if not has_letter(text) or _label(text[:LONGEST_READ]) in covered:
        return None
    likelihoods, likeliest = _likelihoods(text[:LONGEST_READ]), _likeliest(text)
    best_covered = max((likelihoods.get(code, 0.0) for code in covered), default=0.0)
    if best_covered < likelihoods[likeliest] * exp(-SURE_NATS):
        return likeliest
    known = max(FUNCTION_WORDS, key=lambda code: likelihoods.get(code, 0.0))
    is_likely = best_covered < likelihoods.get(known, 0.0) * exp(-LIKELY_NATS)
    return known if is_likely and set(covered) == {"en"} and _has_function_word(text) else None


def _has_function_word(text: str) -> bool:
    """Tell whether a short text has a function word of a language other than English that is in no name."""
    first, *rest = _WORD.findall(text) or [""]
    if not 1 <= len(rest) < SHORT:
        return False
    # "La Scala" is a name; German nouns have a capital, but few names begin with "Ein".
    opens = first.lower() in _FUNCTION_WORDS and (rest[0][0].islower() or first.lower() in ("ein", "eine"))
    return opens or not (_FUNCTION_WORDS - IN_NAMES).isdisjoint(rest)


def _likeliest(text: str) -> str:
    likelihoods = _likelihoods(text[:LONGEST_READ])
    return max(likelihoods, key=likelihoods.__getitem__)


def readable(passages: Sequence[str], covered: Collection[str] | None) -> tuple[tuple[str, ...], str | None]:
    """Replace passages in none of the covered languages with "", and name the context's language if it is in none.

    The context is in none if no passage is likely to be in a covered language, short ones judged together; then all
    passages are returned as they are. None covers all languages.
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
