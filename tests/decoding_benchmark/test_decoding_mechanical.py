"""The mechanical check: words in order from one passage, nothing of it left out between them."""

import pytest
from decoding import MechanicalCheck, aligned_share

PASSAGES = (
    "Lyon (Latin: Lugdunum) is a large city in France, at the confluence of two rivers.",
    "The tower was built by Ana Velt in 1743. She was born in Mirath and died in Lisbon.",
)


@pytest.mark.parametrize(
    ("claim", "share"),
    [
        ("The tower was built by Ana Velt in 1743.", 1.0),
        ("However, the tower was built by Ana Velt in 1743.", 1.0),  # a linking word
        ("Lyon is a large city in France.", 1.0),  # a parenthesis left out
        ("The old tower was built by Ana Velt in 1743.", 9 / 10),  # a word more
        ("The tower was built by Ana Velt in Lisbon.", 8 / 9),  # a splice within one passage
        ("The tower was built in 1743.", 4 / 6),  # words of the passage left out
        ("Lyon was born in Mirath.", 4 / 5),  # two passages
        ("...", 1.0),
    ],
)
def test_the_share_that_is_copied_without_a_splice(claim, share):
    assert aligned_share(claim, PASSAGES) == pytest.approx(share)


def test_grounded_from_nine_words_in_ten():
    claims = ["The old tower was built by Ana Velt in 1743.", "The tower was built by Ana Velt in Lisbon.", "Yes."]
    scores = [support.score for support in MechanicalCheck().align(PASSAGES, claims)]
    assert scores[0] == pytest.approx(0.5) and 0.4 < scores[1] < 0.5 and scores[2] == 0
