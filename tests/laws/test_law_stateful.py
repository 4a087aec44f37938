"""Models whose state cannot be rewound: watched token by token with the same numbers; search refuses them."""

import numpy as np
import pytest
import torch
from doubles import FormulaAggregator, wavy
from first_principles import assert_signals, assert_states, from_scratch
from test_law_hooks import hooks
from test_law_ways import attached, live, replay
from watched import TEXT, RecordingMonitor, scripted

from fod import FODGenerator
from syncheck import UnsupportedModelError, feature_schema


@pytest.fixture
def any_family(stateful):
    """What the monitor and the prompt of this file are of."""
    return stateful


@pytest.mark.parametrize("way", [live, replay, attached], ids=lambda way: way.__name__)
def test_every_way_measures_the_same(any_family, prompt, way):
    monitor = RecordingMonitor.of(any_family)
    (ids,), script = scripted(any_family, TEXT)
    report = way(monitor, prompt, script, len(ids))
    assert report.tokens.token_ids.tolist() == ids
    assert len(report.sentences) == 3
    expected = from_scratch(any_family, prompt, ids)
    assert_signals(report.tokens, expected)
    (judge,) = [judge for judge in monitor.judges if judge.signals]
    for sentence, score in zip(judge.signals, report.sentences, strict=True):
        assert_states(sentence, score.token_end - 1, expected)


def test_the_passages_matter(any_family, prompt):
    assert np.median(from_scratch(any_family, prompt, any_family.encode(TEXT)).kl) > 0.05


def test_greedy_ids_are_those_of_generate(any_family, monitor, prompt):
    options = {"min_new_tokens": 6, "max_new_tokens": 6}
    output = any_family.model.generate(**prompt.inputs(), **options)
    found = monitor.generate(prompt, **options).tokens.token_ids.tolist()
    assert found == output[0, len(prompt.with_context_ids) :].tolist()


def test_search_refuses_and_says_why(any_family, monitor, prompt):
    monitor.aggregator = FormulaAggregator(feature_schema("syncheck.v1", any_family.layers), wavy)
    with torch.no_grad():
        any_family.model(**prompt.inputs(), output_hidden_states=True)
    before = hooks(any_family.model)
    with pytest.raises(UnsupportedModelError, match=f"{type(any_family.model).__name__} .*no token can be taken back"):
        FODGenerator(any_family.model, any_family.tokenizer, monitor).generate(prompt, max_new_tokens=20)
    assert hooks(any_family.model) == before


def test_hooks_are_gone(any_family, monitor, prompt):
    with torch.no_grad():
        any_family.model(**prompt.inputs(), output_hidden_states=True)
    before = hooks(any_family.model)
    monitor.generate(prompt, max_new_tokens=2)
    monitor.score(prompt, " He played.")
    assert hooks(any_family.model) == before
