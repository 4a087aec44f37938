"""The bundled aligner's network in eight-bit integers: what :class:`CrossEncoder` computes, in about half of the time.

Weights stay the integers that they are stored as. The input of a matrix product is rounded to integers too, with one
scale for each token, so that the product is exact and no token depends on what else is in the batch. Pairs are laid one
behind the other without padding; each attends to itself alone. A pair's logit is therefore the same, to the last bit,
alone and in any batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from syncheck.alignment.cross_encoder import CLAIM, EncodedPair
from syncheck.alignment.packed import INT8, STEP

if TYPE_CHECKING:
    from transformers import BertConfig

__all__ = ["Int8CrossEncoder", "Int8Linear"]

_LARGEST = 127
_SMALLEST_SCALE = 1e-12


class Int8Linear(nn.Module):
    """A linear map whose weights, and whose inputs by token, are integers from -127 to 127 times a scale.

    Parameters
    ----------
    weight
        (N, K) int8.
    step
        (N, 1) float32, what one unit of each row of ``weight`` is worth.
    bias
        (N,) float32.
    """

    weight: Tensor
    step: Tensor
    bias: Tensor

    def __init__(self, weight: Tensor, step: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("step", step[:, 0])
        self.register_buffer("bias", bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (M, K) float32 to (M, N) float32."""
        # A pass over the tokens, or a new tensor, costs as much as a tenth of the product: no abs(), and one result.
        largest = torch.maximum(inputs.amax(1, keepdim=True), inputs.amin(1, keepdim=True).neg_())  # (M, 1)
        scale = largest.clamp_min_(_SMALLEST_SCALE).div_(_LARGEST)
        rounded = torch.div(inputs, scale).round_()
        mapped = self._product(rounded).float().mul_(scale)
        return torch.addcmul(self.bias, mapped, self.step, out=mapped)

    def _product(self, rounded: Tensor) -> Tensor:
        """Multiply by the integers: int32, or where there is no such product float32, which holds nearly every sum."""
        if rounded.device.type == "cpu" and torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
            return torch._int_mm(rounded.to(torch.int8), self.weight.t())
        return rounded @ self.weight.t().float()


class _Layer(nn.Module):
    """A BERT layer over tokens of several pairs, one behind the other."""

    def __init__(self, arrays: Mapping[str, Tensor], prefix: str, config: BertConfig) -> None:
        super().__init__()
        attention = f"{prefix}attention."
        parts = [f"{attention}self.{name}" for name in ("query", "key", "value")]
        self.heads = config.num_attention_heads
        self.eps = config.layer_norm_eps
        self.query_key_value = _linear(arrays, *parts)
        self.attended = _linear(arrays, f"{attention}output.dense")
        self.after_attention = _norm(arrays, f"{attention}output.LayerNorm", self.eps)
        self.inner = _linear(arrays, f"{prefix}intermediate.dense")
        self.outer = _linear(arrays, f"{prefix}output.dense")
        self.after_inner = _norm(arrays, f"{prefix}output.LayerNorm", self.eps)

    def forward(self, hidden: Tensor, lengths: Sequence[int], wanted: Sequence[Tensor] | None = None) -> Tensor:
        """Map (sum of T, H) to the same shape, or to the (sum of n, H) of each pair's n ``wanted`` tokens."""
        tokens, width = hidden.shape
        heads = self.query_key_value(hidden).view(tokens, 3, self.heads, width // self.heads).permute(1, 2, 0, 3)
        pairs = torch.split(heads, list(lengths), dim=2)
        of_pair = [None] * len(pairs) if wanted is None else wanted
        mixed = [_attention(pair, n) for pair, n in zip(pairs, of_pair, strict=True)]  # (heads, T or n, d) each
        joined = torch.cat(mixed, dim=1).transpose(0, 1).flatten(1)
        if wanted is not None:
            parts = zip(torch.split(hidden, list(lengths)), wanted, strict=True)
            hidden = torch.cat([part[n] for part, n in parts])
        hidden = self.after_attention(self.attended(joined).add_(hidden))
        hidden = self.after_inner(self.outer(gelu(self.inner(hidden))).add_(hidden))
        return hidden


class Int8CrossEncoder(nn.Module):
    """BERT over (evidence, claim), as :class:`~syncheck.alignment.cross_encoder.CrossEncoder` has it.

    Parameters
    ----------
    config
        Of the encoder.
    arrays
        As a :class:`~syncheck.alignment.packed.PackedAligner` has them.
    """

    def __init__(self, config: BertConfig, arrays: Mapping[str, Tensor]) -> None:
        super().__init__()
        embeddings = "bert.embeddings."
        self.words = _Int8Embedding(arrays, f"{embeddings}word_embeddings.weight")
        self.positions = _Int8Embedding(arrays, f"{embeddings}position_embeddings.weight")
        self.types = _Int8Embedding(arrays, f"{embeddings}token_type_embeddings.weight")
        self.embedded = _norm(arrays, f"{embeddings}LayerNorm", config.layer_norm_eps)
        self.layers = nn.ModuleList(
            _Layer(arrays, f"bert.encoder.layer.{i}.", config) for i in range(config.num_hidden_layers)
        )
        self.head = _linear(arrays, "head")

    @torch.no_grad()
    def forward(self, pairs: Sequence[EncodedPair]) -> Tensor:
        """Score pairs.

        Parameters
        ----------
        pairs
            B of them.

        Returns
        -------
        Tensor
            (B,) float32, the logit of "supported" before calibration.
        """
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
    """Rows of integers, each with its scale."""

    weight: Tensor
    step: Tensor

    def __init__(self, arrays: Mapping[str, Tensor], name: str) -> None:
        super().__init__()
        self.register_buffer("weight", arrays[name + INT8])
        self.register_buffer("step", arrays[name + STEP])

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight[ids] * self.step[ids]


def _linear(arrays: Mapping[str, Tensor], *names: str) -> Int8Linear:
    """Read one map, or several of the same input as one."""
    kinds = (f"weight{INT8}", f"weight{STEP}", "bias")
    return Int8Linear(*(torch.cat([arrays[f"{name}.{kind}"] for name in names]) for kind in kinds))


def _norm(arrays: Mapping[str, Tensor], name: str, eps: float) -> nn.LayerNorm:
    weight = arrays[f"{name}.weight"]
    norm = nn.LayerNorm(len(weight), eps=eps)
    norm.load_state_dict({"weight": weight, "bias": arrays[f"{name}.bias"]})
    return norm.requires_grad_(False)


def _attention(heads: Tensor, wanted: Tensor | None) -> Tensor:
    """Let the wanted tokens of a pair, or each, attend to all: (3, heads, T, d) to (heads, n or T, d)."""
    query, key, value = heads[:, None]
    return scaled_dot_product_attention(query if wanted is None else query[:, :, wanted], key, value)[0]
