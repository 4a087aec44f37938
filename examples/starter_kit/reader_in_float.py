"""Layers of the reader in float32, as they are trained and their inputs measured."""

from __future__ import annotations

from typing import cast

import torch
from torch import nn

from syncheck.aligners.reader.eight_bits import Map
from syncheck.aligners.reader.layers import MEASURED, EncoderLayer, ReaderLayer


def layer_in_float(layer: EncoderLayer) -> ReaderLayer:
    """Build a layer in float32 from the weights of MPNet's."""
    maps = layer.maps
    parts = [maps[name] for name in ("query", "key", "value")]
    joined = Map(*(torch.cat(of_part) for of_part in zip(*parts, strict=True)))
    feed_forward = nn.Sequential(_module(maps["inner"]), nn.GELU(), _module(maps["outer"]))
    return ReaderLayer(layer.heads, _module(joined), _module(maps["attended"]), feed_forward, layer.norms)


def measured_inputs(layer: ReaderLayer) -> dict[str, nn.Module]:
    """List the matrices of a layer in float32 whose largest inputs :meth:`ReaderLayer.in_eight_bits` asks for."""
    inner, _, outer = cast("nn.Sequential", layer.feed_forward)
    return dict(zip(MEASURED, (layer.query_key_value, layer.attended, inner, outer), strict=True))


def _module(given: Map) -> nn.Linear:
    with torch.device("meta"):
        linear = nn.Linear(given.weight.shape[1], given.weight.shape[0])
    linear.load_state_dict(given._asdict(), assign=True)
    return linear.requires_grad_(False)
