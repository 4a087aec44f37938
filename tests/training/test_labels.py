import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncheck.labelling import LabelledSentence, UnfaithfulSpan, label_sentences, labelled_sentences

RESPONSE = "Paris is big.  It has 1. Two rivers cross it. ***"
#           0123456789012345678901234567890123456789012345678


def intervals(most=40):
    return st.tuples(st.integers(0, most), st.integers(1, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(
    bounds=st.lists(intervals(), max_size=8),
    spans=st.lists(st.tuples(intervals(), st.booleans()), max_size=6),
    implicit_true=st.booleans(),
)
def test_rules_agree_with_sets_of_characters(bounds, spans, implicit_true):
    marked = [UnfaithfulSpan(*span, implicit_true=implicit) for span, implicit in spans]
    counted = [set(range(*span)) for span, implicit in spans if implicit_true or not implicit]
    sentences = [set(range(*bound)) for bound in bounds]
    overlap = [int(not any(sentence & span for span in counted)) for sentence in sentences]
    paper = [int(not any(s <= span or span <= s for span in counted)) for s in sentences]
    given_back = label_sentences(bounds, marked, implicit_true=implicit_true)
    assert given_back.dtype == np.int64
    assert given_back.tolist() == overlap
    assert label_sentences(bounds, marked, rule="paper", implicit_true=implicit_true).tolist() == paper


@pytest.mark.parametrize(
    ("span", "overlap", "paper"),
    [
        ((0, 5), [0, 1], [0, 1]),
        ((0, 13), [0, 1], [0, 1]),
        ((13, 15), [1, 1], [1, 1]),
        ((9, 17), [0, 0], [1, 1]),
        ((0, 20), [0, 0], [0, 1]),
    ],
)
def test_inside_equal_between_across_and_around(span, overlap, paper):
    bounds = [(0, 13), (15, 45)]
    assert label_sentences(bounds, [UnfaithfulSpan(*span)]).tolist() == overlap
    assert label_sentences(bounds, [UnfaithfulSpan(*span)], rule="paper").tolist() == paper


def test_a_response_is_cut_by_punkt():
    sentences = labelled_sentences(RESPONSE, [UnfaithfulSpan(22, 23)], with_letter=False)
    assert [RESPONSE[s.start : s.end] for s in sentences] == [
        "Paris is big.",
        "It has 1.",
        "Two rivers cross it.",
        "***",
    ]
    assert [s.faithful for s in sentences] == [True, False, True, True]


def test_sentences_without_a_letter_are_left_out():
    assert labelled_sentences("1. Big.", []) == (LabelledSentence(3, 7, True),)


def test_an_empty_response_has_no_sentences():
    assert labelled_sentences("", []) == ()


def test_implicit_true_spans_can_be_left_out():
    span = UnfaithfulSpan(0, 5, implicit_true=True)
    assert not labelled_sentences("Paris is big.", [span])[0].faithful
    assert labelled_sentences("Paris is big.", [span], implicit_true=False)[0].faithful
