"""Linear maps in eight-bit integers, whose products are exact.

The value of one unit of the inputs is fixed for each channel by the largest that was measured; part of it is moved into
the weights (SmoothQuant, Xiao et al., 2023), which vary less. So nothing has to be measured while reading, one product
makes the integers for the next, and a token's result does not depend on what is beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

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


class Map(NamedTuple):
    """A linear map: its matrix, (N, K), and its bias, (N,)."""

    weight: Tensor
    bias: Tensor


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


def in_eight_bits(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Round a matrix (N, K) to integers, with the value of one unit of each row, (N, 1)."""
    largest = torch.maximum(weight.amax(1, keepdim=True), weight.amin(1, keepdim=True).neg())
    step = largest.div(_LARGEST).clamp_min(1e-12)
    return torch.div(weight, step).round_().to(torch.int8), step


def channel_units(largest: Tensor, weight: Tensor) -> Tensor:
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
            channel_units(into, weight),
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
