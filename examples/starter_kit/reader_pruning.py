"""Which heads and neurons of the reader are left: those that are worth most for the work that they take.

The worth of a head or a neuron is the mean square of the loss's gradient by a factor of what it gives, 1 (its Fisher
information, as in Kwon et al., 2022, "A Fast Post-Training Pruning Framework for Transformers").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from reader_data import Batch
from torch import Tensor, nn
from tqdm import tqdm

from syncheck.aligners.reader.network import HEADS, NEURONS

if TYPE_CHECKING:
    from train_reader import TrainedReader
    from transformers.models.mpnet.modeling_mpnet import MPNetLayer

APART, TOGETHER, CLAIMS = 12.1, 16.2, 4.3
"""Tokens that a layer maps for 30 answers of RAGTruth, in thousands: where it reads windows and claims apart; where
both are one text; and of claims alone, for which the last layer asks."""
ATTENTION = 170_000
"""What a head's attention takes for a token, in products of integers that take as long."""
NEURON_STEP = 64
"""Neurons are left in multiples of this."""


class Kept(NamedTuple):
    """Numbers of the heads and neurons of a layer that are left, each int64 and rising."""

    heads: Tensor
    neurons: Tensor


@dataclass(frozen=True, slots=True)
class Worth:
    """What the heads and neurons of a layer are worth, and the work that one of each takes."""

    heads: Tensor
    neurons: Tensor
    head_work: float
    neuron_work: float

    def kept(self, least: float) -> Kept:
        """Return those that are worth so much for their work, and at least one of each."""
        heads = max(1, int((self.heads / self.head_work >= least).sum()))
        neurons = int((self.neurons / self.neuron_work >= least).sum())
        neurons = min(len(self.neurons), max(NEURON_STEP, -neurons // NEURON_STEP * -NEURON_STEP))
        return Kept(self.heads.topk(heads).indices.sort().values, self.neurons.topk(neurons).indices.sort().values)

    def work(self, kept: Kept) -> float:
        """Return the work of those that are left."""
        return len(kept.heads) * self.head_work + len(kept.neurons) * self.neuron_work


@torch.no_grad()
def prune(layer: MPNetLayer, kept: Kept) -> None:
    """Leave only these heads and neurons in a layer of MPNet."""
    attention = layer.attention.attn
    width = attention.q.out_features // attention.num_attention_heads
    channels = (kept.heads[:, None] * width + torch.arange(width)).flatten()
    for matrix in (attention.q, attention.k, attention.v):
        _keep_outputs(matrix, channels)
    _keep_inputs(attention.o, channels)
    _keep_outputs(layer.intermediate.dense, kept.neurons)
    _keep_inputs(layer.output.dense, kept.neurons)
    attention.num_attention_heads = len(kept.heads)


def _keep_outputs(matrix: nn.Linear, kept: Tensor) -> None:
    matrix.weight = nn.Parameter(matrix.weight[kept], requires_grad=False)
    matrix.bias = nn.Parameter(matrix.bias[kept], requires_grad=False)
    matrix.out_features = len(kept)


def _keep_inputs(matrix: nn.Linear, kept: Tensor) -> None:
    matrix.weight = nn.Parameter(matrix.weight[:, kept], requires_grad=False)
    matrix.in_features = len(kept)


def everything(layer: MPNetLayer) -> Kept:
    """Return all heads and neurons of a layer."""
    heads, neurons = layer.attention.attn.num_attention_heads, layer.intermediate.dense.out_features
    return Kept(torch.arange(heads), torch.arange(neurons))


def worths(
    model: TrainedReader, read_once: int, batches: Iterable[Batch], loss_of: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> list[Worth]:
    """Measure the worth of the heads and neurons of each layer; ``read_once`` layers read windows once."""
    layers = model.encoder.encoder.layer
    gates = [
        (torch.ones(len(heads), requires_grad=True), torch.ones(len(neurons), requires_grad=True))
        for heads, neurons in model.kept
    ]
    hooks = []
    for layer, (heads, neurons) in zip(layers, gates, strict=True):
        hooks.append(layer.attention.attn.o.register_forward_pre_hook(_times(heads)))
        hooks.append(layer.output.dense.register_forward_pre_hook(_times(neurons)))
    sums = [(torch.zeros_like(heads), torch.zeros_like(neurons)) for heads, neurons in gates]
    model.eval()
    device, counted = model.verdict.weight.device, 0
    for batch in tqdm(batches, desc="worth", unit=" batches", mininterval=5):
        counted += 1
        labels, contexts = (torch.from_numpy(array).to(device) for array in (batch.labels, batch.contexts))
        loss = loss_of(model(batch), labels, contexts)
        found = torch.autograd.grad(loss, [gate for both in gates for gate in both])
        for total, gradient in zip((total for both in sums for total in both), found, strict=True):
            total += gradient**2
    for hook in hooks:
        hook.remove()
    return [
        Worth(heads / counted, neurons / counted, *_work(place, read_once, layers))
        for place, (heads, neurons) in enumerate(sums)
    ]


def _times(gate: Tensor) -> Callable[[nn.Module, tuple[Tensor]], Tensor]:
    """Return a hook that multiplies equal parts of a module's inputs by the gate's factors."""

    def multiplied(_: nn.Module, given: tuple[Tensor]) -> Tensor:
        (inputs,) = given
        factors = gate.to(inputs).repeat_interleave(inputs.shape[-1] // len(gate))
        return inputs * factors

    return multiplied


def _work(place: int, read_once: int, layers: nn.ModuleList) -> tuple[float, float]:
    """Return the work of a head and of a neuron of a layer."""
    attention = layers[place].attention.attn
    width = attention.q.base.in_features
    keys = APART if place < read_once else TOGETHER
    asked = CLAIMS if place == len(layers) - 1 else keys
    return 2 * (asked + keys) * attention.attention_head_size * width + asked * ATTENTION, 2 * asked * width


def kept_of(worths: Sequence[Worth], share: float) -> list[Kept]:
    """Return what is left of each layer so that all of it takes at most this share of the work."""
    total = sum(worth.work(worth.kept(0.0)) for worth in worths)
    low, high = 1e-16, 1e-4  # too much is left of what is worth the first for its work, too little of the second
    for _ in range(80):
        least = (low * high) ** 0.5
        if sum(worth.work(worth.kept(least)) for worth in worths) > share * total:
            low = least
        else:
            high = least
    return [worth.kept(high) for worth in worths]


def as_arrays(kept: Sequence[Kept]) -> dict[str, Tensor]:
    """Return what is left by the names and in the types of a packed reader."""
    heads = {f"layer.{number}{HEADS}": of.heads.to(torch.uint8) for number, of in enumerate(kept)}
    return heads | {f"layer.{number}{NEURONS}": of.neurons.to(torch.int16) for number, of in enumerate(kept)}


def from_arrays(arrays: Mapping[str, Tensor]) -> list[Kept]:
    """Return what :func:`as_arrays` was given."""
    names = [(f"layer.{number}{HEADS}", f"layer.{number}{NEURONS}") for number in range(len(arrays) // 2)]
    return [Kept(arrays[heads].long(), arrays[neurons].long()) for heads, neurons in names]


def pruned_updates(updates: Mapping[str, Tensor], kept: Sequence[Kept], head_width: int) -> dict[str, Tensor]:
    """Return the factors of updates, and other arrays, for what is left of the layers that they update."""
    left = dict(updates)
    for number, (heads, neurons) in enumerate(kept):
        layer = f"encoder.encoder.layer.{number}."
        channels = (heads[:, None] * head_width + torch.arange(head_width)).flatten()
        for matrix in "qkv":
            left[f"{layer}attention.attn.{matrix}.up"] = updates[f"{layer}attention.attn.{matrix}.up"][channels]
        left[f"{layer}intermediate.dense.up"] = updates[f"{layer}intermediate.dense.up"][neurons]
        left[f"{layer}attention.attn.o.down"] = updates[f"{layer}attention.attn.o.down"][:, channels]
        left[f"{layer}output.dense.down"] = updates[f"{layer}output.dense.down"][:, neurons]
    return left
