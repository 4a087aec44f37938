"""LlamaIndex: scores of a response against its source nodes, and a postprocessor that keeps supporting nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from syncheck.base.checks import check_share, check_text
from syncheck.base.errors import InputError, MissingExtraError, WrongTypeError
from syncheck.integrations.generic import verifier_or_generic

with MissingExtraError.unless("llama-index-core", "llama-index"):
    from llama_index.core.base.response.schema import Response
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

if TYPE_CHECKING:
    from syncheck.results import Report
    from syncheck.verifier import Verifier

__all__ = ["SupportPostprocessor", "score_response"]


def score_response(response: Response, *, question: str = "", verifier: Verifier | None = None) -> Report:
    """Score a query engine's response for faithfulness to its source nodes.

    Parameters
    ----------
    response
        The result of ``query_engine.query``; call ``get_response()`` on a streaming one first.
    question
        The question that it answers, which some aligners read.
    verifier
        Scores the response; None takes the bundled one, ``generic``.

    Raises
    ------
    InputError
        If the response has no text.
    WrongTypeError
        If it is not a response.

    Examples
    --------
    >>> report = score_response(query_engine.query(question))  # doctest: +SKIP
    >>> report.lowest  # doctest: +SKIP
    """
    if not isinstance(response, Response):
        kind = type(response).__name__
        remedy = (
            "; pass its get_response() (or await get_response() of an asynchronous one)" if "Stream" in kind else ""
        )
        raise WrongTypeError(f"response must be a LlamaIndex Response; found {kind}{remedy}")
    if response.response is None:
        raise InputError("the response has no text; pass one that query_engine.query returned")
    return _scored(verifier, question, response.source_nodes, response.response)


class SupportPostprocessor(BaseNodePostprocessor):  # type: ignore[misc]
    """LlamaIndex postprocessor that keeps the nodes which support an answer, as its citations, the best first.

    Parameters
    ----------
    answer
        The answer whose sentences are looked up in the nodes.
    at_least
        Score, in [0, 1], from which a sentence counts as supported by a node.
    verifier
        Scores the sentences; None takes the bundled one, ``generic``.

    Raises
    ------
    InputError
        If the score is outside [0, 1], or the answer has a lone surrogate.
    WrongTypeError
        If an argument has the wrong type.

    Examples
    --------
    >>> response = query_engine.query(question)  # doctest: +SKIP
    >>> SupportPostprocessor(str(response)).postprocess_nodes(response.source_nodes)  # doctest: +SKIP
    """

    answer: str
    at_least: float = 0.5
    _verifier: Any = PrivateAttr(default=None)

    def __init__(self, answer: str, *, at_least: float = 0.5, verifier: Verifier | None = None, **options: Any) -> None:
        check_text(answer, "answer")
        check_share(at_least, "at_least")
        super().__init__(answer=answer, at_least=at_least, **options)
        self._verifier = verifier

    @classmethod
    def class_name(cls) -> str:
        """Give the name by which LlamaIndex saves the class."""
        return "SupportPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        nodes = [node for node in nodes if _text_of(node).strip()]  # a prompt leaves out blank passages
        if not nodes:
            return []
        question = query_bundle.query_str if query_bundle is not None else ""
        best: dict[int, float] = {}
        for sentence in _scored(self._verifier, question, nodes, self.answer).sentences:
            if sentence.evidence is not None and sentence.score is not None and sentence.score >= self.at_least:
                place = sentence.evidence.passage
                best[place] = max(sentence.score, best.get(place, 0.0))
        kept = sorted(best.items(), key=lambda pair: -pair[1])
        return [NodeWithScore(node=nodes[place].node, score=score) for place, score in kept]


def _scored(verifier: Verifier | None, question: str, nodes: Sequence[NodeWithScore], answer: str) -> Report:
    passages = [_text_of(node) for node in nodes]
    return verifier_or_generic(verifier).check(question=question, passages=passages, answer=answer)


def _text_of(node: NodeWithScore) -> str:
    """Read the text of a node as the answering model saw it."""
    return str(node.node.get_content(metadata_mode=MetadataMode.LLM))
