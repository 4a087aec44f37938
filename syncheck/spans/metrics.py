"""IoU and correlation of spans, and scores by language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncheck.errors import InputError
from syncheck.evaluation.tables import aligned, with_interval
from syncheck.spans.items import SoftSpan, SpanItem, SpanLabels, risk_of
from syncheck.stats import bootstrap_interval

__all__ = ["LanguageScore", "SpanScores", "score_spans", "span_correlation", "span_iou"]


_DECIMALS = 8
"""Risks that agree to this many decimals are equal when the scorer asks whether a series is constant."""


def span_iou(reference: Sequence[tuple[int, int]], predicted: Sequence[tuple[int, int]]) -> float:
    """Return the intersection over the union of the characters in two lists of half-open spans, in [0, 1].

    1 if both are empty.
    """
    wanted, found = _characters(reference), _characters(predicted)
    return len(wanted & found) / len(wanted | found) if wanted or found else 1.0


def span_correlation(reference: Sequence[SoftSpan], predicted: Sequence[SoftSpan], *, characters: int) -> float:
    """Return Spearman's rank correlation of the risks of all characters, in [-1, 1].

    Where a series is constant there is no correlation: then 1 if both are constant, whatever their values, and 0
    otherwise.

    Parameters
    ----------
    reference, predicted
        Characters in no span have risk 0.
    characters
        Length of the response.

    Raises
    ------
    InputError
        If a span does not lie in the response.
    """
    from scipy.stats import spearmanr

    wanted, found = risk_of(reference, characters), risk_of(predicted, characters)
    constant = [_values(wanted) == 1, _values(found) == 1]
    if any(constant):
        return float(all(constant))
    return float(spearmanr(wanted, found).statistic)


def _characters(spans: Sequence[tuple[int, int]]) -> set[int]:
    return {place for span in spans for place in range(*span)}


def _values(risk: NDArray[np.float64]) -> int:
    return len(np.unique(np.round(risk, _DECIMALS)))


MACRO = "mean"


@dataclass(frozen=True, slots=True)
class LanguageScore:
    """Mean scores of the items of one language, or their mean over languages, with 95 % intervals.

    ``iou`` in [0, 1] on hard labels, ``correlation`` in [-1, 1] on soft ones.
    """

    lang: str
    items: int
    iou: float
    iou_interval: tuple[float, float]
    correlation: float
    correlation_interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class SpanScores:
    """The languages in order of their names, and their unweighted mean."""

    languages: tuple[LanguageScore, ...]
    mean: LanguageScore

    def to_text(self) -> str:
        """Return the table as plain text."""
        rows = [["language", "items", "IoU", "correlation"]]
        for row in (*self.languages, self.mean):
            iou, correlation = (
                with_interval(value, *bounds)
                for value, bounds in ((row.iou, row.iou_interval), (row.correlation, row.correlation_interval))
            )
            rows.append([row.lang, str(row.items), iou, correlation])
        return "\n".join(aligned(rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the table as values that JSON can hold."""
        return {
            row.lang: {
                "items": row.items,
                "iou": row.iou,
                "iou_interval": list(row.iou_interval),
                "correlation": row.correlation,
                "correlation_interval": list(row.correlation_interval),
            }
            for row in (*self.languages, self.mean)
        }


def score_spans(
    items: Sequence[SpanItem],
    predicted: Mapping[str, SpanLabels],
    *,
    languages: Sequence[str] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> SpanScores:
    """Score predicted labels against those that the items carry.

    Parameters
    ----------
    items
        All with labels.
    predicted
        Labels by id, one for each item that counts.
    languages
        Codes of those that count, in any case; all of them without it.
    draws, seed
        Of the bootstrap: items are drawn again within their language.

    Raises
    ------
    InputError
        If an item has no labels or no prediction, or a language has no item.
    """
    wanted = None if languages is None else {code.upper() for code in languages}
    by_language: dict[str, list[tuple[float, float]]] = {}
    for item in items:
        if wanted is None or item.lang.upper() in wanted:
            by_language.setdefault(item.lang.upper(), []).append(_score(item, predicted))
    missing = (wanted or set()) - set(by_language)
    if missing or not by_language:
        raise InputError(f"expected labelled items; found none of {sorted(missing) or 'any language'}")
    random = np.random.default_rng(seed)
    rows, drawn = [], []
    for lang in sorted(by_language):
        values = np.array(by_language[lang])  # (N, 2) IoU, correlation
        resampled = values[random.integers(len(values), size=(draws, len(values)))].mean(axis=1)  # (D, 2)
        rows.append(_row(lang, len(values), values.mean(axis=0), resampled))
        drawn.append(resampled)
    means = np.mean([[row.iou, row.correlation] for row in rows], axis=0)
    return SpanScores(tuple(rows), _row(MACRO, sum(row.items for row in rows), means, np.mean(drawn, axis=0)))


def _score(item: SpanItem, predicted: Mapping[str, SpanLabels]) -> tuple[float, float]:
    if item.labels is None:
        raise InputError(f"item {item.id!r} has no labels to score against; pass a reference with labels")
    if item.id not in predicted:
        raise InputError(f"item {item.id!r} has no prediction")
    found = predicted[item.id]
    correlation = span_correlation(item.labels.soft, found.soft, characters=len(item.response))
    return span_iou(item.labels.hard, found.hard), correlation


def _row(lang: str, items: int, means: NDArray[np.float64], resampled: NDArray[np.float64]) -> LanguageScore:
    iou, correlation = (bootstrap_interval(resampled[:, column]) for column in range(2))
    return LanguageScore(lang, items, float(means[0]), iou, float(means[1]), correlation)
