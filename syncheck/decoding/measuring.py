"""From the logits and states of a run of tokens to the signals of its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from syncheck.segments import last_text_token
from syncheck.signals import token_statistics
from syncheck.types import SentenceSignals, SentenceSpan

__all__ = ["TokenRun", "Transcript", "measure_tokens", "tokenless"]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A response's text and the (start, stop) characters of each of its tokens."""

    text: str
    char_spans: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TokenRun:
    """A stretch of n tokens: ids (n,), what predicted them (n, V) twice, states (n, H) per layer."""

    ids: Tensor
    logits: Tensor
    contrast: Tensor | None
    states: list[Tensor]
    start: int


def measure_tokens(
    tokens: TokenRun, spans: Sequence[SentenceSpan], transcript: Transcript, layers: Sequence[int]
) -> list[SentenceSignals]:
    """Measure the sentences of a run of tokens.

    Parameters
    ----------
    tokens
        The run; it begins with the first sentence's tokens and ends with the last one's.
    spans
        The sentences, in tokens of the whole response; at least one has a token.
    transcript
        The response.
    layers
        The decoder blocks of ``tokens.states``.
    """
    statistics = token_statistics(tokens.logits, tokens.contrast, tokens.ids)
    values = torch.stack(
        [statistics.log_prob, statistics.log_prob_without_context, statistics.entropy, statistics.kl]
    )  # (4, n)
    owning = [i for i, span in enumerate(spans) if span.token_stop > span.token_start]
    last = [last_text_token(spans[i], transcript.char_spans) - tokens.start for i in owning]
    activations = [states[last].float().flatten().to(values.device) for states in tokens.states]
    # One transfer from the device for everything that is kept of the sentences.
    flat = torch.cat([values.flatten(), *activations]).cpu().numpy()
    n, width = len(tokens.ids), tokens.states[0].shape[1] if tokens.states else 0
    table = flat[: 4 * n].reshape(4, n)
    kept = flat[4 * n :].reshape(len(layers), len(owning), width)
    ids = np.asarray(tokens.ids.tolist(), np.int64)
    by_span = {i: dict(zip(layers, kept[:, j], strict=True)) for j, i in enumerate(owning)}
    return [_sentence(span, transcript, ids, table, by_span.get(i, {}), tokens.start) for i, span in enumerate(spans)]


def tokenless(span: SentenceSpan, transcript: Transcript) -> SentenceSignals:
    """Return the signals of a sentence that lies within another one's token: none, and no activations."""
    return _sentence(span, transcript, np.empty(0, np.int64), np.empty((4, 0), np.float32), {}, span.token_start)


def _sentence(
    span: SentenceSpan,
    transcript: Transcript,
    ids: NDArray[np.int64],
    table: NDArray[np.float32],
    activations: dict[int, NDArray[np.float32]],
    start: int,
) -> SentenceSignals:
    columns = slice(span.token_start - start, span.token_stop - start)
    return SentenceSignals(
        text=transcript.text[span.char_start : span.char_stop],
        span=span,
        token_ids=ids[columns],
        log_prob=table[0, columns],
        log_prob_without_context=table[1, columns],
        entropy=table[2, columns],
        kl=table[3, columns],
        activations=activations,
    )
