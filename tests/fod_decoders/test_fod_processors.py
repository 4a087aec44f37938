"""What processors are shown in a search: each row's own ids, as generate would show them."""

import pytest
import torch
from doubles import PASSAGES, QUESTION, SentenceGrammar
from test_fod_generator import decoder
from transformers.generation import LogitsProcessor, LogitsProcessorList

from fod import BestOfNGenerator, CADGenerator, FLAREGenerator, FODGenerator, RepairConfig
from syncheck.base.errors import InputError


@pytest.fixture
def golden(llama):
    return llama


class Recording(LogitsProcessor):
    """Keeps every row that it was shown; changes nothing."""

    def __init__(self):
        self.rows = []

    def __call__(self, input_ids, scores):
        assert len(input_ids) == len(scores)
        self.rows += [tuple(row) for row in input_ids.tolist()]
        return scores


class UnevenGrammar(SentenceGrammar):
    """A sentence is as long as its first word says, so that the beams of a round differ in length."""

    def _allowed(self, response):
        words = response[::-1].index(self.stop) if self.stop in response else len(response)
        if words:
            self.lengths = (2 + response[-words] % 5,) * 2
        return super()._allowed(response)


def options(monitor, prompt, *others, **given):
    written = UnevenGrammar(monitor.tokenizer, prompt.with_context_ids)
    return {"logits_processor": LogitsProcessorList([*others, written]), "max_new_tokens": 60, **given}


def searching(monitor, **given):
    return decoder(monitor, 1.0, 0.0, until="all", **given)


GENERATORS = {
    "fod": searching,
    "best of n": lambda monitor: BestOfNGenerator(monitor.model, monitor.tokenizer, monitor, reward="mean"),
    "cad": lambda monitor: CADGenerator(monitor.model, monitor.tokenizer, monitor),
    "flare": lambda monitor: FLAREGenerator(
        monitor.model, monitor.tokenizer, monitor, retriever=lambda query: list(PASSAGES), threshold=0.05
    ),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_each_row_is_shown_with_its_own_ids(monitor, prompt, name):
    """Prompt, then its own tokens: no padding, and every row is one token longer than one that was shown before."""
    recording = Recording()
    out = GENERATORS[name](monitor).generate(
        prompt, return_dict_in_generate=True, **options(monitor, prompt, recording)
    )
    n = len(prompt.with_context_ids)
    shown = set(recording.rows)
    assert {row[:n] for row in shown} == {prompt.with_context_ids}
    assert all(len(row) == n or row[:-1] in shown for row in shown)
    ids = out.sequences[0].tolist()
    assert all(tuple(ids[:length]) in shown for length in range(n, len(ids)))
    if name == "fod":
        went_on = [[len(b.token_ids) for b in r.beams if b.stop is None] for r in out.search.rounds[:-1]]
        assert any(len(set(lengths)) > 1 for lengths in went_on)  # or no row would be padded


@pytest.mark.parametrize(
    "given", [{"min_new_tokens": 14}, {"begin_suppress_tokens": [4, 5]}, {"exponential_decay_length_penalty": (6, 1.5)}]
)
def test_prompts_of_a_list_are_answered_as_each_alone(monitor, prompt, given):
    """What counts tokens from the prompt's start counts from each prompt's own."""
    short = monitor.prompt(question=QUESTION, context=PASSAGES[:1])
    decoder = searching(monitor)
    recording = {"max_new_tokens": 30, **given}
    alone = [decoder.generate(one, **recording) for one in (short, prompt)]
    together = decoder.generate([short, prompt], return_dict_in_generate=True, **recording)
    assert [out.sequences.tolist() for out in together] == [ids.tolist() for ids in alone]


def plausible(monitor, **given):
    """Repair that keeps everything it writes and adds nothing, with one plausible token at each step."""
    config = RepairConfig(
        backtrack_threshold=0.0, plausibility=1.0, exact_names=False, guards=False, on_exhausted="stop", **given
    )
    return FODGenerator(monitor.model, monitor.tokenizer, monitor, config=config)


RESTRICTED = {
    "repair": lambda monitor: plausible(monitor, alpha=0.0),
    "cad": lambda monitor: CADGenerator(monitor.model, monitor.tokenizer, monitor, alpha=0.0, plausibility=1.0),
}


class TestBannedTokens:
    """Where the plausible tokens are banned, the likeliest of the others is taken."""

    @pytest.fixture
    def bans(self, monitor, prompt):
        """Arguments of ``generate`` that ban tokens of what would be written without them."""
        written = monitor.generate(prompt, max_new_tokens=12).tokens.token_ids.tolist()
        return [{"bad_words_ids": [[token] for token in {*written[1::3]}]}, {"no_repeat_ngram_size": 1}]

    @pytest.mark.parametrize("name", RESTRICTED)
    def test_the_answer_is_that_of_generate(self, monitor, prompt, bans, name):
        for ban in bans:
            given = {"max_new_tokens": 12, "do_sample": False, **ban}
            found = RESTRICTED[name](monitor).generate(prompt, **given)
            assert found.tolist() == monitor.model.generate(**prompt.inputs(), **given).tolist()

    @pytest.mark.parametrize("do_sample", [False, True])
    def test_processors_that_ban_every_token_are_refused(self, monitor, prompt, do_sample):
        nothing = LogitsProcessorList([lambda input_ids, scores: torch.full_like(scores, -torch.inf)])
        given = {"max_new_tokens": 5, "logits_processor": nothing, "do_sample": do_sample}
        for generate in (monitor.generate, plausible(monitor).generate):
            with pytest.raises(InputError, match="exclude every token"):
                generate(prompt, **given)
