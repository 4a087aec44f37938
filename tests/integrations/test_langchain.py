"""The adapters for LangChain, in chains of langchain-core itself."""

import asyncio

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from syncheck import Verifier
from syncheck.base.errors import InputError, SyncheckError, WrongTypeError
from syncheck.integrations.langchain import FaithfulnessCallback, FaithfulnessCheck
from syncheck.testing import ScriptedAligner

ANSWER = "It opened in 1967. It has six lanes."
PASSAGES = {"When did it open?": "The Avon bridge opened in 1967.", "How wide is it?": "It has two lanes."}
PROMPT = ChatPromptTemplate.from_template("{context}\n{question}")


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun):
        return [Document(PASSAGES[query])]


@pytest.fixture(scope="module")
def verifier():
    return Verifier(ScriptedAligner({"It opened in 1967.": 0.9, "It has six lanes.": 0.3}))


@pytest.fixture
def answering():
    return PROMPT | FakeListChatModel(responses=[ANSWER])


def scores(report):
    return [pytest.approx(s.score) for s in report.sentences] == [0.9, 0.3]


@pytest.mark.parametrize("context", ["A passage.", ["A passage."], [Document("A passage.")]])
def test_a_check_adds_the_report_of_the_answer(verifier, answering, context):
    chain = RunnablePassthrough.assign(answer=answering) | FaithfulnessCheck(verifier)
    given = {"question": "When did it open?", "context": context}
    output = chain.invoke(given)
    assert output["answer"].text == ANSWER and scores(output["report"])
    assert output["report"].prompt.passages == ("A passage.",)
    assert output["report"].prompt.question == "When did it open?"
    again = asyncio.run(chain.ainvoke(given))
    assert scores(again["report"])
    assert [scores(one["report"]) for one in chain.batch([given, given])] == [True, True]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"answer": ANSWER}, InputError),
        ("text", InputError),
        ({"answer": 3, "context": "A passage."}, WrongTypeError),
        ({"answer": ANSWER, "context": [3]}, WrongTypeError),
    ],
)
def test_what_cannot_be_checked_is_refused(verifier, given, error):
    with pytest.raises(error):
        FaithfulnessCheck(verifier).invoke(given)


def test_a_callback_scores_answers_against_what_their_run_retrieved(verifier, answering):
    chain = {"context": Shelf(), "question": RunnablePassthrough()} | answering
    callback = FaithfulnessCallback(verifier)
    chain.batch(list(PASSAGES), config={"callbacks": [callback]})
    found = {report.prompt.question: report for report in callback.reports}
    assert {question: report.prompt.passages for question, report in found.items()} == {
        question: (passage,) for question, passage in PASSAGES.items()
    }
    assert all(scores(report) for report in found.values())
    assert not callback._roots and not callback._retrieved and not callback._questions


def test_a_callback_in_asynchronous_code_and_in_a_stream(verifier, answering):
    chain = {"context": Shelf(), "question": RunnablePassthrough()} | answering
    callback = FaithfulnessCallback(verifier)
    asyncio.run(chain.ainvoke("How wide is it?", config={"callbacks": [callback]}))
    assert "".join(str(piece.text) for piece in chain.stream("How wide is it?", config={"callbacks": [callback]}))
    assert [report.prompt.passages for report in callback.reports] == [("It has two lanes.",)] * 2


def test_an_answer_without_retrieval_has_no_score(verifier):
    callback = FaithfulnessCallback(verifier)
    FakeListChatModel(responses=[ANSWER]).invoke("How wide is it?", config={"callbacks": [callback]})
    (report,) = callback.reports
    assert {sentence.status for sentence in report.sentences} == {"no_context"}


def test_a_run_that_fails_leaves_nothing_behind(verifier):
    def fail(value):
        raise KeyError(value)

    callback = FaithfulnessCallback(verifier)
    with pytest.raises(KeyError):
        (Shelf() | RunnableLambda(fail)).invoke("How wide is it?", config={"callbacks": [callback]})
    assert not callback._roots and not callback._retrieved


def test_an_error_in_scoring_ends_the_run(answering):
    callback = FaithfulnessCallback("no verifier")
    with pytest.raises((SyncheckError, AttributeError)):
        answering.invoke({"context": "c", "question": "q"}, config={"callbacks": [callback]})
