"""A response that is given as text keeps its characters, whatever the tokenizer makes of it."""

import copy
import unicodedata
from dataclasses import replace

import pytest
from doubles import PASSAGES, QUESTION, REWRITINGS, rewriting
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import normalizers
from transformers import ByT5Tokenizer

from syncheck.base.errors import PromptError
from syncheck.labelling import LabelledResponse, UnfaithfulSpan
from syncheck.text.sentences import TextTokens, ends_of
from syncheck.training import measure

ANSWER = "Scott is a rugby player. He has wings."
REWRITTEN = {
    **REWRITINGS,
    "one space for two": normalizers.Replace("  ", " "),
    "taken out": normalizers.Replace("*", ""),
}
TEXTS = [
    ANSWER,
    " Scott is old. He has wings.",
    unicodedata.normalize("NFD", "Café résumé is old. Çela is sold."),
    "It is ½ ﬁne.  It is **sold**. ",
    "\n- One. \n",
]


@pytest.fixture(params=REWRITTEN)
def monitor(request, llama, make_monitor):
    return make_monitor(rewriting(llama, REWRITTEN[request.param]))


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_positions_are_those_of_the_text(monitor, text):
    report = monitor.score(monitor.prompt(question=QUESTION, context=PASSAGES), text)
    assert report.response == text
    assert [text[s.start : s.end] for s in report.sentences] == [s.text for s in report.sentences]
    assert "".join(s.text for s in report.sentences).replace(" ", "") == "".join(text.split())


@pytest.mark.parametrize("rule", ["paper", "overlap"])
def test_a_span_that_is_a_sentence_makes_it_unfaithful(monitor, rule):
    record = LabelledResponse(
        "a", QUESTION, tuple(PASSAGES), ANSWER, "g", "m", spans=(UnfaithfulSpan(25, 38, label_type="x"),)
    )
    assert list(measure(monitor, [record], show_progress=False).labels(rule=rule)) == [1, 0]


def test_sentences_are_given_as_they_are(monitor):
    report = monitor.score(monitor.prompt(question=QUESTION, context=PASSAGES), sentences=["Scott is", " a player."])
    assert [s.text for s in report.sentences] == ["Scott is", "a player."]


def test_the_text_of_what_was_generated_has_its_tokens(llama, make_monitor):
    tokenizer = copy.deepcopy(llama.tokenizer)
    ids = tokenizer(" " + ANSWER, add_special_tokens=False)["input_ids"]
    tokenizer.backend_tokenizer.normalizer = normalizers.Prepend(" ")
    monitor = make_monitor(replace(llama, tokenizer=tokenizer))
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
    written = monitor.score(prompt, response_token_ids=ids)
    again = monitor.score(prompt, written.response)
    assert written.response == " " + ANSWER
    assert [(s.start, s.end, s.score) for s in again.sentences] == [
        (s.start, s.end, s.score) for s in written.sentences
    ]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted).map(tuple), max_size=8).map(sorted))
def test_the_tokens_share_out_all_characters(places):
    ends = ends_of(places, start=0)
    assert len(ends) == len(places) and ends == sorted(ends)
    assert not places or ends[-1] <= max(stop for _, stop in places)


def test_a_character_of_several_tokens_belongs_to_the_last():
    assert ends_of([(0, 1), (1, 2), (1, 2), (1, 2), (3, 5)], start=0) == [1, 1, 1, 2, 5]


def test_a_tokenizer_that_does_not_tell_where():
    tokenizer = SmallLetters()
    with pytest.raises(PromptError, match="response_token_ids"):
        TextTokens(tokenizer, [])("CaÉ.", 0)


class SmallLetters(ByT5Tokenizer):
    """Slow, and writes small letters."""

    def _tokenize(self, text):
        return super()._tokenize(text.lower())


def test_a_slow_tokenizer_that_drops_white_space_before_special_tokens():
    text = "He is  <pad> old.</s> It is"
    _, places = TextTokens(ByT5Tokenizer(), [])(text, 0)
    assert [text[a:b] for a, b in places][5:7] == ["  <pad>", " o"]
    assert "".join(text[a:b] for a, b in places) == text
