"""Faults of wording that scores miss: names copied wrongly, and pronouns whose noun is not shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from os.path import commonprefix

LONG_NAME = 5
"""Length, in letters, from which a name is recognised on its own when some letters are altered."""

_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"(?:(?<=[^.!?:\s])\s+[\"'(\[“‘]*|[-–—/(])([^\W\d_]+)")

_PRONOUN = re.compile(
    r"\W*(?:(?:also|additionally|furthermore|however|in addition|moreover|then),?\s+)?"
    r"(he|she|it|they|his|her|its|their|this|these)\b",
    re.IGNORECASE,
)


def loose_pronoun(text: str, shown: str, hidden: Sequence[str], sources: Sequence[str]) -> str | None:
    """Find the pronoun with which a sentence opens, if its noun is in a hidden sentence.

    Parameters
    ----------
    text
        The sentence.
    shown
        The question and the answer before it, as a reader sees them.
    hidden
        Sentences that the model wrote in between, which the reader does not see.
    sources
        The passages, by which names are distinguished from other words at the beginning of a sentence.

    Returns
    -------
    str or None
        None if the sentence opens with no pronoun, if the last hidden sentence that does not open with one has a name
        that is shown, or if all hidden sentences open with one.
    """
    opening = _PRONOUN.match(text)
    named = next((sentence for sentence in reversed(hidden) if not _PRONOUN.match(sentence)), None)
    if opening is None or named is None:
        return None
    common = {word for each in (*sources, *hidden) for word in _WORD.findall(each) if word[0].islower()}
    names = {word.casefold() for word in _WORD.findall(named) if word[0].isupper() and word.casefold() not in common}
    return None if names & {word.casefold() for word in _WORD.findall(shown)} else opening[1]


def altered_names(text: str, sources: Sequence[str]) -> list[str]:
    """Find the names in a text that are nearly, but not quite, names in the sources: "Elvador" for "Salvador".

    Names are capitalised words; in the sources, only those that also occur inside a sentence. A name that no source
    has, in upper or lower case, counts as altered if a few edits turn it into a name of a source: at most a third of
    its letters, or one letter of a short word next to the same word. Words with the same beginning are taken for
    derived forms, such as "Mexican" of "Mexico".
    """
    names, long_names, known, pairs = _read(tuple(sources))
    words = ["", *_WORD.findall(text), ""]
    altered = []
    for before, word, after in zip(words, words[1:], words[2:], strict=False):
        if not word[0].isupper() or word.casefold() in known:
            continue
        rivals = {name for name in names if (before, name) in pairs or (name, after) in pairs}
        if len(word) >= LONG_NAME:
            rivals |= long_names
        if any(_is_altered(word.casefold(), name.casefold()) for name in rivals):
            altered.append(word)
    return altered


@lru_cache(maxsize=8)
def _read(
    sources: tuple[str, ...],
) -> tuple[frozenset[str], frozenset[str], frozenset[str], frozenset[tuple[str, str]]]:
    """Find the names in the sources, the long ones among them, all words in lower case, and pairs of neighbours."""
    names = frozenset(name for source in sources for name in _NAME.findall(source) if name[0].isupper())
    spelled = [_WORD.findall(source) for source in sources]
    known = frozenset(word.casefold() for words in spelled for word in words)
    pairs = frozenset(pair for words in spelled for pair in pairwise(words))
    return names, frozenset(name for name in names if len(name) >= LONG_NAME), known, pairs


def _is_altered(word: str, name: str) -> bool:
    most = max(1, len(word) // 3)
    if abs(len(word) - len(name)) > most:
        return False
    if len(commonprefix([word, name])) >= min(len(word), len(name)) - (2 if len(word) >= LONG_NAME else 0):
        return False
    return _edits(word, name) <= most


def _edits(one: str, other: str) -> int:
    """Compute the edit distance of two words: letters added, dropped or replaced (Levenshtein, 1966)."""
    row = list(range(len(other) + 1))
    for count, letter in enumerate(one, 1):
        before, row[0] = row[0], count
        for place, wanted in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != wanted))
    return row[-1]
