"""Models whose state cannot be rewound: watched token by token; search refuses them."""

import numpy as np
import pytest
import torch
from doubles import FormulaAggregator, wavy
from families import STATEFUL
from first_principles import from_scratch
from test_law_hooks import hooks
from watched import TEXT

from fod import FODGenerator
from syncheck import feature_schema
from syncheck.base.errors import UnsupportedModelError

pytestmark = pytest.mark.parametrize("any_family", STATEFUL, indirect=True)


def test_the_passages_matter(any_family, prompt):
    assert np.median(from_scratch(any_family, prompt, any_family.encode(TEXT)).kl) > 0.05


def test_greedy_ids_are_those_of_generate(any_family, monitor, prompt):
    options = {"min_new_tokens": 6, "max_new_tokens": 6}
    output = any_family.model.generate(**prompt.inputs(), **options)
    found = monitor.generate(prompt, **options).tokens.token_ids.tolist()
    assert found == output[0, len(prompt.with_context_ids) :].tolist()


def test_search_refuses_and_says_why(any_family, monitor, prompt):
    monitor.aggregator = FormulaAggregator(feature_schema("syncheck.v3", any_family.layers), wavy)
    with torch.no_grad():
        any_family.model(**prompt.inputs(), output_hidden_states=True)
    before = hooks(any_family.model)
    with pytest.raises(UnsupportedModelError, match=type(any_family.model).__name__):
        FODGenerator(any_family.model, any_family.tokenizer, monitor).generate(prompt, max_new_tokens=20)
    assert hooks(any_family.model) == before


def test_hooks_are_gone(any_family, monitor, prompt):
    with torch.no_grad():
        any_family.model(**prompt.inputs(), output_hidden_states=True)
    before = hooks(any_family.model)
    monitor.generate(prompt, max_new_tokens=2)
    monitor.score(prompt, " He played.")
    assert hooks(any_family.model) == before
