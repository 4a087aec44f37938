import pytest
from whole_texts import segment, sentences

from syncheck.text.sentences import IncrementalSegmenter
from syncheck.text.sentences.boundaries import SegmenterConfig

ANSWER = "Steps:\n1. Mix the flour. Stir.\n2. Add water\n   and salt\n\nEnjoy\nit. Bye"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("none", ["Steps:\n1.", "Mix the flour.", "Stir.", "2.", "Add water\n   and salt\n\nEnjoy\nit.", "Bye"]),
        ("paragraphs", ["Steps:\n1.", "Mix the flour.", "Stir.", "2.", "Add water\n   and salt", "Enjoy\nit.", "Bye"]),
        ("lists", ["Steps:", "1. Mix the flour.", "Stir.", "2. Add water\n   and salt", "Enjoy\nit.", "Bye"]),
        ("lines", ["Steps:", "1. Mix the flour.", "Stir.", "2. Add water", "and salt", "Enjoy", "it.", "Bye"]),
    ],
)
def test_modes(mode, expected):
    assert sentences(ANSWER, line_breaks=mode) == expected


@pytest.mark.parametrize(
    "mark",
    [
        *("-", "*", "+", "\u2022", "\u2013", "\u25e6"),
        *("1.", "1)", "(1)", "12.", "123)", "a.", "a)", "(a)", "A)", "(B)", "iv.", "(ii)", "x)"),
        *("#", "###", "- 1.", "## 2.", "* -"),
    ],
)
@pytest.mark.parametrize("indent", ["", "  ", "\t"])
def test_marks_begin_an_item_and_stay_with_its_text(mark, indent):
    text = f"Intro{indent}\n{indent}{mark} First one. Second"
    expected = ["Intro", f"{mark} First one.", "Second"]
    assert sentences(text, line_breaks="lists") == expected
    assert sentences(text[5:], line_breaks="lists") == expected[1:]
    assert sentences(text[5:].lstrip(), line_breaks="lists") == expected[1:]
    assert sentences(text, line_breaks="lines") == expected


@pytest.mark.parametrize("mark", ["1、", "１．", "（一）", "二、", "①", "2）"])
def test_marks_of_chinese_and_japanese_need_no_white_space(mark):
    text = f"東\n{mark}京\n{mark}大"
    assert sentences(text, line_breaks="lists") == ["東", f"{mark}京", f"{mark}大"]


@pytest.mark.parametrize(
    "line",
    [
        "-5 degrees",
        "3.5 percent",
        "**Bold** text",
        "1990. the end",
        "(see below) it",
        "A. Lee",
        "#tag",
        "--- x",
        "xy) z",
    ],
)
def test_what_is_no_mark_goes_on_with_the_line_before(line):
    assert sentences(f"It is\n{line}", line_breaks="lists") == [f"It is\n{line}"]
    assert sentences(f"It is\n{line}", line_breaks="lines") == ["It is", line]


def test_a_heading_is_a_line_of_its_own():
    text = "So.\n## 1. The end\nIt is near\nnow"
    assert sentences(text, line_breaks="lists") == ["So.", "## 1. The end", "It is near\nnow"]
    assert sentences(text.replace("##", "  ##"), line_breaks="lists") == ["So.", "## 1. The end", "It is near\nnow"]


def test_an_item_without_text_goes_with_the_next():
    assert sentences("- \n- a\n-", line_breaks="lists") == ["- \n- a\n-"]
    assert sentences("- \n- a\n- ", line_breaks="lists") == ["- \n- a", "-"]


def test_items_may_be_paragraphs_and_hold_sentences_without_a_full_stop():
    text = "- One\r\n\r\n- Two: 1. Red 2. Blue\r\n\r\nEnd"
    assert sentences(text, line_breaks="lists") == ["- One", "- Two: 1.", "Red 2.", "Blue", "End"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- Under 4: free\nThe card is valid.", ["- Under 4: free", "The card is valid."]),
        ("1) Red\nBlue is out.\nIt is", ["1) Red", "Blue is out.", "It is"]),
        ("- Breakfast from\n  Monday on", ["- Breakfast from\n  Monday on"]),
        ("- Breakfast from\nten on", ["- Breakfast from\nten on"]),
        ("1. Schools:\nShe taught.", ["1. Schools:\nShe taught."]),
        ("Red\nBlue", ["Red\nBlue"]),
    ],
)
def test_an_item_ends_where_a_line_begins_with_a_capital(text, expected):
    assert sentences(text, line_breaks="lists") == expected


@pytest.mark.parametrize(
    ("mode", "tokens", "at"),
    [
        ("paragraphs", ["One", "\n", "\n", "Two"], 3),
        ("lines", ["One", "\n", "Two"], 2),
        ("lists", ["One", "\n", "-", " ", "Two"], 4),
        ("lists", ["One", "\n", "1", "0", ".", " ", "Two"], 5),
        ("lists", ["One", ".", "\n", "Two"], 3),
        ("lists", ["# One", "\n", "Two"], 2),
        ("lists", ["- One", "\n", "Two"], 2),
    ],
)
def test_a_break_is_reported_as_soon_as_it_is_certain(mode, tokens, at):
    segmenter = IncrementalSegmenter(SegmenterConfig(line_breaks=mode))
    assert [index for index, token in enumerate(tokens) if segmenter.push(token)] == [at]


def test_white_space_before_an_item_belongs_to_the_sentence_before():
    tokens = ["One", "\n", "\n", " -", " Two"]
    assert [s.token_end for s in segment(tokens, SegmenterConfig(line_breaks="lists"))] == [3, 5]


def test_a_mark_that_is_not_complete_when_the_limit_comes_is_cut():
    tokens = ["a ", "b", "\n", "1", "0", ") ", "c"]
    spans = segment(tokens, SegmenterConfig(max_tokens=4, line_breaks="lists"))
    assert [(s.token_end, s.truncated) for s in spans] == [(4, True), (7, False)]
    assert [s.token_end for s in segment(tokens, SegmenterConfig(max_tokens=5, line_breaks="lists"))] == [3, 7]


@pytest.mark.parametrize("mode", ["paragraphs", "lists", "lines"])
def test_marks_at_the_end_of_a_block_stay_together(mode):
    assert sentences("Wow!!!\n\nIs it?!\n\nNo...\n\nSo", line_breaks=mode) == ["Wow!!!", "Is it?!", "No...", "So"]
