"""Gradient-boosted trees over words: what they are trained towards, and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators.forest import Forest
from syncheck.errors import InputError
from syncheck.spans import SpanItem, risk_of, words_of

__all__ = ["boosted_trees", "word_risks", "word_weights"]

TREES = 200
TREE_OPTIONS: Mapping[str, Any] = {
    "objective": "reg:logistic",
    "eta": 0.05,
    "max_depth": 5,
    "subsample": 0.7,
    "colsample_bytree": 0.4,
    "min_child_weight": 8,
    "reg_lambda": 5,
}
"""Chosen on the validation sets, by hand, once; others near them score within 0.01."""

Floats = NDArray[np.float64]


def word_risks(item: SpanItem) -> Floats:
    """Return the mean soft label of each word's characters, (W,) float64 in [0, 1].

    Raises
    ------
    InputError
        If the item has no labels.
    """
    if item.labels is None:
        raise InputError(f"item {item.id!r} has no labels; training needs soft_labels or hard_labels")
    risk = risk_of(item.labels.soft, len(item.response))
    return np.array([risk[word.start : word.end].mean() for word in words_of(item.response)])


def word_weights(item: SpanItem) -> Floats:
    """Return each word's share of the characters of all words of the response, (W,) float64: the sum is 1."""
    lengths = np.array([float(word.end - word.start) for word in words_of(item.response)])
    return lengths / lengths.sum() if len(lengths) else lengths


def boosted_trees(X: Floats, y: Floats, weight: Floats, seed: int) -> Forest:
    """Fit on (N, F) features, (N,) risks and (N,) weights of the samples."""
    import xgboost

    # One thread, so that the trees do not depend on the machine's cores.
    options = {**TREE_OPTIONS, "seed": seed, "nthread": 1}
    data = xgboost.DMatrix(X, y, weight=weight / weight.mean(), nthread=1)
    return Forest(xgboost.train(options, data, TREES))
