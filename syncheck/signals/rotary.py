"""Rotary embeddings that set their frequencies anew in each forward, and so can serve one thread at a time."""

from __future__ import annotations

from threading import RLock
from types import MethodType
from typing import Any

from torch import nn

__all__ = ["take_turns_in_rotary"]

_TURN = RLock()
"""One for all models: it is held for the few products of an embedding's frequencies and positions."""


def take_turns_in_rotary(model: nn.Module) -> None:
    """Let one thread at a time into the rotary embeddings of a model that keep the frequencies of the last forward.

    Those of LongRoPE and dynamic scaling choose them by the longest sequence that is fed, store them in a buffer and
    read them from there: a thread with a long sequence would change those of a thread with a short one. The other
    embeddings, and models that are prepared already, are left as they are.
    """
    for module in model.modules():
        if _sets_frequencies(module) and not hasattr(module, "_forward_of_one_thread"):
            module._forward_of_one_thread = module.forward  # type: ignore[assignment]
            module.forward = MethodType(_in_turn, module)  # a bound method is copied with its module


def _in_turn(module: Any, *args: Any, **kwargs: Any) -> Any:
    with _TURN:
        return module._forward_of_one_thread(*args, **kwargs)


def _sets_frequencies(module: nn.Module) -> bool:
    kinds = getattr(module, "rope_type", None)
    kinds = list(kinds.values()) if isinstance(kinds, dict) else [kinds]
    return any(isinstance(kind, str) and (kind == "longrope" or "dynamic" in kind) for kind in kinds)
