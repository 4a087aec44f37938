"""The bundled aligner's network in float32, for training, and the folder that the package reads it from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources.abc import Traversable
from pathlib import Path

import torch
from safetensors.torch import save
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from syncheck.aligners.bundled import (
    CLAIM,
    EVIDENCE,
    FORMAT,
    INT8,
    PAD,
    STEP,
    TOKEN_TYPES,
    EncodedPair,
    EncoderSizes,
    read_packed,
)

__all__ = ["CrossEncoder", "collate", "load_cross_encoder", "save_packed"]


class CrossEncoder(nn.Module):
    """BERT over (evidence, claim); mean and maximum over the claim's tokens; one logit.

    Parameters
    ----------
    sizes
        Of the encoder.
    """

    def __init__(self, sizes: EncoderSizes) -> None:
        super().__init__()
        self.sizes = sizes
        config = BertConfig(**asdict(sizes), type_vocab_size=TOKEN_TYPES, attention_probs_dropout_prob=0.0)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.head = nn.Linear(2 * sizes.hidden_size, 1)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        """Score pairs.

        Parameters
        ----------
        ids, types
            (B, T) int64, right-padded.
        mask
            (B, T) bool, False on padding.

        Returns
        -------
        Tensor
            (B,) float32, the logit of "supported" before calibration.
        """
        output = self.bert(input_ids=ids, token_type_ids=types, attention_mask=mask.long())
        hidden = output.last_hidden_state.float()  # (B, T, H)
        claim = ((types >= CLAIM) & mask)[..., None]  # (B, T, 1)
        mean = (hidden * claim).sum(1) / claim.sum(1)
        most = hidden.masked_fill(~claim, -torch.inf).amax(1)
        logits: Tensor = self.head(torch.cat([mean, most], dim=-1))[:, 0]
        return logits


def collate(pairs: Sequence[EncodedPair]) -> tuple[Tensor, Tensor, Tensor]:
    """Right-pad pairs. Returns ids and types, both (B, T) int64, and mask, (B, T) bool."""
    width = max(map(len, pairs))
    ids = torch.tensor([p.ids + [PAD] * (width - len(p)) for p in pairs])
    types = torch.tensor([p.types + [EVIDENCE] * (width - len(p)) for p in pairs])
    mask = torch.tensor([[True] * len(p) + [False] * (width - len(p)) for p in pairs])
    return ids, types, mask


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
        Calibration; see :class:`~syncheck.aligners.BundledAligner`.
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
    config = {
        "format": FORMAT,
        "encoder": asdict(model.sizes),
        "calibration": {"scale": scale, "coverage": coverage, "novel_pairs": novel_pairs, "shift": shift},
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


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
    model = CrossEncoder(packed.sizes)
    model.load_state_dict(state)
    return model.eval()
