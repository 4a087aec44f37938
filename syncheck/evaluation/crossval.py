"""Cross-validation: every sentence is scored by a model that saw no sentence of its group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.aggregators.kinds import AggregatorKind, ProbabilisticClassifier, fit_model
from syncheck.aggregators.models import StoredModel
from syncheck.base.checks import check_both_labels, real_numbers
from syncheck.base.errors import InputError

FoldFeatures = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""Function from indices of training sentences to the features (N, F) of all sentences."""


class Folding(TypedDict, total=False):
    """Options of :func:`fold_numbers`, with its defaults."""

    folds: int
    repeats: int
    seed: int
    same_folds: bool


@dataclass(frozen=True, slots=True)
class FittedFold:
    """A model fitted on all folds but one, with the fold to test it on."""

    repeat: int
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    """Indices of sentences, as ``train``; no group is in both."""
    rows: NDArray[np.float64]
    """(N, F) float64: features of all sentences, which may depend on the training sentences."""
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
        Features; NaN means not measured. A callable takes the indices of a fold's training sentences and returns the
        features (N, F), for features that depend on them, such as LID.
    y : array-like of shape (N,)
        1 faithful, 0 unfaithful.
    groups : array-like of shape (N,)
        Group of each sentence, in practice its question; sentences of one group are never on both sides.
    aggregator
        Kind of aggregator, or a scikit-learn classifier; imputation and scaling are refitted in each fold with it.
    train_on : ndarray of shape (N,), bool, or None
        True for sentences to train on; all sentences are scored. None trains on all.
    numbers : ndarray of shape (repeats, N), int64, or None
        Fold of each sentence in each repeat; None takes :func:`fold_numbers`.
    names
        Names of the F features, for kinds that take directions from them.
    folding
        As in :func:`fold_numbers`; repeat ``r`` uses ``seed + r`` for the classifier too.

    Returns
    -------
    ndarray of shape (repeats, N), float64
        P(faithful) of each sentence, in [0, 1].

    Raises
    ------
    InputError
        If the shapes do not fit, a label is missing, or there are too few groups.
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
    """Assign each sentence to a fold in each repeat, (repeats, N).

    Groups are divided into ``folds`` parts with about the same share of unfaithful sentences; repeat ``r`` shuffles
    with ``seed + r``, but ``same_folds`` gives all repeats the folds of the first, so that only the classifier's seed
    differs. If there are fewer groups, or fewer sentences of a label, than folds, InputError is raised.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    if folds < 2 or repeats < 1:
        raise InputError(f"folds must be at least 2 and repeats at least 1; found {folds} and {repeats}")
    labels, names = real_numbers(y, "labels"), np.asarray(groups)
    check_both_labels(labels, "folds need sentences")
    sizes = len(np.unique(names)), int((labels == 1).sum()), int((labels == 0).sum())
    if min(sizes) < folds:
        raise InputError(
            f"{folds} folds need at least {folds} groups, faithful and unfaithful sentences, but there are {sizes[0]}, "
            f"{sizes[1]} and {sizes[2]}; use fewer folds or more data"
        )
    numbers = np.empty((repeats, len(labels)), np.int64)
    for repeat in range(repeats):
        splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed if same_folds else seed + repeat)
        for number, (_, test) in enumerate(splitter.split(labels, labels, names)):
            numbers[repeat, test] = number
    return numbers


def fold_features(X: ArrayLike | FoldFeatures) -> FoldFeatures:
    """Make features a function of the training sentences, even if they do not depend on them."""
    if callable(X):
        return X
    rows = real_numbers(X, "features").astype(np.float64)
    return lambda train: rows
