"""Words, clusters (annex 29 of Unicode) and tokens of any script, by hand."""

from itertools import pairwise

import numpy as np
import pytest

from syncheck.spans import (
    Word,
    cluster_borders,
    normalised,
    reading_direction,
    token_char_spans,
    word_rarity,
    words_of,
)


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


def clusters_of(text):
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
    assert clusters_of("".join(clusters)) == clusters


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


def test_rarity_is_the_zipf_frequency():
    pytest.importorskip("wordfreq")
    common, rare, unseen = word_rarity(["the", "lighthouse", "xqzzyv"], "EN")
    assert common > 7 > 4.5 > rare > 2
    assert unseen == 0
    assert np.isnan(word_rarity(["etxe"], "eu")).all()


def spelled(piece):
    """The piece as byte-level BPE writes it, by the construction of GPT-2's table."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return "".join(chr(b) if b in shown else chr(256 + hidden.index(b)) for b in piece)


def cut(text, tokens):
    return [text[start:stop] for start, stop in token_char_spans(text, tokens)]


def test_byte_level_tokens_with_their_spaces():
    text = "Petra won 2008."
    tokens = ["Pet", "ra", "Ġwon", "Ġ", "200", "8", ".", "<|endoftext|>"]
    assert token_char_spans(text, tokens).tolist() == [
        [0, 3],
        [3, 5],
        [5, 9],
        [9, 10],
        [10, 13],
        [13, 14],
        [14, 15],
        [15, 15],
    ]


def test_tokens_that_are_parts_of_a_character_cover_it_all():
    text = "a😀é"
    smile, accent = "😀".encode(), "é".encode()
    tokens = ["a", spelled(smile[:3]), spelled(smile[3:] + accent[:1]), spelled(accent[1:])]
    assert token_char_spans(text, tokens).tolist() == [[0, 1], [1, 2], [1, 3], [2, 3]]


def test_sentence_piece_with_byte_pieces():
    text = "je 中 x\n"
    tokens = ["▁je", "▁", "<0xE4>", "<0xB8>", "<0xAD>", "▁x", "<0x0A>", "</s>"]
    assert cut(text, tokens) == ["je", " ", "中", "中", "中", " x", "\n", ""]


def test_plain_pieces_and_a_space_that_clean_up_removed():
    assert cut("Hej , världen", [" Hej", ",", " världen"]) == ["Hej", ",", " världen"]


def test_special_tokens_cover_nothing_and_disturb_nothing():
    assert cut("ab cd", ["<bos>", "ab", "<unused7>", "▁cd"]) == ["", "ab", "", " cd"]


def test_a_passage_that_no_token_covers_is_passed_over():
    assert cut("[gMASK] answer here", ["▁answer", "▁here"]) == ["answer", " here"]


@pytest.mark.parametrize(("text", "tokens"), [("", ["</s>"]), ("abc", [])])
def test_nothing_to_find(text, tokens):
    assert token_char_spans(text, tokens).shape == (len(tokens), 2)
    assert cut(text, tokens) == [""] * len(tokens)


@pytest.mark.parametrize("text", ["नहावंद शहर", "لا أعرف", "今天 ok", "🇫🇮🏳️\u200d🌈 né"])
def test_every_character_is_covered_when_every_byte_is_a_token(text):
    tokens = [spelled(bytes([byte])) for byte in text.encode()]
    spans = token_char_spans(text, tokens)
    assert [text[a:b] for a, b in spans] == [c for c in text for _ in c.encode()]
