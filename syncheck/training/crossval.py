"""Out-of-fold scores: every sentence is scored by a model that saw no sentence of its group."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.aggregators.estimators import fit_model
from syncheck.config import AggregatorKind
from syncheck.errors import InputError

__all__ = ["FoldFeatures", "cross_validate"]

FoldFeatures = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""Indices of the training sentences -> (N, F) features of all sentences."""


def cross_validate(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    kind: AggregatorKind = "mlp",
    folds: int = 5,
    repeats: int = 5,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Train on all folds but one and score that one, for each fold and each shuffle of the groups.

    Parameters
    ----------
    X : array-like of shape (N, F), or callable
        NaN means not measured. A callable is given the indices of each fold's training sentences and returns the
        (N, F) features, for features that depend on them as LID does.
    y : array-like of shape (N,)
        1 faithful, 0 unfaithful.
    groups : array-like of shape (N,)
        Sentences of one group, in practice of one question, are never on both sides.
    kind
        Which classifier; imputing and scaling are refitted in each fold with it.
    folds
        Parts the groups are split into, with about the same share of unfaithful sentences each.
    repeats
        Shuffles; repeat ``r`` uses ``seed + r`` for the folds and the classifier.
    seed
        Of the first shuffle.

    Returns
    -------
    ndarray of shape (repeats, N), float64
        P(faithful) of each sentence.

    Raises
    ------
    InputError
        If there are fewer than two folds or no repeats; fewer groups, or fewer sentences of either label, than
        folds; or a fold's training part cannot be used.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    if folds < 2 or repeats < 1:
        raise InputError(f"folds must be at least 2 and repeats at least 1; found {folds} and {repeats}")
    labels, names = np.asarray(y), np.asarray(groups)
    features_for = X if callable(X) else _same_for_all(np.asarray(X, dtype=np.float64))
    smallest = min(len(np.unique(names)), int((labels == 1).sum()), int((labels == 0).sum()))
    if smallest < folds:
        raise InputError(
            f"{folds} folds need at least {folds} groups, faithful and unfaithful sentences, but there are "
            f"{len(np.unique(names))}, {int((labels == 1).sum())} and {int((labels == 0).sum())}; use fewer folds "
            "or more data"
        )
    scores = np.full((repeats, len(labels)), np.nan)
    for repeat in range(repeats):
        splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed + repeat)
        for train, test in splitter.split(labels, labels, names):
            rows = features_for(train)
            model = fit_model(rows[train], labels[train], kind=kind, random_state=seed + repeat)
            scores[repeat, test] = model.probability(rows[test])
    return scores


def _same_for_all(rows: NDArray[np.float64]) -> FoldFeatures:
    return lambda train: rows
