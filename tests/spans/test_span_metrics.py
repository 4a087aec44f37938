"""Expected values by hand, or from the formula of the organisers' scorer written out once more with other tools."""

import numpy as np
import pytest
from scipy.stats import pearsonr, rankdata

from syncheck.errors import InputError
from syncheck.spans import SoftSpan, span_correlation, span_iou


@pytest.mark.parametrize(
    ("reference", "predicted", "expected"),
    [
        ([(0, 4)], [(2, 8)], 2 / 8),
        ([(0, 2), (4, 6)], [(0, 6)], 4 / 6),
        ([(0, 3), (2, 5)], [(0, 5)], 1.0),  # characters are a set: marked twice is marked once
        ([], [], 1.0),
        ([(3, 3)], [], 1.0),
        ([], [(0, 1)], 0.0),
        ([(0, 1)], [], 0.0),
    ],
)
def test_iou_is_over_characters(reference, predicted, expected):
    assert span_iou(reference, predicted) == expected


def test_correlation_is_that_of_ranks_over_all_characters():
    reference, predicted = [SoftSpan(1, 3, 0.4), SoftSpan(5, 6, 0.9)], [SoftSpan(1, 2, 0.2), SoftSpan(4, 6, 0.3)]
    wanted, found = [0, 0.4, 0.4, 0, 0, 0.9, 0], [0, 0.2, 0, 0, 0.3, 0.3, 0]
    expected = pearsonr(rankdata(wanted), rankdata(found)).statistic
    assert span_correlation(reference, predicted, characters=7) == pytest.approx(expected, abs=1e-12)


def test_opposite_rankings_correlate_with_minus_one():
    assert span_correlation([SoftSpan(0, 1, 1.0)], [SoftSpan(1, 2, 0.1)], characters=2) == pytest.approx(-1)


@pytest.mark.parametrize(
    ("reference", "predicted", "expected"),
    [
        ([], [], 1.0),
        ([SoftSpan(0, 4, 1.0)], [], 1.0),  # both constant: the organisers count it as agreement
        ([], [SoftSpan(0, 1, 0.5)], 0.0),
        ([SoftSpan(0, 1, 0.5)], [SoftSpan(0, 4, 1.0)], 0.0),
        ([], [SoftSpan(0, 1, 1e-9)], 1.0),  # constant to eight decimals
    ],
)
def test_constant_risks_agree_only_with_constant_risks(reference, predicted, expected):
    assert span_correlation(reference, predicted, characters=4) == expected


def test_an_empty_response_is_refused_only_if_a_span_lies_in_it():
    with pytest.raises(InputError):
        span_correlation([], [SoftSpan(0, 1, 0.5)], characters=0)


def test_metrics_equal_the_organisers_formula_on_random_labels():
    rng = np.random.default_rng(1)
    for _ in range(50):
        size = int(rng.integers(2, 30))
        spans = [
            [SoftSpan(a, a + 1, float(rng.integers(1, 5)) / 5) for a in range(size) if rng.random() < 0.4]
            for _ in range(2)
        ]
        vectors = [[next((s.prob for s in labels if s.start == i), 0.0) for i in range(size)] for labels in spans]
        if all(len(set(vector)) > 1 for vector in vectors):
            expected = pearsonr(rankdata(vectors[0]), rankdata(vectors[1])).statistic
            assert span_correlation(*spans, characters=size) == pytest.approx(expected, abs=1e-9)
        hard = [np.array(vector) > 0.5 for vector in vectors]
        union = (hard[0] | hard[1]).sum()
        expected = (hard[0] & hard[1]).sum() / union if union else 1.0
        assert span_iou(*[[(s.start, s.end) for s in labels if s.prob > 0.5] for labels in spans]) == expected
