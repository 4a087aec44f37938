"""Where tokens lie, in the spellings of three families of vocabularies; expected spans counted by hand."""

import pytest

from syncheck.spans import token_char_spans


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
