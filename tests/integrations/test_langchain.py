"""The adapter for LangChain, in chains of langchain-core itself."""

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from syncheck import Verifier
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.integrations.langchain import FaithfulnessCheck
from syncheck.testing import ScriptedAligner

ANSWER = "It opened in 1967. It has six lanes."
PROMPT = ChatPromptTemplate.from_template("{context}\n{question}")


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
