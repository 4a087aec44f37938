"""Other sizes than the sentence: clauses, and several together."""

import pytest
from whole_texts import segment, sentences

from syncheck.text.sentences import IncrementalSegmenter
from syncheck.text.sentences.boundaries import SegmenterConfig


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He came, saw; and won: twice. So.", ["He came,", "saw;", "and won:", "twice.", "So."]),
        ("It cost 1,000 at 10:30 on May 5, 2003, or so", ["It cost 1,000 at 10:30 on May 5, 2003,", "or so"]),
        ('"Yes," he said (to me;) too', ['"Yes,"', "he said (to me;)", "too"]),
        ("Fish (e.g., cod) at https://a.b/c;d:e", ["Fish (e.g., cod) at https://a.b/c;d:e"]),
        ("大，多；終：「中，」少、1，000", None),
        ("One,\n two", ["One,", "two"]),
    ],
)
def test_clauses_end_at_commas_semicolons_and_colons(text, expected):
    expected = expected or [
        "大，",
        "多；",
        "終：",
        "「中，」",
        "少、1，000",
    ]
    assert sentences(text, clauses=True) == expected


def test_a_clause_is_reported_with_the_first_character_of_the_next():
    segmenter = IncrementalSegmenter(SegmenterConfig(clauses=True))
    assert [i for i, token in enumerate(["One", ",", " ", "two", " on"]) if segmenter.push(token)] == [3]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, ["It is.", "So be!", "Why?", "No one.", "End"]),
        (2, ["It is. So be!", "Why? No one.", "End"]),
        (3, ["It is. So be! Why?", "No one. End"]),
        (9, ["It is. So be! Why? No one. End"]),
    ],
)
def test_several_sentences_are_taken_as_one(size, expected):
    assert sentences("It is. So be! Why? No one. End", sentences=size) == expected


def test_line_breaks_and_clauses_count():
    assert sentences("a, b, c. d", clauses=True, sentences=2) == ["a, b,", "c. d"]
    assert sentences("- a\n- b\n- c", line_breaks="lists", sentences=2) == ["- a\n- b", "- c"]


def test_a_limit_begins_the_count_anew():
    tokens = ["So.", " It", " is", " on", ".", " End.", " No."]
    spans = segment(tokens, SegmenterConfig(max_tokens=3, sentences=2))
    assert [(s.token_end, s.truncated) for s in spans] == [(3, True), (6, False), (7, False)]
