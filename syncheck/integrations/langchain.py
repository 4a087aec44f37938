"""LangChain: a runnable that scores the answer of a chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from syncheck.base.errors import InputError, MissingExtraError, WrongTypeError
from syncheck.integrations.generic import verifier_or_generic

with MissingExtraError.unless("langchain-core", "langchain"):
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig

if TYPE_CHECKING:
    from syncheck.results import Report
    from syncheck.verifier import Verifier

__all__ = ["FaithfulnessCheck"]


class FaithfulnessCheck(Runnable):  # type: ignore[misc]
    """LangChain runnable that scores the answer of a chain, as its last step, and adds the report.

    Its input is a mapping with ``answer`` (a string or a message), ``context`` (documents or strings) and optionally
    ``question``; its output is the same mapping with a ``report``.

    Parameters
    ----------
    verifier
        Scores the answer; None takes the bundled one, ``generic``.

    Examples
    --------
    >>> chain = RunnablePassthrough.assign(answer=prompt | model) | FaithfulnessCheck()  # doctest: +SKIP
    >>> chain.invoke({"question": question, "context": documents})["report"].lowest  # doctest: +SKIP
    """

    def __init__(self, verifier: Verifier | None = None) -> None:
        self.verifier = verifier

    def invoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Score the answer in the input, and add the ``report``.

        A missing ``answer`` or ``context`` raises InputError; other types than strings and LangChain's messages and
        documents raise WrongTypeError.
        """
        return dict(self._call_with_config(self._checked, input, config))

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(given, Mapping) or not given.keys() >= {"answer", "context"}:
            shown = sorted(given) if isinstance(given, Mapping) else type(given).__name__
            raise InputError(f"expected a mapping with 'answer' and 'context'; found {shown}. Add them first")
        question = given.get("question", "")
        return {**given, "report": _scored(self.verifier, question, given["context"], given["answer"])}


def _scored(verifier: Verifier | None, question: str, context: Any, answer: Any) -> Report:
    text = str(answer.text) if isinstance(answer, BaseMessage) else answer
    if not isinstance(text, str):
        raise WrongTypeError(f"answer must be a text or a message; found {type(answer).__name__}")
    given = context if isinstance(context, list | tuple) else [context]
    passages = [one.page_content if isinstance(one, Document) else one for one in given]
    return verifier_or_generic(verifier).check(question=question, passages=passages, answer=text)
