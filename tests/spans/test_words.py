import pytest

from syncheck.spans import Word, normalised, words_of


def texts(text):
    return [word.text for word in words_of(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t", []),
        ("?!…", []),
        ("The 26th Cup.", ["The", "26", "th", "Cup"]),
        ("l'équipe d\u2019Île-de-France", ["l", "équipe", "d", "Île", "de", "France"]),
        ("3.141, 12/04/1999. 1,000", ["3.141", "12/04/1999", "1,000"]),
        ("in 1999.", ["in", "1999"]),
        ("कैदियों को", ["कैदियों", "को"]),  # vowel signs are marks, not letters
        ("می\u200cشود", ["می\u200cشود"]),  # a zero-width non-joiner stands inside a word
        ("e\u0301te\u0301 x", ["e\u0301te\u0301", "x"]),
        ("红牛Arena球场", ["红", "牛", "Arena", "球", "场"]),
        ("$5 😀👩\u200d👩\u200d👧👍🏽", ["$", "5", "😀", "👩\u200d👩\u200d👧", "👍🏽"]),
        ("١٢٣ كتاب", ["١٢٣", "كتاب"]),
    ],
)
def test_words_of_any_script(text, expected):
    assert texts(text) == expected


def test_words_know_their_characters():
    assert words_of("a 中7") == [
        Word(0, 1, "a", "letters"),
        Word(2, 3, "中", "ideograph"),
        Word(3, 4, "7", "number"),
    ]


def test_comparing_folds_case_width_and_digits():
    assert normalised("ＡＢ") == "ab"
    assert normalised("١٩٩١") == normalised("१९९१") == "1991"
    assert normalised("STRASSE") == normalised("straße")
