"""The two metrics of Mu-SHROOM (SemEval-2025 Task 3), as the organisers' scorer computes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from syncheck.spans.labels import SoftSpan, risk_of

__all__ = ["span_correlation", "span_iou"]

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
