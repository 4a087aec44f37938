"""A tree of tokens is the same as rows that each go alone; which models take one is tried on them."""

import copy

import pytest
import torch
from copying import copying_model
from families import REWINDABLE, STATEFUL, Recipe
from torch import nn
from transformers import AttentionInterface, FalconConfig, FalconForCausalLM

from syncheck.base.errors import NotReadyError
from syncheck.signals import Branch, reads_less, takes_token_tree

TREES = frozenset(
    """
    llama llama_dynamic qwen2 qwen3 phi3 phi3_longrope phimoe_longrope ministral3 mistral4 gpt2 gpt_neox opt mixtral
    deepseek_v3
    """.split()
)
"""The others slide, are cut into chunks, have ALiBi or a recurrent state."""

OTHERS = {
    "gpt_neo": Recipe(  # slides by the column, under a name of its own
        "gpt_neo", {"attention_types": [[["global", "local", "global"], 1]]}
    ),
}

PROMPT = tuple(range(10, 40))


def whole(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


MULTI_HEAD = Recipe("llama", {"num_key_value_heads": 4})


@pytest.mark.parametrize("name", [*REWINDABLE, *STATEFUL, *OTHERS])
def test_which_models_take_one(name):
    assert takes_token_tree((REWINDABLE | STATEFUL | OTHERS)[name].build()) == (name in TREES)


def test_a_model_that_fails_on_such_a_mask():
    """ALiBi from a mask of two dimensions, in a model that takes positions."""
    config = FalconConfig(vocab_size=900, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, alibi=True)
    assert not takes_token_tree(FalconForCausalLM(config).eval())


@pytest.mark.parametrize(("attention", "fewest"), [("sdpa", 6), ("eager", 2)])
def test_where_query_heads_share_keys_a_few_rows_are_a_batch(attention, fewest):
    """Two query heads share one key: as soon as there is a mask, sdpa writes all keys for each of them."""
    model = REWINDABLE["llama"].build()
    model.set_attn_implementation(attention)
    assert [rows for rows in range(2, 9) if reads_less(model, rows)] == list(range(fewest, 9))


@pytest.fixture(params=("sdpa", "eager"))
def model(request):
    made = MULTI_HEAD.build()
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


def test_taken_back_into_what_is_shared(model):
    """One row drops what the other, and a third copy, still hold."""
    branch = Branch(model, [PROMPT])
    branch.select([0, 0], [0, 0], branch.next_logits[[0, 0]])
    branch.feed(torch.tensor([[5, 6], [7, 8]]))
    branch.select([0, 1, 0], [5, 1, 0], branch.next_logits[[0, 1, 0]])
    assert branch.width == 32
    found = branch.feed(torch.tensor([[9, 10], [11, 12], [13, 14]]))
    for logits, ids in zip(found, ([*PROMPT[:-3], 9, 10], [*PROMPT, 7, 11, 12], [*PROMPT, 5, 6, 13, 14]), strict=True):
        torch.testing.assert_close(logits, whole(model, ids)[-2:], rtol=0, atol=1e-4)


def test_to_one_row_and_forked_again_beyond_the_buffer(model):
    branch = Branch(model, [PROMPT])
    branch.select([0, 0], [0, 0], branch.next_logits[[0, 0]])
    long = torch.arange(2 * 150).reshape(2, 150) % 90 + 5
    branch.feed(long)
    branch.narrow([1])
    assert branch.fed == [1]
    branch.feed(torch.tensor([[5]]))
    branch.select([1], [0], branch.next_logits)
    branch.select([0, 0], [1, 0], branch.next_logits[[0, 0]])
    found = branch.feed(torch.tensor([[6], [7]]))
    own = long[1].tolist()
    for logits, rest in zip(found, ([*own, 6], [*own, 5, 7]), strict=True):
        torch.testing.assert_close(logits, whole(model, [*PROMPT, *rest])[-1:], rtol=0, atol=1e-4)


OTHER = tuple(range(50, 57))


def test_two_branches_that_join_are_fed_in_one_forward(model, shapes):
    """Each sees its own prompt alone, forked or not, fed together or by itself, and either may be cut first."""
    branch, other = Branch(model, [PROMPT]), Branch(model, [OTHER])
    assert branch.join(other)
    of_both = branch.feed_with(other, torch.tensor([[5, 6]]))
    other.feed(torch.tensor([[7]]))
    for each, dropped in ((branch, (0, 1, 0)), (other, (1, 2, 1))):
        each.select([0, 0, 0], dropped, each.next_logits[[0, 0, 0]])
    for each in (other, branch):
        each.narrow([0, 1])
    branch.feed_with(other, torch.tensor([[8], [9]]))
    branch.select([1, 2, 0], [1, 1, 1], branch.next_logits[[1, 1, 0]])
    other.select([1, 2, 0], [0, 1, 0], other.next_logits[[1, 1, 0]])
    assert (branch.width, other.width, branch.fed, other.fed) == (32, 10, [0, 1, 2], [0, 1, 2])
    last = torch.tensor([[10], [11], [12]])
    for logits, prompt, rest in (*zip(of_both, (PROMPT, OTHER), ([5, 6], [5, 6]), strict=True),):
        torch.testing.assert_close(logits[0], whole(model, [*prompt, *rest])[-2:], rtol=0, atol=1e-4)
    found = branch.feed(last), other.feed(last)
    rests = (([5, 10], [5, 6, 11], [5, 6, 12]), ([5, 9, 10], [5, 6, 11], [5, 6, 8, 12]))
    for logits, prompt, written in zip(found, (PROMPT, OTHER), rests, strict=True):
        for row, rest in zip(logits, written, strict=True):
            torch.testing.assert_close(row, whole(model, [*prompt, *rest])[-1:], rtol=0, atol=1e-4)
    assert shapes[:5] == [(1, 30), (1, 7), (1, 4), (1, 1), (1, 4)]


def test_branches_that_are_forked_join_as_they_are(model):
    branch, other = Branch(model, [PROMPT]), Branch(model, [OTHER])
    for each in (branch, other):
        each.select([0, 0], [0, 1], each.next_logits[[0, 0]])
    assert branch.join(other)
    found = branch.feed_with(other, torch.tensor([[5], [6]]))
    for logits, prompt in zip(found, (PROMPT, OTHER), strict=True):
        for row, ids in zip(logits, ([*prompt, 5], [*prompt[:-1], 6]), strict=True):
            torch.testing.assert_close(row, whole(model, ids)[-1:], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", [*REWINDABLE, *STATEFUL])
def test_which_models_feed_two_branches_in_one_forward(name):
    """Those that take a tree, but for those that encode a long text in another way."""
    made = (REWINDABLE | STATEFUL)[name].build()
    lengthwise = {"llama_dynamic", "phi3_longrope", "phimoe_longrope"}
    branch, other = Branch(made, [PROMPT]), Branch(made, [OTHER])
    token = torch.tensor([[5]])
    has_joined = branch.join(other)
    found = branch.feed_with(other, token) if has_joined else (branch.feed(token), other.feed(token))
    assert has_joined == (name in TREES - lengthwise)
    for (logits,), prompt in zip(found, (PROMPT, OTHER), strict=True):
        torch.testing.assert_close(logits, whole(made, [*prompt, 5])[-1:], rtol=0, atol=1e-4)


def test_a_batch_joins_nothing(model):
    assert not Branch(model, [PROMPT, OTHER]).join(Branch(model, [OTHER, PROMPT]))


def test_shared_keys_that_weigh_more_than_the_model():
    made = REWINDABLE["llama"].build()
    branches = [Branch(made, [tuple(range(5, 5 + length))]) for length in (40, 300, 6)]
    assert branches[0].join(Branch(made, [OTHER]))
    assert not branches[1].join(branches[2])


def test_rewinding_rows_that_cannot_be(model):
    branch = Branch(model, [(5, 6)])
    branch.select([0, 0], [0, 0], branch.next_logits[[0, 0]])
    with pytest.raises(NotReadyError, match="remove"):
        branch.rewind(3, branch.next_logits)
    branch.narrow([1])
    branch.feed(torch.tensor([[7]]))
    with pytest.raises(NotReadyError, match="fewer"):
        branch.rewind(1, branch.next_logits)


def test_a_row_that_is_left_out_does_not_fill_the_window_for_others(model):
    branch = Branch(model, [PROMPT])
    branch.select([0, 0], [0, 2], branch.next_logits[[0, 0]])
    assert branch.width == 30
    branch.narrow([1])
    assert branch.width == 28


def test_attention_that_does_not_heed_the_mask_is_found_out(monkeypatch):
    """It has PyTorch's name and sees all that is in the cache."""
    made = REWINDABLE["llama"].build()

    def unmasked(module: nn.Module, query, key, value, attention_mask, **options):
        return original(module, query, key, value, None, **options)

    original = AttentionInterface()["sdpa"]
    monkeypatch.setitem(AttentionInterface._global_mapping, "sdpa", unmasked)
    assert not takes_token_tree(made)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_that_counts_columns_in_place_of_positions(dtype):
    made = Recipe("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e12}}).build().to(dtype)
    assert takes_token_tree(made)

    def by_column(module, args, kwargs):
        cache, ids = kwargs["past_key_values"], kwargs["input_ids"]
        first = 0 if cache is None else cache.get_seq_length()
        if cache is not None:
            kwargs["position_ids"] = first + torch.arange(ids.shape[1])[None]
        return args, kwargs

    other = copy.deepcopy(made)  # not tried yet
    other.register_forward_pre_hook(by_column, with_kwargs=True)
    assert not takes_token_tree(other)


def test_half_precision_is_no_reason_to_refuse():
    assert takes_token_tree(REWINDABLE["llama"].build().to(torch.bfloat16))


def test_another_attention_of_the_same_model_is_tried_anew():
    made = REWINDABLE["llama"].build()
    assert takes_token_tree(made)
    made.config._attn_implementation = "flash_attention_2"
    assert not takes_token_tree(made)


def test_the_bundled_model_takes_one():
    assert takes_token_tree(copying_model()[0])
