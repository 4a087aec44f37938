"""How the bundled aligner is stored: int8 weights in safetensors, with tokenizer, config and calibration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from tokenizers import Tokenizer
from torch import Tensor

from syncheck.alignment.pairs import TOKEN_TYPES
from syncheck.errors import CheckpointError

__all__ = [
    "EncoderConfig",
    "PackedAligner",
    "RELATIONS",
    "is_packed",
    "read_packed",
    "save_packed",
]

FORMAT = "syncheck.reader.v1"
RELATIONS = ("contradicted", "supported", "not stated")
"""What the three logits stand for."""
CALIBRATION = ("scale", "shift")
POSITIONS = 512
LARGEST_SIZE, MOST_LAYERS = 2**20, 100
INT8, STEP = ".int8", ".step"
"""Endings of a matrix's integers and of what one unit of each row is worth; vectors are stored as they are."""


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """Sizes of a BERT encoder, named as in its checkpoints.

    Raises
    ------
    ValueError
        If one is no whole number above 0, or the heads do not divide the hidden size.
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int

    layer_norm_eps: ClassVar[float] = 1e-12

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not int or not 0 < value <= LARGEST_SIZE:
                raise ValueError(
                    f"encoder.{field.name}: expected a whole number from 1 to {LARGEST_SIZE}, found {value!r}"
                )
        if self.num_hidden_layers > MOST_LAYERS:
            raise ValueError(f"encoder: expected at most {MOST_LAYERS} layers, found {self.num_hidden_layers}")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(f"encoder: {self.num_attention_heads} heads do not divide hidden_size {self.hidden_size}")


@dataclass(frozen=True, slots=True)
class PackedAligner:
    """What a folder of the format holds.

    Attributes
    ----------
    config : EncoderConfig
    arrays : mapping of str to Tensor
        Each matrix (N, K) as ``<name>.int8`` and ``<name>.step``, (N, 1) float32; each vector float32.
    tokenizer : Tokenizer
        Without truncation and padding.
    calibration : mapping of str to float
        See :class:`~syncheck.alignment.BundledAligner`.
    """

    config: EncoderConfig
    arrays: Mapping[str, Tensor]
    tokenizer: Tokenizer
    calibration: Mapping[str, float]


def save_packed(
    folder: Path,
    config: EncoderConfig,
    weights: Mapping[str, Tensor],
    tokenizer: Tokenizer,
    *,
    scale: float = 1.0,
    shift: float = 0.0,
) -> None:
    """Write weights (matrices as int8 with one scale for each row), config, tokenizer and calibration.

    Parameters
    ----------
    folder
        Made if it does not exist.
    config, weights, tokenizer
        What was trained; the weights named as in a BERT checkpoint, with ``twins.weight`` and ``head``.
    scale, shift
        Calibration; see :class:`~syncheck.alignment.BundledAligner`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim < 2:
            arrays[name] = weight.float().contiguous()
            continue
        step = weight.float().abs().amax(dim=1, keepdim=True).clamp_min(1e-12) / 127
        arrays[name + INT8] = (weight / step).round().to(torch.int8)
        arrays[name + STEP] = step
    _check_shapes(arrays, _shapes(config))
    (folder / "model.safetensors").write_bytes(save(arrays))
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    written = {"format": FORMAT, "encoder": asdict(config), "calibration": {"scale": scale, "shift": shift}}
    (folder / "config.json").write_text(json.dumps(written, indent=2) + "\n")


def read_packed(folder: Traversable) -> PackedAligner:
    """Read what :func:`save_packed` wrote.

    Raises
    ------
    CheckpointError
        A file is missing, damaged or of another format, or the weights do not fit the config.
    """
    try:
        config = json.loads(folder.joinpath("config.json").read_text(encoding="utf-8"))
        arrays = load(folder.joinpath("model.safetensors").read_bytes())
        tokenizer = _tokenizer(folder.joinpath("tokenizer.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"an aligner's folder holds config.json, model.safetensors and tokenizer.json; {error.filename!r} "
            "is missing: copy the folder again"
        ) from error
    except (OSError, ValueError, SafetensorError) as error:
        raise _damaged(folder, error) from error
    found = config.get("format") if isinstance(config, dict) else None
    if found != FORMAT:
        raise CheckpointError(
            f"expected an aligner of format {FORMAT!r}, found {found!r}; load it with the version of syncheck that "
            "wrote it"
        )
    try:
        encoder = EncoderConfig(**config["encoder"])
        expected = _shapes(encoder)
        calibration = {name: float(value) for name, value in config["calibration"].items()}
        if unknown := calibration.keys() - set(CALIBRATION):
            raise ValueError(f"calibration: expected {', '.join(CALIBRATION)}, found {', '.join(sorted(unknown))}")
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise _damaged(folder, error) from error
    _check_shapes(arrays, expected)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return PackedAligner(encoder, arrays, tokenizer, calibration)


def is_packed(folder: Path) -> bool:
    """Whether a folder holds what :func:`save_packed` writes."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("format") == FORMAT


def _tokenizer(text: str) -> Tokenizer:
    try:
        return Tokenizer.from_str(text)
    except Exception as error:  # tokenizers raises no other type
        raise ValueError(f"tokenizer.json: {error}") from error


def _damaged(folder: Traversable, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"expected an aligner's folder of format {FORMAT!r}, found {str(folder)!r}, which is damaged "
        f"({type(error).__name__}: {error}); copy the folder again"
    )


def _shapes(config: EncoderConfig) -> dict[str, tuple[int, ...]]:
    width, inner = config.hidden_size, config.intermediate_size
    shapes: dict[str, tuple[int, ...]] = {"twins.weight": (POSITIONS, width)}
    embeddings = {"word": config.vocab_size, "position": POSITIONS, "token_type": TOKEN_TYPES}
    for name, rows in embeddings.items():
        shapes[f"bert.embeddings.{name}_embeddings.weight"] = (rows, width)
    maps = {f"attention.self.{name}": (width, width) for name in ("query", "key", "value")}
    maps |= {"attention.output.dense": (width, width), "intermediate.dense": (inner, width)}
    maps |= {"output.dense": (width, inner)}
    linear = {f"bert.encoder.layer.{i}.{name}": s for i in range(config.num_hidden_layers) for name, s in maps.items()}
    for name, shape in (linear | {"head": (len(RELATIONS), 2 * width)}).items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    norms = [f"layer.{i}.{part}output" for i in range(config.num_hidden_layers) for part in ("attention.", "")]
    for name in ("bert.embeddings", *(f"bert.encoder.{norm}" for norm in norms)):
        shapes |= {f"{name}.LayerNorm.weight": (width,), f"{name}.LayerNorm.bias": (width,)}
    return shapes


def _check_shapes(arrays: Mapping[str, Tensor], expected: Mapping[str, tuple[int, ...]]) -> None:
    matrices = {name: shape for name, shape in expected.items() if len(shape) == 2}
    vectors = {name: shape for name, shape in expected.items() if name not in matrices}
    steps = {name + STEP: (shape[0], 1) for name, shape in matrices.items()}
    wanted = vectors | steps | {name + INT8: shape for name, shape in matrices.items()}
    found = {name: tuple(array.shape) for name, array in arrays.items()}
    wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if wrong:
        name = wrong[0]
        raise CheckpointError(
            f"the aligner's weights do not fit its config.json: expected {name!r} of shape {wanted.get(name)}, found "
            f"{found.get(name)} (None: no such array); copy the folder again"
        )
