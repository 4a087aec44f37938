"""Tokens to sentences, for tokenizers of every kind; the limit; the token where a sentence ends."""

import pytest
import whole_texts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_tokenizers import TOKENIZERS, ids_of

from syncheck.results.types import SentenceSpan
from syncheck.text.sentences import Detokenizer, IncrementalSegmenter, last_text_token
from syncheck.text.sentences.boundaries import SegmenterConfig

TEXTS = st.lists(
    st.sampled_from(
        [*" .,!?\n\u00e9\u6771\u3002\U0001f600", ". ", " an", " T", "P", "\n- ", "\n\n", "\U0001f469\u200d\U0001f467"]
    ),
    max_size=25,
).map("".join)


def owners(spans, char_spans, text):
    """Sentence of each token by the rule as it is stated: that of its first visible character.

    A token of white space goes with the visible character before it, one without text with the next that has some.
    """
    starts = [0, *(span.start for span in spans[1:])]
    found = []
    for begin, end in reversed(char_spans):
        if begin == end:
            found.append(found[-1] if found else len(spans) - 1)
            continue
        inner = len(text[begin:end]) - len(text[begin:end].lstrip())
        char = begin + inner if inner < end - begin else begin
        found.append(max(i for i, start in enumerate(starts) if start <= char))
    return found[::-1]


def run(tokens, config):
    segmenter = IncrementalSegmenter(config)
    spans = [span for token in tokens for span in segmenter.push(token)] + segmenter.finish()
    return spans, segmenter


def assert_owned(spans, segmenter):
    expected = owners(spans, segmenter.char_spans, segmenter.text)
    assert [next(s.index for s in spans if t < s.token_end) for t in range(len(expected))] == expected


@settings(deadline=None, max_examples=100)
@given(name=whole_texts.configs, response=whole_texts.responses, widths=whole_texts.widths_of_tokens)
@example(name="default", response="Hi. So. Be", widths=[10])
@example(name="default", response="Hi. \n So", widths=[4, 0, 1])
def test_each_token_goes_where_the_rule_says(name, response, widths):
    tokens = whole_texts.cut(response, widths)
    spans, segmenter = run(tokens, SegmenterConfig(max_tokens=whole_texts.NO_LIMIT, **whole_texts.OPTIONS[name]))
    if spans:
        whole_texts.assert_partition(spans, len(tokens))
        assert_owned(spans, segmenter)


@settings(deadline=None, max_examples=100)
@given(
    kind=st.sampled_from([*TOKENIZERS]),
    text=TEXTS,
    specials=st.sets(st.integers(0, 30), max_size=4),
    name=whole_texts.configs,
)
@example(kind="byte level", text="an \U0001f600. \u6771\n", specials={3, 11}, name="default")
def test_tokenizers_of_every_kind(kind, text, specials, name):
    tokenizer = TOKENIZERS[kind]
    ids = ids_of(tokenizer, text)
    for at in sorted(specials, reverse=True):
        ids[at:at] = [tokenizer.eos_token_id]  # also within a character of several tokens
    detokenizer = Detokenizer(tokenizer, ids_of(tokenizer, "Tell:"))
    segmenter = IncrementalSegmenter(SegmenterConfig(max_tokens=whole_texts.NO_LIMIT, **whole_texts.OPTIONS[name]))
    spans = [span for token_id in ids for span in segmenter.push(detokenizer.push(token_id))]
    if ids:
        spans += segmenter.finish(detokenizer.flush())
    assert segmenter.text == text
    assert whole_texts.bounds(spans) == whole_texts.reference(text, **whole_texts.OPTIONS[name])
    if spans:
        whole_texts.assert_partition(spans, len(ids))
        assert_owned(spans, segmenter)


@settings(deadline=None, max_examples=100)
@given(kind=st.sampled_from([*TOKENIZERS]), text=TEXTS, limit=st.integers(1, 6), name=whole_texts.configs)
def test_the_limit_divides_no_character_of_any_tokenizer(kind, text, limit, name):
    tokenizer = TOKENIZERS[kind]
    ids = ids_of(tokenizer, text)
    detokenizer = Detokenizer(tokenizer, [])
    pieces = [detokenizer.push(token_id) for token_id in ids]
    spans = whole_texts.segment(pieces, SegmenterConfig(max_tokens=limit, **whole_texts.OPTIONS[name]))
    for span in spans[:-1]:
        assert pieces[span.token_end - 1]
        inside = pieces[span.token_start : span.token_end]
        assert len(inside) <= limit or sum(map(bool, inside)) == 1  # one character of more tokens than the limit


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
    assert [span.token_end for span in whole_texts.segment(tokens)] == stops


def test_a_boundary_is_reported_with_the_first_character_of_the_next_sentence():
    segmenter = IncrementalSegmenter(whole_texts.UNBOUNDED)
    closed = [segmenter.push(token) for token in ["One", ".", " ", " Two", " is", '."', ' "', "Three", " "]]
    first = SentenceSpan(index=0, start=0, end=4, token_start=0, token_end=3)
    second = SentenceSpan(index=1, start=6, end=14, token_start=3, token_end=6)
    assert closed == [[], [], [], [first], [], [], [], [second], []]
    assert segmenter.finish() == [SentenceSpan(2, 15, 21, 6, 9)]
    assert segmenter.text == 'One.  Two is." "Three '
    assert segmenter.char_spans[:4] == [(0, 3), (3, 4), (4, 5), (5, 9)]


def test_a_sentence_that_never_ends_is_cut_and_says_so():
    spans = whole_texts.segment(["word "] * 10, SegmenterConfig(max_tokens=4))
    assert [(s.token_start, s.token_end, s.truncated) for s in spans] == [(0, 4, True), (4, 8, True), (8, 10, False)]
    assert [(s.start, s.end) for s in spans] == [(0, 19), (20, 39), (40, 49)]


def test_a_sentence_that_just_fits_is_not_cut():
    spans = whole_texts.segment(["One ", "two", ".", " Three", " four", "."], SegmenterConfig(max_tokens=3))
    assert [(s.token_end, s.truncated) for s in spans] == [(3, False), (6, False)]
    assert whole_texts.segment(["One ", "two", ".", ""], SegmenterConfig(max_tokens=3))[0].truncated is False


def test_a_token_beyond_the_limit_that_ends_the_sentence_is_not_part_of_it():
    spans = whole_texts.segment(["One ", "two ", "three ", "four. Five"], SegmenterConfig(max_tokens=3))
    assert [(s.token_start, s.token_end, s.truncated) for s in spans] == [(0, 3, True), (3, 4, False), (4, 4, False)]


def test_the_limit_divides_no_character():
    spans = whole_texts.segment(["a", "b", "", "", "\U0001f600", "c"], SegmenterConfig(max_tokens=3))
    assert [(s.token_end, s.truncated) for s in spans] == [(2, True), (5, True), (6, False)]


def test_white_space_after_a_cut_sentence_is_kept_as_a_blank_one():
    spans = whole_texts.segment(["a", "b", " ", "\n"], SegmenterConfig(max_tokens=2))
    assert spans == [SentenceSpan(0, 0, 2, 0, 2, truncated=True), SentenceSpan(1, 2, 2, 2, 4)]


@pytest.mark.parametrize("tokens", [[], [""], [" ", "\n", ""]])
def test_a_blank_response_has_no_sentences(tokens):
    assert whole_texts.segment(tokens) == []


def test_text_held_back_goes_to_the_last_token():
    segmenter = IncrementalSegmenter(whole_texts.UNBOUNDED)
    for text in ["Hi", " ", ""]:
        segmenter.push(text)
    assert segmenter.finish("\ufffd") == [SentenceSpan(0, 0, 4, 0, 3)]
    assert segmenter.char_spans[-1] == (3, 4)


def test_after_rewinding_less_white_space_may_come():
    segmenter = IncrementalSegmenter(whole_texts.UNBOUNDED)
    assert [len(segmenter.push(token)) for token in ("One.", "  Two")] == [0, 1]
    again = segmenter.rewound(1, sentences=1)
    assert again.push(" Ox") == []
    assert again.finish() == [SentenceSpan(1, 5, 7, 1, 2)]


def test_rewinding_to_the_end_leaves_nothing_open():
    segmenter = IncrementalSegmenter(whole_texts.UNBOUNDED)
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
    spans, segmenter = run(tokens, whole_texts.UNBOUNDED)
    assert last_text_token(spans[index], segmenter.char_spans) == expected


@pytest.mark.parametrize(
    ("text", "breaks_off"),
    [
        ("Lyon is large. It is in France.", False),
        ('"It is in France."', False),
        ("**It is in France.**", False),
        ("\u65e5\u672c\u3067\u3059\u3002", False),
        ("", False),
        ("Lyon is large. It is in", True),
        ("He met Dr.", True),
        ("It costs 3.5", True),
        ("Open the valve. 3.", True),
        ("- Open the valve.\n- Remove the", True),
    ],
)
def test_a_text_that_breaks_off_within_its_last_sentence(text, breaks_off):
    segmenter = IncrementalSegmenter(SegmenterConfig(abbreviations=("dr.",), line_breaks="lists"))
    for start in range(0, len(text), 3):
        segmenter.push(text[start : start + 3])
    segmenter.finish()
    assert segmenter.breaks_off == breaks_off
