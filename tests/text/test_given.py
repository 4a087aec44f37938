"""Sentences that the caller has cut."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from transformers import AutoTokenizer
from whole_texts import cut, responses, segment, texts, widths_of_tokens

from syncheck.base.errors import InputError
from syncheck.results.types import SentenceSpan
from syncheck.text.sentences import Detokenizer, is_checkable, segment_given

GOLDEN = Path(__file__).parents[1] / "golden" / "signals"


def test_given_sentences_keep_their_tokens():
    spans = segment_given(["One", ".", " Two", "\n", " - ", "Three "], ["One.", " Two\n", " - Three "])
    assert spans == [SentenceSpan(0, 0, 4, 0, 2), SentenceSpan(1, 5, 8, 2, 4), SentenceSpan(2, 10, 17, 4, 6)]


@settings(deadline=None)
@given(response=responses, widths=widths_of_tokens)
def test_given_what_was_found_is_found_again(response, widths):
    tokens = cut(response + ".", widths)
    spans = segment(tokens)
    starts = [0, *(span.start for span in spans[1:]), len(response) + 1]
    assert segment_given(tokens, [(response + ".")[a:b] for a, b in pairwise(starts)]) == spans


@pytest.mark.parametrize("sentences", [["One. ", "Two"], ["One.", "Two."], [], ["One.", " Two.", "!"]])
def test_given_sentences_must_be_the_response(sentences):
    with pytest.raises(InputError, match="joined"):
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
        assert [s.token_end - s.token_start for s in spans] == [s["n_tokens"] for s in record["sentences"]]
        assert texts(record["response"], spans) == [s["text"].strip() for s in record["sentences"]]
