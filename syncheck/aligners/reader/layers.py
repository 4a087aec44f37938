"""Linear maps in eight-bit integers, whose products are exact, and layers of encoders that are made of them.

In the reader's layers, the value of one unit of the inputs is fixed for each channel by the largest that was measured;
part of it is moved into the weights (SmoothQuant, Xiao et al., 2023), which vary less. So nothing has to be measured
while reading, one product makes the integers for the next, and a token's result does not depend on what is beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple, Self, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

MEASURED = ("query_key_value", "attended", "inner", "outer")  # matrices whose largest inputs are known
DISTANCES = "encoder.relative_attention_bias.weight"  # biases of attention by distance, (buckets, heads)
LARGEST = ".largest"  # suffix of the name of a matrix's largest inputs, (K,), by channel
NORM_EPS = 1e-5  # what the layer norms of all-mpnet-base-v2 add to the variance
MATRICES = {
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "attended": "attention.attn.o",
    "inner": "intermediate.dense",
    "outer": "output.dense",
}
_NORMS = ("attention.LayerNorm", "output.LayerNorm")
_SHARE = 0.75  # how much of an input's range is moved into the weights, as an exponent
MIDDLE = 128  # what stands for zero in the unsigned integers that oneDNN multiplies
FEW_ROWS, FEW_STEP, MANY_STEP = 256, 16, 64  # numbers of rows are multiples of a step
_LARGEST = 127
_SMALLEST_SCALE = 1e-12
_SPARE = 64  # neurons that are added to the first map of a feed-forward part; each can be a copy of another one
_LEAST_CEILING, _GROWTH = 4.0, 1.05  # lowest ceiling of that map's results, and the factor by which it rises
_LOWEST_GELU = 0.17


@cache
def attends_in_halves() -> bool:
    """Tell whether this processor multiplies matrices of bfloat16 in one instruction (AMX)."""
    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


class Int8Linear(nn.Module):
    """Linear map in integers from -127 to 127, with a scale for each row of the weights and each token of the input.

    ``weight`` is (N, K) int8, ``step`` (N, 1) float32 the scale of each row, and ``bias`` (N,) float32. Products, of
    integers with VNNI and of floats elsewhere, are exact for all but the largest sums.
    """

    weight: Tensor
    step: Tensor
    bias: Tensor

    def __init__(self, weight: Tensor, step: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight if multiplies_integers() or _packs_halves() else weight.float())
        self.register_buffer("step", step[:, 0])
        self.register_buffer("bias", bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (M, K) float32 to (M, N) float32."""
        # A pass over the tokens, or a new tensor, costs as much as a tenth of the product: no abs(), and one result.
        largest = torch.maximum(inputs.amax(1, keepdim=True), inputs.amin(1, keepdim=True).neg_())  # (M, 1)
        scale = largest.clamp_min_(_SMALLEST_SCALE).div_(_LARGEST)
        mapped = self._product(torch.div(inputs, scale).round_())
        return torch.addcmul(self.bias, mapped, scale, out=mapped)

    def _product(self, rounded: Tensor) -> Tensor:
        """Multiply integers as float32, (M, K), by the weights and the scales of their rows."""
        if self._is_fast(rounded):
            return times_packed(from_middle(rounded), MIDDLE, self._packed_integers, self.step)[: len(rounded)]
        if rounded.device.type == "cpu" and _packs_halves():
            product: Tensor = torch.ops.quantized.linear_dynamic_fp16(rounded, self._packed_halves)
        else:
            product = torch.mm(rounded, self.weight.t().float())
        return product.mul_(self.step)

    def _is_fast(self, inputs: Tensor) -> bool:
        return inputs.device.type == "cpu" and multiplies_integers()

    @cached_property
    def _packed_integers(self) -> tuple[Tensor, Tensor]:
        return _packed(self.weight)

    @cached_property
    def _packed_halves(self) -> torch.ScriptObject:
        """The weights as float16, in order.

        A float32 product packs them anew in each call, which takes an eighth of the time of a pair that is scored
        alone.
        """
        return torch.ops.quantized.linear_prepack_fp16(self.weight.float(), None)  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is packed for this processor."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_packed")}


def _packed(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Order integers (N, K) as :func:`times_packed` reads them; also return the zero point of each row."""
    return torch.ops.onednn.qlinear_prepack(weight, None), torch.zeros(len(weight), dtype=torch.long)


def times_packed(
    inputs: Tensor,
    zero: int,
    packed: tuple[Tensor, Tensor],
    step: Tensor,
    bias: Tensor | None = None,
    *,
    result: tuple[float, int, torch.dtype] = (1.0, 0, torch.float32),
    then: tuple[str, list[float], str] = ("none", [], ""),
) -> Tensor:
    """Multiply integers (M, K), uint8, which count from ``zero``, by packed weights with scales (N,) of their rows.

    ``result`` has its unit, zero and type; ``then`` names a function that is applied first, by PyTorch's name.
    """
    weight, zeros = packed
    ask: Callable[..., Tensor] = torch.ops.onednn.qlinear_pointwise
    return ask(inputs, 1.0, zero, weight, step, zeros, bias, *result, *then)


def from_middle(rounded: Tensor) -> Tensor:
    """Shift whole-number floats from -128 to 127 to uint8 around ``MIDDLE``; pad the rows to one of a few numbers.

    oneDNN compiles a program for each number of rows. PyTorch makes signed integers faster than unsigned ones.
    """
    rows, columns = rounded.shape
    step = FEW_STEP if rows <= FEW_ROWS else MANY_STEP
    whole = torch.empty((-rows // step * -step, columns), dtype=torch.int8, device=rounded.device)
    whole[:rows] = rounded
    return whole.view(torch.uint8).bitwise_xor_(MIDDLE)


@cache
def multiplies_integers() -> bool:
    """Tell whether oneDNN multiplies integers fast here, and without overflow."""
    able = torch.cpu.get_capabilities()
    if not (
        torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.onednn, "qlinear_pointwise")
        and (able.get("avx512_vnni") or able.get("avx_vnni"))
    ):
        return False
    # A library configured to do without these instructions (ONEDNN_MAX_CPU_ISA) adds pairs of products in sixteen bits.
    largest = torch.full((1, 64), _LARGEST, dtype=torch.int8)
    product = times_packed(from_middle(largest.float()), MIDDLE, _packed(largest), torch.ones(1))
    return product[0].item() == largest.shape[1] * _LARGEST**2


def _packs_halves() -> bool:
    """Tell whether FBGEMM is there, and in use, to multiply float32 by float16 that was packed once."""
    return torch.backends.quantized.engine in ("fbgemm", "x86")


class Map(NamedTuple):
    """A linear map: its matrix, (N, K), and its bias, (N,)."""

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True, slots=True)
class EncoderLayer:
    """The weights of a layer of MPNet, float32."""

    heads: Sequence[int]
    maps: Mapping[str, Map]
    norms: tuple[nn.LayerNorm, nn.LayerNorm]

    @classmethod
    def of(cls, weights: Mapping[str, Tensor], number: int) -> EncoderLayer:
        """Take a layer from the weights of an MPNet without pooler, by its names."""

        def both(name: str) -> Map:
            return Map(*(weights[f"encoder.layer.{number}.{name}.{part}"].float() for part in Map._fields))

        heads = range(weights[DISTANCES].shape[1])
        maps = {name: both(own) for name, own in MATRICES.items()}
        first, second = (layer_norm(*both(name)) for name in _NORMS)
        return cls(heads, maps, (first, second))

    def pruned(self, heads: Tensor, neurons: Tensor) -> EncoderLayer:
        """Copy only these heads and neurons, by number."""
        width = len(self.maps["query"].bias) // len(self.heads)
        channels = (heads.long()[:, None] * width + torch.arange(width)).flatten()
        outputs = dict.fromkeys(("query", "key", "value"), channels) | {"inner": neurons.long()}
        inputs = {"attended": channels, "outer": neurons.long()}
        maps = {name: Map(*(part[kept] for part in self.maps[name])) for name, kept in outputs.items()}
        maps |= {
            name: self.maps[name]._replace(weight=self.maps[name].weight[:, kept]) for name, kept in inputs.items()
        }
        return replace(self, heads=heads.tolist(), maps=maps)


class ReaderLayer(nn.Module):
    """A layer of MPNet or BERT over the tokens of several texts, one text after the other.

    ``heads`` are the numbers of its attention heads, by which they look up their distance biases. ``query_key_value``
    maps hidden states (M, H) to (M, 3 * A), ``attended`` what the heads gathered, (M, A), to (M, H), and
    ``feed_forward`` (M, H) to (M, H).
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
    def in_eight_bits(cls, layer: EncoderLayer, largest: Mapping[str, Tensor]) -> ReaderLayer:
        """Round the matrices of MPNet's layer, and their ``largest`` inputs by channel, (K,), to eight bits."""
        maps = layer.maps
        three = [maps["query"], maps["key"], maps["value"]]
        joined = _joined(three)
        unit = _units(largest["query_key_value"], joined.weight)
        gathered = _units(largest["attended"], maps["attended"].weight)
        values = len(gathered)
        joined.weight[-values:] /= gathered[:, None]  # so that what is gathered comes in its units
        joined.bias[-values:] /= gathered
        return cls(
            layer.heads,
            RoundedLinear.of(*joined, unit, gives_halves=True),
            RoundedLinear.of(*maps["attended"], gathered, is_in_units=True),
            RoundedFeedForward.of(maps["inner"], maps["outer"], largest["inner"], largest["outer"]),
            layer.norms,
        )

    @classmethod
    def restored(cls, arrays: Mapping[str, Tensor]) -> ReaderLayer:
        """Build a layer of what :meth:`stored` returned."""

        def rounded(name: str, *, gives_halves: bool = False) -> RoundedLinear:
            weight, step, bias = (arrays[f"{name}.{part}"] for part in ("weight", "step", "bias"))
            return RoundedLinear(weight, step, bias, arrays.get(f"{name}.per_unit"), gives_halves=gives_halves)

        def norm(name: str) -> nn.LayerNorm:
            return layer_norm(arrays[f"{name}.weight"], arrays[f"{name}.bias"])

        inner, outer = rounded("feed_forward.inner"), rounded("feed_forward.outer")
        unit, zero = arrays["feed_forward.unit"].item(), int(arrays["feed_forward.zero"])
        return cls(
            arrays["heads"].tolist(),
            rounded("query_key_value", gives_halves=True),
            rounded("attended"),
            RoundedFeedForward(inner, outer, unit, zero),
            (norm("after_attention"), norm("after_feed_forward")),
        )

    def stored(self) -> dict[str, Tensor]:
        """Collect the arrays of a layer in eight bits, by name."""
        arrays = self.state_dict()
        for name, module in self.named_modules():
            if isinstance(module, RoundedLinear):
                arrays[f"{name}.weight"] = module.weight.to(torch.int8)  # float32 on some processors
        feed_forward = cast("RoundedFeedForward", self.feed_forward)
        unit = torch.tensor(feed_forward.unit, dtype=torch.float64)
        own = {"heads": self.heads, "feed_forward.unit": unit, "feed_forward.zero": feed_forward.zero}
        return arrays | {name: torch.as_tensor(value) for name, value in own.items()}

    @property
    def dtype(self) -> torch.dtype:
        """The type that attention is computed in."""
        return getattr(self.query_key_value, "dtype", torch.float32)

    def forward(
        self,
        hidden: Tensor,
        lengths: Sequence[int],
        biases: Tensor | None = None,
        *,
        first: Sequence[int] | None = None,
        before: Sequence[Tensor] | None = None,
        mapped: Tensor | None = None,
    ) -> Tensor:
        """Map (sum of T, H) to the same shape, or only the tokens of each text from its ``first`` on.

        ``biases``, (1, heads, M, M), are added to the products of queries and keys. ``before`` has keys and values,
        (E, 2 * A), of tokens before each text. ``mapped`` has queries, keys and values of the hidden states, (sum of
        T, 3 * A), if known.
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
            end = len(pairs)
            mask = None if biases is None else biases[:, :, end - len(query) : end, :end]
            query, key, value = map(self._by_head, (query, *pairs.chunk(2, dim=1)))
            attended = scaled_dot_product_attention(query, key, value, attn_mask=mask)
            mixed.append(attended[0].transpose(0, 1).flatten(1))
        if first is not None:
            texts = zip(torch.split(hidden, list(lengths)), first, strict=True)
            hidden = torch.cat([text[begin:] for text, begin in texts])
        hidden = self.after_attention(self.attended(mixed[0] if len(mixed) == 1 else torch.cat(mixed)).add_(hidden))
        return self.after_feed_forward(self.feed_forward(hidden).add_(hidden))  # type: ignore[no-any-return]

    def _by_head(self, mapped: Tensor) -> Tensor:
        """Split (T, A) into heads, (1, heads, T, width)."""
        return mapped.view(1, len(mapped), len(self.heads), -1).transpose(1, 2)


def _joined(maps: Sequence[Map]) -> Map:
    return Map(torch.cat([each.weight for each in maps]), torch.cat([each.bias for each in maps]))


def layer_norm(weight: Tensor, bias: Tensor, *, eps: float = NORM_EPS) -> nn.LayerNorm:
    """Build a layer norm of MPNet, or of another network that adds something else to the variance."""
    with torch.device("meta"):
        norm = nn.LayerNorm(len(weight), eps=eps)
    norm.load_state_dict({"weight": weight, "bias": bias}, assign=True)
    return norm.requires_grad_(False)


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

    ``step`` is (N,). ``per_unit``, (K,), is the number of units in an input of 1, None for inputs in units. With
    ``gives_halves``, the result is bfloat16 where :func:`attends_in_halves`.
    """

    per_unit: Tensor | None

    def __init__(
        self, weight: Tensor, step: Tensor, bias: Tensor, per_unit: Tensor | None, *, gives_halves: bool = False
    ) -> None:
        super().__init__(weight, step[:, None], bias)
        self.register_buffer("per_unit", per_unit)
        self._gives_halves = gives_halves

    @classmethod
    def of(
        cls, weight: Tensor, bias: Tensor, unit: Tensor, *, is_in_units: bool = False, gives_halves: bool = False
    ) -> Self:
        """Round a matrix (N, K), float32, whose inputs come in a unit for each channel, (K,).

        With ``is_in_units``, the inputs are numbers of units already.
        """
        integers, step = in_eight_bits(weight * unit)
        per_unit = None if is_in_units else 1 / unit
        return cls(integers, step[:, 0], bias.detach().clone(), per_unit, gives_halves=gives_halves)

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


class RoundedFeedForward(nn.Module):
    """Two linear maps with GELU between them, whose results are integers for the second, of one unit for all neurons.

    The few neurons that go far beyond the others are cut off at a ceiling c, and copies of them count what is above it:
    GELU(x) is nearly the sum of GELU(x), GELU(x - c), GELU(x - 2c) and so on, each cut off at c.
    """

    def __init__(self, inner: RoundedLinear, outer: RoundedLinear, unit: float, zero: int) -> None:
        super().__init__()
        self.inner, self.outer = inner, outer
        self.unit, self.zero = unit, zero

    @classmethod
    def of(cls, inner: Map, outer: Map, into: Tensor, between: Tensor) -> Self:
        """Round two maps, given the largest inputs of both, (H,) and (N,)."""
        ceiling = _LEAST_CEILING
        while _copies(between, ceiling).sum() > _SPARE:
            ceiling *= _GROWTH
        unit = (ceiling + _LOWEST_GELU) / 255
        zero = round(_LOWEST_GELU / unit)
        copies = _copies(between, ceiling)
        copied = torch.arange(len(between)).repeat_interleave(copies)
        number = torch.cat([torch.arange(1, n + 1) for n in copies.tolist()])
        unused = _SPARE - len(copied)
        weight, bias = inner.weight, inner.bias
        rounded = RoundedLinear.of(
            torch.cat([weight, weight[copied], weight.new_zeros(unused, weight.shape[1])]),
            torch.cat([bias, bias[copied] - number * (255 - zero) * unit, bias.new_zeros(unused)]),
            _units(into, weight),
        )
        weight = outer.weight
        weight = torch.cat([weight, weight[:, copied], weight.new_zeros(len(weight), unused)], 1)
        return cls(rounded, RoundedLinear.of(weight, outer.bias, torch.full((1,), unit), is_in_units=True), unit, zero)

    def forward(self, hidden: Tensor) -> Tensor:
        """Map (M, H) to (M, H)."""
        between = self.inner.gelu_levels(self.inner.rounded(hidden), MIDDLE, self.unit, self.zero)
        return self.outer.of_levels(between, self.zero)[: len(hidden)]


def _copies(largest: Tensor, ceiling: float) -> Tensor:
    """Count the copies that each neuron needs, (N,), if none may exceed the ceiling."""
    return largest.div(ceiling).ceil().sub(1).clamp_min(0).long()
