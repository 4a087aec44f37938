"""What a language model's signals say of each word of a response: more columns for the regression of word risks.

The columns, ``signals.v1``, never change. W is the number of words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from syncheck.errors import PromptError
from syncheck.signals import context_sensitivity_ratio
from syncheck.spans.items import SpanItem
from syncheck.spans.words import Word
from syncheck.types import TokenSignals

__all__ = ["Measure", "SIGNALS", "SIGNAL_COLUMNS", "SignalSource", "signal_features"]


Floats = NDArray[np.float64]

Measure = Callable[[SpanItem], TokenSignals]
"""Gives the signals of an item's tokens: :class:`~syncheck.spans.TokenReplay`."""

SIGNALS = "signals"
"""Name of the source."""

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


@dataclass(frozen=True, slots=True)
class SignalSource:
    """A language model's signals as a word source; see :class:`~syncheck.spans.WordSource`.

    ``measure`` gives the signals; what its ``fingerprint`` says, where it has one, is saved with the regression.
    """

    measure: Measure
    name: str = SIGNALS

    @property
    def columns(self) -> tuple[str, ...]:
        """:data:`SIGNAL_COLUMNS`."""
        return SIGNAL_COLUMNS

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """Of the model."""
        return dict(getattr(self.measure, "fingerprint", {}))

    def __call__(self, item: SpanItem, words: Sequence[Word]) -> Floats:
        """Return :func:`signal_features`, (W, 12) float64; NaN where the item does not fit the model's window."""
        try:
            return signal_features(words, self.measure(item))
        except PromptError:
            return np.full((len(words), len(SIGNAL_COLUMNS)), np.nan)


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
