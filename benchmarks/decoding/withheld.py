"""Abstention at another decoder's coverage: as many sentences are released, from the answers with the best scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from decoding.answers import EvaluatedAnswer, Verdict
from syncheck.errors import InputError

__all__ = ["ABSTAIN_AS_BRANCH", "ABSTAIN_MATCHED", "withheld"]

ABSTAIN_MATCHED = "Abstention (as many)"
ABSTAIN_AS_BRANCH = "Abstention (as branch)"


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


def _least_score(answer: EvaluatedAnswer) -> float:
    """Return the least score among an answer's sentences, infinity where none of them claims anything."""
    return min((score for score in answer.answer.scores if score is not None), default=math.inf)


def _named(judged: EvaluatedAnswer, name: str, *, given: bool) -> EvaluatedAnswer:
    if given:
        return replace(judged, answer=replace(judged.answer, decoder=name))
    empty = replace(judged.answer, decoder=name, response="", sentence_ends=(), scores=(), tokens=0)
    return replace(judged, answer=empty, verdict=Verdict((), 0, ()))
