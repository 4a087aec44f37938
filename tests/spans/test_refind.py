"""REFIND on given signals: the ratios and marks are computed by hand."""

from dataclasses import replace

import numpy as np
import pytest
from span_methods import chosen_deltas

from syncheck.base.errors import InputError, PromptError
from syncheck.results import SoftSpan, SpanItem, SpanLabels
from syncheck.results.types import TokenSignals
from syncheck.spans import (
    RefindDetector,
    TokenReplay,
    marked_from,
    refind_prompt,
)


def signals(text, spans, with_context, without):
    count = len(spans)
    floats = [np.array(v, dtype=np.float32) for v in (with_context, without, np.zeros(count), np.zeros(count))]
    return TokenSignals(text, np.arange(count), np.array(spans), *floats)


ITEM = SpanItem(
    id="1",
    lang="en",
    question="When?",
    response="in 2011.",
    passages=("In 2012.",),
)
MEASURED = signals("in 2011.", [[0, 2], [2, 7], [7, 8]], [-1.0, -8.0, -0.1], [-2.0, -4.0, -0.1])


def test_the_ratio_is_that_of_log_probabilities():
    ratios = RefindDetector(lambda item: MEASURED).ratios(ITEM)
    assert ratios == pytest.approx([0.5] * 2 + [2.0] * 5 + [1.0], abs=1e-6)


def test_tokens_from_the_threshold_on_are_marked():
    detector = RefindDetector(lambda item: MEASURED, delta=1.5)
    found = detector.detect(ITEM)
    assert found.hard == ((2, 7),)
    assert [(s.start, s.end) for s in found.soft] == [(0, 2), (2, 7), (7, 8)]
    assert [s.prob for s in found.soft] == pytest.approx([1 / 3, 2 / 3, 1 / 2], abs=1e-6)


def test_a_denominator_that_the_floor_makes_zero_leaves_the_ratio_at_one():
    item = SpanItem(id="1", lang="en", question="?", response="ab")
    measured = signals("ab", [[0, 1], [1, 2]], [-1.0, -1.0], [0.0, 0.0])
    measured = replace(measured, log_prob_without_context=np.array([0.0, -1e-8]))
    assert RefindDetector(lambda item: measured).ratios(item).tolist() == [0.0, 1.0]


def test_without_passages_the_ratio_is_one():
    none = signals("ab", [[0, 2]], [-3.0], [np.nan])
    item = SpanItem(id="1", lang="en", question="?", response="ab")
    assert RefindDetector(lambda item: none).ratios(item).tolist() == [1.0, 1.0]


def test_a_character_of_several_tokens_takes_the_highest_ratio():
    parts = signals("é", [[0, 1], [0, 1]], [-1.0, -6.0], [-2.0, -2.0])
    item = SpanItem(id="1", lang="en", question="?", response="é")
    assert RefindDetector(lambda item: parts).ratios(item) == pytest.approx([3.0], abs=1e-6)
    turned = signals("é", [[0, 1], [0, 1]], [-6.0, -1.0], [-2.0, -2.0])
    assert RefindDetector(lambda item: turned).ratios(item) == pytest.approx([3.0], abs=1e-6)


def test_a_ratio_is_never_below_zero():
    certain = signals("ab", [[0, 1], [1, 2]], [-3.0, 0.0], [0.0, 0.0])  # the floor makes a quotient of -3e8
    item = SpanItem(id="1", lang="en", question="?", response="ab")
    assert RefindDetector(lambda item: certain).ratios(item).tolist() == [0.0, 0.0]


def test_a_ratio_equal_to_the_threshold_is_marked():
    assert marked_from(np.array([0.25, 0.5, 0.75]), 0.5).hard == ((1, 3),)


def test_thresholds_are_those_with_the_best_overlap():
    def labelled(name, lang, hard):
        labels = SpanLabels(tuple(SoftSpan(a, b, 1.0) for a, b in hard), hard)
        return SpanItem(id=name, lang=lang, question="?", response="0123", labels=labels)

    items = [labelled("a", "en", ((2, 4),)), labelled("b", "fi", ((0, 4),))]
    ratios = {"a": np.array([0.1, 0.2, 0.8, 0.9]), "b": np.array([0.3, 0.4, 0.5, 0.6])}
    chosen, _ = chosen_deltas(items, ratios)
    assert 0.2 < chosen["EN"] <= 0.8
    assert chosen["FI"] <= 0.3
    for item in items:
        assert marked_from(ratios[item.id], chosen[item.lang.upper()]).hard == item.labels.hard


def test_other_languages_get_what_is_best_over_languages_however_many_items_each_has():
    def labelled(name, lang, start):
        return SpanItem(name, lang, "?", "0123", labels=SpanLabels((SoftSpan(start, 4, 1.0),), ((start, 4),)))

    items = [labelled("a", "en", 2), labelled("b", "EN", 2), labelled("c", "fi", 0)]
    ratios = {name: np.array([0.1, 0.2, 0.8, 0.9]) for name in "ab"} | {"c": np.array([0.1, 0.1, 0.1, 0.9])}
    chosen, default = chosen_deltas(items, ratios)
    # IoU of English and Finnish when all is marked: 1/2 and 1; from 0.8 on: 1 and 1/4
    assert (default, chosen["FI"]) == (0.0, 0.0)
    assert 0.2 < chosen["EN"] <= 0.8


def test_an_item_without_errors_speaks_for_a_threshold_that_marks_nothing_of_it():
    items = [
        SpanItem(name, "en", "?", "01", labels=SpanLabels((), hard)) for name, hard in (("a", ()), ("b", ((0, 2),)))
    ]
    ratios = {"a": np.array([0.5, 0.5]), "b": np.array([0.1, 0.9])}
    # both items when all is marked: 0 and 1; above 0.1: 0 and 1/2; above 0.5: 1 and 1/2
    assert 0.5 < chosen_deltas(items, ratios)[0]["EN"] <= 0.9


@pytest.mark.parametrize("delta", [-0.1, float("nan"), True, "1"])
def test_what_is_no_threshold_is_refused(delta):
    with pytest.raises(InputError, match="threshold"):
        RefindDetector(lambda item: MEASURED, delta=delta)


def test_the_prompt_is_the_papers():
    assert refind_prompt("Who?", ("One.", "Two.")) == (
        "You are an assistant for answering questions.\nRefer to the references below and answer the following "
        "question.\n\n### References\nOne.\nTwo.\n\n### Question\nWho?\n\n### Answer\n"
    )
    assert "eferences" not in refind_prompt("Who?", ())


def test_replay_equals_a_forward_of_each_prompt(llama):
    import torch

    item = SpanItem(id="1", lang="en", question="Who?", response=" A poet of old.", passages=("A poet wrote.",))
    found = TokenReplay(llama.model, llama.tokenizer)(item)
    for passages, log_prob in ((item.passages, found.log_prob), ((), found.log_prob_without_context)):
        prompt = llama.tokenizer(refind_prompt(item.question, passages))["input_ids"]
        ids = torch.tensor([[*prompt, *found.token_ids.tolist()]])
        with torch.inference_mode():
            logits = llama.model(ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        expected = logits[torch.arange(len(found)), ids[0, len(prompt) :]]
        assert log_prob == pytest.approx(expected.numpy(), abs=1e-3)


def test_what_does_not_fit_the_window_is_refused_and_not_cut(llama):
    window = llama.model.config.max_position_embeddings
    item = SpanItem(id="1", lang="en", question="Who?", response="a", passages=("word " * window,))
    with pytest.raises(PromptError, match="window"):
        TokenReplay(llama.model, llama.tokenizer)(item)


TEXTS = ("alpha beta gamma. " * 60, "A red fox.", "delta. " * 400, "A hen.")


@pytest.fixture
def short_window(llama, monkeypatch):
    """The golden model with a window that holds the second and the fourth of the texts."""
    monkeypatch.setattr(llama.model.config, "max_position_embeddings", 160)
    return llama


def test_texts_that_do_not_fit_are_left_out_whole_and_in_order(short_window):
    item = SpanItem(id="1", lang="en", question="Who is it?", response="A red fox.", passages=TEXTS)
    replay = TokenReplay(short_window.model, short_window.tokenizer)
    assert replay.left_out(item) == (0, 2)
    assert replay.fits(item)
    fitting = SpanItem(id="1", lang="en", question="Who is it?", response="A red fox.", passages=TEXTS[1::2])
    assert replay.left_out(fitting) == ()
    found, expected = replay(item), TokenReplay(short_window.model, short_window.tokenizer)(fitting)
    assert np.array_equal(found.log_prob, expected.log_prob)
    assert np.array_equal(found.log_prob_without_context, expected.log_prob_without_context)


def test_texts_may_fill_the_window_to_the_last_token_together(llama, monkeypatch):
    given = {"id": "1", "lang": "en", "question": "Who is it?", "response": "A red fox."}
    both, three = SpanItem(**given, passages=TEXTS[1::2]), SpanItem(**given, passages=TEXTS[1:])
    replay = TokenReplay(llama.model, llama.tokenizer)
    needed = len(llama.tokenizer(refind_prompt(both.question, both.passages))["input_ids"]) + len(replay(both))
    monkeypatch.setattr(llama.model.config, "max_position_embeddings", needed)
    assert (replay.left_out(both), replay.left_out(three)) == ((), (1,))
    assert replay.fits(both) and np.array_equal(replay(three).log_prob, replay(both).log_prob)
    monkeypatch.setattr(llama.model.config, "max_position_embeddings", needed - 1)
    assert (replay.left_out(both), replay.left_out(three)) == ((1,), (1, 2))


def test_an_item_of_which_no_text_fits_is_an_error(short_window):
    item = SpanItem(id="1", lang="en", question="Who is it?", response="A red fox.", passages=TEXTS[::2])
    replay = TokenReplay(short_window.model, short_window.tokenizer)
    assert not replay.fits(item)
    with pytest.raises(PromptError, match="160"):
        replay(item)


def test_a_response_that_does_not_fit_is_an_error_whatever_is_left_out(short_window):
    item = SpanItem(id="1", lang="en", question="Who is it?", response=TEXTS[2])
    replay = TokenReplay(short_window.model, short_window.tokenizer)
    assert not replay.fits(item)
    with pytest.raises(PromptError, match="160"):
        replay(item)
