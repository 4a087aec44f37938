"""Answers that a threshold holds back, wholly or sentence by sentence, without decoding again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from decoding.answers import EvaluatedAnswer, JudgedProposition, Verdict
from syncheck.base.errors import InputError

__all__ = ["ABSTAIN_AS_BRANCH", "ABSTAIN_MATCHED", "CAD_PASSING", "passing", "withheld", "withheld_below"]

ABSTAIN_MATCHED = "Abstention (as many)"
ABSTAIN_AS_BRANCH = "Abstention (as branch)"
CAD_PASSING = "CAD (passing)"
"""CAD's answers without the sentences below the threshold of FOD's branches."""


def withheld(
    answers: Sequence[EvaluatedAnswer], *, sentences: int, name: str = ABSTAIN_MATCHED
) -> list[EvaluatedAnswer]:
    """Abstain by the highest threshold that still releases as many sentences.

    Abstention and FOD at one threshold cannot be told apart where abstention answers: FOD then gives the same greedy
    answer. What sets them apart is how much each has left to say, so the fair rival of FOD is an abstention whose
    threshold is as low as it takes to say as much.

    Parameters
    ----------
    answers
        Of greedy decoding, whole.
    sentences
        How many are wanted, at least 0.
    name
        Under which the answers are given.

    Returns
    -------
    list of EvaluatedAnswer
        One for each, under the name: the answer itself, or an empty one where its least score
        is below the threshold. All answers where they have fewer sentences than are wanted, none where none is wanted.
        An empty one costs the tokens and the time of the answer that is held back.

    Raises
    ------
    InputError
        If ``sentences`` is below 0.
    """
    if sentences < 0:
        raise InputError(f"expected a number of sentences to keep, 0 or more; found {sentences}")
    given: set[int] = set()
    by_score = sorted(enumerate(map(_least_score, answers)), key=lambda pair: -pair[1])
    for _, alike in groupby(by_score, key=lambda pair: pair[1]):
        if sum(len(answers[i].answer.scores) for i in given) >= sentences:
            break
        given |= {i for i, _ in alike}
    return [_named(each, name, given=i in given) for i, each in enumerate(answers)]


def withheld_below(answers: Sequence[EvaluatedAnswer], threshold: float, *, name: str) -> list[EvaluatedAnswer]:
    """Abstain from the answers that have a sentence below a threshold; an empty one costs what it did."""
    return [_named(each, name, given=_least_score(each) >= threshold) for each in answers]


def passing(answers: Sequence[EvaluatedAnswer], threshold: float, *, name: str = CAD_PASSING) -> list[EvaluatedAnswer]:
    """Drop the sentences below a threshold.

    What the judge said of the propositions of a sentence stays. The tokens are the share of the answer's that the kept
    characters are.
    """
    return [_without_failing(each, threshold, name) for each in answers]


def _without_failing(judged: EvaluatedAnswer, threshold: float, name: str) -> EvaluatedAnswer:
    whole, text = judged.answer, ""
    ends: list[int] = []
    scores: list[float | None] = []
    cut = [(0, 0)]
    propositions: list[JudgedProposition] = []
    bounds = pairwise((0, *whole.sentence_ends))
    parts = pairwise(((0, 0), *(judged.verdict.cut or ((0, 0),) * len(whole.scores))))
    for (start, end), score, ((before, right), (after, more)) in zip(bounds, whole.scores, parts, strict=True):
        if _comparable(score, whole.response[start:end]) < threshold:
            continue
        text += whole.response[start:end] if text else whole.response[start:end].lstrip()
        ends.append(len(text))
        scores.append(score)
        propositions += judged.verdict.propositions[before:after]
        cut.append((cut[-1][0] + after - before, cut[-1][1] + more - right))
    tokens = round(whole.tokens * len(text) / max(1, len(whole.response)))
    kept = replace(whole, decoder=name, response=text, sentence_ends=tuple(ends), scores=tuple(scores), tokens=tokens)
    return replace(judged, answer=kept, verdict=Verdict(tuple(propositions), cut[-1][1], tuple(cut[1:])))


def _least_score(answer: EvaluatedAnswer) -> float:
    """Return the least score among an answer's sentences, infinity where none of them claims anything."""
    whole = answer.answer
    bounds = zip(whole.scores, pairwise((0, *whole.sentence_ends)), strict=True)
    return min((_comparable(score, whole.response[start:end]) for score, (start, end) in bounds), default=math.inf)


def _comparable(score: float | None, text: str) -> float:
    """Return a score; without one, what claims nothing passes everywhere and what could not be checked nowhere."""
    if score is not None:
        return score
    return -math.inf if any(map(str.isalnum, text)) else math.inf


def _named(judged: EvaluatedAnswer, name: str, *, given: bool) -> EvaluatedAnswer:
    if given:
        return replace(judged, answer=replace(judged.answer, decoder=name))
    empty = replace(judged.answer, decoder=name, response="", sentence_ends=(), scores=(), tokens=0)
    return replace(judged, answer=empty, verdict=Verdict((), 0, ()))
