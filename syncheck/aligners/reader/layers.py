"""Layers of the encoders that a reader is made of, in float32 or in eight bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from syncheck.aligners.reader.eight_bits import Map, RoundedFeedForward, RoundedLinear, channel_units

MEASURED = ("query_key_value", "attended", "inner", "outer")  # matrices whose largest inputs are known
DISTANCES = "encoder.relative_attention_bias.weight"  # biases of attention by distance, (buckets, heads)
LARGEST = ".largest"  # suffix of the name of a matrix's largest inputs, (K,), by channel
NORM_EPS = 1e-5  # what the layer norms of all-mpnet-base-v2 add to the variance
MATRICES = {
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "attended": "attention.attn.o",
    "inner": "intermediate.dense",
    "outer": "output.dense",
}
_NORMS = ("attention.LayerNorm", "output.LayerNorm")


@dataclass(frozen=True, slots=True)
class EncoderLayer:
    """The weights of a layer of MPNet, float32."""

    heads: Sequence[int]
    maps: Mapping[str, Map]
    norms: tuple[nn.LayerNorm, nn.LayerNorm]

    @classmethod
    def of(cls, weights: Mapping[str, Tensor], number: int) -> EncoderLayer:
        """Take a layer from the weights of an MPNet without pooler, by its names."""

        def both(name: str) -> Map:
            return Map(*(weights[f"encoder.layer.{number}.{name}.{part}"].float() for part in Map._fields))

        heads = range(weights[DISTANCES].shape[1])
        maps = {name: both(own) for name, own in MATRICES.items()}
        first, second = (layer_norm(*both(name)) for name in _NORMS)
        return cls(heads, maps, (first, second))

    def pruned(self, heads: Tensor, neurons: Tensor) -> EncoderLayer:
        """Copy only these heads and neurons, by number."""
        width = len(self.maps["query"].bias) // len(self.heads)
        channels = (heads.long()[:, None] * width + torch.arange(width)).flatten()
        outputs = dict.fromkeys(("query", "key", "value"), channels) | {"inner": neurons.long()}
        inputs = {"attended": channels, "outer": neurons.long()}
        maps = {name: Map(*(part[kept] for part in self.maps[name])) for name, kept in outputs.items()}
        maps |= {
            name: self.maps[name]._replace(weight=self.maps[name].weight[:, kept]) for name, kept in inputs.items()
        }
        return replace(self, heads=heads.tolist(), maps=maps)


class ReaderLayer(nn.Module):
    """A layer of MPNet or BERT over the tokens of several texts, one text after the other.

    ``heads`` are the numbers of its attention heads, by which they look up their distance biases. ``query_key_value``
    maps hidden states (M, H) to (M, 3 * A), ``attended`` what the heads gathered, (M, A), to (M, H), and
    ``feed_forward`` (M, H) to (M, H).
    """

    def __init__(
        self,
        heads: Sequence[int],
        query_key_value: nn.Module,
        attended: nn.Module,
        feed_forward: nn.Module,
        norms: tuple[nn.LayerNorm, nn.LayerNorm],
    ) -> None:
        super().__init__()
        self.heads = tuple(heads)
        self.query_key_value, self.attended, self.feed_forward = query_key_value, attended, feed_forward
        self.after_attention, self.after_feed_forward = norms

    @classmethod
    def in_eight_bits(cls, layer: EncoderLayer, largest: Mapping[str, Tensor]) -> ReaderLayer:
        """Round the matrices of MPNet's layer, and their ``largest`` inputs by channel, (K,), to eight bits."""
        maps = layer.maps
        three = [maps["query"], maps["key"], maps["value"]]
        joined = _joined(three)
        unit = channel_units(largest["query_key_value"], joined.weight)
        gathered = channel_units(largest["attended"], maps["attended"].weight)
        values = len(gathered)
        joined.weight[-values:] /= gathered[:, None]  # so that what is gathered comes in its units
        joined.bias[-values:] /= gathered
        return cls(
            layer.heads,
            RoundedLinear.of(*joined, unit, gives_halves=True),
            RoundedLinear.of(*maps["attended"], gathered, is_in_units=True),
            RoundedFeedForward.of(maps["inner"], maps["outer"], largest["inner"], largest["outer"]),
            layer.norms,
        )

    @classmethod
    def restored(cls, arrays: Mapping[str, Tensor]) -> ReaderLayer:
        """Build a layer of what :meth:`stored` returned."""

        def rounded(name: str, *, gives_halves: bool = False) -> RoundedLinear:
            weight, step, bias = (arrays[f"{name}.{part}"] for part in ("weight", "step", "bias"))
            return RoundedLinear(weight, step, bias, arrays.get(f"{name}.per_unit"), gives_halves=gives_halves)

        def norm(name: str) -> nn.LayerNorm:
            return layer_norm(arrays[f"{name}.weight"], arrays[f"{name}.bias"])

        inner, outer = rounded("feed_forward.inner"), rounded("feed_forward.outer")
        unit, zero = arrays["feed_forward.unit"].item(), int(arrays["feed_forward.zero"])
        return cls(
            arrays["heads"].tolist(),
            rounded("query_key_value", gives_halves=True),
            rounded("attended"),
            RoundedFeedForward(inner, outer, unit, zero),
            (norm("after_attention"), norm("after_feed_forward")),
        )

    def stored(self) -> dict[str, Tensor]:
        """Collect the arrays of a layer in eight bits, by name."""
        arrays = self.state_dict()
        for name, module in self.named_modules():
            if isinstance(module, RoundedLinear):
                arrays[f"{name}.weight"] = module.weight.to(torch.int8)  # float32 on some processors
        feed_forward = cast("RoundedFeedForward", self.feed_forward)
        unit = torch.tensor(feed_forward.unit, dtype=torch.float64)
        own = {"heads": self.heads, "feed_forward.unit": unit, "feed_forward.zero": feed_forward.zero}
        return arrays | {name: torch.as_tensor(value) for name, value in own.items()}

    @property
    def dtype(self) -> torch.dtype:
        """The type that attention is computed in."""
        return getattr(self.query_key_value, "dtype", torch.float32)

    def forward(
        self,
        hidden: Tensor,
        lengths: Sequence[int],
        biases: Tensor | None = None,
        *,
        first: Sequence[int] | None = None,
        before: Sequence[Tensor] | None = None,
        mapped: Tensor | None = None,
    ) -> Tensor:
        """Map (sum of T, H) to the same shape, or only the tokens of each text from its ``first`` on.

        ``biases``, (1, heads, M, M), are added to the products of queries and keys. ``before`` has keys and values,
        (E, 2 * A), of tokens before each text. ``mapped`` has queries, keys and values of the hidden states, (sum of
        T, 3 * A), if known.
        """
        if mapped is None:
            mapped = self.query_key_value(hidden)
        begins = first or [0] * len(lengths)
        width = mapped.shape[1] // 3
        mixed = []
        for number, (own, begin) in enumerate(zip(torch.split(mapped, list(lengths)), begins, strict=True)):
            query, pairs = own[begin:, :width], own[:, width:]
            if before is not None:
                pairs = torch.cat([before[number], pairs])
            end = len(pairs)
            mask = None if biases is None else biases[:, :, end - len(query) : end, :end]
            query, key, value = map(self._by_head, (query, *pairs.chunk(2, dim=1)))
            attended = scaled_dot_product_attention(query, key, value, attn_mask=mask)
            mixed.append(attended[0].transpose(0, 1).flatten(1))
        if first is not None:
            texts = zip(torch.split(hidden, list(lengths)), first, strict=True)
            hidden = torch.cat([text[begin:] for text, begin in texts])
        hidden = self.after_attention(self.attended(mixed[0] if len(mixed) == 1 else torch.cat(mixed)).add_(hidden))
        return self.after_feed_forward(self.feed_forward(hidden).add_(hidden))  # type: ignore[no-any-return]

    def _by_head(self, mapped: Tensor) -> Tensor:
        """Split (T, A) into heads, (1, heads, T, width)."""
        return mapped.view(1, len(mapped), len(self.heads), -1).transpose(1, 2)


def _joined(maps: Sequence[Map]) -> Map:
    return Map(torch.cat([each.weight for each in maps]), torch.cat([each.bias for each in maps]))


def layer_norm(weight: Tensor, bias: Tensor, *, eps: float = NORM_EPS) -> nn.LayerNorm:
    """Build a layer norm of MPNet, or of another network that adds something else to the variance."""
    with torch.device("meta"):
        norm = nn.LayerNorm(len(weight), eps=eps)
    norm.load_state_dict({"weight": weight, "bias": bias}, assign=True)
    return norm.requires_grad_(False)
