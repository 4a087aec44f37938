"""Answers in short, which are read after their question."""

import pytest

from syncheck import Verifier
from syncheck.reading import Claim
from syncheck.results.types import SentenceSpan
from syncheck.testing import ScriptedAligner


def read(text, question, *earlier):
    return Claim(text, SentenceSpan(0, 0, len(text), 0, 0)).after(earlier, question=question).read


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("What does it cost?", "£18 per firing.", "What does it cost: £18 per firing."),
        ("I have a bag. What does it cost? ", "**£18**", "What does it cost: **£18**"),
        ("Can I park there?", "No.", "Can I park there: No."),
        ("Can I park there?", "No, you can't.", "Can I park there: No, you can't."),
        ("Is it open?", "Yes, it opens at nine.", "Is it open: Yes, it opens at nine."),
        ("How long does it take?", "It takes ten hours.", "How long does it take: It takes ten hours."),
        ("Which clay may I bring?", "Only stoneware [2].", "Which clay may I bring: Only stoneware ."),
    ],
)
def test_what_leans_on_the_question_is_read_after_it(question, answer, expected):
    assert read(answer, question) == expected


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What does it cost?", "A firing costs £18."),  # a sentence of its own
        ("What does it cost?", "Yes."),  # no answer to this question
        ("Can I park there?", "No, there is no parking at the studio."),
        ("How long does it take?", "It takes ten hours, four fewer than a glaze firing."),
        ("How do I book?", "1. Sign in."),  # an item of a list
        ("", "£18 per firing."),
        ("Tell me what it costs.", "£18 per firing."),
        ("What " + "and what " * 20 + "is it?", "£18 per firing."),
        ("What does it cost?", "| Small | £18 |"),  # a header
        ("What does it cost?", "Sure!"),
        ("What does it cost?", "## Prices"),
    ],
)
def test_what_is_read_as_it_is(question, answer):
    assert read(answer, question) == answer


def test_only_what_opens_the_answer_is_read_after_the_question():
    question = "What does it cost?"
    assert read("£18.", question, "Sure!", "Here is the answer:") == "What does it cost: £18."
    assert read("£18.", question, "A firing takes ten hours.") == "£18."


def test_a_yes_or_no_is_checked_with_its_question():
    aligner = ScriptedAligner({"Can I park there: No.": 0.9, "Can I park there: Yes.": 0.1})
    aligner.reads_answers = True
    verifier = Verifier(aligner=aligner)
    yes, no = (
        verifier.check(question="Can I park there?", passages=["There is no car park."], answer=answer).sentences[0]
        for answer in ("Yes.", "No.")
    )
    assert yes.status == no.status == "scored"
    assert yes.features["align_score"] == 0.1 and no.features["align_score"] == 0.9
