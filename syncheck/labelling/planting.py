"""Errors planted in sentences: a number, a name or a word exchanged, a negation put in or taken out, another ending."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from syncheck.features.opposites import OPPOSITES

SHORTEST = 8
"""Words of a sentence, and of the one it gets its end from, for an exchange of ends."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}")
_WORD = re.compile(r"[a-z]+")
_AUXILIARIES = "is|was|are|were|has|have|had|can|could|will|would|should|may|must|does|did|do"
_NEGATED = re.compile(rf"\b(?:{_AUXILIARIES}) not\b", re.IGNORECASE)
_PLAIN = re.compile(rf"\b(?:{_AUXILIARIES})\b(?! not)", re.IGNORECASE)

_Way = Callable[[random.Random, str, Sequence[str], Sequence[str]], str | None]


def plant_error(
    rng: random.Random, sentence: str, passages: Sequence[str], others: Sequence[str]
) -> tuple[str, str] | None:
    """Make a sentence wrong in one place.

    Parameters
    ----------
    rng
        Decides the kind of error, its place and what stands there then.
    sentence
        Taken to be faithful to the passages, or wrong already.
    passages
        A number or name is exchanged for another of theirs, where there is one, as a model that mixes facts up does.
    others
        Sentences about something else, whose names and ends serve where the passages have none.

    Returns
    -------
    tuple of (str, str), or None
        The kind (``number``, ``name``, ``opposite``, ``negation`` or ``ending``) and the sentence; None where no error
        can be planted that leaves a text which no passage holds word for word. Negations and opposites are English.
    """
    ways = list(_WAYS.items())
    rng.shuffle(ways)
    text = " ".join(passages)
    for kind, way in ways:
        wrong = way(rng, sentence, passages, others)
        if wrong is not None and wrong != sentence and wrong.strip(" .") not in text:
            return kind, wrong
    return None


def _number(rng: random.Random, sentence: str, passages: Sequence[str], others: Sequence[str]) -> str | None:
    own = list(_NUMBER.finditer(sentence))
    if not own:
        return None
    place = rng.choice(own)
    old, used = place[0], {match[0] for match in own}
    alike = sorted({n for passage in passages for n in _NUMBER.findall(passage) if len(n) == len(old)} - used)
    new = rng.choice(alike) if alike and rng.random() < 0.5 else _other_number(rng, old)
    return _replaced(sentence, place, new)


def _other_number(rng: random.Random, old: str) -> str:
    if _YEAR.fullmatch(old):
        return str(int(old) + rng.choice([-1, 1]) * rng.randint(1, 30))
    digits = [i for i, letter in enumerate(old) if letter.isdigit()]
    place = rng.choice(digits)
    smallest = 1 if place == digits[0] and len(digits) > 1 else 0
    new = rng.choice([digit for digit in range(smallest, 10) if str(digit) != old[place]])
    return f"{old[:place]}{new}{old[place + 1 :]}"


def _name(rng: random.Random, sentence: str, passages: Sequence[str], others: Sequence[str]) -> str | None:
    own = list(_NAME.finditer(sentence))
    if not own:
        return None
    place = rng.choice(own)
    for texts in (passages, others):
        names = sorted({name for text in texts for name in _NAME.findall(text) if name not in sentence})
        if names:
            return _replaced(sentence, place, rng.choice(names))
    return None


def _opposite(rng: random.Random, sentence: str, passages: Sequence[str], others: Sequence[str]) -> str | None:
    places = [match for match in _WORD.finditer(sentence) if match[0] in OPPOSITES]
    if not places:
        return None
    place = rng.choice(places)
    against = sorted(rng.choice(OPPOSITES[place[0]])[1])
    alike = [word for word in against if word[-2:] == place[0][-2:]]  # the same form, as a rule
    return _replaced(sentence, place, rng.choice(alike or against))


def _negation(rng: random.Random, sentence: str, passages: Sequence[str], others: Sequence[str]) -> str | None:
    if found := list(_NEGATED.finditer(sentence)):
        place = rng.choice(found)
        return _replaced(sentence, place, place[0][: -len(" not")])
    if found := list(_PLAIN.finditer(sentence)):
        place = rng.choice(found)
        return _replaced(sentence, place, f"{place[0]} not")
    return None


def _ending(rng: random.Random, sentence: str, passages: Sequence[str], others: Sequence[str]) -> str | None:
    words = sentence.split()
    ends = [other.split() for other in others if len(other.split()) >= SHORTEST]
    if len(words) < SHORTEST or not ends:
        return None
    end = rng.choice(ends)
    return " ".join([*words[: len(words) // 2], *end[len(end) // 2 :]])


def _replaced(sentence: str, place: re.Match[str], new: str) -> str:
    return f"{sentence[: place.start()]}{new}{sentence[place.end() :]}"


_WAYS: dict[str, _Way] = {
    "number": _number,
    "name": _name,
    "opposite": _opposite,
    "negation": _negation,
    "ending": _ending,
}
