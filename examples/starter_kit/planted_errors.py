"""Answers with known errors, and labels for answers with natural ones.

An answer of the kit's model is meant to be copied from the passages, so whether a sentence is faithful can be read off
them: it is when nearly all its words stand, in order, in one passage and every number and name in the part it was
copied from. A sentence put together from two places fails that test, which is the mistake that such a model makes most.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import pairwise

from wikipedia_qa import QAExample, Substitution

COVERED = 0.85
"""Share of a sentence's words that must stand in order in one stretch of a passage."""
SLACK = 1.6
"""Length of that stretch, in lengths of the sentence."""

_WORDS = re.compile(r"\d+|[^\W\d_]+")
_LEAD = re.compile(
    r"^(?:Based on the given passages|According to the passages|Additionally|Furthermore|Also|In addition|However), "
)
_NEGATIONS = (
    (" is ", " is not "),
    (" was ", " was not "),
    (" were ", " were not "),
    (" are ", " are not "),
    (" has ", " has never "),
)


def is_faithful(sentence: str, passages: Sequence[str]) -> bool:
    """Return True if a sentence is copied unchanged from one place of one passage."""
    words = _WORDS.findall(_LEAD.sub("", sentence).lower())
    if not words:
        return True
    telling = {w.lower() for w in re.findall(r"\d+|(?<=\s)[A-Z]\w+", _LEAD.sub("", sentence))}
    return any(_copied(words, telling, _WORDS.findall(p.lower())) for p in passages)


def _copied(words: Sequence[str], telling: set[str], passage: Sequence[str]) -> bool:
    span = int(len(words) * SLACK) + 4
    for start in range(0, max(1, len(passage) - span + 1), max(1, len(words) // 3)):
        stretch = passage[start : start + span]
        if telling <= set(stretch) and _common(words, stretch) >= COVERED * len(words):
            return True
    return False


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        previous = 0
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], previous + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


def plant(
    rng: random.Random, example: QAExample, others: Sequence[str], substitution: Substitution
) -> tuple[tuple[str, ...], int | None]:
    """Make one sentence of the answer wrong: number, name, negation, tail of another, or another sentence.

    Returns
    -------
    answer : tuple of str
    place : int or None
        Which sentence is wrong; None when nothing could be planted.
    """
    answer = list(example.answer)
    place = rng.randrange(len(answer))
    ways = [_numbers, _names, _negated, _tail, _replaced]
    rng.shuffle(ways)
    for way in ways:
        wrong = way(rng, answer[place], others, substitution)
        # A negation keeps nearly all words, so the test by words would not see it.
        if wrong is not None and (way is _negated or not is_faithful(wrong, example.passages)):
            answer[place] = wrong
            return tuple(answer), place
    return tuple(answer), None


def _numbers(rng: random.Random, sentence: str, others: Sequence[str], substitution: Substitution) -> str | None:
    found = re.findall(r"\d+", sentence)
    if not found:
        return None
    table = substitution.draw(rng, [rng.choice(found)])
    return substitution.apply(table, sentence)


def _names(rng: random.Random, sentence: str, others: Sequence[str], substitution: Substitution) -> str | None:
    found = [n for n in re.findall(r"(?<=\s)[A-Z][a-z]{2,}", sentence) if n in substitution.known]
    if not found:
        return None
    return sentence.replace(rng.choice(found), rng.choice(substitution.names))


def _negated(rng: random.Random, sentence: str, others: Sequence[str], substitution: Substitution) -> str | None:
    for plain, negated in _NEGATIONS:
        if plain in sentence:
            return sentence.replace(plain, negated, 1)
    return None


def _tail(rng: random.Random, sentence: str, others: Sequence[str], substitution: Substitution) -> str | None:
    words, other = sentence.split(), rng.choice(others).split()
    if len(words) < 8 or len(other) < 8:
        return None
    return " ".join([*words[: len(words) // 2], *other[len(other) // 2 :]])


def _replaced(rng: random.Random, sentence: str, others: Sequence[str], substitution: Substitution) -> str | None:
    return rng.choice(others)


def neighbours(example: QAExample) -> list[str]:
    """Return the sentences of an example's passages, to take wrong tails from."""
    return [b for p in example.passages for a, b in pairwise(("", *re.split(r"(?<=[.!?]) ", p))) if len(b) > 30]
