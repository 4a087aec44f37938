"""Network of the bundled aligner in eight-bit integers, and the folder that it is stored in.

A small BERT reads evidence and claim together. Token types tell it which tokens of one occur in the other, alone or
after the same neighbour. Matrices stay the integers that they are stored as, with a scale for each row; the input of a
matrix product is rounded to integers too, with a scale for each token, so that the product is exact. Pairs are
concatenated without padding, and each attends only to itself. The logit of a pair is therefore the same, to the last
bit, alone and in any batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from syncheck.base.errors import CheckpointError
from syncheck.base.files import read_object

FORMAT = "syncheck.cross-encoder.v1"
CALIBRATION = ("scale", "coverage", "novel_pairs", "shift")
INT8, STEP = ".int8", ".step"
"""Suffixes of the names of a matrix's integers and of its row scales; vectors are stored as they are."""

EVIDENCE, EVIDENCE_IN_CLAIM, CLAIM, CLAIM_IN_EVIDENCE, CLAIM_AFTER_SAME = range(5)
"""Token types; special tokens count as evidence that does not match."""
TOKEN_TYPES = 5
PAD, UNKNOWN, CLS, SEP = 0, 100, 101, 102  # of BERT's vocabulary

MIDDLE = 128
"""What stands for zero in the unsigned integers that oneDNN multiplies."""
FEW_ROWS, FEW_STEP, MANY_STEP = 256, 16, 64
"""Numbers of rows are multiples of the first step up to a limit, and of the other step above it."""
_LARGEST = 127
_SMALLEST_SCALE = 1e-12


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """Evidence and claim as token ids and token types, each of length T."""

    ids: list[int]
    types: list[int]

    def __len__(self) -> int:
        return len(self.ids)


POSITIONS, NORM_EPS = 512, 1e-12
"""BERT's number of positions, and what its layer norms add to the variance."""


@dataclass(frozen=True, slots=True)
class EncoderSizes:
    """Sizes of the encoder, as BERT's config names them, each at least 1."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int

    def __post_init__(self) -> None:
        """Check the values."""
        sizes = {field.name: getattr(self, field.name) for field in fields(self)}
        if wrong := {name: size for name, size in sizes.items() if type(size) is not int or size < 1}:
            raise ValueError(f"encoder: expected whole numbers from 1; found {wrong}")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"{self.num_attention_heads} attention heads do not divide a hidden size of {self.hidden_size}"
            )


@dataclass(frozen=True, slots=True)
class PackedAligner:
    """Contents of the folder of an aligner.

    ``arrays`` has each matrix (N, K) as ``<name>.int8`` and ``<name>.step``, the latter (N, 1) float32; vectors are
    float32. The ``tokenizer`` neither truncates nor pads.
    """

    sizes: EncoderSizes
    arrays: Mapping[str, Tensor]
    tokenizer: Tokenizer
    calibration: Mapping[str, float]


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


class _Layer(nn.Module):
    def __init__(self, arrays: Mapping[str, Tensor], prefix: str, heads: int) -> None:
        super().__init__()
        attention = f"{prefix}attention."
        parts = [f"{attention}self.{name}" for name in ("query", "key", "value")]
        self.heads = heads
        self.query_key_value = _linear(arrays, *parts)
        self.attended = _linear(arrays, f"{attention}output.dense")
        self.after_attention = _norm(arrays, f"{attention}output.LayerNorm")
        self.inner = _linear(arrays, f"{prefix}intermediate.dense")
        self.outer = _linear(arrays, f"{prefix}output.dense")
        self.after_inner = _norm(arrays, f"{prefix}output.LayerNorm")

    def forward(self, hidden: Tensor, lengths: Sequence[int], wanted: Sequence[Tensor] | None = None) -> Tensor:
        """Map (sum of T, H) to the same shape, or to (sum of n, H) for the n ``wanted`` tokens of each pair."""
        tokens, width = hidden.shape
        heads = self.query_key_value(hidden).view(1, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        pairs = torch.split(heads, list(lengths), dim=3)
        of_pair = [None] * len(pairs) if wanted is None else wanted
        mixed = [_attention(pair, n) for pair, n in zip(pairs, of_pair, strict=True)]
        if wanted is not None:
            parts = zip(torch.split(hidden, list(lengths)), wanted, strict=True)
            hidden = _joined([part[n] for part, n in parts])
        hidden = self.after_attention(self.attended(_joined(mixed)).add_(hidden))
        return self.after_inner(self.outer(gelu(self.inner(hidden))).add_(hidden))  # type: ignore[no-any-return]


class Int8CrossEncoder(nn.Module):
    """BERT over pairs (evidence, claim), then mean and maximum over the claim's tokens, then one logit."""

    def __init__(self, sizes: EncoderSizes, arrays: Mapping[str, Tensor]) -> None:
        super().__init__()
        embeddings = "bert.embeddings."
        self.words = _Int8Embedding(arrays, f"{embeddings}word_embeddings.weight")
        self.positions = _Int8Embedding(arrays, f"{embeddings}position_embeddings.weight")
        self.types = _Int8Embedding(arrays, f"{embeddings}token_type_embeddings.weight")
        self.embedded = _norm(arrays, f"{embeddings}LayerNorm")
        self.layers = nn.ModuleList(
            _Layer(arrays, f"bert.encoder.layer.{i}.", sizes.num_attention_heads)
            for i in range(sizes.num_hidden_layers)
        )
        self.head = _linear(arrays, "head")

    @torch.inference_mode()
    def forward(self, pairs: Sequence[EncodedPair]) -> Tensor:
        """Compute the logits of "supported" for B pairs, before calibration, (B,) float32."""
        with torch.autocast(self.words.weight.device.type, enabled=False):  # a caller's choice for its own model
            return self._logits(pairs)

    def _logits(self, pairs: Sequence[EncodedPair]) -> Tensor:
        device = self.words.weight.device
        lengths = [len(pair) for pair in pairs]
        ids = torch.tensor([token for pair in pairs for token in pair.ids], device=device)
        types = torch.tensor([kind for pair in pairs for kind in pair.types], device=device)
        positions = torch.cat([torch.arange(length, device=device) for length in lengths])
        hidden = self.embedded(self.words(ids) + self.types(types) + self.positions(positions))  # (sum of T, H)
        claims = [(kinds >= CLAIM).nonzero()[:, 0] for kinds in torch.split(types, lengths)]
        *before, last = self.layers
        for layer in before:
            hidden = layer(hidden, lengths)
        hidden = last(hidden, lengths, claims)  # the head reads no other tokens
        by_pair = torch.split(hidden, [len(claim) for claim in claims])
        logits: Tensor = self.head(torch.stack([torch.cat([c.mean(0), c.amax(0)]) for c in by_pair]))[:, 0]
        return logits


class _Int8Embedding(nn.Module):
    weight: Tensor
    step: Tensor

    def __init__(self, arrays: Mapping[str, Tensor], name: str) -> None:
        super().__init__()
        self.register_buffer("weight", arrays[name + INT8])
        self.register_buffer("step", arrays[name + STEP])

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight.index_select(0, ids) * self.step.index_select(0, ids)


def _linear(arrays: Mapping[str, Tensor], *names: str) -> Int8Linear:
    """Build one linear map, or join several of the same input into one."""
    kinds = (f"weight{INT8}", f"weight{STEP}", "bias")
    return Int8Linear(*(torch.cat([arrays[f"{name}.{kind}"] for name in names]) for kind in kinds))


def _norm(arrays: Mapping[str, Tensor], name: str) -> nn.LayerNorm:
    weight = arrays[f"{name}.weight"]
    norm = nn.LayerNorm(len(weight), eps=NORM_EPS)
    norm.load_state_dict({"weight": weight, "bias": arrays[f"{name}.bias"]})
    return norm.requires_grad_(False)


def _attention(heads: Tensor, wanted: Tensor | None) -> Tensor:
    """Let the wanted tokens of a pair, or all, attend to all tokens: (3, 1, heads, T, d) to (n or T, heads * d)."""
    query, key, value = heads.unbind()
    mixed = scaled_dot_product_attention(query if wanted is None else query[:, :, wanted], key, value)
    return mixed[0].transpose(0, 1).flatten(1)


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Concatenate the rows of all parts; those of a single part are not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


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


def encode_pair(evidence: Sequence[int], claim: Sequence[int]) -> EncodedPair:
    """Join token ids of evidence and claim, both without special tokens, and add the token types."""
    in_evidence, in_claim = set(evidence), set(claim)
    neighbours = set(zip(evidence, evidence[1:], strict=False))
    types = [EVIDENCE, *(EVIDENCE_IN_CLAIM if t in in_claim else EVIDENCE for t in evidence), EVIDENCE]
    previous = -1
    for token in claim:
        if (previous, token) in neighbours:
            types.append(CLAIM_AFTER_SAME)
        else:
            types.append(CLAIM_IN_EVIDENCE if token in in_evidence else CLAIM)
        previous = token
    return EncodedPair([CLS, *evidence, SEP, *claim, SEP], [*types, EVIDENCE])


def read_packed(folder: Traversable) -> PackedAligner:
    """Read a folder; raise CheckpointError if it is incomplete, damaged, inconsistent or of another format."""
    config, arrays, tokenizer = read_folder(folder, "config.json", "model.safetensors", FORMAT)
    try:
        sizes = EncoderSizes(**config["encoder"])
        expected = _shapes(sizes)
        calibration = {name: float(value) for name, value in config["calibration"].items()}
        if unknown := calibration.keys() - set(CALIBRATION):
            raise ValueError(f"calibration: expected {', '.join(CALIBRATION)}, found {', '.join(sorted(unknown))}")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise damaged(folder, FORMAT, error) from error
    _check_shapes(arrays, expected)
    return PackedAligner(sizes, arrays, tokenizer, calibration)


def is_packed(folder: Path) -> bool:
    """Tell whether a folder is of this format."""
    try:
        return read_object(folder / "config.json").get("format") == FORMAT
    except CheckpointError:
        return False


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


def _shapes(sizes: EncoderSizes) -> dict[str, tuple[int, ...]]:
    """List the shape of each array before packing, by its name in a BERT with a linear head."""
    width, inner = sizes.hidden_size, sizes.intermediate_size
    rows = {"word": sizes.vocab_size, "position": POSITIONS, "token_type": TOKEN_TYPES}
    shapes: dict[str, tuple[int, ...]] = {f"bert.embeddings.{n}_embeddings.weight": (r, width) for n, r in rows.items()}
    norms = ["bert.embeddings"]
    maps = {"head": (1, 2 * width)}
    for layer in (f"bert.encoder.layer.{i}" for i in range(sizes.num_hidden_layers)):
        maps |= {f"{layer}.attention.self.{name}": (width, width) for name in ("query", "key", "value")}
        maps |= {f"{layer}.attention.output.dense": (width, width)}
        maps |= {f"{layer}.intermediate.dense": (inner, width), f"{layer}.output.dense": (width, inner)}
        norms += [f"{layer}.attention.output", f"{layer}.output"]
    for name, shape in maps.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return shapes | {f"{name}.LayerNorm.{part}": (width,) for name in norms for part in ("weight", "bias")}


def _check_shapes(arrays: Mapping[str, Tensor], expected: Mapping[str, tuple[int, ...]]) -> None:
    matrices = {name: shape for name, shape in expected.items() if len(shape) == 2}
    vectors = {name: shape for name, shape in expected.items() if name not in matrices}
    steps = {name + STEP: (shape[0], 1) for name, shape in matrices.items()}
    wanted = vectors | steps | {name + INT8: shape for name, shape in matrices.items()}
    shapes = {name: tuple(array.shape) for name, array in arrays.items()}
    wrong = sorted(name for name in wanted.keys() | shapes.keys() if wanted.get(name) != shapes.get(name))
    if wrong:
        name = wrong[0]
        raise CheckpointError(
            f"the aligner's weights do not fit its config.json: expected {name!r} of shape {wanted.get(name)}, found "
            f"{shapes.get(name)} (None: no such array); copy the folder again"
        )
