"""Layers of the reader's encoder, in floating point and in eight bits.

In eight bits, the inputs of a matrix are integers. The value of one unit is fixed for each channel by the largest input
that was measured; part of it is moved into the weights (SmoothQuant, Xiao et al., 2023), which vary less. So nothing
has to be measured while reading, one product makes the integers for the next, and a token's result does not depend on
what is read beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from syncheck.aligners.eight_bits import MIDDLE, Int8Linear, from_middle, multiplies_integers, times_packed

if TYPE_CHECKING:
    from transformers.models.mpnet.modeling_mpnet import MPNetLayer

MEASURED = ("query_key_value", "attended", "inner", "outer")
"""Names of the matrices of a layer whose largest inputs are known."""
LARGEST = ".largest"
"""Suffix of the name of a matrix's largest inputs, (K,), by channel."""
_SHARE = 0.75
"""How much of an input's range is moved into the weights, as an exponent."""
_LARGEST = 127
_SPARE = 64
"""Neurons that are added to the first map of a feed-forward part; each can be a copy of another one."""
_LEAST_CEILING, _GROWTH = 4.0, 1.05
"""The lowest ceiling of that map's results, and the factor by which it rises until the copies suffice."""
_LOWEST_GELU = 0.17


@cache
def attends_in_halves() -> bool:
    """Tell whether this processor multiplies matrices of bfloat16 in one instruction (AMX)."""
    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


class ReaderLayer(nn.Module):
    """A layer of MPNet over the tokens of several texts, one text after the other.

    Parameters
    ----------
    heads
        Numbers of its attention heads, which look up their distance biases by them.
    query_key_value
        Maps hidden states (M, H) to queries, keys and values of all heads, (M, 3 * A).
    attended, feed_forward
        Map what the heads gathered, (M, A), and hidden states, (M, H), to (M, H).
    norms
        Layer norms of these two maps, each of which is added to its input.
    """

    def __init__(
        self,
        heads: Sequence[int],
        query_key_value: nn.Module,
        attended: nn.Module,
        feed_forward: nn.Module,
        norms: tuple[nn.LayerNorm, nn.LayerNorm],
    ) -> None:
        super().__init__()
        self.heads = tuple(heads)
        self.query_key_value, self.attended, self.feed_forward = query_key_value, attended, feed_forward
        self.after_attention, self.after_feed_forward = norms

    @classmethod
    def of(cls, layer: MPNetLayer, heads: Sequence[int]) -> ReaderLayer:
        """Build a layer in float32 from the weights of MPNet's, with the given heads."""
        maps = _Maps.of(layer)
        feed_forward = nn.Sequential(maps.inner, nn.GELU(), maps.outer)
        return cls(heads, _joined([maps.query, maps.key, maps.value]), maps.attended, feed_forward, maps.norms)

    @classmethod
    def in_eight_bits(cls, layer: MPNetLayer, heads: Sequence[int], largest: Mapping[str, Tensor]) -> ReaderLayer:
        """Round the matrices of a layer, and their inputs, to eight bits.

        Parameters
        ----------
        layer, heads
            MPNet's, and the numbers of the heads that it has.
        largest
            The largest inputs of its matrices by channel, (K,), by the names in :data:`MEASURED`.
        """
        maps = _Maps.of(layer)
        joined = _joined([maps.query, maps.key, maps.value])
        unit = _units(largest["query_key_value"], joined.weight)
        gathered = _units(largest["attended"], maps.attended.weight)
        values = len(gathered)
        joined.weight[-values:] /= gathered[:, None]  # so that what is gathered comes in its units
        joined.bias[-values:] /= gathered
        return cls(
            heads,
            RoundedLinear(joined.weight, joined.bias, unit, gives_halves=True),
            RoundedLinear(maps.attended.weight, maps.attended.bias, gathered, is_in_units=True),
            RoundedFeedForward(maps.inner, maps.outer, largest["inner"], largest["outer"]),
            maps.norms,
        )

    @property
    def dtype(self) -> torch.dtype:
        """The type that attention is computed in."""
        found: torch.dtype = getattr(self.query_key_value, "dtype", torch.float32)
        return found

    def forward(
        self,
        hidden: Tensor,
        lengths: Sequence[int],
        biases: Tensor,
        *,
        first: Sequence[int] | None = None,
        before: Sequence[Tensor] | None = None,
        mapped: Tensor | None = None,
    ) -> Tensor:
        """Map (sum of T, H) to the same shape, or only the tokens of each text from its ``first`` on.

        ``biases``, (1, heads, M, M), are added to the products of queries and keys, by their positions in a text.
        ``before`` has keys and values, (E, 2 * A), of tokens before each text, which it attends to.
        ``mapped`` are the queries, keys and values of the hidden states, (sum of T, 3 * A), if they are known.
        """
        if mapped is None:
            mapped = self.query_key_value(hidden)
        begins = first or [0] * len(lengths)
        width = mapped.shape[1] // 3
        mixed = []
        for number, (own, begin) in enumerate(zip(torch.split(mapped, list(lengths)), begins, strict=True)):
            query, pairs = own[begin:, :width], own[:, width:]
            if before is not None:
                pairs = torch.cat([before[number], pairs])
            key, value = pairs.chunk(2, dim=1)
            end = len(pairs)
            found = scaled_dot_product_attention(
                self._by_head(query),
                self._by_head(key),
                self._by_head(value),
                attn_mask=biases[:, :, end - len(query) : end, :end],
            )
            mixed.append(found[0].transpose(0, 1).flatten(1))
        if first is not None:
            texts = zip(torch.split(hidden, list(lengths)), first, strict=True)
            hidden = torch.cat([text[begin:] for text, begin in texts])
        hidden = self.after_attention(self.attended(mixed[0] if len(mixed) == 1 else torch.cat(mixed)).add_(hidden))
        return self.after_feed_forward(self.feed_forward(hidden).add_(hidden))  # type: ignore[no-any-return]

    def _by_head(self, mapped: Tensor) -> Tensor:
        """Split (T, A) into heads, (1, heads, T, width)."""
        return mapped.view(1, len(mapped), len(self.heads), -1).transpose(1, 2)


@dataclass(frozen=True, slots=True)
class _Maps:
    """The linear maps of a layer of MPNet, under this module's names."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    attended: nn.Linear
    inner: nn.Linear
    outer: nn.Linear
    norms: tuple[nn.LayerNorm, nn.LayerNorm]

    @classmethod
    def of(cls, layer: MPNetLayer) -> _Maps:
        own = layer.attention.attn
        return cls(
            *(own.q, own.k, own.v, own.o, layer.intermediate.dense, layer.output.dense),
            norms=(layer.attention.LayerNorm, layer.output.LayerNorm),
        )


@torch.no_grad()
def prune(layer: MPNetLayer, heads: Tensor, neurons: Tensor) -> None:
    """Keep only these heads and neurons, by number, in a layer of MPNet."""
    attention = layer.attention.attn
    width = attention.q.out_features // attention.num_attention_heads
    channels = (heads.long()[:, None] * width + torch.arange(width)).flatten()
    for matrix in (attention.q, attention.k, attention.v):
        _keep_outputs(matrix, channels)
    _keep_inputs(attention.o, channels)
    _keep_outputs(layer.intermediate.dense, neurons.long())
    _keep_inputs(layer.output.dense, neurons.long())
    attention.num_attention_heads = len(heads)


def _keep_outputs(matrix: nn.Linear, kept: Tensor) -> None:
    matrix.weight = nn.Parameter(matrix.weight[kept], requires_grad=False)
    matrix.bias = nn.Parameter(matrix.bias[kept], requires_grad=False)
    matrix.out_features = len(kept)


def _keep_inputs(matrix: nn.Linear, kept: Tensor) -> None:
    matrix.weight = nn.Parameter(matrix.weight[:, kept], requires_grad=False)
    matrix.in_features = len(kept)


def measured_inputs(layer: ReaderLayer) -> dict[str, nn.Module]:
    """List the matrices of a layer in float32 whose largest inputs :meth:`ReaderLayer.in_eight_bits` asks for."""
    inner, _, outer = cast("nn.Sequential", layer.feed_forward)
    return dict(zip(MEASURED, (layer.query_key_value, layer.attended, inner, outer), strict=True))


@torch.no_grad()
def _joined(maps: Sequence[nn.Linear]) -> nn.Linear:
    """Join maps of the same input into one."""
    with torch.device("meta"):
        joined = nn.Linear(maps[0].in_features, sum(each.out_features for each in maps))
    weights = {name: torch.cat([getattr(each, name) for each in maps]) for name in ("weight", "bias")}
    joined.load_state_dict(weights, assign=True)
    return joined.requires_grad_(False)


def in_eight_bits(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Round a matrix (N, K) to integers, with the value of one unit of each row, (N, 1)."""
    largest = torch.maximum(weight.amax(1, keepdim=True), weight.amin(1, keepdim=True).neg())
    step = largest.div(_LARGEST).clamp_min(1e-12)
    return torch.div(weight, step).round_().to(torch.int8), step


def _units(largest: Tensor, weight: Tensor) -> Tensor:
    """Choose the value of one unit of each input channel, (K,), so that the ``largest`` are at most 127 units."""
    largest = largest.clamp_min(1e-3)
    shares = largest**_SHARE / weight.abs().amax(0).clamp_min(1e-5) ** (1 - _SHARE)
    return shares * (largest / shares).max() / _LARGEST


class RoundedLinear(Int8Linear):
    """Linear map whose inputs are rounded to units of their channel, and whose weights are rounded by row.

    Parameters
    ----------
    weight, bias : Tensor of shapes (N, K) and (N,), float32
    unit : Tensor of shape (K,)
        The value of one unit of each input.
    is_in_units
        The inputs are numbers of units already.
    gives_halves
        The result is bfloat16 where :func:`attends_in_halves`, and float32 otherwise.
    """

    per_unit: Tensor | None

    def __init__(
        self, weight: Tensor, bias: Tensor, unit: Tensor, *, is_in_units: bool = False, gives_halves: bool = False
    ) -> None:
        super().__init__(*in_eight_bits(weight * unit), bias.detach().clone())
        self.register_buffer("per_unit", None if is_in_units else 1 / unit)
        self._gives_halves = gives_halves

    @property
    def dtype(self) -> torch.dtype:
        """The type of the result."""
        is_half = self._gives_halves and self.weight.device.type == "cpu" and attends_in_halves()
        return torch.bfloat16 if is_half else torch.float32

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (M, K) to (M, N)."""
        return self.of_levels(self.rounded(inputs), MIDDLE, self.dtype)[: len(inputs)]

    def rounded(self, inputs: Tensor) -> Tensor:
        """Round inputs (M, K) to integers, uint8, which count units from ``MIDDLE``; pad the rows."""
        units = inputs.float() if self.per_unit is None else inputs * self.per_unit
        return from_middle(units.round_().clamp_(-MIDDLE, _LARGEST))

    def of_levels(self, inputs: Tensor, zero: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Map integers (M, K), uint8, which count units from ``zero``, to (M, N)."""
        if self._is_fast(inputs):
            return times_packed(inputs, zero, self._packed_integers, self.step, self.bias, result=(1.0, 0, dtype))
        return self._product(inputs.float().sub_(zero)).add_(self.bias).to(dtype)

    def gelu_levels(self, inputs: Tensor, zero: int, unit: float, of_zero: int) -> Tensor:
        """Compute the GELU of the mapped inputs as integers, uint8, which count ``unit`` from ``of_zero``."""
        if self._is_fast(inputs):
            result, then = (unit, of_zero, torch.uint8), ("gelu", list[float](), "none")
            return times_packed(inputs, zero, self._packed_integers, self.step, self.bias, result=result, then=then)
        mapped = gelu(self._product(inputs.float().sub_(zero)).add_(self.bias))
        return mapped.div_(unit).round_().add_(of_zero).clamp_(0, 255).to(torch.uint8)

    def _is_fast(self, inputs: Tensor) -> bool:
        return inputs.device.type == "cpu" and multiplies_integers()


class RoundedFeedForward(nn.Module):
    """Two linear maps with GELU between them, whose results are integers for the second.

    All neurons share one unit. The few that go far beyond the others would make it too coarse, so they are cut off at a
    ceiling c, and copies of them count what is above it: GELU(x) is nearly the sum of GELU(x),
    GELU(x - c), GELU(x - 2c) and so on, each cut off at c.

    Parameters
    ----------
    inner, outer
        The maps.
    into, between : Tensor of shapes (H,) and (N,)
        The largest inputs of the two.
    """

    def __init__(self, inner: nn.Linear, outer: nn.Linear, into: Tensor, between: Tensor) -> None:
        super().__init__()
        ceiling = _LEAST_CEILING
        while _copies(between, ceiling).sum() > _SPARE:
            ceiling *= _GROWTH
        self.unit = (ceiling + _LOWEST_GELU) / 255
        self.zero = round(_LOWEST_GELU / self.unit)
        copies = _copies(between, ceiling)
        copied = torch.arange(len(between)).repeat_interleave(copies)
        number = torch.cat([torch.arange(1, n + 1) for n in copies.tolist()])
        unused = _SPARE - len(copied)
        weight, bias = inner.weight, inner.bias
        self.inner = RoundedLinear(
            torch.cat([weight, weight[copied], weight.new_zeros(unused, weight.shape[1])]),
            torch.cat([bias, bias[copied] - number * (255 - self.zero) * self.unit, bias.new_zeros(unused)]),
            _units(into, weight),
        )
        weight = outer.weight
        weight = torch.cat([weight, weight[:, copied], weight.new_zeros(len(weight), unused)], 1)
        self.outer = RoundedLinear(weight, outer.bias, torch.full((1,), self.unit), is_in_units=True)

    def forward(self, hidden: Tensor) -> Tensor:
        """Map (M, H) to (M, H)."""
        between = self.inner.gelu_levels(self.inner.rounded(hidden), MIDDLE, self.unit, self.zero)
        return self.outer.of_levels(between, self.zero)[: len(hidden)]


def _copies(largest: Tensor, ceiling: float) -> Tensor:
    """Count the copies that each neuron needs, (N,), if none may exceed the ceiling."""
    return largest.div(ceiling).ceil().sub(1).clamp_min(0).long()
