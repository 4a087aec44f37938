import re

import pytest

from syncheck.features.sentence import Phrasing, phrasing
from syncheck.schemas import FEATURES


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
        ("He never won, nor did anybody; nothing was found.", 0, 0, 0),
        ("However, it rained.", 0, 1, 0),
        ("No. 5 is blue.", 0, 1, 0),
        ("The state of Ohio stated it; the United States did.", 1, 0, 0),
        ("-5 \u00b0C was measured.", 0, 0, 1),
        ("**Note** the mill burned.", 0, 0, 1),
        ("(1) c", 0, 0, 0),
        ("a) x", 0, 0, 0),
        ("", 0, 0, 0),
    ],
)
def test_by_hand(sentence, source, negation, item):
    assert phrasing(sentence) == Phrasing(source, negation, item)


@pytest.mark.parametrize("name", ["source_mention", "negation"])
def test_the_words_that_are_named_are_those_looked_for(name):
    """A list such as "passage(s), state(d)", in words that stand alone or in a sentence, in any case."""
    (meaning,) = (feature.meaning for feature in FEATURES if feature.name == name)
    (listed,) = re.findall(r"one of: (.*) \(English\)", meaning)
    for item in listed.split(", "):
        for word in {re.sub(r"\(.*\)", "", item), re.sub(r"[()]", "", item)}:
            text = f"It was{word}." if word.startswith("n'") else f"It was {word.upper()}."
            assert getattr(phrasing(text), name) == 1, word
