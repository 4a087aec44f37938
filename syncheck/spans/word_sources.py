"""Word sources: columns for each word of a response besides its text features, such as signals of a model.

W is the number of words, F the number of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from syncheck.base.errors import InputError, PromptError
from syncheck.results.spans import SpanItem
from syncheck.results.types import Floats, TokenSignals
from syncheck.signals import context_sensitivity_ratio
from syncheck.spans.words import SpanSchema, Word, span_feature_names, word_features, words_of


class WordSource(Protocol):
    """Protocol of a source of columns for the words of a response: a model, or any function of yours."""

    @property
    def name(self) -> str:
        """Name in tables, file names and messages; unique among the sources of a regression."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the F columns, in order; a name never changes its meaning."""

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """Identity of the source among those with its name, as JSON values; saved with the regression."""

    def __call__(self, item: SpanItem, words: Sequence[Word]) -> Floats:
        """Measure the response's words, (W, F) float64, finite, or NaN if not measured."""


def regression_names(schema: SpanSchema, sources: Sequence[WordSource] = ()) -> tuple[str, ...]:
    """Name the columns of :func:`regression_features`, in order."""
    columns = [*span_feature_names(schema), *(name for source in sources for name in source.columns)]
    for what, names in (("word sources", [source.name for source in sources]), ("columns", columns)):
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"expected {what} of different names; found {', '.join(twice)} twice. Rename one of them")
    return tuple(columns)


def regression_features(item: SpanItem, schema: SpanSchema, sources: Sequence[WordSource] = ()) -> Floats:
    """Compute the features (W, F) float64 of the words of a response from its texts, then from each source.

    Columns are in the order of :func:`regression_names`; NaN means not measured. Without words, sources are not called.
    A source that returns values of another shape, or infinite ones, raises InputError.
    """
    words = words_of(item.response)
    values = [word_features(item, words, schema)]
    for source in sources:
        shape = (len(words), len(source.columns))
        measured = np.asarray(source(item, words), dtype=np.float64) if words else np.zeros(shape)
        if measured.shape != shape or np.isinf(measured).any():
            raise InputError(
                f"word source {source.name!r} must return finite values or NaN of shape {shape}, one row per word of "
                f"item {item.id!r} and one column per name; found shape {measured.shape}"
                + (" with infinite values" if np.isinf(measured).any() else "")
            )
        values.append(measured)
    return np.concatenate(values, axis=1)


Measure = Callable[[SpanItem], TokenSignals]
"""Function that returns the signals of an item's tokens, such as :class:`~syncheck.spans.TokenReplay`."""

SIGNALS = "signals"
"""Name of :class:`SignalSource`."""

SIGNAL_COLUMNS = tuple(
    """
    lm_log_prob_mean lm_log_prob_min lm_log_prob_without_mean lm_entropy_mean lm_entropy_max lm_kl_mean lm_kl_max
    lm_csr_mean lm_csr_max lm_log_prob_response lm_kl_response lm_csr_response
    """.split()
)
"""Columns of the schema ``signals.v1``, which never changes; in nats, except the ratio. ``response`` is the mean over
all tokens."""

_CSR_MOST = 100.0
"""Limit of the ratio, which is unbounded if the model is certain of a token without passages."""


@dataclass(frozen=True, slots=True)
class SignalSource:
    """:class:`WordSource` with signals of a language model.

    The ``fingerprint`` of ``measure``, if it has one, is saved with the regression.
    """

    measure: Measure
    name: str = SIGNALS

    @property
    def columns(self) -> tuple[str, ...]:
        """:data:`SIGNAL_COLUMNS`."""
        return SIGNAL_COLUMNS

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """Fingerprint of the model."""
        return dict(getattr(self.measure, "fingerprint", {}))

    def __call__(self, item: SpanItem, words: Sequence[Word]) -> Floats:
        """Compute :func:`signal_features`, (W, 12) float64; NaN if the item does not fit the model's window."""
        try:
            return signal_features(words, self.measure(item))
        except PromptError:
            return np.full((len(words), len(SIGNAL_COLUMNS)), np.nan)


def signal_features(words: Sequence[Word], signals: TokenSignals) -> Floats:
    """Summarise, for each word, the signals of the tokens that share a character with it, (W, 12) float64.

    Columns are in the order of :data:`SIGNAL_COLUMNS`. They are NaN if no token of a word has a value; without
    passages, this concerns all comparisons of with and without them.
    """
    log_prob, without = signals.log_prob, signals.log_prob_without_context
    ratio = context_sensitivity_ratio(torch.from_numpy(log_prob), torch.from_numpy(without)).numpy()
    csr = np.abs(ratio).clip(0, _CSR_MOST)  # its floor turns the sign where the denominator is nearly 0
    columns: tuple[tuple[Callable[..., Any], NDArray[np.float32]], ...] = (
        (np.nanmean, log_prob),
        (np.nanmin, log_prob),
        (np.nanmean, without),
        (np.nanmean, signals.entropy),
        (np.nanmax, signals.entropy),
        (np.nanmean, signals.kl),
        (np.nanmax, signals.kl),
        (np.nanmean, csr),
        (np.nanmax, csr),
    )
    response = [_over(np.nanmean, values) for values in (log_prob, signals.kl, csr)]
    rows = []
    for word in words:
        own = (signals.char_spans[:, 0] < word.end) & (signals.char_spans[:, 1] > word.start)  # (T,)
        rows.append([*(_over(statistic, values[own]) for statistic, values in columns), *response])
    return np.array(rows, dtype=np.float64).reshape(len(words), len(SIGNAL_COLUMNS))


def _over(statistic: Callable[..., Any], values: NDArray[np.float32]) -> float:
    """Compute a statistic of the known values; NaN if there is none."""
    return float(statistic(values)) if not np.isnan(values).all() else float("nan")
