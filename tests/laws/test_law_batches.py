"""A batch of left-padded prompts = one by one, for every family: prompts and responses of unequal length."""

import pytest
import torch
from doubles import PASSAGES, QUESTION
from families import REWINDABLE, STATEFUL, family
from first_principles import assert_signals, assert_states, from_scratch
from watched import TEXT, scripted

TEXTS = (" He played. Did he?", TEXT, " He grew up on a farm.")
"""They end at different steps: the second closes sentences while the others are over."""
LENGTHS = (8, 14, 11)
SENTENCES = (2, 3, 1)


@pytest.fixture(scope="module", params=[*REWINDABLE, *STATEFUL])
def any_family(request):
    return family(request.param)


@pytest.fixture
def prompts(any_family):
    return [
        any_family.prompt(QUESTION, PASSAGES),
        any_family.prompt("Was he signed?", PASSAGES[1:]),
        any_family.prompt("Where did Scott grow up? Who signed him?", PASSAGES),
    ]


def assert_one_by_one(family, monitor, prompts, reports, responses):
    """Each report is what first principles say of its own prompt and response."""
    assert len(reports) == len(responses) == len(prompts)
    signals = [signal for scorer in monitor.scorers for signal in scorer.signals]
    for prompt, report, ids in zip(prompts, reports, responses, strict=True):
        assert report.prompt == prompt
        assert report.tokens.token_ids.tolist() == ids
        assert report.response == family.tokenizer.decode(ids)
        expected = from_scratch(family, prompt, ids)
        assert_signals(report.tokens, expected)
        own = [s for scorer in monitor.scorers if scorer.prompt == prompt for s in scorer.signals]
        assert [s.text for s in own] == [s.text for s in report.sentences]
        assert own[-1].span.token_end == len(ids)
        for sentence in own:
            assert_states(sentence, sentence.span.token_end - 1, expected)
    assert len(signals) == sum(len(report.sentences) for report in reports)


def test_generated(any_family, monitor, prompts):
    """The longest row is cut at ``max_new_tokens``; its last token is never fed, but has its state."""
    responses, script = scripted(any_family, *TEXTS)
    assert tuple(map(len, responses)) == LENGTHS
    reports = monitor.generate(prompts, logits_processor=script, max_new_tokens=12)
    assert [report.stop for report in reports] == ["end_of_text", "length", "end_of_text"]
    assert_one_by_one(any_family, monitor, prompts, reports, [ids[:12] for ids in responses])


def test_attached(any_family, monitor, prompts):
    responses, script = scripted(any_family, *TEXTS)
    inputs = any_family.tokenizer.pad(
        {"input_ids": [list(prompt.with_context_ids) for prompt in prompts]}, padding_side="left", return_tensors="pt"
    )
    with monitor.attach(prompts) as watch:
        output = any_family.model.generate(**inputs, logits_processor=watch.processors + script, max_new_tokens=30)
    reports = watch.reports(output)
    assert tuple(len(report.sentences) for report in reports) == SENTENCES
    assert_one_by_one(any_family, monitor, prompts, reports, responses)


def test_replayed(any_family, monitor, prompts):
    responses, _ = scripted(any_family, *TEXTS)
    reports = monitor.score_batch(prompts, response_token_ids=responses, batch_size=2)
    assert_one_by_one(any_family, monitor, prompts, reports, responses)


def test_greedy_ids_are_those_of_each_alone(any_family, monitor, prompts):
    options = {"min_new_tokens": 5, "max_new_tokens": 5}
    together = monitor.generate(prompts, **options)
    for prompt, report in zip(prompts, together, strict=True):
        output = any_family.model.generate(**prompt.inputs(), **options)
        assert report.tokens.token_ids.tolist() == output[0, len(prompt.with_context_ids) :].tolist()


def test_several_sequences_of_one_prompt(any_family, monitor, prompt):
    options = {"do_sample": True, "top_k": 20, "num_return_sequences": 3, "min_new_tokens": 5, "max_new_tokens": 5}
    torch.manual_seed(4)
    output = any_family.model.generate(**prompt.inputs(), **options)
    torch.manual_seed(4)
    reports = monitor.generate(prompt, **options)
    found = [report.tokens.token_ids.tolist() for report in reports]
    assert found == output[:, len(prompt.with_context_ids) :].tolist()
    assert len(set(map(tuple, found))) == 3
    for report in reports:
        assert_signals(report.tokens, from_scratch(any_family, prompt, report.tokens.token_ids.tolist()))
