"""What a language model's signals say of each word of a response: more columns for the regression of word risks.

The columns, ``signals.v1``, never change. W is the number of words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from syncheck.errors import PromptError
from syncheck.signals import context_sensitivity_ratio
from syncheck.spans import SpanItem, SpanSchema, Word, span_feature_names, word_features, words_of
from syncheck.types import TokenSignals

__all__ = ["Measure", "SIGNAL_COLUMNS", "regression_features", "regression_names", "signal_features"]

Floats = NDArray[np.float64]

Measure = Callable[[SpanItem], TokenSignals]
"""Gives the signals of an item's tokens: :class:`~syncheck.detectors.TokenReplay`."""

SIGNAL_COLUMNS = (
    "lm_log_prob_mean",
    "lm_log_prob_min",
    "lm_log_prob_without_mean",
    "lm_entropy_mean",
    "lm_entropy_max",
    "lm_kl_mean",
    "lm_kl_max",
    "lm_csr_mean",
    "lm_csr_max",
    "lm_log_prob_response",
    "lm_kl_response",
    "lm_csr_response",
)
"""Nats but for the ratio; those of ``response`` are means over all its tokens."""

_CSR_MOST = 100.0
"""The ratio grows without bound where the model is certain of a token without passages."""


def regression_names(schema: SpanSchema, *, signals: bool) -> tuple[str, ...]:
    """Return the names of the columns of :func:`regression_features`, in order."""
    return span_feature_names(schema) + (SIGNAL_COLUMNS if signals else ())


def regression_features(item: SpanItem, schema: SpanSchema, measure: Measure | None = None) -> Floats:
    """Measure the words of a response from texts and, with ``measure``, by a language model too.

    Returns
    -------
    ndarray of shape (W, F), float64
        NaN in all :data:`SIGNAL_COLUMNS` where the item does not fit the model's window: not measured.

    Raises
    ------
    MissingExtraError
        As :func:`~syncheck.spans.word_features`.
    """
    words = words_of(item.response)
    values = word_features(item, words, schema)
    if measure is None:
        return values
    try:
        columns = signal_features(words, measure(item)) if words else np.zeros((0, len(SIGNAL_COLUMNS)))
    except PromptError:
        columns = np.full((len(words), len(SIGNAL_COLUMNS)), np.nan)
    return np.concatenate([values, columns], axis=1)


def signal_features(words: Sequence[Word], signals: TokenSignals) -> Floats:
    """Read the signals of the tokens that each word shares a character with.

    Parameters
    ----------
    words
        Of the response.
    signals
        Of its tokens, from any model.

    Returns
    -------
    ndarray of shape (W, 12), float64
        In the order of :data:`SIGNAL_COLUMNS`. NaN where a word has no token, or no token a value: without passages
        all that compares with and without them.
    """
    ratio = context_sensitivity_ratio(
        torch.from_numpy(signals.log_prob), torch.from_numpy(signals.log_prob_without_context)
    )
    # Its floor turns the sign where the denominator is nearly 0.
    csr = np.abs(ratio.numpy()).clip(0, _CSR_MOST)
    log_prob, without = signals.log_prob, signals.log_prob_without_context
    response = [_over(np.nanmean, values) for values in (log_prob, signals.kl, csr)]
    rows = []
    for word in words:
        own = (signals.char_spans[:, 0] < word.end) & (signals.char_spans[:, 1] > word.start)  # (T,)
        rows.append(
            [
                _over(np.nanmean, log_prob[own]),
                _over(np.nanmin, log_prob[own]),
                _over(np.nanmean, without[own]),
                _over(np.nanmean, signals.entropy[own]),
                _over(np.nanmax, signals.entropy[own]),
                _over(np.nanmean, signals.kl[own]),
                _over(np.nanmax, signals.kl[own]),
                _over(np.nanmean, csr[own]),
                _over(np.nanmax, csr[own]),
                *response,
            ]
        )
    return np.array(rows, dtype=np.float64).reshape(len(words), len(SIGNAL_COLUMNS))


def _over(statistic: Callable[[NDArray[np.float32]], float], values: NDArray[np.float32]) -> float:
    """Return a statistic of the values that are known, NaN where none is."""
    return float(statistic(values)) if not np.isnan(values).all() else float("nan")
