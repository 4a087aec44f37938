"""AlignScore's network, and its published checkpoints read without running what a pickle may hold."""

from __future__ import annotations

import json
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerBase, RobertaConfig, RobertaModel

from syncheck.errors import CheckpointError, MismatchError

__all__ = ["AlignScoreModel", "convert_alignscore", "load_alignscore"]

FORMAT = "syncheck.alignscore.v1"

_UNUSED = ("mlm_head.", "base_model.embeddings.position_ids")
"""Parts of a published checkpoint that inference does not need."""
_AS_DICT: list[Any] = [
    (dict, "pytorch_lightning.utilities.parsing.AttributeDict"),
    (dict, "lightning_fabric.utilities.data.AttributeDict"),
]
"""Lightning's name for the dictionary of hyper-parameters, read as a plain one."""


class AlignScoreModel(nn.Module):
    """RoBERTa with AlignScore's three heads on the pooled output (Zha et al. 2023, section 3.1).

    Parameters
    ----------
    config
        Of the backbone.
    """

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__()
        self.base_model = RobertaModel(config)
        self.bin_layer = nn.Linear(config.hidden_size, 2)
        self.tri_layer = nn.Linear(config.hidden_size, 3)
        self.reg_layer = nn.Linear(config.hidden_size, 1)

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return P(aligned) of the two-way head and P(entailed) of the three-way head, both (B,) float32."""
        pooled = self.base_model(input_ids=ids, attention_mask=mask).pooler_output  # (B, H)
        two_way: Tensor = self.bin_layer(pooled).softmax(-1)  # (B, 2)
        three_way: Tensor = self.tri_layer(pooled).softmax(-1)  # (B, 3)
        return two_way[:, 1], three_way[:, 0]


def load_alignscore(
    path: Path, *, backbone: Path | str | None = None
) -> tuple[AlignScoreModel, PreTrainedTokenizerBase]:
    """Load a published checkpoint, or a folder that :func:`convert_alignscore` wrote.

    Parameters
    ----------
    path
        A ``.ckpt`` file or a folder.
    backbone
        For a ``.ckpt``: a folder, or the name of a model, with the config and tokenizer of its RoBERTa.

    Raises
    ------
    CheckpointError
        Keys are missing, or the file holds objects other than arrays and plain values.
    MismatchError
        Keys or shapes belong to another network.
    """
    if path.is_dir():
        manifest = path / "alignscore.json"
        if not manifest.is_file() or json.loads(manifest.read_text())["format"] != FORMAT:
            raise CheckpointError(
                f"expected a folder of format {FORMAT!r} with alignscore.json, found {str(path)!r}; "
                "write one with convert_alignscore"
            )
        return _build(load_file(path / "model.safetensors"), path)
    if backbone is None:
        raise CheckpointError(
            f"{path.name!r} holds weights only; pass backbone=, a folder with the config and tokenizer of the "
            "RoBERTa it was trained from"
        )
    return _build(_read_lightning(path), backbone)


def convert_alignscore(path: Path, folder: Path, *, backbone: Path | str) -> None:
    """Write a published ``.ckpt`` once as a folder of safetensors, config and tokenizer.

    Parameters
    ----------
    path
        The ``.ckpt`` file.
    folder
        Made if it does not exist; load it with :func:`load_alignscore`.
    backbone
        A folder, or the name of a model, with the config and tokenizer.
    """
    model, tokenizer = load_alignscore(path, backbone=backbone)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "model.safetensors")
    model.base_model.config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "alignscore.json").write_text(json.dumps({"format": FORMAT}) + "\n")


def _read_lightning(path: Path) -> dict[str, Tensor]:
    try:
        with torch.serialization.safe_globals(_AS_DICT):
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise CheckpointError(
            f"{path.name!r} holds more than arrays and plain values, and loading it could run code: {error}"
        ) from error
    if not isinstance(checkpoint, dict) or "state_dict" not in checkpoint:
        raise CheckpointError(
            f"expected a Lightning checkpoint with 'state_dict' in {path.name!r}; "
            "pass the .ckpt file that the authors of AlignScore published"
        )
    state: dict[str, Tensor] = checkpoint["state_dict"]
    return state


def _build(state: dict[str, Tensor], backbone: Path | str) -> tuple[AlignScoreModel, PreTrainedTokenizerBase]:
    config = AutoConfig.from_pretrained(backbone)
    if not isinstance(config, RobertaConfig):
        raise MismatchError(
            f"AlignScore's backbone is a RoBERTa, {str(backbone)!r} is a {config.model_type!r}; "
            "pass the config and tokenizer of roberta-base or roberta-large"
        )
    model = AlignScoreModel(config)
    state = {name: array for name, array in state.items() if not name.startswith(_UNUSED)}
    _check_arrays(state, model.state_dict())
    model.load_state_dict(state)
    return model.eval(), AutoTokenizer.from_pretrained(backbone)


def _check_arrays(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    if missing := sorted(expected.keys() - found.keys()):
        raise CheckpointError(
            f"the checkpoint lacks {len(missing)} of {len(expected)} arrays, such as {missing[0]!r}; "
            "download it again, or pass the backbone that it was trained from"
        )
    if extra := sorted(found.keys() - expected.keys()):
        raise MismatchError(
            f"the checkpoint holds {len(extra)} arrays that AlignScore does not have, such as {extra[0]!r}; "
            "pass the backbone that it was trained from"
        )
    for name, array in expected.items():
        if found[name].shape != array.shape:
            raise MismatchError(
                f"{name!r} is {tuple(found[name].shape)} in the checkpoint and {tuple(array.shape)} in the "
                "backbone's config; pass the backbone that it was trained from"
            )
