"""Hidden states of chosen decoder blocks, by forward hooks that are always removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from syncheck.errors import InputError, UnsupportedModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_recording: ContextVar[tuple[Taps, ...]] = ContextVar("_recording", default=())
"""The taps that record what runs in this context. A thread has its own context, and so has an asyncio task."""


class Taps:
    """Collects the outputs of chosen decoder blocks of a causal language model, on request.

    Forwards of other threads or asyncio tasks run through the same hooks without a trace. Block k, counted from 0,
    gives ``hidden_states[k + 1]`` of transformers (``hidden_states[k]`` of Mamba), except for the last block, for which
    transformers has the state after the final norm.
    """

    def __init__(self, model: PreTrainedModel, layers: Sequence[int]) -> None:
        blocks = decoder_blocks(model) if layers else nn.ModuleList()
        outside = [k for k in layers if not 0 <= k < len(blocks)]
        if outside:
            raise InputError(f"layers must be in 0..{len(blocks) - 1} for this model; found {outside}")
        self.layers = tuple(layers)
        self._blocks = [blocks[k] for k in layers]
        self._sink: list[list[Tensor]] | None = None

    @property
    def is_recording(self) -> bool:
        """True if a forward that runs in this thread or asyncio task is recorded."""
        return self._sink is not None and self in _recording.get()

    @contextmanager
    def attached(self) -> Iterator[Taps]:
        """Attach the hooks; they are removed on exit, even after an exception."""
        handles = [block.register_forward_hook(self._hook(index)) for index, block in enumerate(self._blocks)]
        try:
            yield self
        finally:
            for handle in handles:
                handle.remove()

    @contextmanager
    def recording(self) -> Iterator[list[list[Tensor]]]:
        """Record while inside; yields one list per layer, to which each forward run here adds a (B, n, H) tensor."""
        before, self._sink = self._sink, [[] for _ in self.layers]
        _recording.set((*_recording.get(), self))
        try:
            yield self._sink
        finally:
            self._sink = before
            # Not reset by a token, which is refused where a generator is closed in another context.
            inner = [*_recording.get()]
            if self in inner:
                inner.remove(self)  # one of them: what was recording before goes on
            _recording.set(tuple(inner))

    def _hook(self, index: int):  # type: ignore[no-untyped-def]  # noqa: ANN202 - torch's hook signature
        def collect(module: nn.Module, args: object, output: Tensor | tuple[Tensor, ...]) -> None:
            if self._sink is not None and self in _recording.get():  # else another thread runs its own
                # A block puts out a tensor in transformers 5 and a tuple in some older models.
                states = output if isinstance(output, torch.Tensor) else output[0]
                if states.ndim != 3:  # Gemma 3n and DeepSeek V4 carry several streams from block to block
                    raise UnsupportedModelError(
                        f"{type(module).__name__} puts out states of shape {tuple(states.shape)}; expected (rows, "
                        "tokens, width). Its hidden states cannot be tapped, use a schema without LID"
                    )
                self._sink[index].append(states.detach())  # a loop by hand may keep gradients

        return collect


def decoder_blocks(model: PreTrainedModel) -> nn.ModuleList:
    """Find the list of decoder blocks of a causal language model, or raise UnsupportedModelError."""
    count = model.config.get_text_config().num_hidden_layers
    # A vision tower may have as many blocks, and come first.
    text_model = getattr(model, "get_decoder", lambda: model)()
    for module in text_model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module
    raise UnsupportedModelError(
        f"no list of {count} decoder blocks found in {type(model).__name__}; its hidden states cannot be tapped, "
        "use a schema without LID"
    )
