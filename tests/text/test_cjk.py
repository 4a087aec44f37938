import pytest
from whole_texts import segment, sentences, texts

from syncheck.text.sentences import IncrementalSegmenter
from syncheck.text.sentences.boundaries import SegmenterConfig

TOKYO = "東京"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "大。多！少？中｡終",
            ["大。", "多！", "少？", "中｡", "終"],
        ),
        ("大．多．", ["大．", "多．"]),
        (
            "、大？！多。。。終。?!少",
            ["、大？！", "多。。。", "終。?!", "少"],
        ),
        (
            "「大。」『多！』終",
            ["「大。」", "『多！』", "終"],
        ),
        (
            "（大。）\u201c多。\u201d(少！)終",
            ["（大。）", "\u201c多。\u201d", "(少！)", "終"],
        ),
        ("大。 \u201d多。\n終", ["大。", "\u201d多。", "終"]),
        (
            "３．５と\u0033．\u0035。Ｕ．Ｓ．終",
            ["３．５と\u0033．\u0035。", "Ｕ．Ｓ．終"],
        ),
        ("Tokyo。Big. Yes。 終", ["Tokyo。", "Big.", "Yes。", "終"]),
    ],
)
def test_full_stops_need_no_white_space(text, expected):
    assert sentences(text, cjk_stops=True) == expected


def test_without_the_option_they_end_nothing():
    assert sentences(f"{TOKYO}。{TOKYO}！ {TOKYO}") == [f"{TOKYO}。{TOKYO}！ {TOKYO}"]


def test_a_sentence_is_reported_with_the_next_character_that_is_not_its_own():
    segmenter = IncrementalSegmenter(SegmenterConfig(cjk_stops=True))
    tokens = ["「", "大", "。", "」", "」", "多"]
    assert [index for index, token in enumerate(tokens) if segmenter.push(token)] == [5]


def test_a_token_with_text_of_both_stays_in_the_earlier():
    tokens = ["大", "。多", "終", "。"]
    spans = segment(tokens, SegmenterConfig(cjk_stops=True))
    assert texts("".join(tokens), spans) == ["大。", "多終。"]
    assert [span.token_end for span in spans] == [2, 4]
