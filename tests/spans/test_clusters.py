"""What a reader sees as one character: cut by hand, as annex 29 of Unicode has it."""

from itertools import pairwise

import pytest

from syncheck.spans import cluster_borders, reading_direction


def cut(text):
    return [text[a:b] for a, b in pairwise(cluster_borders(text))]


@pytest.mark.parametrize(
    "clusters",
    [
        ["a", "b", " ", "c"],
        ["e\u0301", "t", "e\u0301"],
        ["\u0928", "\u092e", "\u0938\u094d\u0924\u0947"],  # namaste: s, virama, t, e in one
        ["\u0915\u094d\u0937\u093f"],
        ["\u0915\u094d\u200c", "\u0937"],  # a non-joiner keeps the two apart
        ["\u0645\u064f", "\u062d\u064e", "\u0645\u0651\u064e", "\u062f"],
        ["\U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "!"],
        ["\U0001f1eb\U0001f1ee", "\U0001f1f8\U0001f1ea", "\U0001f1eb"],
        ["\u2764\ufe0f", "1\ufe0f\u20e3"],
        ["\u1112\u1161\u11ab", "\uae00"],
        ["a", "\r\n", "\n", "\u4e2d", "\u6587"],
    ],
)
def test_a_character_that_a_reader_sees_is_not_cut(clusters):
    assert cut("".join(clusters)) == clusters


def test_borders_are_those_of_the_text():
    assert cluster_borders("") == [0]
    assert cluster_borders("\u0301a") == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ("Mac \u0628\u062f\u0623 \u0645\u0634\u0631\u0648\u0639", "rtl"),
        ("\u05e9\u05dc\u05d5\u05dd 1999", "rtl"),
        ("The word \u0628\u062f\u0623 is Arabic", "ltr"),
        ("\u0928\u092e\u0938\u094d\u0924\u0947", "ltr"),
        ("\u4e2d\u6587", "ltr"),
        ("1999 \U0001f600", "auto"),
        ("", "auto"),
    ],
)
def test_a_text_runs_in_the_direction_of_most_of_its_letters(text, direction):
    assert reading_direction(text) == direction
