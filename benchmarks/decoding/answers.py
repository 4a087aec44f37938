"""One decoder's answer to a prompt, as an evaluation keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from syncheck import Report

__all__ = ["DecodedAnswer", "EvaluatedAnswer", "JudgedProposition", "Verdict"]


@dataclass(frozen=True, slots=True)
class DecodedAnswer:
    """The answer that a decoder released.

    Attributes
    ----------
    decoder : str
    response : str
        What the model wrote; empty for an abstention, also one with a message.
    sentence_ends : tuple of int
        Where each sentence ends, in characters of the response.
    scores : tuple of float or None
        The monitor's score of each sentence, in [0, 1]; None for one that claims nothing.
    tokens, sampled_tokens : int
        Of the response, and all that were decoded for it, thrown away or not.
    seconds : float
        Wall time, scores included.
    backtracked : bool
        Whether a sentence was taken back.
    """

    decoder: str
    response: str
    sentence_ends: tuple[int, ...]
    scores: tuple[float | None, ...]
    tokens: int
    sampled_tokens: int
    seconds: float
    backtracked: bool = False

    @classmethod
    def of(cls, decoder: str, report: Report, *, sampled_tokens: int, backtracked: bool = False) -> DecodedAnswer:
        """Take an answer from its report; a refusal, which no sentence of the model is in, is an empty one."""
        return cls(
            decoder=decoder,
            response=report.response if report.stop != "abstained" or report.sentences else "",
            sentence_ends=tuple(sentence.end for sentence in report.sentences),
            scores=tuple(sentence.score for sentence in report.sentences),
            tokens=len(report.tokens),
            sampled_tokens=sampled_tokens,
            seconds=report.seconds or 0.0,
            backtracked=backtracked,
        )

    @property
    def is_empty(self) -> bool:
        """True if the response holds no letter and no digit."""
        return not any(map(str.isalnum, self.response))


@dataclass(frozen=True, slots=True)
class JudgedProposition:
    """A statement of an answer, and how likely it is that the passages support it, in [0, 1]."""

    text: str
    support: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judge's verdict on an answer.

    Attributes
    ----------
    propositions : tuple of JudgedProposition
    faithful : int
        How many of them are supported.
    cut : tuple of (int, int)
        For L = 1, 2, ... up to the number of sentences: how many propositions the first L sentences have, and how many
        of them are supported.
    """

    propositions: tuple[JudgedProposition, ...]
    faithful: int
    cut: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class EvaluatedAnswer:
    """An answer with its verdict.

    Attributes
    ----------
    prompt : str
        Id of the prompt.
    task : str
    answer : DecodedAnswer
    verdict : Verdict
    """

    prompt: str
    task: str
    answer: DecodedAnswer
    verdict: Verdict

    @property
    def faithfulness(self) -> float | None:
        """Share of the propositions that are supported, in [0, 1]; None for an answer without any."""
        count = len(self.verdict.propositions)
        return self.verdict.faithful / count if count else None

    @property
    def informativeness(self) -> int:
        """Number of propositions of the answer."""
        return len(self.verdict.propositions)

    def faithfulness_at(self, sentences: int) -> float | None:
        """Faithfulness of the first sentences; of the whole answer when it has no more than these."""
        if sentences >= len(self.verdict.cut):
            return self.faithfulness
        count, faithful = self.verdict.cut[sentences - 1]
        return faithful / count if count else None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return {"prompt": self.prompt, "task": self.task, "empty": self.answer.is_empty} | {
            "answer": asdict(self.answer),
            "verdict": asdict(self.verdict),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EvaluatedAnswer:
        """Take back what :meth:`to_dict` gave.

        Raises
        ------
        KeyError, TypeError
            If a field is missing or unknown.
        """
        answer, verdict = values["answer"], values["verdict"]
        return cls(
            prompt=values["prompt"],
            task=values["task"],
            answer=DecodedAnswer(
                **{**answer, "sentence_ends": tuple(answer["sentence_ends"]), "scores": tuple(answer["scores"])}
            ),
            verdict=Verdict(
                propositions=tuple(JudgedProposition(**each) for each in verdict["propositions"]),
                faithful=verdict["faithful"],
                cut=tuple((count, faithful) for count, faithful in verdict["cut"]),
            ),
        )
