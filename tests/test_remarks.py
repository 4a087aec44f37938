"""Remarks: a refusal and a sentence that no passage touches say so beside their score."""

import pytest

from syncheck import load_kit
from syncheck.reading.claim import says_not_stated
from syncheck.report import render_text
from syncheck.results import Case
from syncheck.results.types import Contrast

PASSAGES = ["Refunds are paid within 14 days of the return. Shipping costs are not refunded."]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("I'm sorry, but I cannot answer this question.", True),
        ("I don't know.", True),
        ("None of the passages mentions a fee.", True),
        ("The provided text gives no date.", True),
        ("It is not clear from the passages who won.", True),
        ("He did not mention his wife in the will.", False),
        ("She does not say why.", False),
        ("Shipping costs are not refunded.", False),
    ],
)
def test_only_what_speaks_of_the_sources_or_refuses_says_that_something_is_not_stated(
    sentence: str, expected: bool
) -> None:
    assert says_not_stated(sentence) is expected


def test_remarks_stand_beside_the_score_in_report_json_and_terminal() -> None:
    monitor = load_kit("generic")
    given = {"question": "How long do refunds take?", "passages": PASSAGES}
    report = monitor.check(
        **given, answer="Refunds are paid within 14 days. The moon is cheese. The passages do not say who pays the tax."
    )
    remarks = [(), ("no_passage_touches",), ("says_not_stated",)]
    assert [s.remarks for s in report.sentences] == remarks
    assert [s.status for s in report.sentences] == ["scored"] * 3
    assert [s["remarks"] for s in report.to_dict()["sentences"]] == [list(r) for r in remarks]
    text = " ".join(render_text([Case.of(report)], width=200).split())
    assert "The moon is cheese. → no passage holds any of its words" in text


def test_exchanged_names_are_one_contrast() -> None:
    generic = load_kit("generic")
    given = {"question": "Who sold it?", "passages": ["Joan Oster sold the bakery to Lena Brandt in 2011."]}
    (sentence,) = generic.check(**given, answer="Lena Brandt sold the bakery to Joan Oster in 2011.").sentences
    exchanged = "Lena Brandt sold the bakery to Joan Oster", "Joan Oster sold the bakery to Lena Brandt"
    assert sentence.contrasts == (Contrast("order", *exchanged, 0),)


def test_without_passages_there_are_no_remarks() -> None:
    monitor = load_kit("generic")
    report = monitor.check("The moon is cheese.", question="How long?", passages=[])
    assert [s.remarks for s in report.sentences] == [()]


def test_a_sentence_below_supported_says_what_stands_in_the_place_of_what() -> None:
    monitor = load_kit("generic")
    bridge = "The bridge over the Save opened in 1967 and was rebuilt by the engineer Anna Kovac."
    given = {"question": "When did the bridge open?", "passages": ["Nothing else is known here.", bridge]}
    report = monitor.check(**given, answer="The bridge opened in 1976. The bridge over the Save opened in 1967.")
    wrong, right = report.sentences
    assert wrong.verdict != "supported" and wrong.contrasts == (Contrast("number", "1976", "1967", 1),)
    assert right.verdict == "supported" and right.contrasts == ()
    text = " ".join(render_text([Case.of(report)], width=200).split())
    assert "The bridge opened in 1976. → passage 2 says “1967”, not “1976”" in text


def test_no_contrast_is_looked_for_in_other_languages_or_in_what_speaks_of_the_passages() -> None:
    monitor = load_kit("generic")
    given = {"question": "How long do refunds take?", "passages": PASSAGES}
    report = monitor.check(
        **given,
        answer="Die Erstattung wird innerhalb von 30 Tagen bezahlt. The passages do not say that shipping is refunded.",
    )
    assert [s.contrasts for s in report.sentences] == [(), ()]
