"""Judges answers proposition by proposition, by an aligner that the monitor does not use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from decoding.answers import DecodedAnswer, EvaluatedAnswer, JudgedProposition, Verdict
from syncheck import Aligner, Monitor
from syncheck.aligners import is_same_aligner
from syncheck.base.errors import InputError
from syncheck.text.sentences import Punkt

__all__ = ["AnswerJudge", "SUPPORT_THRESHOLD"]

SUPPORT_THRESHOLD = 0.5
"""P(supported) from which a proposition counts as faithful."""


_JOINT = re.compile(r"\s*;\s+|,\s+(?:and|but|while|whereas)\s+")
_WORD = re.compile(r"\w+")
LEAST_WORDS = 4
"""Number of words that each side of a conjunction needs to count as a separate proposition."""


def propositions_of(text: str) -> list[str]:
    """Split a text into propositions at sentences, semicolons and conjunctions.

    A stand-in for a trained propositioner: it does not replace pronouns with names or add missing subjects, so its
    propositions are not decontextualised like those of the paper (Chen et al., 2023). Sentences are those of NLTK's
    untrained Punkt. A sentence is cut at every semicolon, and at a comma before "and", "but", "while" or "whereas" if
    there are at least four words on either side.
    """
    return [piece for sentence in Punkt().texts(text) for piece in _pieces(sentence)]


def _pieces(sentence: str) -> Iterator[str]:
    start = 0
    for joint in _JOINT.finditer(sentence):
        left, right = sentence[start : joint.start()], sentence[joint.end() :]
        is_strong = ";" in joint.group()
        if is_strong or min(len(_WORD.findall(left)), len(_WORD.findall(right))) >= LEAST_WORDS:
            if _WORD.search(left):
                yield left.strip()
            start = joint.end()
    if _WORD.search(sentence[start:]):
        yield sentence[start:].strip()


class AnswerJudge:
    """Says which propositions of an answer the passages support (paper, section 4.3).

    Parameters
    ----------
    aligner
        Judges each proposition against the passages; any of :func:`syncheck.load_aligner` with weights other than the
        monitor's.
    monitor
        The one that steers or scores the decoders.
    threshold
        Smallest P(supported), in (0, 1], of a faithful proposition.
    allow_monitor_aligner
        Judge by the monitor's own aligner all the same. Its errors are then the monitor's, and what was chosen by the
        monitor looks better than it is.

    Raises
    ------
    InputError
        If the aligner is the monitor's, by name or by weights (see :func:`syncheck.is_same_aligner`), and that is not
        allowed; or the threshold is outside its range.
    """

    def __init__(
        self,
        aligner: Aligner,
        *,
        monitor: Monitor,
        threshold: float = SUPPORT_THRESHOLD,
        allow_monitor_aligner: bool = False,
    ) -> None:
        if not 0 < threshold <= 1:
            raise InputError(f"threshold must be in (0, 1]; found {threshold}")
        own = monitor.aligner
        if own is not None and not allow_monitor_aligner and is_same_aligner(own, aligner):
            called = "" if aligner.name == own.name else f" under the name {aligner.name!r}"
            raise InputError(
                f"expected a judge that the monitor does not use; found its own, {own.name!r}{called}. Pass another "
                "one, or allow_monitor_aligner=True to let the monitor's aligner judge what it has chosen itself"
            )
        self.threshold = threshold
        self._aligner = aligner

    def judge(
        self, answers: Sequence[DecodedAnswer], *, passages: Sequence[str], prompt: str, task: str
    ) -> list[EvaluatedAnswer]:
        """Judge answers to one prompt; propositions that they share are judged once.

        Parameters
        ----------
        answers
        passages
            The prompt's context.
        prompt, task
            Its id and task, kept with the answers.

        Returns
        -------
        list of EvaluatedAnswer
            One for each answer. An empty one has no propositions, and the judge is not asked about it.
        """
        known: dict[str, Sequence[str]] = {}  # decoders often agree on the first sentences
        cuts = [self._cuts(answer, known) for answer in answers]
        claims = list(dict.fromkeys(claim for cut in cuts for propositions in cut for claim in propositions))
        found = self._aligner.align(passages, claims) if claims else []
        support = {claim: each.score for claim, each in zip(claims, found, strict=True)}
        return [
            EvaluatedAnswer(prompt, task, answer, self._verdict(cut, support))
            for answer, cut in zip(answers, cuts, strict=True)
        ]

    def _cuts(self, answer: DecodedAnswer, known: dict[str, Sequence[str]]) -> list[Sequence[str]]:
        """Return the propositions of the first 1, 2, ... sentences; the last entry is that of the whole answer."""
        if answer.is_empty:
            return []
        texts = [answer.response[:end] for end in answer.sentence_ends[:-1]] + [answer.response]
        for text in texts:
            if text not in known:
                known[text] = [claim for claim in propositions_of(text)]
        return [known[text] for text in texts]

    def _verdict(self, cuts: Sequence[Sequence[str]], support: dict[str, float]) -> Verdict:
        faithful = [sum(support[claim] >= self.threshold for claim in cut) for cut in cuts]
        if not cuts:
            return Verdict((), 0, ())
        return Verdict(
            propositions=tuple(JudgedProposition(claim, support[claim]) for claim in cuts[-1]),
            faithful=faithful[-1],
            cut=tuple((len(cut), kept) for cut, kept in zip(cuts, faithful, strict=True)),
        )
