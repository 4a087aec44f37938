import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import demo_cases, report, tried

from syncheck.report import render_fragment, render_html
from syncheck.report.html import mark_passage
from syncheck.report.labels import VERDICTS, verdict
from syncheck.results import Answer, Case, Report
from syncheck.results.types import Contrast, RagPrompt, SentenceScore, Verdict

VOID = {"meta", "br", "hr", "img", "link", "input"}
# HTML text cannot hold control characters, and surrogates are no characters.
LETTERS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)


class Page(HTMLParser):
    """Tags that balance, attributes and text, as a browser would see them."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], {}
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, key, value) for key, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.texts.setdefault(tag, []).append(data)

    def values(self, key):
        return [value for _, k, value in self.attributes if k == key]

    def text(self, tag):
        return "".join(self.texts.get(tag, []))


@pytest.fixture(scope="module")
def page():
    return Page(render_html(demo_cases(), title="Two decoders"))


def test_the_page_needs_no_script_and_no_other_file(page):
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(page.tags)
    assert page.values("src") == []
    assert all(href.startswith("#") for href in page.values("href"))
    assert not re.search(r"url\(|@import|https?:", page.text("style"))
    assert "default-src 'none'; style-src 'unsafe-inline'" in page.values("content")


def test_every_link_leads_somewhere_and_no_anchor_is_used_twice(page):
    anchors = page.values("id")
    assert len(anchors) == len(set(anchors))
    assert {href[1:] for href in page.values("href")} <= set(anchors)


def test_each_sentence_shows_its_score_and_verdict_as_text(page):
    shown = page.text("summary")
    for case in demo_cases():
        for answer in case.answers:
            for sentence in answer.report.sentences:
                assert sentence.text in shown
                assert verdict(sentence) in shown
                assert sentence.score is None or f"{sentence.score:.2f}" in shown


def test_features_evidence_tokens_and_time_stand_beside_the_sentence(page):
    lowest = demo_cases()[0].answers[0].report.lowest
    assert lowest.evidence.text in page.text("q")
    assert set(lowest.features) <= set(page.texts["code"])
    assert f"Scored {lowest.latency_ms:.1f} ms" in page.text("p")
    assert "not measured" in page.text("td")


def test_the_pill_shows_the_worst_sentence(page):
    for case in demo_cases():
        for answer in case.answers:
            assert f"{answer.report.lowest.score:.2f} lowest" in page.text("span")
            assert f"mean {answer.report.faithfulness:.2f}" in page.text("p")


def test_all_signals_are_there_after_those_that_weigh_most(page):
    assert "Show all 13 signals" in page.text("summary")


def test_contrasts_stand_below_the_evidence_as_text():
    made = report("q", ("It opened in 1967.",), [("It opened in <1976>.", 0.1, 0, "It opened in 1967.")])
    found = Contrast("number", "<1976>", "1967", 0), Contrast("negation", "", "not", 0)
    found = (*found, Contrast("unit", "<1976>", "1967", 0))  # the same words as another kind of contrast
    sentence = replace(made.sentences[0], contrasts=found)
    source = render_html([Case.of(replace(made, sentences=(sentence,)))])
    assert Page(source).texts["li"] == [
        "Passage 1 says “1967”, not “<1976>”",
        "Passage 1 says “not”, the sentence does not",
    ]
    assert source.index("<q ") < source.index("Passage 1 says")


def test_evidence_is_marked_in_its_passage_and_links_back(page):
    greedy = demo_cases()[0].answers[0].report.lowest
    assert greedy.evidence.text in page.texts["mark"]
    assert ("a", "href", "#q1a1s3") in page.attributes
    assert ("a", "href", "#q1p2") in page.attributes


def test_dropped_sentences_are_struck_through_with_their_scores(page):
    dropped = demo_cases()[0].answers[1].dropped
    assert [d.text for d in dropped] == page.texts["del"][: len(dropped)]
    assert all(f"{d.score:.2f}" in page.text("li") for d in dropped)


def test_many_dropped_sentences_fold_away_but_stay():
    made = report("q", ("p",), [("Yes.", 0.9, 0, "p")])
    dropped = tuple(tried(f"No {i}.", 0.1, 0) for i in range(12))
    source = render_html([Case("q", ("p",), (Answer("FOD", made, dropped),))])
    assert Page(source).texts["del"] == [d.text for d in dropped]
    assert '<details class="dropped">' in source


@pytest.mark.slow
@given(LETTERS)
def test_any_text_is_shown_as_text(text):
    hostile = f"<script>alert('{text}')</script>&lt;"
    source = render_html([Case.of(report(hostile, (hostile,), [(hostile, 0.5, 0, hostile)]), label=hostile)])
    page = Page(source)
    assert "script" not in page.tags
    # once each: question, sentence, passage
    for tag in ("h2", "summary", "blockquote", "h3"):
        assert hostile in page.text(tag)
    assert page.text("q").strip() == "<"  # evidence is quoted without tags and scripts, with its entities written out


def test_an_answer_without_aggregator_shows_values_and_no_bars():
    features = {"min_prob": 0.25, "mean_entropy": 1.5}
    made = report("q", ("p",), [("Yes.", 0.5, 0, "p")])
    plain = SentenceScore("Yes.", 0, 4, 0, 2, None, "no_aggregator", features, reason="no aggregator")
    source = render_html([Case.of(Report(made.prompt, "Yes.", (plain,), made.tokens))])
    page = Page(source)
    assert page.texts["code"] == ["min_prob", "mean_entropy"] * 2  # beside the sentence and in the glossary
    assert "probability" in page.text("td")
    assert "1.5 nats" in page.text("td")
    assert "P(faithful)" not in page.text("caption")
    assert not re.search(r'class="(up|down)"', source)


def test_empty_inputs_say_that_they_are_empty():
    prompt = RagPrompt("q", (), "same", "same", (1,), (1,))
    empty = Report(prompt, "", (), report("q", ("p",), [("a", 0.5, 0, None)]).tokens)
    page = Page(render_html([Case.of(empty)]))
    assert "(empty answer)" in page.text("p")
    assert "(no answer: abstained)" in Page(replace(empty, stop="abstained").to_html()).text("p")
    assert "given instead" not in page.text("p")
    assert "passages" in page.text("p")
    assert "question" in Page(render_html([])).text("p")


def test_a_text_that_the_model_did_not_write_is_shown_after_the_sentences_or_in_their_place():
    answered = report("q", ("p",), [("It is:", 0.9, 0, None)])
    said = f"{answered.response} Passage 1 says: “p & q”"
    after = Page(replace(answered, response=said, stop="quoted").to_html()).text("p")
    assert "given after itPassage 1 says: “p & q”" in after
    empty = replace(answered, response="No more.", sentences=(), stop="abstained")
    assert "given insteadNo more." in Page(empty.to_html()).text("p")
    assert "given" not in Page(replace(answered, response=said, stop="length").to_html()).text("p")


def test_evidence_that_is_not_a_quote_is_shown_but_not_marked():
    page = Page(render_html([Case.of(report("q", ("passage",), [("Yes.", 0.9, 0, "Paraphrase")]))]))
    assert "Paraphrase" in page.text("q")
    assert "mark" not in page.tags


def test_a_notebook_shows_a_fragment_whose_anchors_do_not_meet_anothers():
    one, two = report("q", ("p",), [("Yes.", 0.9, 0, "p")]), report("q", ("p",), [("No.", 0.1, 0, "p")])
    fragments = [Page(one._repr_html_()), Page(two._repr_html_())]
    assert not {"html", "body", "title"} & set(fragments[0].tags)
    assert not set(fragments[0].values("id")) & set(fragments[1].values("id"))
    assert one._repr_html_() == render_fragment([Case.of(one)])


def test_the_style_reaches_nothing_outside_the_fragment():
    style = re.sub(r"/\*.*?\*/", "", Page(render_fragment(demo_cases())).text("style"), flags=re.S)
    selectors = [s.strip() for rule in re.findall(r"([^{}]+)\{", style) for s in rule.split(",")]
    assert all(s.startswith((".syncheck", "@media", "@container")) for s in selectors)


def test_to_html_draws_the_report():
    made = report("q", ("p",), [("Yes.", 0.9, 0, "p")])
    assert made.to_html(title="T") == render_html([Case.of(made)], title="T")


SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 8)), max_size=6)


@given(st.text(min_size=28, max_size=28), SPANS)
def test_marking_keeps_the_passage_and_knows_each_characters_evidence(passage, spans):
    marks = [(start, start + size, (f"s{i}", f"a{i}")) for i, (start, size) in enumerate(spans)]
    segments = mark_passage(passage, marks)
    assert "".join(s["text"] for s in segments) == passage
    position = 0
    for segment in segments:
        for i in range(position, position + len(segment["text"])):
            assert set(segment["refs"]) == {ref for start, stop, ref in marks if start <= i < stop}
        position += len(segment["text"])
    ended = [ref for s in segments for ref in s["ends"]]
    assert sorted(ended) == sorted(ref for *_, ref in marks)


def test_the_legend_has_each_verdict_but_doubtful_only_where_a_sentence_is():
    assert set(VERDICTS) == set(get_args(Verdict))
    (sure,) = report("q", ("p",), [("Yes.", 0.9, 0, "p")]).sentences
    unsure = replace(sure, score=0.75, verdict="doubtful")

    def words(*sentences, dropped=()):
        made = replace(report("q", ("p",), [("Yes.", 0.9, 0, "p")]), sentences=sentences)
        source = render_html([Case("q", ("p",), (Answer("FOD", made, dropped),))])
        return re.findall(r'<span class="(\w+)" style="--l:[^"]*--l1:', source)

    assert words(sure) == ["contradicted", "unsupported", "supported"]
    assert words(sure, unsure) == words(sure, dropped=(unsure,)) == list(reversed(VERDICTS))
