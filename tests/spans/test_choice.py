import itertools

import numpy as np
import pytest

from syncheck.spans import likely_overlap, merged_risk


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


def test_gaps_get_the_lower_risk():
    risk = merged_risk([1, 5, 9], [4, 6, 10], [0.8, 0.2, 0.5], 12)
    assert risk.tolist() == [0, 0.8, 0.8, 0.8, 0.2, 0.2, 0.2, 0.2, 0.2, 0.5, 0, 0]


@pytest.mark.parametrize(
    ("gap", "first", "second", "filled"),
    [
        (2, 0.5, 0.625, 0.625),
        (2, 0.625, 0.5, 0.625),
        (3, 0.5, 0.625, 0.0),
        (1, 0.5, 0.66, 0.0),
        (2, 0.7, 0.7, 0.7),
        (2, 0.0, 0.15, 0.15),
    ],
)
def test_mikani_joins_spans_closer_than_three_characters_of_like_risk(gap, first, second, filled):
    risk = merged_risk([0, 2 + gap], [2, 4 + gap], [first, second], 4 + gap, rule="mikani")
    assert risk.tolist() == [first] * 2 + [filled] * gap + [second] * 2


def test_no_word_no_risk():
    assert merged_risk([], [], [], 3).tolist() == [0, 0, 0]
