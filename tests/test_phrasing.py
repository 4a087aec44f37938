import pytest

from syncheck.phrasing import Phrasing, phrasing


@pytest.mark.parametrize(
    ("sentence", "source", "negation", "item"),
    [
        ("Based on the given passages, it rained.", 1, 0, 0),
        ("The text MENTIONS rain.", 1, 0, 0),
        ("It rained in the United States.", 0, 0, 0),
        ("It didn\u2019t rain.", 0, 1, 0),
        ("It can't rain; there is nothing else.", 0, 1, 0),
        ("Nothing is known; another note.", 0, 0, 0),
        ("1. Rain", 0, 0, 1),
        (" - Rain", 0, 0, 1),
        ("\u2022 The passage does not say.", 1, 1, 1),
        ("1.5 metres fell.", 0, 0, 0),
        ("2023 was wet.", 0, 0, 0),
        ("", 0, 0, 0),
    ],
)
def test_by_hand(sentence, source, negation, item):
    assert phrasing(sentence) == Phrasing(source, negation, item)
