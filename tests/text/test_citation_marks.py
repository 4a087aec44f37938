"""Citation marks belong to the sentence before them, name their sources, and are no part of the claim."""

import re

import pytest
import whole_texts

from syncheck.text.markup import marks_in, without_marks

FORMS = {
    "[1]": [("1",)],
    "[^2]": [("2",)],
    "[^Note-a]": [("^Note-a",)],
    "[2, 3]": [("2",), ("3",)],
    "[1-3]": [("1",), ("2",), ("3",)],
    "[passage 2]": [("2",)],
    "(source 2)": [("2",)],
    "(Passages 1 and 3)": [("1",), ("3",)],
    "(as mentioned in Passage 2)": [("2",)],
    "(Ref: Passage 2)": [("2",)],
    "[1][2]": [("1",), ("2",)],
    "\u30101\u2020source\u3011": [("1", "source")],
    "\u30104:0\u2020atlas.pdf\u3011": [("4:0", "atlas.pdf")],
    "(Meyer, 2021)": [("Meyer, 2021",)],
    "(see Meyer et al., 2021; Li & Wu, 2020)": [("Meyer et al., 2021",), ("Li & Wu, 2020",)],
    "[Meyer, 2021](https://x.org/a_(b))": [("https://x.org/a_(b)", "Meyer, 2021")],
    "([x.org](https://x.org/a))": [("https://x.org/a", "x.org")],
    "https://x.org/a?b=1": [("https://x.org/a?b=1",)],
    "(https://x.org/a)": [("https://x.org/a",)],
    "\u00b9\u00b2": [("12",)],
    "\u2020": [("\u2020",)],
    "[Atlas of France]": [("Atlas of France",)],
    "(Atlas of France)": [("Atlas of France",)],
    "(Source: Atlas of France)": [("Atlas of France",)],
}
GLUED = ("\u00b9\u00b2", "\u2020")


@pytest.mark.parametrize(("form", "sources"), FORMS.items())
@pytest.mark.parametrize("written", ["Lyon lies in France {}.", "Lyon lies in France. {}", "Lyon lies in France.{}"])
def test_a_mark_stays_with_its_sentence_names_its_sources_and_is_no_claim(form, sources, written):
    if form in GLUED and " {}" in written:
        written = written.replace(" {}", "{}")
    if form.startswith("http") and ".{}" in written:
        written = "Lyon lies in France. {}."
    sentence = written.format(form)
    assert whole_texts.sentences(f"{sentence} It is old.", line_breaks="lists") == [sentence, "It is old."]
    marks = marks_in(sentence, names=("Atlas of France",))
    assert [source for mark in marks for source in mark.sources] == sources
    assert "".join(sentence[mark.start : mark.end] for mark in marks) == form
    assert without_marks(sentence, marks) == "Lyon lies in France."


def test_a_number_before_an_address_ends_its_sentence():
    text = "It opened in 1967. https://x.org/a It is old."
    assert whole_texts.sentences(text, line_breaks="lists") == ["It opened in 1967. https://x.org/a", "It is old."]


def test_marks_in_a_row_and_the_source_after_a_sentence_stay_with_it():
    text = (
        "It lies in France. [1] [2] (Meyer, 2021) It is old. Source: Atlas of France. It has a port.\n[1] Meyer, Atlas."
    )
    assert whole_texts.sentences(text, line_breaks="lists") == [
        "It lies in France. [1] [2] (Meyer, 2021)",
        "It is old. Source: Atlas of France.",
        "It has a port.",
        "[1] Meyer, Atlas.",
    ]
    (mark,) = marks_in("It is old. Source: Atlas of France.", names=["Atlas of France"])
    assert (mark.start, mark.sources) == (11, (("Atlas of France",),))
    assert marks_in("It is old. Source: it cures colds.", names=["Atlas of France"]) == ()  # may be a claim


@pytest.mark.parametrize(
    "sentence",
    [
        "The area is 12 km\u00b2 and the depth 10\u00b3 m.",
        "It is in the range [0, 1].",
        "It opened (June 5, 2021).",
        "It opened (in May 2021) again.",
        "It is [sic] old (and large).",
        "He was born (1921) here.",
    ],
)
def test_what_looks_like_a_mark_and_is_none_stays(sentence):
    assert marks_in(sentence, names=("Atlas",)) == ()


def test_the_words_of_a_link_within_a_sentence_stay():
    sentence = "The [Avon bridge](https://x.org/avon) opened in 1967."
    (mark,) = marks_in(sentence)
    assert without_marks(sentence, [mark]) == "The Avon bridge opened in 1967."


def test_what_begins_a_sentence_is_no_mark_of_the_one_before():
    for begun in ("[Lyon](https://x.org/lyon) is old.", "[1] says so.", "(Meyer, 2021) was wrong."):
        assert whole_texts.sentences(f"It lies in France. {begun}", line_breaks="lists")[1:] == [begun]


def test_a_pattern_replaces_the_known_forms():
    pattern = re.compile(r"\{\{(.*?)\}\}")
    sentence = "It lies in France {{a; b}} [1]."
    (mark,) = marks_in(sentence, pattern=pattern)
    assert mark.sources == (("a",), ("b",))
    assert without_marks(sentence, [mark]) == "It lies in France [1]."


def test_a_sentence_of_marks_alone_stays():
    assert without_marks("[1] [2]", marks_in("[1] [2]")) == "[1] [2]"
