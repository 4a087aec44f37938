"""The doubles do exactly what they say, in every way in which a monitor measures."""

import math

import numpy as np
import pytest
import torch

from fod import FODGenerator
from syncheck.base.errors import InputError
from syncheck.testing import ScriptedAligner, scripted_monitor, word_tokenizer

QUESTION = "Where is Lyon?"
PASSAGE = "Lyon is large. It is in France."
WRONG, RIGHT = "Lyon is large. It is in Spain.", "Lyon is large. It is in France."


@pytest.fixture(scope="module")
def monitor():
    return scripted_monitor({WRONG: 0.6, RIGHT: 0.4}, supports={"It is in Spain.": 0.1})


@pytest.fixture(scope="module")
def prompt(monitor):
    return monitor.prompt(question=QUESTION, context=PASSAGE)


@pytest.fixture(scope="module")
def report(monitor, prompt):
    return monitor.generate(prompt, max_new_tokens=20)


def test_the_model_writes_its_likeliest_answer_and_each_sentence_scores_as_said(report):
    assert (report.response, report.stop) == (WRONG, "end_of_text")
    assert [(s.text, s.score) for s in report.sentences] == [("Lyon is large.", 1.0), ("It is in Spain.", 0.1)]


def test_probabilities_are_those_on_paper():
    monitor = scripted_monitor(RIGHT, seen=0.9, unseen=0.5)
    prompt = monitor.prompt(question="Where?", context="It lies in France.")
    tokens = monitor.generate(prompt, max_new_tokens=20).tokens
    size = len(monitor.tokenizer)
    seen, unseen = 0.9 + 0.1 / size, 0.5 + 0.5 / size
    words = ["Lyon", " is", " large", ".", " It", " is", " in", " France", "."]
    assert [monitor.tokenizer.decode([i]) for i in tokens.token_ids] == words
    with_context = [unseen, unseen, unseen, seen, seen, seen, seen, seen, seen]
    without = [unseen, unseen, unseen, unseen, unseen, seen, unseen, unseen, seen]
    assert np.exp(tokens.log_prob) == pytest.approx(with_context, rel=1e-5)
    assert np.exp(tokens.log_prob_without_context) == pytest.approx(without, rel=1e-5)
    other, other_without = 0.1 / size, 0.5 / size
    kl = seen * math.log(seen / unseen) + (size - 1) * other * math.log(other / other_without)
    assert tokens.kl == pytest.approx(
        [kl if a != b else 0 for a, b in zip(with_context, without, strict=True)], rel=1e-4
    )


def same(one, other):
    assert one.sentences[-1].text == other.sentences[-1].text
    for name in ("token_ids", "log_prob", "log_prob_without_context", "entropy", "kl"):
        np.testing.assert_array_equal(getattr(one.tokens, name), getattr(other.tokens, name))


def test_replayed_attached_and_batched_answers_are_measured_as_live_ones(monitor, prompt, report):
    same(monitor.score(prompt, response=WRONG), report)
    other = monitor.prompt(question="Where on earth is it?", context=[PASSAGE, PASSAGE])
    same(monitor.generate([other, prompt], max_new_tokens=20)[1], report)
    with monitor.attach(prompt) as watch:
        output = monitor.model.generate(**prompt.inputs(), logits_processor=watch.processors, max_new_tokens=20)
    same(watch.report(output), report)


def test_a_text_that_is_taken_back_is_continued_anew(monitor, prompt):
    torch.manual_seed(0)
    decoder = FODGenerator(monitor.model, monitor.tokenizer, monitor)
    output = decoder.generate(prompt, max_new_tokens=30, return_dict_in_generate=True)
    assert output.report.response == RIGHT


@pytest.mark.parametrize("text", ["", " Lyon  is\nlarge! ", "Žižek, 東京 \U0001f600"])
def test_every_text_can_be_encoded_and_comes_back(text):
    tokenizer = word_tokenizer([WRONG])
    assert tokenizer.decode(tokenizer(text).input_ids) == text


@pytest.mark.parametrize(
    ("answers", "given"), [({}, {}), ({RIGHT: 0.0}, {}), (RIGHT, {"seen": 1.0}), (RIGHT, {"unseen": 0.0})]
)
def test_what_has_no_logarithm_is_refused(answers, given):
    with pytest.raises(InputError, match="between"):
        scripted_monitor(answers, **given)


def test_an_aligner_remembers_what_it_was_asked():
    aligner = ScriptedAligner({"A b.": 0.25})
    found = aligner.align(["It is c."], ["A b.", "Is d."])
    assert ([s.score for s in found], aligner.asked) == ([0.25, 0.5], [("A b.", "Is d.")])
    assert found[0].evidence.text == "It is c."
