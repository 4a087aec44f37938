"""The table that says what a signal is worth: AUROC of several systems on the same folds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.config import AggregatorKind
from syncheck.errors import InputError
from syncheck.training.auroc import Draws, interval
from syncheck.training.crossval import FoldFeatures, cross_validate
from syncheck.training.systems import System

__all__ = ["EvaluationRow", "EvaluationTable", "auroc_table", "out_of_fold_scores"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One system on one set of sentences; intervals are 95 %.

    NaN where a label is absent; the intervals also where a label is in one group only.

    Attributes
    ----------
    system, subset : str
        ``subset`` is ``"all"`` or a generator, a task, ...
    auroc, low, high : float
        P(a faithful sentence scores above an unfaithful one), in [0, 1].
    gain, gain_low, gain_high : float
        AUROC minus that of the table's first system on the same resamples.
    sentences, unfaithful : int
    """

    system: str
    subset: str
    auroc: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float
    sentences: int
    unfaithful: int


@dataclass(frozen=True, slots=True)
class EvaluationTable:
    """Rows by subset, then system; the first system is the one that the others are compared with."""

    rows: tuple[EvaluationRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the rows for JSON; NaN becomes None."""
        return {
            "rows": [
                {
                    key: None if isinstance(value, float) and math.isnan(value) else value
                    for key, value in asdict(row).items()
                }
                for row in self.rows
            ]
        }

    def to_text(self) -> str:
        """Return the table as plain text, a block per subset."""
        width = max(len(row.system) for row in self.rows)
        reference = self.rows[0].system
        lines: list[str] = []
        subset = None
        for row in self.rows:
            if row.subset != subset:
                subset = row.subset
                lines += ["", f"{subset}: {row.sentences} sentences, {row.unfaithful} unfaithful"]
            line = f"  {row.system:<{width}}  {row.auroc:.3f} {_shown(row.low, row.high, '.3f')}"
            if row.system != reference:
                line += f"  {row.gain:+.3f} {_shown(row.gain_low, row.gain_high, '+.3f')}"
            lines.append(line)
        note = f"AUROC and, on the right, its difference from {reference}; 95 % intervals over groups"
        return "\n".join([note, *lines])


def out_of_fold_scores(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    names: Sequence[str],
    systems: Sequence[System],
    kind: AggregatorKind = "mlp",
    folds: int = 5,
    repeats: int = 5,
    seed: int = 0,
) -> dict[str, Floats]:
    """Score every sentence with every system, trained ones out of fold and on the same folds.

    Parameters
    ----------
    X : array-like of shape (N, F), or callable
    y, groups : array-like of shape (N,)
        As in :func:`~syncheck.training.crossval.cross_validate`.
    names
        Names of the F columns.
    systems
        What to compare.
    kind, folds, repeats, seed
        As in :func:`~syncheck.training.crossval.cross_validate`.

    Returns
    -------
    dict of str to ndarray of shape (R, N), float64
        By name of the system; R is 1 for an untrained one. Where an untrained one was not measured it takes the
        median of its column.

    Raises
    ------
    InputError
        If a system names a column that is not there, or is untrained and not exactly one measured column.
    """
    features_for: FoldFeatures = X if callable(X) else partial(_given, np.asarray(X, dtype=np.float64))
    scores = {}
    for system in systems:
        columns = partial(_columns, features_for, _places(system, names))
        if system.trained:
            chosen = system.kind or kind
            scores[system.name] = cross_validate(
                columns, y, groups, kind=chosen, folds=folds, repeats=repeats, seed=seed
            )
        else:
            scores[system.name] = _raw(system, columns(np.arange(len(np.asarray(y)))))
    return scores


def auroc_table(
    scores: Mapping[str, Floats],
    y: ArrayLike,
    groups: ArrayLike,
    *,
    by: Mapping[str, Sequence[str]] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> EvaluationTable:
    """Compare systems by AUROC, on all sentences and on parts of them.

    Parameters
    ----------
    scores : mapping of str to ndarray of shape (R, N), float64
        By name of the system, one row per repeat. The AUROC is computed in each repeat and averaged.
    y, groups : array-like of shape (N,)
        Labels (1 faithful, 0 unfaithful) and the unit of the bootstrap.
    by
        What to divide by besides, such as ``{"generator": [...]}`` with N names; each name makes a subset.
    draws
        Resamples of the groups; those in which a subset lacks a label are left out of its interval.
    seed
        Of the resamples.

    Raises
    ------
    InputError
        If a score is NaN or a length does not fit.
    """
    labels, resamples = np.asarray(y), Draws.of(np.asarray(groups), draws=draws, seed=seed)
    for name, values in scores.items():
        if values.ndim != 2 or values.shape[1] != len(labels) or np.isnan(values).any():
            raise InputError(f"scores of {name!r} must be (R, {len(labels)}) without NaN, found {values.shape}")
    rows: list[EvaluationRow] = []
    for subset, chosen in _subsets(len(labels), by or {}):
        rows += _rows(scores, labels, resamples, subset, chosen)
    return EvaluationTable(tuple(rows))


def _given(rows: Floats, train: NDArray[np.int64]) -> Floats:
    return rows


def _columns(features_for: FoldFeatures, places: Sequence[int], train: NDArray[np.int64]) -> Floats:
    return features_for(train)[:, list(places)]


def _shown(low: float, high: float, spec: str) -> str:
    return "[no interval]" if math.isnan(low) else f"[{low:{spec}}, {high:{spec}}]"


def _rows(
    scores: Mapping[str, Floats],
    y: NDArray[np.int64],
    resamples: Draws,
    subset: str,
    chosen: NDArray[np.bool_],
) -> Iterator[EvaluationRow]:
    reference: tuple[float, Floats] | None = None
    for system, values in scores.items():
        auroc, resampled = resamples.auroc(values, y, chosen)
        reference = reference or (auroc, resampled)
        yield EvaluationRow(
            system,
            subset,
            auroc,
            *interval(resampled),
            auroc - reference[0],
            *interval(resampled - reference[1]),
            sentences=int(chosen.sum()),
            unfaithful=int((chosen & (y == 0)).sum()),
        )


def _subsets(size: int, by: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    yield "all", np.ones(size, dtype=np.bool_)
    for what, values in by.items():
        if len(values) != size:
            raise InputError(f"{what!r} has {len(values)} names for {size} sentences")
        for value in sorted(set(values)):
            yield value, np.asarray(values) == value


def _raw(system: System, column: Floats) -> Floats:
    if np.isnan(column).all():
        raise InputError(f"{system.name!r} has no score: {system.columns[0]} was never measured")
    return np.where(np.isnan(column), np.nanmedian(column), column).T


def _places(system: System, names: Sequence[str]) -> list[int]:
    unknown = [column for column in system.columns if column not in names]
    if unknown:
        raise InputError(f"{system.name!r} names {', '.join(unknown)}; the columns are {', '.join(names)}")
    if not system.trained and len(system.columns) != 1:
        raise InputError(f"{system.name!r} is untrained, so it needs one column, not {len(system.columns)}")
    return [names.index(column) for column in system.columns]
