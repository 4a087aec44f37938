"""How the bundled aligner is stored: int8 weights in safetensors, with tokenizer, config and calibration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

import torch
from safetensors.torch import load, save
from tokenizers import Tokenizer
from torch import Tensor
from transformers import BertConfig

from syncheck.alignment.cross_encoder import CrossEncoder, new_config
from syncheck.errors import CheckpointError

__all__ = ["PackedAligner", "is_packed", "load_cross_encoder", "read_packed", "save_packed"]

FORMAT = "syncheck.cross-encoder.v1"
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
        A file is missing, of another format, or the weights do not fit the config.
    """
    try:
        config = json.loads(folder.joinpath("config.json").read_text(encoding="utf-8"))
        arrays = load(folder.joinpath("model.safetensors").read_bytes())
        tokenizer = Tokenizer.from_str(folder.joinpath("tokenizer.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"an aligner's folder holds config.json, model.safetensors and tokenizer.json; {error.filename!r} "
            "is missing: copy the folder again"
        ) from error
    if config.get("format") != FORMAT:
        raise CheckpointError(
            f"expected an aligner of format {FORMAT!r}, found {config.get('format')!r}; "
            "load it with the version of syncheck that wrote it"
        )
    encoder = new_config(**config["encoder"])
    _check_shapes(arrays, encoder)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return PackedAligner(encoder, arrays, tokenizer, config["calibration"])


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
    file = folder / "config.json"
    return file.is_file() and json.loads(file.read_text(encoding="utf-8")).get("format") == FORMAT


def _check_shapes(arrays: Mapping[str, Tensor], config: BertConfig) -> None:
    with torch.device("meta"):
        expected = {name: tuple(array.shape) for name, array in CrossEncoder(config).state_dict().items()}
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
