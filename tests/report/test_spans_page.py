"""The page of spans: what is shaded and underlined, in which direction, and that nothing of it is lost."""

from report_cases import demo_cases
from test_html import Page

from syncheck.report import SpanAnswer, render_html, render_spans
from syncheck.results import Case, SoftSpan, SpanItem, SpanLabels

ARABIC = "Mac \u0628\u062f\u0623 \u0645\u0634\u0631\u0648\u0639 1984."


def item(response, lang="en", **more):
    return SpanItem(id="x-1", lang=lang, question="When?", response=response, **more)


def page(response, found, lang="en", notes=(), **more):
    return Page(render_spans([SpanAnswer(item(response, lang, **more), found, notes)], method="trees"))


def test_the_page_needs_no_script_and_no_other_file():
    found = page("in 1999", SpanLabels((), ((3, 7),)))
    assert not {"script", "link", "img", "iframe"} & set(found.tags)
    assert found.values("src") == []
    assert "default-src 'none'; style-src 'unsafe-inline'" in found.values("content")


def test_an_arabic_answer_runs_right_to_left_though_it_begins_with_a_latin_name():
    found = page(ARABIC, SpanLabels((SoftSpan(14, 18, 0.9),), ((14, 18),)), "AR", passages=(ARABIC, "A Mac."))
    directions = [(tag, value) for tag, key, value in found.attributes if key == "dir"]
    assert directions == [("h2", "ltr"), ("p", "rtl"), ("p", "rtl"), ("p", "ltr")]
    assert ("p", "lang", "ar") in found.attributes
    assert ("span", "title", "risk 0.90, called wrong") in found.attributes


def test_question_evidence_and_the_annotators_labels_stand_beside():
    labels = SpanLabels((SoftSpan(3, 7, 0.5),), ((3, 7),))
    theirs = SpanLabels((), ())
    notes = ("left_out: [1]",)
    text = page("in 1999", labels, notes=notes, passages=("In 1342.",), labels=theirs, generator="lm").text("main")
    for part in (
        "When?",
        "x-1 · en · lm",
        "trees: 1 span, 4 of 7 characters",
        "annotators: 0 spans",
        "In 1342.",
        *notes,
    ):
        assert part in text
    assert "by trees" in text
    assert "annotators" not in page("in 1999", labels).text("main")


def test_answers_of_several_languages_can_be_gone_to():
    answers = [SpanAnswer(item("a", lang), SpanLabels((), ())) for lang in ("FI", "SV", "FI")]
    found = Page(render_spans(answers, method="trees"))
    assert [href for href in found.values("href") if href] == ["#s1", "#s2"]
    assert "fi 2 sv 1" in " ".join(found.text("nav").split())


def test_a_page_without_answers_says_so():
    assert "no answer" in Page(render_spans([], method="trees")).text("main")


def test_an_empty_answer_is_said_to_be_empty():
    assert "empty" in page("", SpanLabels((), ())).text("article")
    assert "empty" not in page("a", SpanLabels((), ())).text("article")


def test_what_the_annotators_shades_are_is_said_where_there_are_annotators():
    labels = SpanLabels((), ())
    assert "marked" in page("a", labels, labels=labels).text("p")
    assert "marked" not in page("a", labels).text("p")


def test_text_is_escaped():
    found = page("<b>&</b>", SpanLabels((SoftSpan(1, 3, 0.5),), ()), passages=("<i>",))
    assert not {"b", "i"} & set(found.tags) - {"b"}
    assert "<b>&</b>" in found.text("p")


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
