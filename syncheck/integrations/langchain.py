"""LangChain: a runnable that scores the answer of a chain, and a callback that scores each answer of its models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from syncheck.base.errors import InputError, MissingExtraError, WrongTypeError
from syncheck.integrations.generic import verifier_or_generic

with MissingExtraError.unless("langchain-core", "langchain"):
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig

if TYPE_CHECKING:
    from uuid import UUID

    from langchain_core.outputs import LLMResult

    from syncheck.results import Report
    from syncheck.verifier import Verifier

__all__ = ["FaithfulnessCallback", "FaithfulnessCheck"]


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


class FaithfulnessCallback(BaseCallbackHandler):  # type: ignore[misc]
    """LangChain callback that scores each answer of a model against the documents retrieved in the same run.

    Without documents, sentences have the status ``no_context``. An error in scoring ends the run.

    Parameters
    ----------
    verifier
        Scores the answers; None takes the bundled one, ``generic``.

    Attributes
    ----------
    reports : list of Report
        One for each answer, in the order in which they were completed.

    Examples
    --------
    >>> callback = FaithfulnessCallback()  # doctest: +SKIP
    >>> chain.invoke(question, config={"callbacks": [callback]})  # doctest: +SKIP
    >>> callback.reports[0].lowest  # doctest: +SKIP
    """

    raise_error = True

    def __init__(self, verifier: Verifier | None = None) -> None:
        self.verifier = verifier
        self.reports: list[Report] = []
        self._roots: dict[UUID, UUID] = {}
        self._retrieved: dict[UUID, list[Document]] = {}
        self._questions: dict[UUID, str] = {}

    def on_chain_start(self, serialized: dict[str, Any], inputs: Any, **run: Any) -> None:
        """Note the run to which a step belongs."""
        self._roots[run["run_id"]] = self._root(**run)

    def on_retriever_start(self, serialized: dict[str, Any], query: str, **run: Any) -> None:
        """Take the query of the retriever as the question."""
        self._questions[self._root(**run)] = query

    def on_retriever_end(self, documents: Sequence[Document], **run: Any) -> None:
        """Add the retrieved documents to the passages of the run."""
        self._retrieved.setdefault(self._root(**run), []).extend(documents)

    def on_llm_end(self, response: LLMResult, **run: Any) -> None:
        """Score the answer of a model."""
        root = self._root(**run)
        question, documents = self._questions.get(root) or "", self._retrieved.get(root, [])
        for generations in response.generations:
            self.reports += [_scored(self.verifier, question, documents, one.text) for one in generations if one.text]

    def on_chain_end(self, outputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        """Forget a run that is over."""
        if parent_run_id is None:
            self._roots = {step: root for step, root in self._roots.items() if root != run_id}
            self._retrieved.pop(run_id, None)
            self._questions.pop(run_id, None)

    def on_chain_error(self, error: BaseException, **run: Any) -> None:
        """Forget a run that failed."""
        self.on_chain_end(None, **run)

    def _root(self, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> UUID:
        return run_id if parent_run_id is None else self._roots.get(parent_run_id, parent_run_id)


def _scored(verifier: Verifier | None, question: str, context: Any, answer: Any) -> Report:
    text = str(answer.text) if isinstance(answer, BaseMessage) else answer
    if not isinstance(text, str):
        raise WrongTypeError(f"answer must be a text or a message; found {type(answer).__name__}")
    given = context if isinstance(context, list | tuple) else [context]
    passages = [one.page_content if isinstance(one, Document) else one for one in given]
    return verifier_or_generic(verifier).check(question=question, passages=passages, answer=text)
