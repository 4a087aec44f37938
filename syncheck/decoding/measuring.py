"""Measuring: signals of sentences from the logits and hidden states of a run of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from syncheck.results.types import SentenceSignals, SentenceSpan
from syncheck.signals import LidReferences, token_statistics
from syncheck.text.sentences import last_text_token


@dataclass(frozen=True, slots=True)
class Transcript:
    """Text of a response, and the characters ``(start, stop)`` of each of its tokens, half-open."""

    text: str
    char_spans: Sequence[tuple[int, int]]
    after_end: str = ""
    """What was given after an end-of-text token: not part of the text, and not read."""


@dataclass(frozen=True, slots=True)
class TokenRun:
    """A run of n tokens: ids (n,), the logits (n, V) that predicted them in both branches, states (n, H) per layer.

    ``start`` is the position of the first token in the response.
    """

    ids: Tensor
    logits: Tensor
    contrast: Tensor | None
    states: list[Tensor]
    start: int


def measure_tokens(
    tokens: TokenRun,
    spans: Sequence[SentenceSpan],
    transcript: Transcript,
    layers: Sequence[int],
    lid_references: LidReferences | None,
) -> list[SentenceSignals]:
    """Measure the sentences of a run, which begins with the first sentence's first token and ends with the last one's.

    ``spans`` count tokens of the whole response, and at least one has a token. ``layers`` are the decoder blocks of
    ``tokens.states``; without references, LID is not measured.
    """
    statistics = token_statistics(tokens.logits, tokens.contrast, tokens.ids)
    values = torch.stack(
        [statistics.log_prob, statistics.log_prob_without_context, statistics.entropy, statistics.kl]
    )  # (4, n)
    owning = [i for i, span in enumerate(spans) if span.token_end > span.token_start]
    last = [last_text_token(spans[i], transcript.char_spans) - tokens.start for i in owning]
    states = {layer: block[last] for layer, block in zip(layers, tokens.states, strict=True)}  # each (N, H)
    referenced = [layer for layer in layers if lid_references is not None and layer in lid_references.layers]
    lids = (
        [lid_references.lid_of_states({layer: states[layer] for layer in referenced})]
        if lid_references and referenced
        else []
    )  # (N, L)
    table, kept, measured = _transferred(values, list(states.values()), lids)
    ids = np.asarray(tokens.ids.tolist(), np.int64)
    found = []
    for i, span in enumerate(spans):
        activations, lid = {}, {}
        if i in owning:
            row = owning.index(i)
            activations = {layer: block[row] for layer, block in zip(layers, kept, strict=True)}
            lid = dict(zip(referenced, measured[0][row].tolist(), strict=True)) if measured else {}
        found.append(_sentence(span, transcript, ids, table, activations, lid, tokens.start))
    return found


def _transferred(
    values: Tensor, states: Sequence[Tensor], lids: Sequence[Tensor]
) -> tuple[NDArray[np.float32], list[NDArray[np.float32]], list[NDArray[np.float32]]]:
    """Copy all values that are kept to the CPU at once."""
    tensors = [values, *states, *lids]
    flat = torch.cat([tensor.to(values.device, torch.float32).flatten() for tensor in tensors]).cpu().numpy()
    ends = np.cumsum([tensor.numel() for tensor in tensors])
    parts = [part.reshape(tuple(t.shape)) for part, t in zip(np.split(flat, ends[:-1]), tensors, strict=True)]
    return parts[0], parts[1 : 1 + len(states)], parts[1 + len(states) :]


def tokenless(span: SentenceSpan, transcript: Transcript) -> SentenceSignals:
    """Make empty signals, for a sentence that lies within a token of another sentence."""
    return _sentence(span, transcript, np.empty(0, np.int64), np.empty((4, 0), np.float32), {}, {}, span.token_start)


def _sentence(
    span: SentenceSpan,
    transcript: Transcript,
    ids: NDArray[np.int64],
    table: NDArray[np.float32],
    activations: dict[int, NDArray[np.float32]],
    lid: dict[int, float],
    start: int,
) -> SentenceSignals:
    columns = slice(span.token_start - start, span.token_end - start)
    return SentenceSignals(
        text=transcript.text[span.start : span.end],
        span=span,
        token_ids=ids[columns],
        log_prob=table[0, columns],
        log_prob_without_context=table[1, columns],
        entropy=table[2, columns],
        kl=table[3, columns],
        activations=activations,
        lid=lid,
    )
