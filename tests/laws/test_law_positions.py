"""Texts that cross where a model encodes every token anew are refused before the first token; all others measured."""

import pytest
import torch
from doubles import PASSAGES, QUESTION
from families import SWITCH, family
from first_principles import assert_signals, from_scratch
from watched import TEXT, RecordingMonitor, scripted

from syncheck.base.errors import InputError, PromptError
from syncheck.signals import switches_of

SWITCHING = ("phi3_longrope", "phimoe_longrope")


@pytest.fixture(scope="module", params=SWITCHING)
def any_family(request):
    return family(request.param)


@pytest.fixture
def crossing(any_family):
    """A prompt that is shorter than the switch, by less than the response, and one whose counterpart is."""
    found = []
    for branch, passages in enumerate((["He played."], PASSAGES)):
        question = "Who?"
        while lengths(any_family.prompt(question, passages))[branch] < SWITCH - 8:
            question += " A farm"
        found.append(any_family.prompt(question, passages))
    return found


def lengths(prompt):
    return len(prompt.with_context_ids), len(prompt.without_context_ids)


@pytest.fixture
def forwards(any_family):
    found = []
    handle = any_family.model.register_forward_pre_hook(lambda module, args: found.append(module))
    yield found
    handle.remove()


def test_a_response_that_would_cross_is_refused_before_anything_runs(any_family, monitor, crossing, forwards):
    ids = any_family.encode(TEXT)
    for prompt in crossing:
        assert any(n <= SWITCH < n + len(ids) for n in lengths(prompt))
        with pytest.raises(PromptError, match="re-encodes"):
            monitor.generate(prompt, max_new_tokens=len(ids))
        with pytest.raises(PromptError, match="re-encodes"):
            next(monitor.stream(prompt, max_new_tokens=len(ids)))
        with pytest.raises(PromptError, match="re-encodes"):
            monitor.score(prompt, TEXT)
        with pytest.raises(PromptError, match="re-encodes"):
            monitor.score_batch([prompt], response_token_ids=[ids])
    assert not forwards


def test_a_loop_that_crosses_is_refused_there(any_family, monitor, crossing):
    for prompt in crossing:
        _, script = scripted(any_family, TEXT)
        with pytest.raises(PromptError, match="re-encodes"), monitor.attach(prompt) as watch:
            watch.report(any_family.model.generate(**prompt.inputs(), logits_processor=script, max_new_tokens=20))


def test_a_session_that_crosses_is_refused_there(any_family, monitor, crossing):
    with pytest.raises(PromptError, match="re-encodes"), monitor.session(crossing[0]) as watched:
        for token in any_family.encode(TEXT):
            watched.decoding.push(torch.tensor([token]))


def test_up_to_the_switch_is_measured(any_family, monitor, crossing):
    prompt = crossing[0]
    ids = any_family.encode(TEXT)[: SWITCH - len(prompt.with_context_ids)]
    report = monitor.score(prompt, response_token_ids=ids)
    assert_signals(report.tokens, from_scratch(any_family, prompt, ids))


def test_a_batch_with_prompts_on_both_sides(any_family, monitor):
    """Given responses are measured in batches of their own; what is generated together is refused."""
    prompts = [
        any_family.prompt(QUESTION, PASSAGES),
        any_family.prompt("Who?", "He."),
        any_family.prompt("Who?", PASSAGES),
    ]
    ids = any_family.encode(TEXT)[:8]
    assert len({n > SWITCH for prompt in prompts for n in lengths(prompt)[:1]}) == 2
    for prompt, report in zip(prompts, monitor.score_batch(prompts, response_token_ids=[ids] * 3), strict=True):
        assert_signals(report.tokens, from_scratch(any_family, prompt, ids))
    with pytest.raises(InputError, match="batch"):
        monitor.generate(prompts, max_new_tokens=2)
    with pytest.raises(InputError, match="batch"):
        monitor.attach(prompts)


def test_a_batch_whose_fill_would_cross(any_family, monitor, crossing):
    """A short response is filled up to the longest of its batch; that must not carry a long prompt over."""
    prompts = [crossing[0], any_family.prompt("Who?", ["He played."])]
    ids = [any_family.encode(TEXT)[:2], any_family.encode(TEXT)]
    assert [len(prompt.with_context_ids) + 14 > SWITCH for prompt in prompts] == [True, False]
    for prompt, own, report in zip(prompts, ids, monitor.score_batch(prompts, response_token_ids=ids), strict=True):
        assert_signals(report.tokens, from_scratch(any_family, prompt, own))


def test_which_models_switch():
    assert {name: switches_of(family(name).model) for name in (*SWITCHING, "llama_dynamic", "ministral3", "llama")} == {
        "phi3_longrope": (SWITCH,),
        "phimoe_longrope": (SWITCH,),
        "llama_dynamic": (512,),  # its window, which nothing passes
        "ministral3": (),
        "llama": (),
    }


def test_without_the_refusal_it_would_be_measured_wrong(any_family, crossing):
    """What the model says of a token changes when a later one crosses the switch."""
    prompt, ids = crossing[0], any_family.encode(TEXT)
    short = from_scratch(any_family, prompt, ids[:3])
    long = from_scratch(any_family, prompt, ids)
    assert abs(short.log_prob - long.log_prob[:3]).max() > 0.1


@pytest.mark.parametrize("name", ["ministral3", "mistral4"])
def test_scaling_by_a_tokens_own_position_may_cross(name):
    crossed = family(name)
    monitor, prompt, ids = RecordingMonitor.of(crossed), crossed.prompt("Who?", "He played."), crossed.encode(TEXT) * 3
    assert len(prompt.with_context_ids) < SWITCH < len(prompt.with_context_ids) + len(ids)
    report = monitor.score(prompt, response_token_ids=ids)
    assert_signals(report.tokens, from_scratch(crossed, prompt, ids))
