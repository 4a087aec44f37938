"""Transfer: matrices of AUROC, trained on one part and tested on another."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.aggregators.kinds import AggregatorKind
from syncheck.base.checks import real_numbers
from syncheck.base.errors import InputError
from syncheck.base.printable import aligned
from syncheck.evaluation.metrics import (
    BootstrapSamples,
    FoldFeatures,
    Folding,
    bootstrap_interval,
    cross_validate,
    deviation,
    fold_numbers,
    json_number,
    with_interval,
)
from syncheck.results.types import FeatureSchema, Floats

if TYPE_CHECKING:
    from syncheck.aggregators.monotone import MonotoneLogisticRegression


@dataclass(frozen=True, slots=True)
class Cell:
    """AUROC of one row's scores on one column's sentences, with its 95 % interval.

    Values are NaN if a label is missing, and the interval also if a label occurs in only one group. ``deviation`` is
    the sample standard deviation over the repeats, NaN for a single one.
    """

    auroc: float
    low: float
    high: float
    deviation: float
    sentences: int
    unfaithful: int


EMPTY = Cell(float("nan"), float("nan"), float("nan"), float("nan"), 0, 0)


@dataclass(frozen=True, slots=True)
class AurocMatrix:
    """Cells by row and column; ``corner`` names both, and a pair without a cell has no sentences to score."""

    corner: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]

    @property
    def values(self) -> Floats:
        """AUROC, (rows, columns)."""
        return np.array([[self.cell(row, column).auroc for column in self.columns] for row in self.rows])

    def cell(self, row: str, column: str) -> Cell:
        """Look up a cell, which has NaN if there are no sentences to score."""
        return self.cells.get((row, column), EMPTY)

    def by_part(self) -> dict[str, list[tuple[str, Cell]]]:
        """Group the cells by column, with the names of their rows."""
        return {column: [(row, self.cell(row, column)) for row in self.rows] for column in self.columns}

    def to_dict(self) -> dict[str, Any]:
        """Convert the cells for JSON, row by row; NaN becomes None."""
        return {
            "corner": self.corner,
            "rows": list(self.rows),
            "columns": list(self.columns),
            "cells": [
                {"row": row, "column": column}
                | {name: json_number(getattr(self.cell(row, column), name)) for name in Cell.__dataclass_fields__}
                for row in self.rows
                for column in self.columns
            ],
        }

    def to_text(self) -> str:
        """Write the matrix as plain text."""
        lines = [(self.corner, *self.columns)]
        for row in self.rows:
            cells = [self.cell(row, column) for column in self.columns]
            spreads = ["" if np.isnan(c.deviation) else f" ±{c.deviation:.3f}" for c in cells]
            shown = [with_interval(c.auroc, c.low, c.high) + s for c, s in zip(cells, spreads, strict=True)]
            lines.append((row, *shown))
        return "\n".join(["AUROC, 95 % intervals over groups", *aligned(lines)])


def cell(scores: Floats, y: NDArray[np.int64], draws: BootstrapSamples, chosen: NDArray[np.bool_]) -> Cell:
    """Evaluate the ``chosen`` sentences (N,) as a cell, given scores (R, N) that are not NaN there."""
    value, resampled = draws.auroc(scores, y, chosen)
    spread = deviation(scores[:, chosen], y[chosen])
    return Cell(value, *bootstrap_interval(resampled), spread, int(chosen.sum()), int((chosen & (y == 0)).sum()))


PAPER_RUNS: Folding = {"repeats": 3, "same_folds": True}
"""Options of the paper's three runs, which differ in their seeds."""

OTHERS = "all others"
"""Name of the row whose aggregators were trained on all parts but the column's."""


def transfer_matrix(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    groups: ArrayLike,
    parts: Sequence[str],
    *,
    without: Collection[str] = (),
    aggregator: AggregatorKind = "mlp",
    draws: int = 1000,
    feature_names: Sequence[str] = (),
    **folding: Unpack[Folding],
) -> AurocMatrix:
    """Train on each part, and on all but each part, and measure the AUROC on every part.

    Every cell is cross-validated over groups: models are trained on the sentences of its row in the other folds, and
    score those of its column in this one. No question is therefore on both sides, even if the parts are answers of
    several generators to the same questions. Parts that share no group, such as several corpora, are split into folds
    separately, so that a small one is in every fold. For corpora that may have the same question in different groups,
    see :func:`~syncheck.training.grouped_by_question`.

    Data and folds are as in :func:`~syncheck.evaluation.metrics.cross_validate`, by default the paper's three runs,
    which differ in their seeds; ``parts`` has the generator, task or file of each sentence, and those in ``without``
    are neither trained nor tested on. Rows are the parts trained on, columns those tested on, both sorted; with more
    than two parts, the last row is :data:`OTHERS`. If there are fewer than two parts, or one has too few sentences of a
    label to train on, InputError is raised.
    """
    labels, names, questions = np.asarray(y), np.asarray(parts), np.asarray(groups)
    columns = _columns(names, len(labels), without)
    used = np.isin(names, columns)
    folding = PAPER_RUNS | folding
    seed, numbers = folding.get("seed", 0), np.zeros((folding["repeats"], len(labels)), np.int64)
    for together in _apart([names == column for column in columns], questions) or [np.ones(len(labels), np.bool_)]:
        numbers[:, together] = fold_numbers(labels[together], questions[together], **folding)
    _check_parts(columns, names, labels, numbers)
    scores = partial(
        cross_validate, X, labels, groups, aggregator=aggregator, seed=seed, numbers=numbers, names=feature_names
    )
    resamples = BootstrapSamples.of(questions, draws=draws, seed=seed)
    cells: dict[tuple[str, str], Cell] = {}
    for row in columns:
        row_scores = scores(train_on=names == row)
        cells |= {(row, column): cell(row_scores, labels, resamples, names == column) for column in columns}
    if len(columns) == 2:  # the others are then one part
        return AurocMatrix(_CORNER, columns, columns, cells)
    for column in columns:
        cells[OTHERS, column] = cell(scores(train_on=used & (names != column)), labels, resamples, names == column)
    return AurocMatrix(_CORNER, (*columns, OTHERS), columns, cells)


_CORNER = "trained on \\ tested on"


def _columns(parts: NDArray[np.str_], size: int, without: Collection[str]) -> tuple[str, ...]:
    if len(parts) != size:
        raise InputError(f"expected a part for each of {size} sentences; found {len(parts)}")
    names = set(parts.tolist())
    if unknown := sorted(set(without) - names):
        raise InputError(f"there is no part {', '.join(map(repr, unknown))}; the parts are {', '.join(sorted(names))}")
    columns = tuple(sorted(names - set(without)))
    if len(columns) < 2:
        raise InputError(f"a transfer needs at least two parts; found only {', '.join(map(repr, columns)) or 'none'}")
    return columns


def _apart(parts: Sequence[NDArray[np.bool_]], groups: NDArray[np.str_]) -> Sequence[NDArray[np.bool_]]:
    """List the parts if no group is in two of them, else none."""
    sizes = [len(np.unique(groups[part])) for part in parts]
    return parts if sum(sizes) == len(np.unique(groups[np.any(parts, axis=0)])) else ()


def _check_parts(
    columns: Sequence[str], parts: NDArray[np.str_], y: NDArray[np.int64], numbers: NDArray[np.int64]
) -> None:
    for column in columns:
        for number in numbers:
            for fold in np.unique(number):
                left = y[(parts == column) & (number != fold)]
                if len(np.unique(left)) < 2:
                    raise InputError(
                        f"part {column!r} has {int((left == 1).sum())} faithful and {int((left == 0).sum())} "
                        "unfaithful sentences outside a fold, and training needs both; use fewer folds or leave it out "
                        "(--without, without=)"
                    )


OVERLAPS = (
    *("content_overlap", "pair_overlap", "copied_run", "stem_overlap"),
    *("rarity_nearby", "pieces_2", "stems_2", "missing_rarity"),
)
"""Features that only compare words; the best of them on a source is a baseline there."""
NOTHING_TO_COMPARE = 0.8
"""Value for a feature that a sentence lacks, if the feature is the whole score."""
MEAN = "mean of sources"


def left_out_scores(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    sources: Sequence[str],
    *,
    aggregator: AggregatorKind | MonotoneLogisticRegression = "monotone",
    names: Sequence[str] = (),
    seed: int = 0,
) -> Floats:
    """Compute P(faithful) of each row, (N,), by an aggregator that was trained on the other sources.

    ``sources`` has the source of each row; other parameters are as in
    :func:`~syncheck.evaluation.metrics.cross_validate`.
    """
    labels, parts = real_numbers(y, "labels"), np.asarray(sources)
    _check_sources(labels, parts)
    numbers = np.unique(parts, return_inverse=True)[1].reshape(1, -1)
    scores: Floats
    (scores,) = cross_validate(X, labels, parts, aggregator=aggregator, numbers=numbers, names=names, seed=seed)
    return scores


def single_scores(X: ArrayLike, schema: FeatureSchema) -> dict[str, Floats]:
    """Turn each feature of known direction into a score (N,), by name; leave out those that were never measured."""
    columns = zip(schema.names, np.asarray(X, dtype=np.float64).T, schema.directions, strict=True)
    return {
        name: np.where(np.isnan(column), NOTHING_TO_COMPARE, column) * sign
        for name, column, sign in columns
        if sign and not np.isnan(column).all()
    }


def left_out_matrix(
    systems: Mapping[str, ArrayLike],
    y: ArrayLike,
    groups: ArrayLike,
    sources: Sequence[str],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> AurocMatrix:
    """Compute the AUROC of scores on each source, and the mean over the sources.

    ``systems`` have scores (N,) by name, higher for more faithful: from :func:`left_out_scores`, or signals as they
    are. ``groups`` are the units of the bootstrap; those with the same name in two sources count as two. If the shapes
    differ, or a score is NaN, InputError is raised.
    """
    labels, names = np.asarray(y).astype(np.int64), np.asarray(sources)
    resamples = {
        source: BootstrapSamples.of(np.asarray(groups)[names == source], draws=draws, seed=seed)
        for source in dict.fromkeys(names.tolist())
    }
    cells = {}
    for system, given in systems.items():
        each = []
        scores = np.asarray(given, dtype=np.float64)
        if scores.shape != labels.shape or np.isnan(scores).any():
            raise InputError(f"expected a score for each of {len(labels)} rows; {system!r} has NaN or {scores.shape}")
        for source, own in resamples.items():
            chosen = names == source
            every = np.ones(int(chosen.sum()), dtype=bool)
            cells[system, source] = cell(scores[None, chosen], labels[chosen], own, every)
            each.append(own.auroc(scores[None, chosen], labels[chosen], every)[1])
        cells[system, MEAN] = _mean([cells[system, source] for source in resamples], np.mean(each, axis=0))
    return AurocMatrix("system \\ source left out", tuple(systems), (*resamples, MEAN), cells)


def with_best(matrix: AurocMatrix, rows: Collection[str], name: str) -> AurocMatrix:
    """Replace some rows with one that has the best of them in each column, and their mean without an interval.

    The best is chosen with the labels of the sentences it is tested on, so it is an optimistic baseline.
    """
    sources = [column for column in matrix.columns if column != MEAN]
    best = {c: max((matrix.cell(row, c) for row in rows), key=lambda cell: cell.auroc) for c in sources}
    cells = {key: cell for key, cell in matrix.cells.items() if key[0] not in rows}
    cells |= {(name, column): cell for column, cell in best.items()}
    cells[name, MEAN] = _mean(list(best.values()), np.full(1, np.nan))
    kept = tuple(row for row in matrix.rows if row not in rows)
    return AurocMatrix(matrix.corner, (*kept, name), matrix.columns, cells)


def _mean(cells: Sequence[Cell], resampled: Floats) -> Cell:
    return Cell(
        float(np.mean([cell.auroc for cell in cells])),
        *bootstrap_interval(resampled),
        float("nan"),
        sum(cell.sentences for cell in cells),
        sum(cell.unfaithful for cell in cells),
    )


def _check_sources(y: NDArray[np.int64], names: NDArray[np.str_]) -> None:
    if len(y) != len(names):
        raise InputError(f"expected a source for each of {len(y)} labels; found {len(names)}")
    known = list(dict.fromkeys(names.tolist()))
    if len(known) < 2:
        raise InputError(f"leaving one source out needs at least two; found {', '.join(known) or 'none'}")
    for source in known:
        if len(np.unique(y[names != source])) < 2:
            raise InputError(f"without {source!r} only one label is left to train on; add sources with both")
