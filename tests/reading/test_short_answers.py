"""Answers in short, which are read after their question."""

import pytest

from syncheck import Verifier, load_aligner
from syncheck.aligners.absence import against
from syncheck.reading import Claim
from syncheck.results.types import SentenceSpan, Support
from syncheck.testing import ScriptedAligner


def read(text, question, *earlier):
    return Claim(text, SentenceSpan(0, 0, len(text), 0, 0)).after(earlier, question=question).read


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("What does it cost?", "£18 per firing.", "What does it cost: £18 per firing."),
        ("I have a bag. What does it cost? ", "**£18**", "What does it cost: **£18**"),
        ("What does Dr. Smith charge?", "£18.", "What does Dr. Smith charge: £18."),
        ("Can I park there?", "No.", "Can I park there: No."),
        ("Can I park there?", "No, you can't.", "Can I park there: No."),
        ("Is it open?", "Yes, it is.", "Is it open: Yes."),
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
        ("Does it cost £20?", "No, £18."),  # which corrects the question
        ("Did it open in 1967?", "In 1976."),
        ("Can you tell me the price?", "Sure!"),
        ("How long does it take?", "It takes ten hours, four fewer than a glaze firing."),
        ("How do I book?", "1. Sign in."),  # items of lists
        ("What do I need?", "- A towel."),
        ("", "£18 per firing."),
        ("Tell me what it costs.", "£18 per firing."),
        ("What does it cost? When is it open?", "£18 per firing."),
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
    assert read("It costs £18.", question, "Yes.") == "What does it cost: It costs £18."


def test_yes_and_no_are_weighed_against_each_other():
    """An aligner that finds some support for both is asked about both."""
    aligner = ScriptedAligner({"Can I park there: No.": 0.9, "Can I park there: Yes.": 0.5})
    aligner.reads_answers = True
    verifier = Verifier(aligner=aligner)
    yes, no, echo = (
        verifier.check(question="Can I park there?", passages=["There is no car park."], answer=answer).sentences[0]
        for answer in ("Yes.", "No.", "No, you can't.")
    )
    assert {one.status for one in (yes, no, echo)} == {"scored"}
    assert no.features["align_score"] == echo.features["align_score"] == pytest.approx(0.75)
    assert yes.features["align_score"] == pytest.approx(0.25)
    assert (yes.score, no.score) == (pytest.approx(0.25), pytest.approx(0.75))
    assert yes.evidence == no.evidence


def test_the_odds_of_yes_and_no_are_shifted_to_the_prior():
    """Of a monitor with an aggregator, whose features of so short a text say nothing."""
    aligner = load_aligner("bundled")
    aligner.reads_answers = True
    scores = [
        verifier.check(question="Is it open on Sunday?", passages=["It is open on Sunday."], answer="Yes.")
        .sentences[0]
        .score
        for verifier in (Verifier(aligner), Verifier(aligner).with_prior(0.9))
    ]
    odds = [score / (1 - score) for score in scores]
    assert odds[1] == pytest.approx(9 * odds[0])


def test_an_aligner_that_does_not_say_so_gets_the_answer_alone():
    verifier = Verifier(aligner=ScriptedAligner({"£18.": 0.9}))
    one = verifier.check(question="What does it cost?", passages=["It costs £18."], answer="£18.").sentences[0]
    assert one.features["align_score"] == 0.9


def test_contrasts_are_those_of_the_answer_itself():
    """The words of the question, which no passage repeats in this order, would hide them."""
    aligner = load_aligner("bundled")
    aligner.reads_answers = True
    one = (
        Verifier(aligner)
        .check(question="How much does it weigh?", passages=["It weighs 2 kg."], answer="It weighs 3 kg.")
        .sentences[0]
    )
    assert [(contrast.sentence, contrast.evidence) for contrast in one.contrasts] == [("3", "2")]
    assert one.features["contrasts"] == 1


@pytest.mark.parametrize(("own", "other", "score"), [(1e6, -1e6, 1.0), (-1e6, 1e6, 0.0), (2.0, 2.0, 0.5)])
def test_any_finite_log_odds_can_be_weighed(own, other, score):
    supports = (Support(0.5, None, log_odds) for log_odds in (own, other))
    assert against(*supports).score == pytest.approx(score, abs=1e-300)
