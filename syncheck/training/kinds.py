"""Which kind of aggregator is best, by grouped cross-validation rather than by hand."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.config import AggregatorKind
from syncheck.training.crossval import FoldFeatures, fold_numbers
from syncheck.training.evaluate import EvaluationTable, auroc_table, best_system
from syncheck.training.systems import aggregator_systems, out_of_fold_scores

__all__ = ["best_aggregator"]


def best_aggregator(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    names: Sequence[str],
    folds: int = 5,
    repeats: int = 5,
    seed: int = 0,
    same_folds: bool = False,
    draws: int = 1000,
    kinds: Collection[AggregatorKind] | None = None,
) -> tuple[AggregatorKind, EvaluationTable, NDArray[np.float64]]:
    """Compare every kind of aggregator on the same folds.

    Parameters
    ----------
    X, y, groups, folds, repeats, seed, same_folds
        As in :func:`~syncheck.training.crossval.cross_validate`.
    names
        Names of the F columns.
    draws
        Resamples of the groups for the intervals.
    kinds
        Which are compared; None takes all.

    Returns
    -------
    kind
        That with the highest AUROC, averaged over the repeats; of equals the simplest.
    table
        All kinds, the simplest first. The best one's figure is a little too good, since it was chosen by it; the
        interval of its gain says how sure the choice is.
    scores : ndarray of shape (repeats, N), float64
        Out-of-fold P(faithful) of each sentence, by that kind.
    """
    systems = [system for system in aggregator_systems(names) if kinds is None or system.kind in kinds]
    scores = out_of_fold_scores(
        X, y, groups, names=names, systems=systems, folds=folds, repeats=repeats, seed=seed, same_folds=same_folds
    )
    numbers = fold_numbers(y, groups, folds=folds, repeats=repeats, seed=seed, same_folds=same_folds)
    table = auroc_table(scores, y, groups, folds=numbers, draws=draws, seed=seed)
    best = best_system(table)
    return cast(AggregatorKind, best), table, scores[best]
