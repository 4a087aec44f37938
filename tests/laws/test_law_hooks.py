"""No hook outlives the way that needed it, also after an exception in the user's code, for every family."""

import pytest
import torch
from transformers.generation import LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer


def hooks(model):
    """Every hook of every module, transformers' own included."""
    tables = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return [(name, dict(getattr(module, table))) for name, module in model.named_modules() for table in tables]


@pytest.fixture
def before(any_family, prompt):
    with torch.no_grad():  # the first time, transformers attaches hooks that stay
        any_family.model(**prompt.inputs(), output_hidden_states=True)
    return hooks(any_family.model)


class Broken:
    """The user's code; raises the second time it runs."""

    runs = 0

    def run(self):
        self.runs += 1
        if self.runs == 2:
            raise ArithmeticError


class BrokenProcessor(Broken, LogitsProcessor):
    def __call__(self, input_ids, scores):
        self.run()
        return scores


class BrokenCriterion(Broken, StoppingCriteria):
    def __call__(self, input_ids, scores, **options):
        self.run()
        return torch.zeros(len(input_ids), dtype=torch.bool)


class BrokenStreamer(Broken, BaseStreamer):
    def put(self, value):
        self.run()

    def end(self):
        raise AssertionError("the second token was never put")


BREAKS = {
    "logits_processor": lambda: LogitsProcessorList([BrokenProcessor()]),
    "stopping_criteria": lambda: StoppingCriteriaList([BrokenCriterion()]),
    "streamer": BrokenStreamer,
}


@pytest.mark.parametrize("place", BREAKS)
def test_gone_after_an_exception(any_family, monitor, prompt, before, place):
    options = {"min_new_tokens": 4, "max_new_tokens": 4}
    with pytest.raises(ArithmeticError):
        monitor.generate(prompt, **options, **{place: BREAKS[place]()})
    assert hooks(any_family.model) == before
    with pytest.raises(ArithmeticError), monitor.attach(prompt):
        any_family.model.generate(**prompt.inputs(), **options, **{place: BREAKS[place]()})
    assert hooks(any_family.model) == before


def test_gone_after_each_way(any_family, monitor, prompt, before):
    options = {"min_new_tokens": 2, "max_new_tokens": 2}
    monitor.generate(prompt, **options)
    assert hooks(any_family.model) == before
    monitor.score(prompt, " He played.")
    assert hooks(any_family.model) == before
    with monitor.attach(prompt) as watch:
        output = any_family.model.generate(**prompt.inputs(), **options)
        assert hooks(any_family.model) != before
    assert hooks(any_family.model) == before
    watch.report(output)
    assert hooks(any_family.model) == before


def test_gone_when_a_stream_is_left(any_family, monitor, prompt, before):
    stream = monitor.stream(prompt, reveal="immediate", min_new_tokens=2, max_new_tokens=2)
    next(stream)
    assert hooks(any_family.model) != before
    stream.close()
    assert hooks(any_family.model) == before
