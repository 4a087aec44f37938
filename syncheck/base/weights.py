"""Digests of weights, by which a checkpoint is recognised wherever it lies and however it was loaded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SAMPLED_WEIGHTS = 1024
"""Number of evenly spaced values of each weight matrix that enter the digest of a model."""

_HALVES = (torch.bfloat16, torch.float16)
_DIGITS = 32
"""Hexadecimal digits of each half of a digest."""


def weights_sha256(model: nn.Module) -> str | None:
    """Compute a digest of the shapes and sampled values of a model's weights; None if some are not in memory ("meta").

    It is independent of the folder, the device, and the names of weights, which differ between versions of
    transformers. The first half is that of the values in bfloat16, the second in float16; see :func:`same_weights`. A
    quantised copy has another digest. If a model is split over processes, each of them must call this function, since
    they gather the weights together.
    """
    weights = [weight for value in model.state_dict().values() for weight in _plain(value)]
    if any(weight.is_meta for weight in weights):
        return None
    return "".join(_digest(weights, dtype)[:_DIGITS] for dtype in _HALVES)


def _plain(value: object) -> Iterator[Tensor]:
    """Yield the tensors in an entry of a state dict as ordinary ones: gathered from all processes, and dequantised."""
    if isinstance(value, tuple):  # the packed weight and bias of torch's quantised layers
        for part in value:
            yield from _plain(part)
    if not isinstance(value, Tensor):
        return
    weight = value.detach()
    if hasattr(weight, "full_tensor"):
        weight = weight.full_tensor()
    if weight.is_quantized or is_traceable_wrapper_subclass(weight):  # the latter as torchao makes them
        weight = weight.dequantize()
    yield weight


def same_weights(first: str, second: str) -> bool:
    """Tell whether two digests are of the same checkpoint, whatever floating-point types it was loaded in.

    A checkpoint in half precision is recognised in every type. One in float32 is recognised if either digest is of
    float32, but not in bfloat16 against float16, which round it differently.
    """
    return first[:_DIGITS] == second[:_DIGITS] or "" != first[_DIGITS:] == second[_DIGITS:]


def _digest(weights: Sequence[Tensor], dtype: torch.dtype) -> str:
    digests = []
    for weight in weights:
        sampled = weight.reshape(-1)[:: max(1, weight.numel() // SAMPLED_WEIGHTS)].to(dtype).float().cpu()
        digests.append(hashlib.sha256(f"{tuple(weight.shape)}".encode() + sampled.numpy().tobytes()).hexdigest())
    return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()


def fingerprint(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """Collect the facts that identify a model and its tokenizer: architecture, sizes, vocabulary, digest of weights."""
    config = model.config.get_text_config()
    vocabulary = json.dumps(sorted(tokenizer.get_vocab().items()), ensure_ascii=True)
    return {
        "architecture": type(model).__name__,
        "num_hidden_layers": config.num_hidden_layers,
        "hidden_size": config.hidden_size,
        "vocab_size": config.vocab_size,
        "tokenizer_sha256": hashlib.sha256(vocabulary.encode()).hexdigest(),
        "weights_sha256": weights_sha256(model),
    }
