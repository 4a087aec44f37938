"""Right answers in JSON score as sentences do, and wrong ones below them, with and without the reader."""

import pytest
from json_answers import scores

from syncheck import load_kit


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("generic-bundled", 0.6, 0.45), pytest.param("generic-reader", 0.7, 0.4, marks=pytest.mark.slow)],
)
def test_a_right_answer_in_json_scores_high_and_a_wrong_one_low(name, least, most):
    found = list(scores(load_kit(name)))
    assert len(found) == 5 and all(right >= least and wrong <= most for right, wrong in found)
