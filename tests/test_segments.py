import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tokenize.punkt import PunktSentenceTokenizer
from transformers import AutoTokenizer

from syncheck.config import SegmenterConfig
from syncheck.errors import InputError
from syncheck.segments import (
    Detokenizer,
    IncrementalSegmenter,
    is_checkable,
    last_text_token,
    segment,
    segment_given,
)
from syncheck.types import SentenceSpan

GOLDEN = Path(__file__).parent / "golden" / "signals"
UNBOUNDED = SegmenterConfig(max_tokens=10_000)

RESPONSES = {
    "plain": "Paris is big. It has two rivers! Is that so? Yes.",
    "titles": "Dr. Smith met Mr. J. R. Bach at 5 p.m. on Monday. They spoke.",
    "decimals": "It grew by 3.5 percent. Then 1. the first, 2. the second. Version 2.0.1 is out.",
    "ellipses": "Well... he left. Wait ... what? And . . . then. . . . Nothing.",
    "quotes": 'He said "Stop." Then he left. "Why?" she asked. \u201cNo.\u201d It was \u00abfin.\u00bb Done.',
    "brackets": "(It is late.) [See below.] {Or not.} Then (as said) it ended.) Next.",
    "list": "Steps:\n1. Mix the flour.\n2. Add water.\n- Bake it.\n* Eat. \n\nEnjoy!",
    "lines": "No full stop here\nnor here\n\nnor here",
    "links": "See https://a.example/x.y?q=1. Or a.example. Mail me@b.example! Done.",
    "cjk": "\u6771\u4eac\u306f\u5927\u304d\u3044\u3002\u4eba\u304c\u591a\u3044\u3002 Tokyo is big. \u6771\u4eac\uff01",
    "emoji": "Great \U0001f600. \U0001f469\u200d\U0001f467 came! \U0001f44d\U0001f3fd Bye.",
    "spaces": "  First.\u00a0Second.\u3000Third.   Fourth.  ",
    "dashes": "He left. -- She stayed. - So be it. \u2014 End.",
    "marks": 'Really?!? "Yes!!!" ...No. ?! .5 is half. !',
    "blank": " \n ",
    "empty": "",
}


def whole(text):
    """What Punkt says of the finished text, without the white space at the sides."""
    pieces = PunktSentenceTokenizer().span_tokenize(text)
    return [text[start:stop].strip() for start, stop in pieces if text[start:stop].strip()]


def texts(response, spans):
    return [response[span.char_start : span.char_stop] for span in spans]


def cut(text, widths):
    """Cut a text into tokens of the given widths, in turn; width 0 gives a token without text."""
    tokens, at = [], 0
    while at < len(text):
        width = widths[len(tokens) % len(widths)]
        tokens.append(text[at : at + width])
        at += width
    return tokens


def assert_partition(spans, count):
    assert [span.index for span in spans] == list(range(len(spans)))
    assert spans[0].token_start == 0 and spans[-1].token_stop == count
    assert all(a.token_stop == b.token_start for a, b in pairwise(spans))


widths_of_tokens = st.lists(st.integers(0, 7), min_size=1, max_size=12).filter(any)
responses = st.lists(
    st.sampled_from(
        [
            *" .?!\"')(\u201d-\n",
            ". ",
            "\u00a0",
            ", ",
            "...",
            "Dr",
            "J",
            "3",
            "U.S.",
            "word",
            "The",
            "\u3002",
            "\U0001f600",
        ]
    ),
    max_size=40,
).map("".join)


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("widths", [[1], [2], [3, 1], [5], [0, 4]])
def test_sentences_are_those_of_punkt_on_the_whole_text(name, widths):
    response = RESPONSES[name]
    assert texts(response, segment(cut(response, widths), UNBOUNDED)) == whole(response)


@settings(deadline=None)
@given(response=responses, widths=widths_of_tokens)
@example(response='It was "so." Then', widths=[3])
@example(response="a.\u00a0(b. C", widths=[1])
@example(response="e.(b. C d", widths=[4])
def test_sentences_do_not_depend_on_how_the_text_is_cut(response, widths):
    tokens = cut(response, widths)
    spans = segment(tokens, UNBOUNDED)
    assert texts(response, spans) == texts(response, segment([response], UNBOUNDED))
    if spans:
        assert_partition(spans, len(tokens))
    assert "".join("".join(texts(response, spans)).split()) == "".join(response.split())


@settings(deadline=None)
@given(response=responses, widths=widths_of_tokens, limit=st.integers(1, 9))
def test_every_token_is_in_one_sentence_within_the_limit(response, widths, limit):
    tokens = [token for token in cut(response, widths) if token]
    spans = segment(tokens, SegmenterConfig(max_tokens=limit))
    if not spans:
        assert not response.strip()
        return
    assert_partition(spans, len(tokens))
    assert all(span.token_stop - span.token_start <= limit for span in spans)
    assert all(span.token_stop - span.token_start == limit for span in spans if span.truncated)


def test_a_boundary_is_reported_with_the_first_character_of_the_next_sentence():
    segmenter = IncrementalSegmenter(UNBOUNDED)
    closed = [segmenter.push(token) for token in ["One", ".", " ", " Two", " is", '."', ' "', "Three", " "]]
    first = SentenceSpan(index=0, char_start=0, char_stop=4, token_start=0, token_stop=3)
    second = SentenceSpan(index=1, char_start=6, char_stop=14, token_start=3, token_stop=6)
    assert closed == [[], [], [], [first], [], [], [], [second], []]
    assert segmenter.finish() == [SentenceSpan(2, 15, 21, 6, 9)]
    assert segmenter.text == 'One.  Two is." "Three '
    assert segmenter.char_spans[:4] == [(0, 3), (3, 4), (4, 5), (5, 9)]


@pytest.mark.parametrize(
    ("tokens", "stops"),
    [
        (["Hi.", " So"], [1, 2]),
        (["Hi.", " ", "So"], [2, 3]),
        (["Hi.", "\n\n", "So"], [2, 3]),
        (["Hi", ". So", " be."], [2, 3]),
        (["Hi.", "", "", " So", ""], [1, 5]),
        (["", "Hi.", " ", "", "So", " "], [3, 6]),
        (["Hi. So. Be"], [1, 1, 1]),
    ],
)
def test_tokens_go_to_the_sentence_that_their_text_ends_in(tokens, stops):
    assert [span.token_stop for span in segment(tokens, UNBOUNDED)] == stops


def test_a_sentence_that_never_ends_is_cut_and_says_so():
    spans = segment(["word "] * 10, SegmenterConfig(max_tokens=4))
    assert [(s.token_start, s.token_stop, s.truncated) for s in spans] == [(0, 4, True), (4, 8, True), (8, 10, False)]
    assert [(s.char_start, s.char_stop) for s in spans] == [(0, 19), (20, 39), (40, 49)]


def test_a_sentence_that_just_fits_is_not_cut():
    spans = segment(["One ", "two", ".", " Three", " four", "."], SegmenterConfig(max_tokens=3))
    assert [(s.token_stop, s.truncated) for s in spans] == [(3, False), (6, False)]
    assert segment(["One ", "two", ".", ""], SegmenterConfig(max_tokens=3))[0].truncated is False


def test_the_limit_divides_no_character():
    spans = segment(["a", "b", "", "", "\U0001f600", "c"], SegmenterConfig(max_tokens=3))
    assert [(s.token_stop, s.truncated) for s in spans] == [(2, True), (5, True), (6, False)]


def test_white_space_after_a_cut_sentence_is_kept_as_a_blank_one():
    spans = segment(["a", "b", " ", "\n"], SegmenterConfig(max_tokens=2))
    assert spans == [SentenceSpan(0, 0, 2, 0, 2, truncated=True), SentenceSpan(1, 2, 2, 2, 4)]


@pytest.mark.parametrize("tokens", [[], [""], [" ", "\n", ""]])
def test_a_blank_response_has_no_sentences(tokens):
    assert segment(tokens, UNBOUNDED) == []


def test_text_held_back_goes_to_the_last_token():
    segmenter = IncrementalSegmenter(UNBOUNDED)
    for text in ["Hi", " ", ""]:
        segmenter.push(text)
    assert segmenter.finish("\ufffd") == [SentenceSpan(0, 0, 4, 0, 3)]
    assert segmenter.char_spans[-1] == (3, 4)


@settings(deadline=None)
@given(response=responses, widths=widths_of_tokens, at=st.integers(0, 30), other=responses)
def test_a_fork_goes_its_own_way(response, widths, at, other):
    tokens = cut(response, widths)
    segmenter = IncrementalSegmenter(UNBOUNDED)
    closed = [span for token in tokens[:at] for span in segmenter.push(token)]
    fork = segmenter.fork()
    forked = [span for token in cut(other, [2]) for span in fork.push(token)] + fork.finish()
    closed += [span for token in tokens[at:] for span in segmenter.push(token)]
    assert closed + segmenter.finish() == segment(tokens, UNBOUNDED)
    before = segment(tokens[:at] + cut(other, [2]), UNBOUNDED)
    assert before[len(before) - len(forked) :] == forked


@settings(deadline=None)
@given(response=responses, widths=widths_of_tokens, keep=st.integers(0, 5), limit=st.integers(2, 30))
def test_rewinding_to_a_boundary_and_going_on_gives_the_same_sentences(response, widths, keep, limit):
    tokens = [token for token in cut(response, widths) if token]
    config = SegmenterConfig(max_tokens=limit)
    segmenter = IncrementalSegmenter(config)
    spans = [span for token in tokens for span in segmenter.push(token)]
    kept = spans[:keep]
    stop = kept[-1].token_stop if kept else 0
    again = segmenter.rewound(stop, sentences=len(kept))
    assert again.text == "".join(tokens[:stop])
    rest = [span for token in tokens[stop:] for span in again.push(token)] + again.finish()
    assert kept + rest == spans + segmenter.finish()


def test_rewinding_to_the_end_leaves_nothing_open():
    segmenter = IncrementalSegmenter(UNBOUNDED)
    segmenter.push("One. Two")
    segmenter.finish()
    again = segmenter.rewound(1, sentences=2)
    assert again.push(" Three") == []
    assert again.finish() == [SentenceSpan(2, 9, 14, 1, 2)]


@pytest.mark.parametrize(
    ("tokens", "index", "expected"),
    [
        (["Hi", ".", "\n", "\n", "So"], 0, 1),
        (["Hi", ".", "\n", "\n", "So"], 1, 4),
        (["Hi", ".", " ", ""], 0, 1),
        (["Hi. So. Be", " it."], 0, 0),
        (["Hi. So. Be", " it."], 1, 0),
        (["Hi. So. Be", " it."], 2, 1),
    ],
)
def test_last_text_token_reaches_the_end_of_the_sentence(tokens, index, expected):
    segmenter = IncrementalSegmenter(UNBOUNDED)
    spans = [span for token in tokens for span in segmenter.push(token)] + segmenter.finish()
    assert last_text_token(spans[index], segmenter.char_spans) == expected


def test_given_sentences_keep_their_tokens():
    spans = segment_given(["One", ".", " Two", "\n", " - ", "Three "], ["One.", " Two\n", " - Three "])
    assert spans == [SentenceSpan(0, 0, 4, 0, 2), SentenceSpan(1, 5, 8, 2, 4), SentenceSpan(2, 10, 17, 4, 6)]


@settings(deadline=None)
@given(response=responses, widths=widths_of_tokens)
def test_given_what_was_found_is_found_again(response, widths):
    tokens = cut(response + ".", widths)
    spans = segment(tokens, UNBOUNDED)
    starts = [0, *(span.char_start for span in spans[1:]), len(response) + 1]
    assert segment_given(tokens, [(response + ".")[a:b] for a, b in pairwise(starts)]) == spans


@pytest.mark.parametrize("sentences", [["One. ", "Two"], ["One.", "Two."], [], ["One.", " Two.", "!"]])
def test_given_sentences_must_be_the_response(sentences):
    with pytest.raises(InputError, match="joined, must be the response"):
        segment_given(["One.", " Two."], sentences)


@pytest.mark.parametrize(
    ("text", "expected"), [("***", False), ("", False), ("- ?!", False), ("1.", True), ("\u6771", True), ("a", True)]
)
def test_checkable_has_a_letter_or_digit(text, expected):
    assert is_checkable(text) is expected


@pytest.mark.parametrize("model", ["llama", "mistral"])
def test_given_sentences_have_the_reference_tokens(model):
    tokenizer = AutoTokenizer.from_pretrained(GOLDEN / model)
    for record in json.loads((GOLDEN / model / "expected.json").read_text()):
        detokenizer = Detokenizer(tokenizer, record["prompt_token_ids"])
        tokens = [detokenizer.push(token_id) for token_id in record["response_token_ids"]]
        assert "".join(tokens) == record["response"]
        spans = segment_given(tokens, [sentence["text"] for sentence in record["sentences"]])
        assert [s.token_stop - s.token_start for s in spans] == [s["n_tokens"] for s in record["sentences"]]
        assert texts(record["response"], spans) == [s["text"].strip() for s in record["sentences"]]
