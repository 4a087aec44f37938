"""AlignScore checkpoints: the network and the published files, read without running code."""

from __future__ import annotations

import json
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import torch
from huggingface_hub import hf_hub_download
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from syncheck.base.errors import CheckpointError, MismatchError
from syncheck.base.files import DAMAGED, require_regular
from syncheck.base.pretrained import MAX_FILE_BYTES, load_pretrained, load_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, RobertaConfig

FORMAT = "syncheck.alignscore.v1"
MANIFEST = "alignscore.json"

_UNUSED = ("mlm_head.", "base_model.embeddings.position_ids")
"""Parts of a published checkpoint that inference does not need."""
_AS_DICT: list[Any] = [
    (dict, "pytorch_lightning.utilities.parsing.AttributeDict"),
    (dict, "lightning_fabric.utilities.data.AttributeDict"),
]
"""Lightning's name for the dictionary of hyper-parameters, read as a plain one."""


class AlignScoreModel(nn.Module):
    """RoBERTa with AlignScore's three heads on the pooled output (Zha et al. 2023, section 3.1)."""

    def __init__(self, config: RobertaConfig) -> None:
        from transformers import RobertaModel

        super().__init__()
        self.base_model = RobertaModel(config)
        self.bin_layer = nn.Linear(config.hidden_size, 2)
        self.tri_layer = nn.Linear(config.hidden_size, 3)
        self.reg_layer = nn.Linear(config.hidden_size, 1)

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Compute P(aligned) of the two-way head and P(entailed) of the three-way head, both (B,) float32."""
        pooled = self.base_model(input_ids=ids, attention_mask=mask).pooler_output  # (B, H)
        two_way: Tensor = self.bin_layer(pooled).softmax(-1)  # (B, 2)
        three_way: Tensor = self.tri_layer(pooled).softmax(-1)  # (B, 3)
        return two_way[:, 1], three_way[:, 0]


def load_alignscore(
    path: Path | str, *, backbone: Path | str | None = None
) -> tuple[AlignScoreModel, PreTrainedTokenizerBase]:
    """Load a published checkpoint, or a folder that :func:`convert_alignscore` wrote.

    ``path`` is a ``.ckpt`` file, ``owner/repository/file.ckpt`` on the Hugging Face Hub, or a folder. For a ``.ckpt``,
    ``backbone`` is a folder, or the name of a model, with the config and tokenizer of its RoBERTa. None takes the model
    that the checkpoint's hyper-parameters name: the folder of that name next to the file, such as ``roberta-base/``
    next to ``AlignScore-base.ckpt``, or else the model of that name in the cache. A backbone is downloaded only if its
    name is given.

    If a file is missing or damaged, keys are missing, the file has objects other than arrays and plain values, or no
    backbone is given and none is found, CheckpointError is raised; if keys or shapes belong to another network,
    MismatchError.
    """
    if Path(path).is_dir():
        return _build(_read_folder(Path(path)), path)
    path = _file(path)
    checkpoint = _read_lightning(path)
    state: dict[str, Tensor] = checkpoint["state_dict"]
    if backbone is not None:
        return _build(state, backbone)
    named = _named_backbone(path, checkpoint)
    beside = path.parent / Path(named).name
    try:
        return _build(state, beside if beside.is_dir() else named, local_files_only=True)
    except MismatchError:
        raise
    except CheckpointError as error:
        raise CheckpointError(
            f"{path.name!r} was trained from {named!r}, whose config and tokenizer it needs, and {error}. Put them in "
            f"{str(beside)!r}, or pass their folder, or a name to download, as backbone= (--aligner-backbone)"
        ) from error


def convert_alignscore(path: Path | str, folder: Path | str, *, backbone: Path | str | None = None) -> None:
    """Write a published ``.ckpt`` as a folder of safetensors, config and tokenizer, which is created if needed.

    ``path``, ``backbone`` and errors are as in :func:`load_alignscore`, which also reads the folder.
    """
    model, tokenizer = load_alignscore(path, backbone=backbone)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # Not by safetensors' save_file, which leaves the file readable to its owner alone, whatever the umask says.
    (folder / "model.safetensors").write_bytes(save({k: v.contiguous() for k, v in model.state_dict().items()}))
    model.base_model.config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / MANIFEST).write_text(json.dumps({"format": FORMAT}) + "\n")


def _read_folder(folder: Path) -> dict[str, Tensor]:
    try:
        if json.loads((folder / MANIFEST).read_text())["format"] != FORMAT:
            raise KeyError(FORMAT)
        state: dict[str, Tensor] = load_file(folder / "model.safetensors")
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointError(
            f"expected a folder of format {FORMAT!r} with {MANIFEST} and model.safetensors, found {str(folder)!r} "
            f"({type(error).__name__}: {error}); write one with `syncheck convert-aligner`"
        ) from error
    return state


def _file(path: Path | str) -> Path:
    """Find a local file, or one on the Hub or in its cache if there is no such folder here."""
    local = Path(path)
    owner, repository, name = (*str(path).split("/", 2), "", "")[:3]
    if not name or owner in ("", ".", "..", "~") or local.parent.is_dir():
        return local
    try:
        return Path(hf_hub_download(f"{owner}/{repository}", name))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"cannot load {str(path)!r}: there is no such file here, and the file {name!r} cannot be fetched from the "
            f"repository '{owner}/{repository}' of the Hugging Face hub: {error}. Pass the path of a .ckpt file, or "
            "owner/repository/file.ckpt of one that can be downloaded or is in the cache"
        ) from error


def _read_lightning(path: Path) -> dict[str, Any]:
    if path.exists():
        require_regular(path, most=MAX_FILE_BYTES)
    try:
        with torch.serialization.safe_globals(_AS_DICT):
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise CheckpointError(
            f"{path.name!r} holds more than arrays and plain values, and loading it could run code: {error}"
        ) from error
    except (OSError, *DAMAGED) as error:
        raise CheckpointError(
            f"cannot read {str(path)!r} ({type(error).__name__}: {error}); pass the .ckpt file that the authors of "
            "AlignScore published, complete"
        ) from error
    if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get("state_dict"), dict):
        raise CheckpointError(
            f"expected a Lightning checkpoint with 'state_dict' in {path.name!r}; "
            "pass the .ckpt file that the authors of AlignScore published"
        )
    return checkpoint


def _named_backbone(path: Path, checkpoint: dict[str, Any]) -> str:
    """Name the model that the hyper-parameters ask for, such as ``roberta-base``."""
    parameters = checkpoint.get("hyper_parameters")
    named = parameters.get("model") if isinstance(parameters, dict) else None
    if not isinstance(named, str) or not named:
        raise CheckpointError(
            f"{path.name!r} holds weights but does not name the model it was trained from; pass backbone= "
            "(--aligner-backbone), a folder with the config and tokenizer of the RoBERTa, or its name"
        )
    return named


def _build(
    state: dict[str, Tensor], backbone: Path | str, *, local_files_only: bool = False
) -> tuple[AlignScoreModel, PreTrainedTokenizerBase]:
    from transformers import AutoConfig, RobertaConfig

    config = load_pretrained(AutoConfig, backbone, what="AlignScore's backbone", local_files_only=local_files_only)
    if not isinstance(config, RobertaConfig):
        raise MismatchError(
            f"AlignScore's backbone is a RoBERTa, {str(backbone)!r} is a {config.model_type!r}; "
            "pass the config and tokenizer of roberta-base or roberta-large"
        )
    model = AlignScoreModel(config)
    state = {name: array for name, array in state.items() if not name.startswith(_UNUSED)}
    _check_arrays(state, model.state_dict())
    model.load_state_dict(state)
    return model.eval(), load_tokenizer(backbone, local_files_only=local_files_only)


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
