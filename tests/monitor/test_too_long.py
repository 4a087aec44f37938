"""What does not fit the model's window is refused before anything else is made of it, and by us alone."""

import logging
import warnings

import pytest
from doubles import PASSAGES, QUESTION
from transformers import AutoTokenizer

from fod import FODGenerator
from syncheck import Monitor
from syncheck import replay as responses
from syncheck.base.errors import PromptError

LONG = "He is a player of the Brumbies. " * 4000


@pytest.fixture
def monitor(llama, make_monitor):
    """Its tokenizer has not warned before, which it does once."""
    monitor = make_monitor(llama, schema="paper-no-lid.v1")
    monitor.tokenizer = AutoTokenizer.from_pretrained(llama.tokenizer.name_or_path)
    assert len(monitor.tokenizer(LONG, verbose=False)["input_ids"]) > monitor.tokenizer.model_max_length
    return monitor


@pytest.fixture
def said(monkeypatch):
    """What transformers says in its log."""
    found = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())
    logger = logging.getLogger("transformers")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


def as_text(monitor, prompt):
    monitor.score(prompt, LONG)


def after_a_space(monitor, prompt):
    monitor.score(prompt, " " + LONG)


def as_ids(monitor, prompt):
    monitor.score(prompt, response_token_ids=monitor.tokenizer(LONG, verbose=False)["input_ids"])


def as_sentences(monitor, prompt):
    monitor.score(prompt, sentences=LONG.splitlines(keepends=True))


def one_of_a_batch(monitor, prompt):
    monitor.score_batch([prompt, prompt], ["He is.", LONG])


RESPONSES = [as_text, after_a_space, as_ids, as_sentences, one_of_a_batch]


@pytest.mark.parametrize("way", RESPONSES, ids=lambda way: way.__name__)
def test_a_long_response_is_refused_before_it_is_cut_into_sentences(monitor, prompt, way, said, monkeypatch):
    pushed = []

    class Counting(responses.IncrementalSegmenter):
        def push(self, text):
            pushed.append(text)
            return super().push(text)

    monkeypatch.setattr(responses, "IncrementalSegmenter", Counting)
    with pytest.raises(PromptError, match="window"):
        way(monitor, prompt)
    assert len(pushed) < 10
    assert said == []


def generated(monitor, prompt):
    monitor.generate(prompt, max_new_tokens=9)


def generated_to_a_length(monitor, prompt):
    """``generate`` would complain of the length first."""
    monitor.generate(prompt, max_length=30)


def streamed(monitor, prompt):
    next(monitor.stream(prompt, max_new_tokens=9))


def attached(monitor, prompt):
    with monitor.attach(prompt):
        pass


def opened(monitor, prompt):
    with monitor.session([prompt]):
        pass


def scored(monitor, prompt):
    monitor.score(prompt, "He is.")


def searched(monitor, prompt):
    FODGenerator(monitor.model, monitor.tokenizer, monitor).generate(prompt, max_new_tokens=9)


PROMPTS = [generated, generated_to_a_length, streamed, attached, opened, scored, searched]


@pytest.mark.parametrize("way", PROMPTS, ids=lambda way: way.__name__)
def test_a_long_prompt_is_refused_before_its_passages_are_read(monitor, way, said, monkeypatch):
    prompt = monitor.prompt(question=QUESTION, context=[LONG])
    monkeypatch.setattr(Monitor, "scorer", lambda *_: pytest.fail("a judge reads the passages"))
    with warnings.catch_warnings(), pytest.raises(PromptError, match="window"):
        warnings.simplefilter("error")
        way(monitor, prompt)
    assert said == []


@pytest.mark.parametrize("space", ["", " "])
def test_a_response_that_just_fits_is_scored(llama, monitor, monkeypatch, space):
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
    text = space + "He is a player."
    needed = len(prompt.with_context_ids) + len(monitor.score(prompt, text).tokens)
    monkeypatch.setattr(llama.model.config, "max_position_embeddings", needed)
    assert len(monitor.score(prompt, text).sentences) == 1
    monkeypatch.setattr(llama.model.config, "max_position_embeddings", needed - 1)
    with pytest.raises(PromptError, match="window"):
        monitor.score(prompt, text)


def test_other_warnings_of_the_tokenizer_are_the_users(monitor, said):
    monitor.prompt(question=QUESTION, context=[LONG])
    monitor.tokenizer(LONG)
    assert any("indexing" in message for message in said)
