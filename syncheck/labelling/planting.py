"""Planting of errors: a wrong number, name, word, negation or ending in a sentence, or a sentence in an answer."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from syncheck.base.errors import PromptError
from syncheck.contrasts.lexicon import OPPOSITES
from syncheck.labelling.responses import LabelledResponse, LabelledSentence
from syncheck.text.words import content_words, stem

TRANSPLANTED = "transplanted"
EXCHANGED = "exchanged passages"
MOST_EXCHANGED = 2
"""Largest number of labelled sentences in an answer over exchanged passages, so that easy errors do not prevail."""
DRAWN = 8
"""Number of other questions drawn; the one with the most similar passages lends passages and sentences."""
SHORTEST = 8
"""Least number of words of two sentences whose ends are exchanged."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}")
_WORD = re.compile(r"[a-z]+")
_AUXILIARIES = "is|was|are|were|has|have|had|can|could|will|would|should|may|must|does|did|do"
_NEGATED = re.compile(rf"\b(?:{_AUXILIARIES}) not\b", re.IGNORECASE)
_PLAIN = re.compile(rf"\b(?:{_AUXILIARIES})\b(?! not)", re.IGNORECASE)

_Way = Callable[[random.Random, str, Sequence[str], Sequence[str]], str | None]

Scored = list[tuple[LabelledSentence, float | None]]
"""Sentences of an answer with the teacher's scores, None without a score."""


def plant_error(
    rng: random.Random, sentence: str, passages: Sequence[str], others: Sequence[str]
) -> tuple[str, str] | None:
    """Make a sentence, which is assumed to be faithful to the passages or wrong already, wrong in one place.

    ``rng`` is the source of randomness for the kind of error, its position and the replacement. A number or name is
    exchanged for another one in the passages, as by a model that confuses facts. If they have none, names and endings
    are those of ``others``, sentences about other things. Negations and opposites are English.

    The result is the kind (``number``, ``name``, ``opposite``, ``negation`` or ``ending``) and the wrong sentence; None
    if every possible error gives a text that a passage contains word for word.
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
    if places := list(_NEGATED.finditer(sentence)):
        place = rng.choice(places)
        return _replaced(sentence, place, place[0][: -len(" not")])
    if places := list(_PLAIN.finditer(sentence)):
        place = rng.choice(places)
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


class Spoiler:
    """Plants one error in a copy of each answer, of a kind drawn at random from those that are possible."""

    def __init__(
        self,
        answers: Sequence[LabelledResponse],
        scored: Mapping[str, Scored],
        judge: Callable[[LabelledResponse], Scored],
        sure: float,
        seed: int,
    ) -> None:
        self._answers, self._scored, self._judge, self._sure, self._seed = answers, scored, judge, sure, seed

    def __call__(self, answer: LabelledResponse) -> Iterator[LabelledResponse]:
        """Yield the copy; nothing if no error is possible."""
        rng = random.Random(f"{self._seed} {answer.id}")
        other = self._most_similar(rng, answer)
        ways = [self._planted, self._transplanted, self._exchanged]
        rng.shuffle(ways)
        for way in ways:
            with suppress(PromptError):  # with the other passages it may not fit the window
                made = way(rng, answer, other)
                if made is not None:
                    yield replace(made, carry_labels=True)
                    return

    def _most_similar(self, rng: random.Random, answer: LabelledResponse) -> LabelledResponse:
        """Choose the answer, among some to other questions, whose passages share most with those of this one."""
        answers = self._answers
        drawn = [a for a in rng.sample(answers, min(4 * DRAWN, len(answers))) if a.group != answer.group][:DRAWN]
        drawn = drawn or [a for a in answers if a.group != answer.group][:1]
        own = _stems(answer)
        return max(drawn, key=lambda a: len(own & _stems(a)) / len(own | _stems(a) | {""}))

    def _claims(self, answer: LabelledResponse) -> list[LabelledSentence]:
        return [s for s, score in self._scored[answer.id] if score is not None]

    def _planted(
        self, rng: random.Random, answer: LabelledResponse, other: LabelledResponse
    ) -> LabelledResponse | None:
        claims = self._claims(answer)
        if not claims:
            return None
        chosen = rng.choice(claims)
        others = [other.response[s.start : s.end] for s in self._claims(other)]
        planted = plant_error(rng, answer.response[chosen.start : chosen.end], answer.passages, others)
        if planted is None:
            return None
        kind, text = planted
        return self._with_sentence(answer, chosen, text, task=f"planted {kind}")

    def _transplanted(
        self, rng: random.Random, answer: LabelledResponse, other: LabelledResponse
    ) -> LabelledResponse | None:
        own, claims = self._claims(answer), self._claims(other)
        if not own or not claims:
            return None
        lent, place = rng.choice(claims), rng.choice(own)
        text = other.response[lent.start : lent.end]
        made = self._with_sentence(answer, place, text, task=TRANSPLANTED)
        alone = self._judge(replace(answer, id=made.id, response=text))
        return None if any(score is None or score >= self._sure for _, score in alone) else made

    def _exchanged(
        self, rng: random.Random, answer: LabelledResponse, other: LabelledResponse
    ) -> LabelledResponse | None:
        if answer.prompt_with_context is not None:  # its passages are part of a text that is not ours
            return None
        made = replace(answer, id=f"{answer.id}/exchanged-passages", passages=other.passages, task=EXCHANGED)
        scores = self._judge(made)
        wrong = [i for i, (_, score) in enumerate(scores) if score is not None and score < self._sure]
        if not wrong:
            return None
        labelled = rng.sample(wrong, min(MOST_EXCHANGED, len(wrong)))
        sentences = tuple(replace(s, faithful=False if i in labelled else None) for i, (s, _) in enumerate(scores))
        return replace(made, sentences=sentences)

    def _with_sentence(
        self, answer: LabelledResponse, place: LabelledSentence, text: str, *, task: str
    ) -> LabelledResponse:
        """Put an unfaithful text in place of a sentence of an answer; the other sentences have no label."""
        start, end = place.start, place.end
        longer = len(text) - (end - start)
        sentences = (
            LabelledSentence(start, start + len(text), False)
            if sentence.start == start
            else sentence
            if sentence.start < start
            else replace(sentence, start=sentence.start + longer, end=sentence.end + longer)
            for sentence, _ in self._scored[answer.id]
        )
        return replace(
            answer,
            id=f"{answer.id}/{task.replace(' ', '-')}",
            response=answer.response[:start] + text + answer.response[end:],
            sentences=tuple(sentences),
            task=task,
        )


def _stems(answer: LabelledResponse) -> set[str]:
    return {stem(word) for passage in answer.passages for word in content_words(passage)}
