"""How the bundled aligner is stored: int8 weights in safetensors, with tokenizer, config and calibration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from safetensors.torch import load, save
from tokenizers import Tokenizer
from torch import Tensor

from syncheck.alignment.cross_encoder import CrossEncoder, new_config
from syncheck.errors import CheckpointError

if TYPE_CHECKING:
    from transformers import BertConfig

__all__ = ["PackedAligner", "is_packed", "load_cross_encoder", "read_packed", "save_packed"]

FORMAT = "syncheck.cross-encoder.v1"
CALIBRATION = ("scale", "coverage", "novel_pairs", "shift")
INT8, STEP = ".int8", ".step"
"""Endings of a matrix's integers and of what one unit of each row is worth; vectors are stored as they are."""


@dataclass(frozen=True, slots=True)
class PackedAligner:
    """What a folder of the format holds.

    Attributes
    ----------
    config : BertConfig
    arrays : mapping of str to Tensor
        Each matrix (N, K) as ``<name>.int8`` and ``<name>.step``, (N, 1) float32; each vector float32.
    tokenizer : Tokenizer
        Without truncation and padding.
    calibration : mapping of str to float
        See :class:`~syncheck.alignment.BundledAligner`.
    """

    config: BertConfig
    arrays: Mapping[str, Tensor]
    tokenizer: Tokenizer
    calibration: Mapping[str, float]


def save_packed(
    folder: Path,
    model: CrossEncoder,
    tokenizer: Tokenizer,
    *,
    scale: float = 1.0,
    coverage: float = 0.0,
    novel_pairs: float = 0.0,
    shift: float = 0.0,
) -> None:
    """Write weights (matrices as int8 with one scale for each row), config, tokenizer and calibration.

    Parameters
    ----------
    folder
        Made if it does not exist.
    model, tokenizer
        What was trained.
    scale, coverage, novel_pairs, shift
        Calibration; see :class:`~syncheck.alignment.BundledAligner`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Tensor] = {}
    for name, weight in model.state_dict().items():
        if weight.ndim < 2:
            arrays[name] = weight.float().contiguous()
            continue
        step = weight.abs().amax(dim=1, keepdim=True).clamp_min(1e-12) / 127
        arrays[name + INT8] = (weight / step).round().to(torch.int8)
        arrays[name + STEP] = step
    (folder / "model.safetensors").write_bytes(save(arrays))
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    kept = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    config = {
        "format": FORMAT,
        "encoder": {name: getattr(model.bert.config, name) for name in kept},
        "calibration": {"scale": scale, "coverage": coverage, "novel_pairs": novel_pairs, "shift": shift},
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


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
        encoder = new_config(**config["encoder"])
        expected = _shapes(encoder)
        calibration = {name: float(value) for name, value in config["calibration"].items()}
        if unknown := calibration.keys() - set(CALIBRATION):
            raise ValueError(f"calibration: expected {', '.join(CALIBRATION)}, found {', '.join(sorted(unknown))}")
    except (
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        ArithmeticError,
        RuntimeError,
        StrictDataclassError,
    ) as error:
        raise _damaged(folder, error) from error
    _check_shapes(arrays, expected)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return PackedAligner(encoder, arrays, tokenizer, calibration)


def load_cross_encoder(folder: Traversable) -> CrossEncoder:
    """Build the network with the stored weights in float32, for training on.

    Raises
    ------
    CheckpointError
        As :func:`read_packed`.
    """
    packed = read_packed(folder)
    state = {name: array for name, array in packed.arrays.items() if not name.endswith((INT8, STEP))}
    for name in [name.removesuffix(INT8) for name in packed.arrays if name.endswith(INT8)]:
        state[name] = packed.arrays[name + INT8].float() * packed.arrays[name + STEP]
    model = CrossEncoder(packed.config)
    model.load_state_dict(state)
    return model.eval()


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


def _shapes(config: BertConfig) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        return {name: tuple(array.shape) for name, array in CrossEncoder(config).state_dict().items()}


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
