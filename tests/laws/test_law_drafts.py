"""Reading ahead changes nothing: with drafts, right or wrong, every family writes and measures what it does without."""

import random
from contextlib import ExitStack

import pytest
import torch
from doubles import assert_same
from families import REWINDABLE, STATEFUL
from first_principles import NATS, assert_signals, assert_states, from_scratch, one_pass
from transformers.generation import LogitsProcessor, LogitsProcessorList
from watched import TEXT, RecordingMonitor

from fod import BranchProposer, RepairConfig, Thresholds, repair
from fod.search import drain
from syncheck.decoding import prepare_generation


class Leaning(LogitsProcessor):
    """Makes the tokens of a row that begins with ``start`` tokens likelier that follow each other in a text."""

    def __init__(self, start, token_ids):
        self.start, self.token_ids = start, token_ids

    def __call__(self, input_ids, scores):
        place = input_ids.shape[1] - self.start
        return scores.index_add(1, torch.tensor([self.token_ids[place]]), torch.full((1, 1), 12.0))


@pytest.fixture
def fed(any_family):
    """Number of tokens of every forward pass that fills a cache."""
    found = []

    def keep(module, args, kwargs):
        if kwargs.get("use_cache"):
            found.append(kwargs["input_ids"].numel())

    with ExitStack() as hooks:
        hooks.callback(any_family.model.register_forward_pre_hook(keep, with_kwargs=True).remove)
        yield found


@pytest.mark.parametrize("any_family", [*REWINDABLE, *STATEFUL], indirect=True)
@pytest.mark.parametrize("do_sample", [False, True])
def test_the_monitors_loop_writes_the_same_with_lookup(any_family, monitor, prompt, fed, do_sample):
    """Of what leans towards a part of the prompt and departs from it now and then."""
    copied = prompt.with_context_ids[10:40]
    reports, passes = [], []
    for lookup in (0, 16):
        options = {
            "max_new_tokens": 23,  # that LongRoPE lets it write
            "do_sample": do_sample,
            "generator": torch.Generator().manual_seed(0),
            "logits_processor": LogitsProcessorList([Leaning(len(prompt.with_context_ids), copied)]),
        }
        fed.clear()
        reports.append(monitor.generate(prompt, lookup=lookup, **options))
        passes.append(len(fed))
    assert_same(*reports)
    assert reports[0].stop == reports[1].stop
    assert (passes[1] < passes[0]) == (any_family.name in REWINDABLE)


@pytest.mark.parametrize("any_family", [*REWINDABLE, *STATEFUL], indirect=True)
def test_drafts_change_nothing(any_family, prompt, fed):
    """A state that cannot be taken back is fed token by token, whatever is drafted."""
    chance = random.Random(0)
    tokens = any_family.encode(TEXT)
    with RecordingMonitor.of(any_family).session(prompt) as watched:
        fed.clear()
        session, sentences = watched.decoding, []
        for place, token in enumerate([*tokens, any_family.tokenizer.eos_token_id]):
            right = tokens[place : place + chance.randrange(5)]
            session.draft([*right, *[chance.randrange(5, 300) for _ in range(place % 3)]])
            wanted, _ = one_pass(any_family, prompt.with_context_ids, tuple(tokens[:place]))
            torch.testing.assert_close(session.next_logits[0], wanted[-1], rtol=0, atol=NATS)
            if place % 4 == 1:
                wanted, _ = one_pass(any_family, prompt.without_context_ids, tuple(tokens[:place]))
                torch.testing.assert_close(session.contrast_logits[0], wanted[-1], rtol=0, atol=NATS)
            session.push(torch.tensor([token]), end_tokens=(any_family.tokenizer.eos_token_id,))
            if session.complete():
                sentences += session.measure()[0]
                session.advance()
    expected = from_scratch(any_family, prompt, tokens)
    assert len(sentences) == 3
    for sentence in sentences:
        assert_signals(sentence, expected, start=sentence.span.token_start)
        assert_states(sentence, sentence.span.token_end - 1, expected)
    assert (max(fed) > 1) == (any_family.name in REWINDABLE)


def test_repair_writes_the_same_with_lookup(any_family, prompt):
    """Of random weights, which copy now and then, whatever passes."""
    most = 23  # tokens that LongRoPE lets it write
    plan = prepare_generation(any_family.model, prompt, max_new_tokens=most, do_sample=False)
    written = []
    for lookup in (0, 16):
        with RecordingMonitor.of(any_family).session(prompt) as watched:
            config = RepairConfig(lookup=lookup)
            proposer = BranchProposer(watched, plan, config)
            result = drain(repair(proposer, config, Thresholds(0.5)))
            written.append([[c.token_ids for c in step.candidates] for step in result.rounds])
    assert written[0] == written[1]
