"""The page of a report with the labels of its characters: what is shaded and underlined, in which direction."""

from report_cases import demo_cases
from test_html import Page

from syncheck.report import render_html
from syncheck.results import Case, SoftSpan, SpanLabels

ARABIC = "Mac \u0628\u062f\u0623 \u0645\u0634\u0631\u0648\u0639 1984."


class Marks:
    """Marks the same characters of whatever it is given."""

    name = "marks"

    def __init__(self, labels):
        self.labels = labels

    def detect(self, one):
        return self.labels


def test_an_opened_report_shades_the_sentences_that_score_low_and_no_other():
    report = demo_cases()[0].answers[0].report
    high, low, _, unscored = report.sentences
    start = low.start + 4
    labels = SpanLabels((SoftSpan(0, len(report.response), 0.5),), ((start, start + 5),))
    opened = report.with_spans(Marks(labels), lang="en")
    assert (high.score, low.score, unscored.score) == (0.96, 0.38, None)
    assert opened.spans == labels
    assert opened.to_dict()["spans"]["hard_labels"] == [[start, start + 5]]
    found = Page(opened.to_html())
    wrong = [value for tag, key, value in found.attributes if (tag, key) == ("span", "class") and "risk wrong" in value]
    assert len(wrong) == 2  # the legend's, and the five characters
    shaded = sum(value == "risk 0.50" for value in found.values("title"))
    assert shaded == 2 + 1 + 1  # before and after the five, the other low sentence, the one without a score
    assert "supported" in found.text("p")
    for sentence in report.sentences:
        assert sentence.text in "".join(found.text("summary").splitlines())


def test_a_report_that_was_not_opened_has_no_shades():
    found = Page(render_html([Case.of(demo_cases()[0].answers[0].report)]))
    assert not [value for value in found.values("class") if value.startswith("risk")]
    assert "supported" not in found.text("p")


def test_an_arabic_text_runs_right_to_left_though_it_begins_with_a_latin_name():
    found = Page(render_html([Case(ARABIC, (ARABIC, "A Mac."), demo_cases()[0].answers)]))
    assert [value for tag, key, value in found.attributes if (tag, key) == ("h2", "dir")] == ["rtl"]
    assert [value for tag, key, value in found.attributes if (tag, key) == ("p", "dir")][-2:] == ["rtl", "ltr"]
