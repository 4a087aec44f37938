"""Key-value cache that grows without copying and is cut back in constant time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

from syncheck.base.errors import UnsupportedModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_MIN_CAPACITY = 64
_MOST_SPARE = 256
"""Most columns that a buffer grows by: a copy every 256 tokens is cheap, and half of a long prompt would be a lot."""

WHOLE_ATTENTION = frozenset(("full_attention", "dense", "sparse"))
"""Types of layers, as transformers names them, that see every earlier token; the last two describe the MLP."""

_REWINDABLE = WHOLE_ATTENTION | {"sliding_attention", "chunked_attention"}
"""Types of layers whose whole state is keys and values."""


class GrowLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values of one attention layer in a buffer with room to grow; ``keys`` and ``values`` are views of it.

    Sliding-window layers use it too: all columns are kept and the mask does the sliding, so that any number of tokens
    can be taken back. After :meth:`narrow`, only the first rows of the buffer continue. If transformers
    replaces ``keys`` and ``values``, as to reorder rows, the layer continues from the replacements.
    """

    def __init__(self, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self._buffers: tuple[Tensor, ...] = ()  # of keys and values; empty until there are some
        self._shown: Tensor | None = None  # the keys, as a view of their buffer
        self._used = 0
        self._rows: int | None = None  # that continue; None for all

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **kwargs: object) -> tuple[Tensor, Tensor]:
        """Append (B, heads, n, width) states and return all of them as views."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        if key_states.requires_grad:
            self._shown = None
            super().update(key_states, value_states)
            return self.keys, self.values
        if self.keys is not self._shown:
            self._buffers, self._used, self._rows = (), self.get_seq_length(), None
        if self._buffers and self._buffers[0].is_inference() and not torch.is_inference_mode_enabled():
            self._buffers = ()  # which cannot be written to here
        start, stop = self._used, self._used + key_states.shape[-2]
        before = self._buffers or ((self.keys, self.values) if start else (key_states, value_states))
        if not self._buffers or before[0].shape[2] < stop:
            capacity = max(_MIN_CAPACITY, stop + min(stop // 2, _MOST_SPARE))
            self._buffers = tuple(old.new_empty((*old.shape[:2], capacity, old.shape[3])) for old in before)
            for buffer, old in zip(self._buffers, before, strict=True):
                buffer[:, :, :start] = old[:, :, :start]
        for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[: len(states), :, start:stop] = states
        self._show(stop)
        return self.keys, self.values

    def crop(self, tokens_to_remove: int) -> None:
        """Take back ``-tokens_to_remove`` columns; transformers defines the sign. A positive number is a ValueError."""
        if tokens_to_remove > 0:
            raise ValueError(f"`tokens_to_remove` must be zero or negative, but is {tokens_to_remove}")
        if self.keys is not self._shown:
            super().crop(tokens_to_remove)
        else:
            self._show(max(0, self._used + tokens_to_remove))

    def reset(self) -> None:
        """Forget all columns."""
        self._buffers, self._shown = (), None
        super().reset()

    def gather(self, rows: Sequence[int], starts: Sequence[int], lengths: Sequence[int]) -> None:
        """Keep, as row i, ``lengths[i]`` columns of row ``rows[i]`` from ``starts[i]`` on, aligned to the right."""
        width = max(lengths)
        gathered = []
        for buffer in self._buffers:
            new = buffer.new_empty((len(rows), buffer.shape[1], width + _MIN_CAPACITY, buffer.shape[3]))
            for i, (row, start, length) in enumerate(zip(rows, starts, lengths, strict=True)):
                new[i, :, : width - length] = 0  # masked, but what is masked must be finite
                new[i, :, width - length : width] = buffer[row, :, start : start + length]
            gathered.append(new)
        self._buffers = tuple(gathered)
        self._rows = None
        self._show(width)

    @torch.inference_mode()  # as the forward that made the buffers: they cannot be written to outside
    def narrow(self, rows: int, swaps: Sequence[tuple[int, int]]) -> None:
        """Let only the first rows continue, after swapping these pairs of rows; the others stay as they are."""
        for buffer in self._buffers:
            for one, other in swaps:
                kept = buffer[one, :, : self._used].clone()
                buffer[one, :, : self._used] = buffer[other, :, : self._used]
                buffer[other, :, : self._used] = kept
        self._rows = rows
        self._show(self._used)

    def stack(self, other: GrowLayer) -> None:
        """Append the rows of another layer to its own; shorter rows are padded on the left."""
        width = max(self._used, other._used)
        stacked = []
        for own, added in zip(self._buffers, other._buffers, strict=True):
            rows = len(own) + len(added)
            new = own.new_zeros((rows, own.shape[1], width + _MIN_CAPACITY, own.shape[3]))  # as in gather()
            new[: len(own), :, width - self._used : width] = own[:, :, : self._used]
            new[len(own) :, :, width - other._used : width] = added[:, :, : other._used]
            stacked.append(new)
        self._buffers = tuple(stacked)
        self._show(width)

    @torch.inference_mode()
    def keep(self, first: int, columns: Tensor) -> None:
        """Keep the first columns of every row, then those of the later columns that ``columns`` (n,) selects."""
        if len(columns):
            for buffer in self._buffers:
                kept = buffer.index_select(2, columns.to(buffer.device))
                buffer[:, :, first : first + len(columns)] = kept
        self._show(first + len(columns))

    def _show(self, columns: int) -> None:
        if self._buffers:
            self._used = columns
            self.keys, self.values = (buffer[: self._rows, :, :columns] for buffer in self._buffers)
            self._shown = self.keys


class RewindableCache(Cache):  # type: ignore[misc]
    """Cache for transformers with a :class:`GrowLayer` for each layer of the model."""

    def __init__(self) -> None:
        super().__init__(layer_class_to_replicate=GrowLayer)

    @property
    def nbytes(self) -> int:
        """Size of keys and values in bytes."""
        return sum(layer.keys.nbytes + layer.values.nbytes for layer in self.layers if layer.is_initialized)


def let_grow(cache: object) -> None:
    """Let the plain layers of a cache that transformers has made grow without copying, from their next token on.

    Layers that slide, are offloaded or carry gradients stay as they are.
    """
    if not isinstance(cache, DynamicCache) or cache.offloading:
        return
    for index, layer in enumerate(cache.layers):
        if type(layer) is DynamicLayer and layer.is_initialized and not layer.keys.requires_grad:
            cache.layers[index] = GrowLayer()
            vars(cache.layers[index]).update(vars(layer))


def new_cache(model: PreTrainedModel) -> Cache:
    """Make an empty cache; it can be rewound if the model's whole state is keys and values."""
    return RewindableCache() if is_rewindable(model) else DynamicCache(config=model.config)


def is_rewindable(model: PreTrainedModel) -> bool:
    """Tell whether tokens can be taken back: the model's whole state is keys and values."""
    return _reason_not_rewindable(model) is None


def require_rewindable(model: PreTrainedModel) -> None:
    """Refuse, with an UnsupportedModelError, a model whose state cannot be taken back to an earlier token."""
    reason = _reason_not_rewindable(model)
    if reason is not None:
        raise UnsupportedModelError(
            f"{type(model).__name__} {reason}, so no token can be removed; it can be monitored, but use a "
            "model whose layers all hold an attention cache to backtrack or to search"
        )


def _reason_not_rewindable(model: PreTrainedModel) -> str | None:
    if getattr(model, "_is_stateful", False):
        return "keeps a recurrent state"
    kinds = getattr(model.config.get_text_config(), "layer_types", None) or ()
    others = sorted(set(kinds) - _REWINDABLE)
    return f"has layers of the kinds {others}, whose state is not keys and values alone" if others else None
