"""Out-of-fold scores: every sentence is scored by a model that saw no sentence of its group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.aggregators.kinds import fit_model
from syncheck.aggregators.models import StoredModel
from syncheck.config import AggregatorKind, ProbabilisticClassifier
from syncheck.errors import InputError
from syncheck.given import has_both_labels, labels_found, real_numbers

FoldFeatures = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""Indices of the training sentences -> (N, F) features of all sentences."""


class Folding(TypedDict, total=False):
    """Options of :func:`fold_numbers`, with its defaults."""

    folds: int
    repeats: int
    seed: int
    same_folds: bool


@dataclass(frozen=True, slots=True)
class FittedFold:
    """A model fitted on all folds but one, with that one to test it on."""

    repeat: int
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    """Indices of sentences, as ``train``; no group is in both."""
    rows: NDArray[np.float64]
    """(N, F) float64: features of all sentences, as the training ones determine them."""
    model: StoredModel


def cross_validate(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    aggregator: AggregatorKind | ProbabilisticClassifier = "mlp",
    train_on: NDArray[np.bool_] | None = None,
    numbers: NDArray[np.int64] | None = None,
    names: Sequence[str] = (),
    **folding: Unpack[Folding],
) -> NDArray[np.float64]:
    """Train on all folds but one and score that one, for each fold and each shuffle of the groups.

    Parameters
    ----------
    X : array-like of shape (N, F), or callable
        NaN means not measured. A callable takes the indices of a fold's training sentences and returns the (N, F)
        features, for those that depend on them as LID does.
    y : array-like of shape (N,)
        1 faithful, 0 unfaithful.
    groups : array-like of shape (N,)
        Sentences of one group, in practice of one question, are never on both sides.
    aggregator
        The kind, or a scikit-learn classifier; imputing and scaling are refitted in each fold with it.
    train_on : ndarray of shape (N,), bool, or None
        Sentences that serve for training; all are scored. None takes all.
    numbers : ndarray of shape (repeats, N), int64, or None
        Fold of each sentence in each repeat; None takes :func:`fold_numbers`.
    names
        Names of the F features, for kinds that read their directions from them.
    folding
        As in :func:`fold_numbers`; repeat ``r`` uses ``seed + r`` for the classifier too.

    Returns
    -------
    ndarray of shape (repeats, N), float64
        P(faithful) of each sentence.
    """
    labels = real_numbers(y, "labels")
    if numbers is None:
        numbers = fold_numbers(labels, groups, **folding)
    scores, seed = np.full(numbers.shape, np.nan), folding.get("seed", 0)
    for fold in fitted_folds(X, labels, numbers, aggregator=aggregator, seed=seed, train_on=train_on, names=names):
        scores[fold.repeat, fold.test] = fold.model.probability(fold.rows[fold.test])
    return scores


def fitted_folds(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    numbers: NDArray[np.int64],
    *,
    aggregator: AggregatorKind | ProbabilisticClassifier = "mlp",
    seed: int = 0,
    train_on: NDArray[np.bool_] | None = None,
    names: Sequence[str] = (),
) -> Iterator[FittedFold]:
    """Yield the fitted models of :func:`cross_validate`, which documents the parameters."""
    labels = real_numbers(y, "labels")
    features_for = fold_features(X)
    usable = np.ones(len(labels), np.bool_) if train_on is None else train_on
    for repeat, number in enumerate(numbers):
        for left_out in np.unique(number):
            train, test = np.flatnonzero(usable & (number != left_out)), np.flatnonzero(number == left_out)
            rows = features_for(train)
            model = fit_model(rows[train], labels[train], kind=aggregator, seed=seed + repeat, names=names)
            yield FittedFold(repeat, train, test, rows, model)


def fold_numbers(
    y: ArrayLike, groups: ArrayLike, *, folds: int = 5, repeats: int = 5, seed: int = 0, same_folds: bool = False
) -> NDArray[np.int64]:
    """Return the fold of each sentence in each repeat, (repeats, N).

    Parameters
    ----------
    y, groups
        As in :func:`cross_validate`.
    folds
        Parts of the groups, each with about the same share of unfaithful sentences.
    repeats, seed
        Repeat ``r`` shuffles with ``seed + r``.
    same_folds
        Gives all repeats the folds of the first, so that only the classifier's seed differs.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    if folds < 2 or repeats < 1:
        raise InputError(f"folds must be at least 2 and repeats at least 1; found {folds} and {repeats}")
    labels, names = real_numbers(y, "labels"), np.asarray(groups)
    if not has_both_labels(labels):
        raise InputError(
            f"folds need sentences of both labels, 1 (faithful) and 0 (unfaithful), but found {labels_found(labels)}"
        )
    smallest = min(len(np.unique(names)), int((labels == 1).sum()), int((labels == 0).sum()))
    if smallest < folds:
        raise InputError(
            f"{folds} folds need at least {folds} groups, faithful and unfaithful sentences, but there are "
            f"{len(np.unique(names))}, {int((labels == 1).sum())} and {int((labels == 0).sum())}; use fewer folds "
            "or more data"
        )
    numbers = np.empty((repeats, len(labels)), np.int64)
    for repeat in range(repeats):
        shuffle = seed if same_folds else seed + repeat
        splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=shuffle)
        for number, (_, test) in enumerate(splitter.split(labels, labels, names)):
            numbers[repeat, test] = number
    return numbers


def fold_features(X: ArrayLike | FoldFeatures) -> FoldFeatures:
    """Return a function from training sentences to features, also for features that do not depend on them."""
    if callable(X):
        return X
    rows = real_numbers(X, "features").astype(np.float64)
    return lambda train: rows
