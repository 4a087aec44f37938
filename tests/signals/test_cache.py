import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    DynamicCache,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3TextConfig,
    SiglipVisionConfig,
)

from syncheck.base.errors import NotReadyError, PromptError, UnsupportedModelError
from syncheck.signals import Branch, GrowLayer, Taps, decoder_blocks, is_rewindable, let_grow, require_rewindable


def columns(values):
    """(1, 1, n, 1) states that are told apart by their value."""
    return torch.tensor(values, dtype=torch.float32).reshape(1, 1, -1, 1)


def shown(layer):
    assert torch.equal(layer.values, -layer.keys)
    return layer.keys[:, 0, :, 0].tolist()


@settings(deadline=None, max_examples=80)
@given(st.lists(st.one_of(st.integers(1, 90), st.integers(-40, 0)), max_size=30))
def test_a_layer_is_a_list_that_grows_and_is_cut(steps):
    """Second implementation: a Python list. Positive steps append that many columns, others take some back."""
    layer, expected, value = GrowLayer(), [], 0.0
    for step in [1, *steps]:
        if step > 0:
            new = [value + i for i in range(step)]
            value += step
            expected += new
            keys, values = layer.update(columns(new), -columns(new))
            assert keys is layer.keys and values is layer.values
        else:
            count = min(-step, len(expected))
            expected = expected[: len(expected) - count]
            layer.crop(-count)
        assert shown(layer) == [expected] and layer.get_seq_length() == len(expected)


def test_appending_copies_nothing_until_the_buffer_is_full():
    layer = GrowLayer()
    layer.update(columns([1]), -columns([1]))
    before = layer.keys.data_ptr()
    for i in range(2, 60):
        layer.update(columns([i]), -columns([i]))
        assert layer.keys.data_ptr() == before


CHANGES = {
    "append": lambda layer: layer.update(
        torch.full((len(layer.keys), 1, 3, 1), 7.0), torch.zeros(len(layer.keys), 1, 3, 1)
    ),
    "crop": lambda layer: layer.crop(-2),
    "reorder": lambda layer: layer.reorder_cache(torch.arange(len(layer.keys)).flip(0)),
    "repeat": lambda layer: layer.batch_repeat_interleave(2),
    "select": lambda layer: layer.batch_select_indices(torch.tensor([len(layer.keys) - 1])),
}


@settings(deadline=None, max_examples=80)
@given(st.lists(st.sampled_from(sorted(CHANGES)), max_size=8))
def test_a_layer_taken_over_is_changed_as_the_one_of_transformers(changes):
    states = torch.arange(80.0).reshape(2, 1, 40, 1)
    caches = [DynamicCache(), DynamicCache()]
    for cache in caches:
        cache.update(states, -states, 0)
    let_grow(caches[1])
    for change in changes:
        stock, grown = (cache.layers[0] for cache in caches)
        if change != "repeat" or len(stock.keys) < 16:
            CHANGES[change](stock)
            CHANGES[change](grown)
        assert torch.equal(stock.keys, grown.keys) and torch.equal(stock.values, grown.values)
        assert caches[0].get_seq_length() == caches[1].get_seq_length()


def test_no_more_columns_are_cut_than_there_are():
    layer = GrowLayer()
    layer.update(columns([1, 2]), -columns([1, 2]))
    layer.crop(-5)
    assert layer.get_seq_length() == 0


def test_a_layer_made_in_inference_mode_goes_on_outside_of_it():
    layer = GrowLayer()
    with torch.inference_mode():
        layer.update(columns([1, 2]), -columns([1, 2]))
    layer.update(columns([3]), -columns([3]))
    assert shown(layer) == [[1, 2, 3]]


def test_gradients_reach_columns_that_a_layer_taken_over_appends():
    cache, new = DynamicCache(), columns([3]).requires_grad_()
    cache.update(columns([1, 2]), -columns([1, 2]), 0)
    let_grow(cache)
    cache.update(columns([2]), -columns([2]), 0)
    keys, _ = cache.update(new, -new, 0)
    cache.update(columns([4]), -columns([4]), 0)
    keys.sum().backward()
    assert new.grad.item() == 1 and shown(cache.layers[0]) == [[1, 2, 2, 3, 4]]


def test_a_layer_taken_over_is_empty_after_a_reset():
    cache = DynamicCache()
    cache.update(columns([1, 2]), -columns([1, 2]), 0)
    let_grow(cache)
    cache.update(columns([3]), -columns([3]), 0)
    cache.reset()
    cache.update(columns([4]), -columns([4]), 0)
    assert shown(cache.layers[0]) == [[4]]


@pytest.mark.parametrize("kept", ["offloaded", "with gradients", "empty", "not of transformers"])
def test_layers_that_stay_as_they_are(kept):
    cache = DynamicCache()
    if kept != "empty":
        cache.update(columns([1, 2]).requires_grad_(kept == "with gradients"), -columns([1, 2]), 0)
    cache.offloading = kept == "offloaded"
    if kept == "not of transformers":
        cache.layers[0].__class__ = type("Own", (type(cache.layers[0]),), {})
    let_grow(cache)
    assert not any(isinstance(layer, GrowLayer) for layer in cache.layers)


def test_gather_keeps_columns_of_rows_aligned_to_the_right():
    layer = GrowLayer()
    states = torch.tensor([[0.0, 1, 2, 3, 4], [10, 11, 12, 13, 14]])[:, None, :, None]
    layer.update(states, -states)
    layer.gather([1, 0, 1], starts=[0, 2, 3], lengths=[4, 2, 1])
    assert shown(layer) == [[10, 11, 12, 13], [0, 0, 2, 3], [0, 0, 0, 13]]
    new = torch.tensor([7.0, 8, 9])[:, None, None, None]
    layer.update(new, -new)
    assert [row[-2:] for row in shown(layer)] == [[13, 7], [3, 8], [13, 9]]


def test_crop_follows_the_sign_of_transformers():
    layer = GrowLayer()
    layer.update(columns([1, 2]), -columns([1, 2]))
    with pytest.raises(ValueError, match="zero"):
        layer.crop(1)


def test_a_recurrent_model_cannot_be_rewound():
    class Recurrent:
        _is_stateful = True

    assert not is_rewindable(Recurrent())
    with pytest.raises(UnsupportedModelError, match="recurrent"):
        require_rewindable(Recurrent())


class TestBranch:
    PROMPT = tuple(range(10, 70))  # longer than the sliding window of one of the models

    def whole(self, golden, ids):
        with torch.no_grad():
            return golden.model(torch.tensor([ids]), use_cache=False).logits[0]

    def test_next_logits_are_those_of_the_whole(self, golden):
        branch = Branch(golden.model, [self.PROMPT])
        torch.testing.assert_close(branch.next_logits[0], self.whole(golden, [*self.PROMPT])[-1], rtol=0, atol=1e-4)
        assert (branch.rows, branch.width) == (1, 60)

    def test_feeding_gives_what_follows_each_token(self, golden):
        branch = Branch(golden.model, [self.PROMPT])
        found = branch.feed(torch.tensor([[5, 6, 7]]))
        torch.testing.assert_close(found[0], self.whole(golden, [*self.PROMPT, 5, 6, 7])[-3:], rtol=0, atol=1e-4)

    def test_prompts_of_unequal_length_do_not_see_each_other(self, golden):
        prompts = [self.PROMPT, self.PROMPT[:20], self.PROMPT]
        branch = Branch(golden.model, prompts)
        assert (branch.rows, branch.width) == (3, 60)
        found = torch.cat([branch.next_logits[:, None], branch.feed(torch.tensor([[5, 6], [7, 8], [9, 3]]))], 1)
        for row, prompt, ids in zip(found, prompts, ([5, 6], [7, 8], [9, 3]), strict=True):
            torch.testing.assert_close(row, self.whole(golden, [*prompt, *ids])[-3:], rtol=0, atol=1e-4)

    def test_the_same_prompt_is_encoded_once(self, golden):
        fed = []
        hook = golden.model.register_forward_pre_hook(
            lambda m, a, k: fed.append(k["input_ids"].shape), with_kwargs=True
        )
        try:
            Branch(golden.model, [self.PROMPT, (5, 6), self.PROMPT])
        finally:
            hook.remove()
        assert fed == [(2, 60)]

    @pytest.mark.parametrize("rests", [[(5, 6, 7), (8,), (5, 9)], [(5,), (6,)], [(), (5, 6)]])
    def test_the_beginning_that_prompts_share_is_encoded_once(self, golden, rests):
        prompts, fed = [(*self.PROMPT, *rest) for rest in rests], []
        hook = golden.model.register_forward_pre_hook(
            lambda m, a, k: fed.append(k["input_ids"].shape), with_kwargs=True
        )
        try:
            branch = Branch(golden.model, prompts)
        finally:
            hook.remove()
        assert max(rows * columns for rows, columns in fed) <= len(self.PROMPT)
        assert branch.width == max(map(len, prompts))
        followed = torch.cat([branch.next_logits[:, None], branch.feed(torch.tensor([[20, 21]] * len(rests)))], 1)
        for row, prompt in zip(followed, prompts, strict=True):
            torch.testing.assert_close(row, self.whole(golden, [*prompt, 20, 21])[-3:], rtol=0, atol=1e-4)

    def test_rewinding_is_never_having_fed(self, golden):
        branch = Branch(golden.model, [self.PROMPT])
        saved = branch.next_logits
        branch.feed(torch.tensor([[5, 6, 7]]))
        branch.rewind(3, saved)
        found = branch.feed(torch.tensor([[8]]))
        torch.testing.assert_close(found[0], self.whole(golden, [*self.PROMPT, 8])[-1:], rtol=0, atol=1e-4)

    def test_rewinding_too_far(self, golden):
        branch = Branch(golden.model, [(5, 6)])
        with pytest.raises(NotReadyError, match="remove"):
            branch.rewind(3, branch.next_logits)

    def test_rows_of_unequal_length_do_not_see_each_other(self, golden):
        branch = Branch(golden.model, [self.PROMPT])
        logits = torch.cat([branch.next_logits, branch.feed(torch.tensor([[5, 6, 7]]))[0]])  # after 0, 1, 2, 3 tokens
        branch.select([0, 0, 0], [3, 0, 2], logits[[0, 3, 1]])
        assert (branch.rows, branch.width) == (3, 63)
        found = branch.feed(torch.tensor([[8, 9], [8, 9], [11, 12]]))
        for row, ids in zip(found, ([8, 9], [5, 6, 7, 8, 9], [5, 11, 12]), strict=True):
            torch.testing.assert_close(row, self.whole(golden, [*self.PROMPT, *ids])[-2:], rtol=0, atol=1e-4)

    @pytest.mark.parametrize("first", [1, 150])  # 150: the buffers grow while the model runs
    def test_rows_that_are_left_out_change_nothing_for_the_others(self, golden, first):
        branch = Branch(golden.model, [self.PROMPT] * 3)
        ids = torch.arange(3 * first).reshape(3, first) % 90 + 5
        branch.feed(ids)
        branch.narrow([1, 2])  # row 2 changes places with row 0
        assert sorted(branch.fed) == [1, 2]
        after = {1: 8, 2: 9}
        found = branch.feed(torch.tensor([[after[row]] for row in branch.fed]))
        for row, logits in zip(branch.fed, found, strict=True):
            expected = self.whole(golden, [*self.PROMPT, *ids[row].tolist(), after[row]])[-1:]
            torch.testing.assert_close(logits, expected, rtol=0, atol=1e-4)

    @pytest.mark.parametrize("count", [1, 80])  # 80: the buffers grow while a row is left out
    def test_rows_that_were_left_out_come_back_as_they_were(self, golden, count):
        branch = Branch(golden.model, [self.PROMPT] * 3)
        ids = torch.arange(6).reshape(3, 2) + 5
        branch.feed(ids)
        branch.narrow([1, 2])  # row 2 changes places with row 0
        after = torch.arange(3 * count).reshape(3, count) % 90 + 5
        last = branch.feed(after[branch.fed])[:, -1]
        branch.select([0, 2, 1, 0], [count, 0, 0, count + 1], last[[0, 0, 1, 1]])
        assert branch.fed == [0, 1, 2, 3]
        found = branch.feed(torch.tensor([[20], [21], [22], [23]]))
        own, fed = ids.tolist(), after.tolist()
        written = ([*own[0], 20], [*own[2], *fed[2], 21], [*own[1], *fed[1], 22], [own[0][0], 23])
        for logits, rest in zip(found, written, strict=True):
            torch.testing.assert_close(logits, self.whole(golden, [*self.PROMPT, *rest])[-1:], rtol=0, atol=1e-4)

    def test_a_row_that_was_left_out_must_come_back_before_any_is_taken_back(self, golden):
        branch = Branch(golden.model, [self.PROMPT] * 2)
        branch.feed(torch.tensor([[5], [6]]))
        saved = branch.next_logits
        branch.narrow([1])
        branch.feed(torch.tensor([[7]]))
        with pytest.raises(NotReadyError, match="fewer"):
            branch.rewind(1, saved[1:])

    def test_past_the_window(self, golden, monkeypatch):
        monkeypatch.setattr(golden.model.config, "max_position_embeddings", 61)
        branch = Branch(golden.model, [self.PROMPT])
        with pytest.raises(PromptError, match="62"):
            branch.feed(torch.tensor([[5, 6]]))
        branch.feed(torch.tensor([[5]]))


class TestTaps:
    def test_block_k_is_hidden_state_k_plus_1(self, golden):
        ids = torch.tensor([[5, 6, 7]])
        taps = Taps(golden.model, (0, 3))
        with taps.attached(), taps.recording() as recorded, torch.no_grad():
            output = golden.model(ids, output_hidden_states=True)
        assert [len(layer) for layer in recorded] == [1, 1]
        assert torch.equal(recorded[0][0], output.hidden_states[1])
        assert torch.equal(recorded[1][0], output.hidden_states[4])

    def test_nothing_is_kept_outside_recording_or_after(self, golden):
        taps = Taps(golden.model, (0,))
        with torch.no_grad():
            with taps.attached():
                golden.model(torch.tensor([[5]]))
                with taps.recording() as outer:
                    golden.model(torch.tensor([[5]]))
                    with taps.recording() as inner:
                        golden.model(torch.tensor([[5]]))
                    golden.model(torch.tensor([[5]]))
                golden.model(torch.tensor([[5]]))
            with taps.recording() as detached:
                golden.model(torch.tensor([[5]]))
        assert [len(layer[0]) for layer in (outer, inner, detached)] == [2, 1, 0]

    def test_blocks_that_put_out_a_tuple(self):
        class Block(torch.nn.Module):
            def forward(self, x):
                return x + 1, "cache"

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList([Block()])
                self.config = type("C", (), {"get_text_config": lambda self: type("T", (), {"num_hidden_layers": 1})})()

            def forward(self, x):
                return self.layers[0](x)[0]

        model = Model()
        taps = Taps(model, (0,))
        with taps.attached(), taps.recording() as recorded:
            model(torch.zeros(2, 3, 4))
        assert torch.equal(recorded[0][0], torch.ones(2, 3, 4))

    def test_blocks_that_carry_several_streams(self):
        class Block(torch.nn.Module):
            def forward(self, x):
                return x

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList([Block()])
                self.config = type("C", (), {"get_text_config": lambda self: type("T", (), {"num_hidden_layers": 1})})()

        model = Model()
        taps = Taps(model, (0,))
        with (
            taps.attached(),
            taps.recording(),
            pytest.raises(UnsupportedModelError, match=r"\(4, 1, 2, 3\)"),
        ):
            model.layers[0](torch.zeros(4, 1, 2, 3))

    def test_a_vision_tower_of_as_many_blocks_is_passed_over(self):
        sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}
        text = Gemma3TextConfig(**sizes, vocab_size=300, num_key_value_heads=1, head_dim=8)
        model = Gemma3ForConditionalGeneration(
            Gemma3Config(text_config=text, vision_config=SiglipVisionConfig(**sizes, image_size=28, patch_size=14))
        )
        assert decoder_blocks(model) is model.model.language_model.layers

    def test_decoder_blocks(self, golden):
        assert decoder_blocks(golden.model) is golden.model.model.layers

    def test_no_decoder_blocks(self):
        class Model(torch.nn.Module):
            config = type("C", (), {"get_text_config": lambda self: type("T", (), {"num_hidden_layers": 3})})()

        with pytest.raises(UnsupportedModelError, match="blocks"):
            decoder_blocks(Model())
