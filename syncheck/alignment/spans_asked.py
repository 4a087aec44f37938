"""SpanExtract: a language model is asked which spans of a sentence the passages do not support."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from syncheck.alignment.evaluators import TextGenerator
from syncheck.alignment.protocol import check_asked, weights_of
from syncheck.errors import TextGeneratorError
from syncheck.types import Support

__all__ = ["SpanAligner", "hallucinated_spans"]

KEY = "hallucination list"
PROMPT = """Passages: {passages}
Question: {question}
Answer: {answer}
Please analyze the provided Passages, Question, and Answer, and indicate whether there are any hallucinated (invented \
or incorrect) parts in the answer. If there are, please specify the exact span that is hallucinated. Please provide a \
response in the following format: {{"hallucination list": ["first span", "second span", ...]}}, with an empty list if \
there are none: {{"hallucination list": []}}"""
"""The paper's for biographies, appendix C; its open JSON format is that of RAGTruth (Niu et al., 2024)."""

SHOWN_CHARACTERS = 200


class SpanAligner:
    """Scores a claim 0 if a language model marks a span of it as unsupported, 1 if it marks none.

    Parameters
    ----------
    evaluator
        A :class:`LocalTextGenerator`, an :class:`EndpointTextGenerator`, or anything that answers a prompt.
    question
        What the claims answer. A monitor passes its question; see :meth:`about`.

    Notes
    -----
    Each claim is asked about by itself, with the whole context, so that a sentence scores the same while it is
    generated and afterwards; the paper asks about the whole answer at once. The prompt is that of its biographies
    (appendix C) for every task; for questions, summaries and data to text the paper takes those of RAGTruth (Niu et
    al., 2024), which it does not print. The answer gives no evidence.
    """

    def __init__(self, evaluator: TextGenerator, *, question: str = "") -> None:
        self.name = f"spans:{evaluator.name}"
        self._evaluator = evaluator
        self._question = question

    def about(self, question: str) -> SpanAligner:
        """Return the same aligner for claims that answer this question."""
        return SpanAligner(self._evaluator, question=question)

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim against the passages; see :class:`~syncheck.alignment.protocol.Aligner`.

        A context without text supports nothing: score 0, and nobody is asked.

        Raises
        ------
        InputError
            A claim is blank, or does not fit the evaluator's window together with the context.
        TextGeneratorError
            The evaluator cannot be asked, or its answer is no list of spans of the claim.
        """
        check_asked(passages, claims)
        if not any(passage.strip() for passage in passages):
            return [Support(0.0, None) for _ in claims]
        context = "\n\n".join(passages)
        return [Support(0.0 if self._marked(context, claim) else 1.0, None) for claim in claims]

    def weights_sha256(self) -> str | None:
        """Return what tells the weights from others; see :class:`~syncheck.alignment.protocol.KnowsWeights`."""
        return weights_of(self._evaluator)

    def _marked(self, context: str, claim: str) -> list[str]:
        answer = self._evaluator(PROMPT.format(passages=context, question=self._question, answer=claim.strip()))
        spans = hallucinated_spans(answer)
        found = [span for span in spans if _plain(span) and _plain(span) in _plain(claim)]
        if spans and not found:
            raise TextGeneratorError(
                f"{self._evaluator.name!r} marked {spans!r}, none of which is in the sentence {claim!r}; expected its "
                "exact words"
            )
        return found


def hallucinated_spans(answer: str) -> list[str]:
    """Return the spans that an answer lists, from the first JSON object in it that has the list.

    Raises
    ------
    TextGeneratorError
        If there is no such object, or the list holds something other than strings.
    """
    decoder = json.JSONDecoder()
    for brace in re.finditer(r"\{", answer):
        try:
            found, _ = decoder.raw_decode(answer, brace.start())
        except ValueError:
            continue
        if KEY in found:
            spans = found[KEY]
            if isinstance(spans, list) and all(isinstance(span, str) for span in spans):
                return spans
            break
    raise TextGeneratorError(
        f'expected an answer with a JSON object {{"{KEY}": [spans]}}; found {answer[:SHOWN_CHARACTERS]!r}'
    )


def _plain(text: str) -> str:
    """Take out what an evaluator changes when it quotes: case and white space."""
    return " ".join(text.casefold().split())
