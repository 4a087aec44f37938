import itertools

import numpy as np
import pytest

from syncheck.base.errors import InputError
from syncheck.results import SoftSpan, SpanLabels, hard_spans, labels_of, likely_overlap, risk_of


def test_more_than_half_of_the_annotators_make_a_hard_span():
    soft = [SoftSpan(0, 2, 0.5), SoftSpan(2, 4, 0.51)]
    assert hard_spans(soft) == ((2, 4),)


def test_hard_spans_that_touch_are_one_whatever_the_order_of_the_soft_ones():
    soft = [SoftSpan(7, 9, 0.9), SoftSpan(3, 5, 0.8), SoftSpan(5, 6, 0.7)]
    assert hard_spans(soft) == ((3, 6), (7, 9))


def test_hard_spans_that_overlap_stay_apart():
    soft = [SoftSpan(0, 4, 0.9), SoftSpan(0, 2, 0.8), SoftSpan(2, 3, 0.7)]
    assert hard_spans(soft) == ((0, 2), (0, 4), (2, 3))


def test_risk_and_marks_become_spans_of_equal_values():
    risk = np.array([0.0, 0.25, 0.25, 0.75, 0.0])
    marked = np.array([False, False, True, True, False])
    assert labels_of(risk, marked) == SpanLabels((SoftSpan(1, 3, 0.25), SoftSpan(3, 4, 0.75)), ((2, 4),))


def test_risks_that_agree_to_six_decimals_are_one_span_and_none_is_smaller():
    risk = np.array([0.12345649, 0.12345551, 4e-7, 6e-7])
    assert labels_of(risk, np.zeros(4, dtype=bool)).soft == (SoftSpan(0, 2, 0.123456), SoftSpan(3, 4, 1e-6))


def test_labels_give_back_the_risk_they_were_made_of():
    risk = np.random.default_rng(0).integers(0, 4, size=50) / 4
    assert np.array_equal(risk_of(labels_of(risk, risk > 0.5).soft, 50), risk)


def test_an_empty_response_has_no_labels():
    assert labels_of(np.zeros(0), np.zeros(0, dtype=bool)) == SpanLabels((), ())


def test_where_soft_spans_overlap_the_last_one_counts():
    assert risk_of([SoftSpan(0, 3, 0.2), SoftSpan(2, 4, 0.9)], 5).tolist() == [0.2, 0.2, 0.9, 0.9, 0.0]


@pytest.mark.parametrize("span", [SoftSpan(-1, 2, 0.5), SoftSpan(3, 2, 0.5), SoftSpan(2, 6, 0.5)])
def test_a_span_outside_its_response_is_refused(span):
    with pytest.raises(InputError, match="within"):
        risk_of([span], 5)


@pytest.mark.parametrize("risk", [1.01, -0.01, float("nan")])
def test_a_risk_outside_its_range_is_refused(risk):
    with pytest.raises(InputError, match="risk"):
        labels_of(np.array([risk]), np.array([True]))


class Marks:
    """Marks the same characters of whatever it is given, and keeps that."""

    name = "marks"

    def __init__(self, start, stop):
        self.labels = SpanLabels((SoftSpan(start, stop, 0.75),), ((start, stop),))
        self.item = None

    def detect(self, item):
        self.item = item
        return self.labels


def test_spans_are_given_to_the_sentences_they_lie_in(llama, make_monitor):
    monitor = make_monitor(llama)
    prompt = monitor.prompt(question="Who is it?", context=["A poet wrote."])
    report = monitor.score(prompt, " He is a poet. He wrote much. He slept.")
    first, second, third = report.sentences
    detector = Marks(second.start - 3, second.end)
    marked = report.with_spans(detector, lang="en").spans
    found = [marked.within(sentence.start, sentence.end) for sentence in report.sentences]
    assert (detector.item.question, detector.item.response) == ("Who is it?", report.response)
    assert (detector.item.passages, detector.item.lang) == (("A poet wrote.",), "en")
    assert found[0].hard == ((second.start - 3, first.end),)
    assert found[1] == SpanLabels((SoftSpan(second.start, second.end, 0.75),), ((second.start, second.end),))
    assert found[2] == SpanLabels((), ())


def expected_overlap(risk, marked):
    """Expected intersection over expected union, as documented."""
    return risk[marked].sum() / (marked.sum() + risk[~marked].sum())


def test_the_marks_are_the_best_of_all_subsets():
    rng = np.random.default_rng(0)
    for _ in range(20):
        risk = rng.random(8)
        subsets = (np.array(m) for m in itertools.product([False, True], repeat=8))
        best = max(expected_overlap(risk, marked) for marked in subsets)
        assert expected_overlap(risk, likely_overlap(risk)) == pytest.approx(best, abs=1e-12)


def test_one_wrong_name_is_marked_alone_and_a_wrong_response_as_a_whole():
    assert likely_overlap(np.array([0.1, 0.9, 0.1, 0.0])).tolist() == [False, True, False, False]
    assert likely_overlap(np.array([0.6, 0.7, 0.6, 0.5])).all()


def test_equal_risks_are_marked_together():
    assert likely_overlap(np.array([0.4, 0.4, 0.4])).all()


def test_without_risk_nothing_is_marked():
    assert not likely_overlap(np.zeros(3)).any()
    assert likely_overlap(np.zeros(0)).shape == (0,)
