"""A tree of tokens is the same as rows that each go alone; which models take one is tried on them."""

import pytest
import torch
from families import REWINDABLE, STATEFUL
from torch import nn
from transformers import AttentionInterface

from syncheck.kit import kit_language_model
from syncheck.signals import Branch, takes_token_tree

TREES = frozenset(("llama", "qwen2", "qwen3", "phi3", "gpt2", "gpt_neox", "opt", "mixtral", "deepseek_v3"))
"""The others slide, are cut into chunks, have ALiBi or a recurrent state."""

PROMPT = tuple(range(10, 40))


def whole(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


@pytest.mark.parametrize("name", [*REWINDABLE, *STATEFUL])
def test_which_models_take_one(name):
    assert takes_token_tree((REWINDABLE | STATEFUL)[name].build()) == (name in TREES)


@pytest.fixture(params=("sdpa", "eager"))
def model(request):
    made = REWINDABLE["llama"].build()
    made.set_attn_implementation(request.param)
    assert takes_token_tree(made)
    return made


@pytest.fixture
def shapes(model):
    found = []
    hook = model.register_forward_pre_hook(
        lambda module, args, kwargs: found.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    yield found
    hook.remove()


def test_forks_of_forks_taken_back_and_left_out(model, shapes):
    branch = Branch(model, [PROMPT])
    branch.select([0, 0, 0], [0, 0, 0], branch.next_logits[[0, 0, 0]])
    branch.feed(torch.tensor([[5, 6, 7], [8, 9, 10], [11, 12, 13]]))
    branch.narrow([0, 2])
    branch.feed(torch.tensor([[14], [15]]))
    branch.select([2, 0, 1, 2], [1, 0, 2, 0], branch.next_logits[[0, 0, 0, 0]])
    assert (branch.rows, branch.width, branch.fed) == (4, 34, [0, 1, 2, 3])
    found = branch.feed(torch.tensor([[20, 21], [22, 23], [24, 25], [26, 27]]))
    written = ([11, 12, 13, 20, 21], [5, 6, 7, 14, 22, 23], [8, 9, 24, 25], [11, 12, 13, 15, 26, 27])
    for logits, rest in zip(found, written, strict=True):
        torch.testing.assert_close(logits, whole(model, [*PROMPT, *rest])[-2:], rtol=0, atol=1e-4)
    assert shapes[:4] == [(1, 30), (1, 9), (1, 2), (1, 8)]


def test_a_fork_holds_what_is_shared_once(model):
    """The mask has a column for each token that is held."""
    masks = []
    hook = model.register_forward_pre_hook(
        lambda module, args, kwargs: masks.append(kwargs["attention_mask"]), with_kwargs=True
    )
    branch = Branch(model, [PROMPT])
    branch.select([0] * 4, [0] * 4, branch.next_logits[[0] * 4])
    branch.feed(torch.tensor([[5], [6], [7], [8]]))
    branch.select([1, 2, 2], [0, 0, 0], branch.next_logits[[1, 2, 2]])
    branch.feed(torch.tensor([[9], [10], [11]]))
    branch.select([1], [0], branch.next_logits[[1]])
    branch.feed(torch.tensor([[12]]))
    hook.remove()
    shapes = [None if mask is None else tuple(mask.shape) for mask in masks]
    assert shapes == [None, (1, 1, 4, 30 + 4), (1, 1, 3, 30 + 2 + 3), None]


def test_taking_back_moves_nothing(model):
    branch = Branch(model, [PROMPT])
    saved = branch.next_logits[[0, 0]]
    branch.select([0, 0], [0, 0], saved)
    branch.feed(torch.tensor([[5, 6], [7, 8]]))
    branch.rewind(2, saved)
    found = branch.feed(torch.tensor([[9], [10]]))
    for logits, token in zip(found, (9, 10), strict=True):
        torch.testing.assert_close(logits[0], whole(model, [*PROMPT, token])[-1], rtol=0, atol=1e-4)


def test_attention_that_does_not_heed_the_mask_is_found_out(monkeypatch):
    """It has PyTorch's name and sees all that is in the cache."""
    made = REWINDABLE["llama"].build()

    def unmasked(module: nn.Module, query, key, value, attention_mask, **options):
        return original(module, query, key, value, None, **options)

    original = AttentionInterface()["sdpa"]
    monkeypatch.setitem(AttentionInterface._global_mapping, "sdpa", unmasked)
    assert not takes_token_tree(made)


def test_half_precision_is_no_reason_to_refuse():
    assert takes_token_tree(REWINDABLE["llama"].build().to(torch.bfloat16))


def test_another_attention_of_the_same_model_is_tried_anew():
    made = REWINDABLE["llama"].build()
    assert takes_token_tree(made)
    made.config._attn_implementation = "flash_attention_2"
    assert not takes_token_tree(made)


def test_the_bundled_model_takes_one():
    assert takes_token_tree(kit_language_model()[0])
