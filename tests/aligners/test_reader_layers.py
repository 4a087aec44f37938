"""Layers of the reader in eight bits: near those in float32, the same everywhere, alone and beside other texts."""

from __future__ import annotations

import pickle
from copy import deepcopy

import pytest
import torch
from reader_in_float import measured_inputs
from torch import nn

from syncheck.aligners.reader import eight_bits
from syncheck.aligners.reader.eight_bits import RoundedFeedForward, RoundedLinear
from syncheck.aligners.reader.layers import EncoderLayer, ReaderLayer
from syncheck.aligners.reader.network import ReaderNetwork, ReadText

WINDOWS = [range(3, 3 + n) for n in (30, 4, 31, 17, 1)]
CLAIMS = [range(5, 5 + m) for m in (9, 2, 12, 17, 1)]


def texts_of(network):
    """Return texts, most of which see parts of a window or two, after these are read."""
    windows = network.read(WINDOWS)
    parts = [[(window, 0, len(ids) + 1)] for window, ids in zip(windows, WINDOWS, strict=True)]
    parts[1] += [(windows[0], 5, 20), (windows[2], 9, 10)]
    joint = [given[:1] for given in parts]
    return [ReadText(*given) for given in zip(parts, joint, CLAIMS, strict=True)]


def judged(network):
    return network.judge(texts_of(network))


def largest_inputs(network):
    """Return the largest inputs of each layer's matrices for the texts."""
    found = [{} for _ in network.layers]

    def note(of_layer, name, inputs):
        largest = inputs.abs().amax(0)
        of_layer[name] = torch.maximum(of_layer.get(name, largest), largest)

    hooks = [
        module.register_forward_pre_hook(lambda _, given, of=of, name=name: note(of, name, *given))
        for layer, of in zip(network.layers, found, strict=True)
        for name, module in measured_inputs(layer).items()
    ]
    judged(network)
    for hook in hooks:
        hook.remove()
    return found


@pytest.fixture
def in_float(tiny_reader):
    return tiny_reader._model


@pytest.fixture
def in_eight_bits(tiny_mpnet, in_float):
    layers = [
        ReaderLayer.in_eight_bits(EncoderLayer.of(tiny_mpnet.state_dict(), number), largest)
        for number, largest in enumerate(largest_inputs(in_float))
    ]
    network = ReaderNetwork(tiny_mpnet.state_dict(), layers, read_once=1)
    network.hidden, network.verdict = in_float.hidden, in_float.verdict
    return network.eval()


@pytest.fixture(params=["halves", "no halves", "packed floats", "floats"])
def processor(request, monkeypatch):
    """A processor that multiplies integers, with or without bfloat16, and two that do not."""
    if request.param in ("halves", "no halves") and not eight_bits.multiplies_integers():
        pytest.skip("this processor does not multiply integers fast")
    if request.param == "halves" and not eight_bits.attends_in_halves():
        pytest.skip("this processor has no AMX")
    monkeypatch.setattr(eight_bits, "attends_in_halves", lambda: request.param == "halves")
    if "floats" in request.param:
        monkeypatch.setattr(eight_bits, "multiplies_integers", lambda: False)
    monkeypatch.setattr(torch.backends.quantized, "engine", "qnnpack" if request.param == "floats" else "x86")


@pytest.mark.usefixtures("processor")
def test_eight_bits_change_little_whatever_the_processor_can(in_float, in_eight_bits):
    exact, rounded = judged(in_float), judged(in_eight_bits)
    assert 0 < (rounded - exact).square().mean().sqrt() < 0.3 * exact.std(0).mean()


@pytest.mark.usefixtures("processor")
def test_a_text_is_judged_alone_as_beside_others(in_eight_bits):
    texts = texts_of(in_eight_bits)
    alone = torch.cat([in_eight_bits.judge([text]) for text in texts])
    assert torch.equal(alone, in_eight_bits.judge(texts))
    assert torch.equal(alone.flip(0), in_eight_bits.judge(texts[::-1]))


@pytest.mark.usefixtures("processor")
def test_a_window_is_read_alone_as_beside_others(in_eight_bits):
    for beside, ids in zip(in_eight_bits.read(WINDOWS), WINDOWS, strict=True):
        (alone,) = in_eight_bits.read([ids])
        assert torch.equal(alone.hidden, beside.hidden)
        assert all(map(torch.equal, alone.keys_and_values, beside.keys_and_values))


@pytest.mark.parametrize(("rows", "expected"), [(1, 16), (16, 16), (250, 256), (256, 256), (257, 320), (1000, 1024)])
def test_there_are_few_numbers_of_rows_and_what_is_beyond_the_given_ones_is_not_returned(rows, expected):
    given = torch.arange(rows * 4, dtype=torch.float32).remainder(256).view(rows, 4) - 128
    levels = eight_bits.from_middle(given)
    assert levels.shape == (expected, 4)
    assert torch.equal(levels[:rows], (given + 128).to(torch.uint8))
    linear = RoundedLinear.of(torch.eye(4), torch.zeros(4), torch.ones(4))
    assert linear(given[:, :4]).shape == (rows, 4)


def linear(weight, unit, **kinds):
    return RoundedLinear.of(torch.tensor(weight), torch.tensor([1.0, -1.0]), torch.tensor(unit), **kinds)


@pytest.mark.usefixtures("processor")
def test_inputs_are_rounded_to_units_of_their_channel():
    mapped = linear([[127.0, 0.0], [0.0, 127.0]], [1.0, 0.5])(torch.tensor([[3.4, 3.4], [-2.6, 0.1]]))
    assert mapped.numpy() == pytest.approx(torch.tensor([[3 * 127.0 + 1, 3.5 * 127 - 1], [-3 * 127.0 + 1, -1]]).numpy())


@pytest.mark.usefixtures("processor")
def test_an_input_beyond_what_was_measured_counts_as_the_largest():
    mapped = linear([[127.0, 0.0], [0.0, 127.0]], [1.0, 1.0])(torch.tensor([[1e6, -1e6]]))
    assert mapped.numpy() == pytest.approx(torch.tensor([[127.0 * 127 + 1, -128.0 * 127 - 1]]).numpy())


@pytest.mark.usefixtures("processor")
def test_what_comes_in_units_is_only_rounded():
    mapped = linear([[0.5, 0.0], [0.0, 0.5]], [1.0, 4.0], is_in_units=True)(torch.tensor([[3.4, 3.4]]).bfloat16())
    assert mapped.numpy() == pytest.approx(torch.tensor([[2.5, 5.0]]).numpy(), rel=1e-6)


def feed_forward(largest):
    """Return two maps, the first neuron of which goes up to ``largest``, and their inputs."""
    torch.manual_seed(0)
    inner, outer = nn.Linear(32, 48), nn.Linear(48, 32)
    inputs = torch.randn(200, 32)
    with torch.no_grad():
        inner.weight[0] *= largest / inner(inputs)[:, 0].max()
        outer.weight[:, 0] *= 5 / largest
    return inner.requires_grad_(False), outer.requires_grad_(False), inputs


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("largest", [2.0, 20.0, 100.0])
def test_a_neuron_far_beyond_the_others_costs_them_little(largest, monkeypatch):
    inner, outer, inputs = feed_forward(largest)
    between = nn.functional.gelu(inner(inputs))
    exact, errors = outer(between), []
    for spare in (eight_bits._SPARE, 0):
        monkeypatch.setattr(eight_bits, "_SPARE", spare)
        rounded = RoundedFeedForward.of(inner, outer, inputs.abs().amax(0), between.abs().amax(0))
        errors.append((rounded(inputs) - exact).std() / exact.std())
    assert errors[0] < 0.05
    assert errors[0] < errors[1] / 2 or largest == 2.0


def test_weights_are_packed_once_and_can_be_copied():
    rounded = linear([[1.0, 2.0], [3.0, 4.0]], [1.0, 0.5])
    inputs = torch.tensor([[1.0, 2.0]])
    for copied in (deepcopy(rounded), pickle.loads(pickle.dumps(rounded))):
        assert torch.equal(rounded(inputs), copied(inputs))
    assert not [name for name in rounded.__getstate__() if name.startswith("_packed")]
