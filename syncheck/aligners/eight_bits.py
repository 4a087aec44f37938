"""Linear maps in eight-bit integers, whose products are exact, batches of tokens, and folders of packed networks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from importlib.resources.abc import Traversable
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from tokenizers import Tokenizer
from torch import Tensor, nn

from syncheck.base.errors import CheckpointError

MIDDLE = 128
"""What stands for zero in the unsigned integers that oneDNN multiplies."""
FEW_ROWS, FEW_STEP, MANY_STEP = 256, 16, 64
"""Numbers of rows are multiples of the first step up to a limit, and of the other step above it."""
_LARGEST = 127
_SMALLEST_SCALE = 1e-12


class Int8Linear(nn.Module):
    """Linear map in integers from -127 to 127, with a scale for each row of the weights and each token of the input.

    ``weight`` is (N, K) int8, ``step`` (N, 1) float32 the scale of each row, and ``bias`` (N,) float32. Processors
    that multiply and add integers in one instruction (VNNI) read weights that were put in order once; others multiply
    the integers as floats. Both are exact for all but the largest sums.
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
        if rounded.device.type == "cpu" and multiplies_integers():
            return times_packed(from_middle(rounded), MIDDLE, self._packed_integers, self.step)[: len(rounded)]
        if rounded.device.type == "cpu" and _packs_halves():
            product: Tensor = torch.ops.quantized.linear_dynamic_fp16(rounded, self._packed_halves)
        else:
            product = torch.mm(rounded, self.weight.t().float())
        return product.mul_(self.step)

    @cached_property
    def _packed_integers(self) -> tuple[Tensor, Tensor]:
        return _packed(self.weight)

    @cached_property
    def _packed_halves(self) -> torch.ScriptObject:
        """The weights as float16, in the order that the product reads them.

        A product of float32 matrices packs its weights anew in each call, which takes an eighth of the time of a pair
        that is scored alone.
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

    ``result`` has the unit, zero and type of the result; ``then`` names a function that is applied first, by PyTorch's
    name.
    """
    weight, zeros = packed
    ask: Callable[..., Tensor] = torch.ops.onednn.qlinear_pointwise
    return ask(inputs, 1.0, zero, weight, step, zeros, bias, *result, *then)


def from_middle(rounded: Tensor) -> Tensor:
    """Shift whole-number floats from -128 to 127 to uint8 around ``MIDDLE``; pad the rows.

    oneDNN compiles a program for each number of rows and keeps a few dozen, so only a few numbers are used; the padding
    is ignored. PyTorch turns floats into signed integers much faster than into unsigned ones.
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


def batches(sizes: Sequence[int], room: int) -> Iterator[slice]:
    """Cut items of these sizes into batches of at most ``room`` tokens, or of one item."""
    begin = filled = 0
    for place, size in enumerate(sizes):
        if place > begin and filled + size > room:
            yield slice(begin, place)
            begin, filled = place, 0
        filled += size
    if sizes:
        yield slice(begin, len(sizes))


def _tokenizer(text: str) -> Tokenizer:
    try:
        return Tokenizer.from_str(text)
    except Exception as error:  # tokenizers raises no other type
        raise ValueError(f"tokenizer.json: {error}") from error


def read_folder(
    folder: Traversable, config: str, weights: str, expected: str
) -> tuple[dict[str, Any], dict[str, Tensor], Tokenizer]:
    """Read the config, the arrays and the tokenizer, which neither truncates nor pads, from an aligner's folder.

    A missing or damaged file, and a config of another ``format`` than is expected, raise CheckpointError.
    """
    try:
        values = json.loads(folder.joinpath(config).read_text(encoding="utf-8"))
        arrays = load(folder.joinpath(weights).read_bytes())
        tokenizer = _tokenizer(folder.joinpath("tokenizer.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"an aligner's folder holds {config}, {weights} and tokenizer.json; {error.filename!r} is missing: copy "
            "the folder again"
        ) from error
    except (OSError, ValueError, SafetensorError) as error:
        raise damaged(folder, expected, error) from error
    kind = values.get("format") if isinstance(values, dict) else None
    if kind != expected:
        raise CheckpointError(
            f"expected an aligner of format {expected!r}, found {kind!r}; load it with the version of syncheck that "
            "wrote it"
        )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return values, arrays, tokenizer


def damaged(folder: Traversable, expected: str, error: Exception) -> CheckpointError:
    """Describe, as an error, a folder whose contents do not match its format."""
    return CheckpointError(
        f"expected an aligner's folder of format {expected!r}, found {str(folder)!r}, which is damaged "
        f"({type(error).__name__}: {error}); copy the folder again"
    )
