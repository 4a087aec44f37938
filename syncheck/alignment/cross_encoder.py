"""The bundled aligner's network: a small BERT that reads evidence and claim together.

Token types say what plain matching knows: whether a token of the evidence occurs in the claim, and whether
a token of the claim occurs in the evidence, alone or after the same neighbour. A network of this size would
otherwise spend its training on finding that out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from transformers import BertConfig

__all__ = [
    "CrossEncoder",
    "EncodedPair",
    "collate",
    "encode_pair",
    "new_config",
]

EVIDENCE, EVIDENCE_IN_CLAIM, CLAIM, CLAIM_IN_EVIDENCE, CLAIM_AFTER_SAME = range(5)
"""Token types; special tokens count as evidence that does not match."""
TOKEN_TYPES = 5

PAD, UNKNOWN, CLS, SEP = 0, 100, 101, 102  # of BERT's vocabulary


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """Evidence and claim as token ids and token types, each of length T."""

    ids: list[int]
    types: list[int]

    def __len__(self) -> int:
        return len(self.ids)


class CrossEncoder(nn.Module):
    """BERT over (evidence, claim); mean and maximum over the claim's tokens; one logit.

    Parameters
    ----------
    config
        Of the encoder; ``type_vocab_size`` is ``TOKEN_TYPES``.
    """

    def __init__(self, config: BertConfig) -> None:
        from transformers import BertModel

        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=False)
        self.head = nn.Linear(2 * config.hidden_size, 1)

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


def encode_pair(evidence: Sequence[int], claim: Sequence[int]) -> EncodedPair:
    """Join token ids of evidence and claim, with the token types that say which tokens match.

    Parameters
    ----------
    evidence, claim
        Token ids without special tokens.
    """
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


def collate(pairs: Sequence[EncodedPair]) -> tuple[Tensor, Tensor, Tensor]:
    """Right-pad pairs. Returns ids and types, both (B, T) int64, and mask, (B, T) bool."""
    width = max(map(len, pairs))
    ids = torch.tensor([p.ids + [PAD] * (width - len(p)) for p in pairs])
    types = torch.tensor([p.types + [EVIDENCE] * (width - len(p)) for p in pairs])
    mask = torch.tensor([[True] * len(p) + [False] * (width - len(p)) for p in pairs])
    return ids, types, mask


def new_config(
    *,
    vocab_size: int,
    hidden_size: int,
    num_hidden_layers: int,
    num_attention_heads: int,
    intermediate_size: int,
) -> BertConfig:
    """Return the encoder's config, with the token types of this module."""
    from transformers import BertConfig

    return BertConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=num_attention_heads,
        intermediate_size=intermediate_size,
        type_vocab_size=TOKEN_TYPES,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.0,
    )
