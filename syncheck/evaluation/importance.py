"""What each signal is worth: left out, or permuted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.config import AggregatorKind
from syncheck.errors import InputError
from syncheck.evaluation.crossval import FoldFeatures, fitted_folds, fold_numbers
from syncheck.evaluation.systems import ALL_FEATURES, System

__all__ = ["ablation_systems", "permuted_scores"]


def ablation_systems(names: Sequence[str], signals: Mapping[str, Sequence[str]]) -> tuple[System, ...]:
    """Return the system of all columns and, for each signal, that of all the other columns.

    Parameters
    ----------
    names
        Names of the columns, in order.
    signals
        Columns by signal, such as :func:`~syncheck.schemas.feature_groups` returns.

    Returns
    -------
    tuple of System
        ``"all features"``, then ``"without <signal>"`` in the order of ``signals``; for
        :func:`~syncheck.evaluation.systems.out_of_fold_scores`, which trains each anew.

    Raises
    ------
    InputError
        If there are fewer than two signals, so that dropping one would leave nothing.
    """
    if len(signals) < 2:
        raise InputError(
            f"an ablation needs columns of at least two signals; found {', '.join(signals) or 'none'}. Measure with a "
            "schema that has more"
        )
    left = {signal: tuple(name for name in names if name not in columns) for signal, columns in signals.items()}
    return (
        System(ALL_FEATURES, tuple(names)),
        *(System(f"without {signal}", columns) for signal, columns in left.items()),
    )


def permuted_scores(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    names: Sequence[str],
    signals: Mapping[str, Sequence[str]],
    aggregator: AggregatorKind = "mlp",
    folds: int = 5,
    repeats: int = 5,
    seed: int = 0,
    same_folds: bool = False,
) -> dict[str, NDArray[np.float64]]:
    """Score every sentence out of fold, as it is and with each signal taken from another sentence of its fold.

    Nothing is trained anew, so the fall in AUROC says what the aggregator made of the signal; what other signals
    would have made up for is said by dropping it, see :func:`~syncheck.evaluation.importance.ablation_systems`.

    Parameters
    ----------
    X, y, groups, aggregator, folds, repeats, seed, same_folds
        As in :func:`~syncheck.evaluation.crossval.cross_validate`.
    names
        Names of the F columns.
    signals
        Columns by signal, such as :func:`~syncheck.schemas.feature_groups` returns; those of one signal are
        permuted together.

    Returns
    -------
    dict of str to ndarray of shape (repeats, N), float64
        ``"all features"``, then ``"<signal> permuted"`` for each: P(faithful).

    Raises
    ------
    InputError
        If a signal names a column that is not there; otherwise as ``cross_validate``.

    Notes
    -----
    Permutation importance (Breiman, 2001) by groups of columns, on the held-out fold alone, one permutation a fold and
    repeat, drawn with ``seed + repeat``.
    """
    unknown = sorted({column for columns in signals.values() for column in columns} - set(names))
    if unknown:
        raise InputError(f"signals name {', '.join(unknown)}; the columns are {', '.join(names)}")
    places = {signal: [names.index(column) for column in columns] for signal, columns in signals.items()}
    size = len(np.asarray(y))
    scores = {name: np.full((repeats, size), np.nan) for name in (ALL_FEATURES, *map(_permuted, signals))}
    randomness = [np.random.default_rng(seed + repeat) for repeat in range(repeats)]
    numbers = fold_numbers(y, groups, folds=folds, repeats=repeats, seed=seed, same_folds=same_folds)
    for fold in fitted_folds(X, y, numbers, aggregator=aggregator, seed=seed, names=names):
        rows = fold.rows[fold.test]
        scores[ALL_FEATURES][fold.repeat, fold.test] = fold.model.probability(rows)
        for signal, columns in places.items():
            exchanged = rows.copy()
            exchanged[:, columns] = rows[randomness[fold.repeat].permutation(len(rows))][:, columns]
            scores[_permuted(signal)][fold.repeat, fold.test] = fold.model.probability(exchanged)
    return scores


def _permuted(signal: str) -> str:
    return f"{signal} permuted"
