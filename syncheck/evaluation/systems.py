"""Systems to compare on the same folds: subsets of features, kinds of aggregator, signals dropped or permuted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Unpack, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.aggregators.kinds import AggregatorKind, fit_model
from syncheck.base.errors import InputError
from syncheck.evaluation.metrics import (
    FoldFeatures,
    Folding,
    best_threshold,
    cross_validate,
    fitted_folds,
    fold_features,
    fold_numbers,
)
from syncheck.evaluation.tables import EvaluationTable, auroc_table, best_system
from syncheck.features.schemas import SCHEMAS
from syncheck.results.types import Floats

if TYPE_CHECKING:
    from syncheck.aggregators.monotone import MonotoneLogisticRegression

ALL_FEATURES = "all features"
"""Name of the system that reads every column."""

_LEXICAL = ("content_overlap", "bigram_overlap", "number_overlap", "log_tokens")


@dataclass(frozen=True, slots=True)
class System:
    """A way to score sentences from some of the columns.

    Without training, the score is the value of its only column, and higher is more faithful. ``aggregator`` is the kind
    to train, if it is not the one that is being evaluated.
    """

    name: str
    columns: tuple[str, ...]
    trained: bool = True
    aggregator: AggregatorKind | MonotoneLogisticRegression | None = None


def benchmark_systems(names: Sequence[str]) -> tuple[System, ...]:
    """List the systems to compare that the columns ``names`` allow, the cheapest first.

    A signal is worth its cost if it improves on the first system, content-word overlap.
    """
    published = set(SCHEMAS["paper.v1"])
    own = {name for schema in SCHEMAS.values() for name in schema} - published
    paper = tuple(name for name in names if name not in own)
    first = tuple(name for name in names if name in paper or name in SCHEMAS["syncheck.v1"])
    systems = (
        System("content-word overlap, untrained", ("content_overlap",), trained=False),
        System("overlap and length, MLP", _LEXICAL, aggregator="mlp"),
        System("least likely token (FLARE), untrained", ("min_prob",), trained=False),
        System("aligner, untrained", ("align_score",), trained=False),
        System("the paper's features", paper),
        *([System("features of syncheck.v1", first)] if len(first) < len(names) and set(first) - set(paper) else []),
        System(ALL_FEATURES, tuple(names)),
    )
    present = [system for system in systems if system.columns and set(system.columns) <= set(names)]
    return tuple(s for i, s in enumerate(present) if s.columns not in [t.columns for t in present[:i]])


def aggregator_systems(
    names: Sequence[str], *, aggregators: Collection[AggregatorKind] | None = None
) -> tuple[System, ...]:
    """Make a system with all columns for each kind of aggregator, the simplest first.

    None takes all kinds but ``monotone``, that is those whose probabilities hold at the share of faithful sentences in
    training.
    """
    kinds: tuple[AggregatorKind, ...] = get_args(AggregatorKind)
    compared = [kind for kind in kinds if kind != "monotone"] if aggregators is None else aggregators
    return tuple(System(kind, tuple(names), aggregator=kind) for kind in kinds if kind in compared)


def out_of_fold_scores(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    names: Sequence[str],
    systems: Sequence[System],
    aggregator: AggregatorKind = "mlp",
    **folding: Unpack[Folding],
) -> dict[str, Floats]:
    """Score every sentence with every system, out of fold and on the same folds for trained ones.

    Parameters are those of :func:`~syncheck.evaluation.metrics.cross_validate`, with the names of the F columns.
    Returns scores (R, N) float64 by name of the system; R is 1 for a system without training, which takes the median of
    its column for values that were not measured.
    """
    labels = np.asarray(y)
    trained = partial(cross_validate, y=labels, groups=groups, **folding)
    return _scores(
        X,
        np.arange(len(labels)),
        names,
        systems,
        lambda columns, system: trained(columns, aggregator=system.aggregator or aggregator, names=system.columns),
    )


def held_out_scores(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    train: NDArray[np.bool_],
    *,
    names: Sequence[str],
    systems: Sequence[System],
    aggregator: AggregatorKind = "mlp",
    repeats: int = 3,
    seed: int = 0,
) -> dict[str, Floats]:
    """Score the sentences outside a training part with every system, as in the paper's Table 1.

    The data are those of training and other sentences together, as in :func:`out_of_fold_scores`; ``train`` (N,) is
    True for sentences on which systems are trained. Run ``r`` seeds the classifier with ``seed + r``. The result has
    (R, M) scores of the M other sentences by name; R is 1 for a system without training. If there are none, or a system
    does not fit the columns, InputError is raised.
    """
    labels, inside, outside = np.asarray(y), np.flatnonzero(train), np.flatnonzero(~train)
    if not len(outside):
        raise InputError(f"all {len(labels)} sentences are for training; leave some to be scored")

    def trained(columns: FoldFeatures, system: System) -> Floats:
        rows, kind = columns(inside), system.aggregator or aggregator
        fitted = [
            fit_model(rows[inside], labels[inside], kind=kind, seed=seed + run, names=system.columns)
            for run in range(repeats)
        ]
        return np.stack([model.probability(rows[outside]) for model in fitted])

    return _scores(X, outside, names, systems, trained)


def training_thresholds(scores: Mapping[str, Floats], y: ArrayLike) -> dict[str, Floats]:
    """Choose each system's threshold for :func:`held_out_scores` on the out-of-fold scores of the training sentences.

    The threshold has the best balanced accuracy there; no label of other sentences is used. ``scores`` come from
    :func:`out_of_fold_scores` with ``same_folds`` and as many repeats as runs, and ``y`` has the labels of the training
    sentences. The thresholds, (R,) for each system, are for :func:`~syncheck.evaluation.tables.auroc_table`.
    """
    labels = np.asarray(y)
    return {name: np.array([best_threshold(run, labels) for run in runs]) for name, runs in scores.items()}


def _scores(
    X: ArrayLike | FoldFeatures,
    scored: NDArray[np.int64],
    names: Sequence[str],
    systems: Sequence[System],
    trained: Callable[[FoldFeatures, System], Floats],
) -> dict[str, Floats]:
    """Score some of the sentences, by a trained model or by the column of a system without training."""
    features_for = fold_features(X)
    scores = {}
    for system in systems:
        columns = partial(_columns, features_for, _places(system, names))
        scores[system.name] = trained(columns, system) if system.trained else _raw(system, columns(scored)[scored])
    return scores


def _columns(features_for: FoldFeatures, places: list[int], train: NDArray[np.int64]) -> Floats:
    return features_for(train)[:, places]


def _raw(system: System, column: Floats) -> Floats:
    if np.isnan(column).all():
        raise InputError(
            f"{system.name!r} has no score: {system.columns[0]} was never measured; leave the system out, or measure it"
        )
    return np.where(np.isnan(column), np.nanmedian(column), column).T


def _places(system: System, names: Sequence[str]) -> list[int]:
    if unknown := [column for column in system.columns if column not in names]:
        raise InputError(f"{system.name!r} names {', '.join(unknown)}; the columns are {', '.join(names)}")
    if not system.trained and len(system.columns) != 1:
        raise InputError(f"{system.name!r} is untrained, so it needs one column, not {len(system.columns)}")
    return [names.index(column) for column in system.columns]


def best_aggregator(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    names: Sequence[str],
    draws: int = 1000,
    aggregators: Collection[AggregatorKind] | None = None,
    **folding: Unpack[Folding],
) -> tuple[AggregatorKind, EvaluationTable, NDArray[np.float64]]:
    """Choose the kind of aggregator with the highest AUROC in cross-validation on the same folds.

    The data and folds are as in :func:`out_of_fold_scores`; ``aggregators`` None compares those of
    :func:`aggregator_systems`. The first result is the kind with the highest AUROC, averaged over the repeats; of
    equals, the simplest. Then comes the table of all kinds, the simplest first: the figure of the best is slightly
    optimistic, since it decided the choice, and the interval of its gain shows how certain the choice is. Last come the
    out-of-fold P(faithful) by that kind, (repeats, N).
    """
    systems = aggregator_systems(names, aggregators=aggregators)
    scores = out_of_fold_scores(X, y, groups, names=names, systems=systems, **folding)
    numbers = fold_numbers(y, groups, **folding)
    table = auroc_table(scores, y, groups, folds=numbers, draws=draws, seed=folding.get("seed", 0))
    best = best_system(table)
    return cast(AggregatorKind, best), table, scores[best]


def ablation_systems(names: Sequence[str], signals: Mapping[str, Sequence[str]]) -> tuple[System, ...]:
    """Make the system with all columns and, for each signal, the system with all other columns.

    ``signals`` has columns by signal, as :func:`~syncheck.features.schemas.feature_groups` returns them. The systems
    are named ``"all features"`` and ``"without <signal>"``, in the order of ``signals``. Fewer than two signals raise
    InputError.
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
    **folding: Unpack[Folding],
) -> dict[str, NDArray[np.float64]]:
    """Score every sentence out of fold, as it is and with each signal taken from another sentence of its fold.

    Nothing is trained again, so the drop in AUROC shows how much the aggregator uses the signal, whereas
    :func:`ablation_systems`, which takes the same ``signals``, shows how much the others can replace it. The columns of
    a signal are permuted together, once for each fold and repeat, drawn with ``seed + repeat``: permutation importance
    (Breiman, 2001) by groups of columns. The result has P(faithful), (repeats, N), with ``"all features"``, then with
    ``"<signal> permuted"``. A column that is not among ``names`` raises InputError.
    """
    if unknown := sorted({column for columns in signals.values() for column in columns} - set(names)):
        raise InputError(f"signals name {', '.join(unknown)}; the columns are {', '.join(names)}")
    places = {signal: [names.index(column) for column in columns] for signal, columns in signals.items()}
    numbers, seed = fold_numbers(y, groups, **folding), folding.get("seed", 0)
    scores = {name: np.full(numbers.shape, np.nan) for name in (ALL_FEATURES, *map(_permuted, signals))}
    randomness = [np.random.default_rng(seed + repeat) for repeat in range(len(numbers))]
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
