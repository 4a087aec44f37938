"""AUROC on each source of an aggregator that was trained on the others: the table of ``carry_over.py``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.aggregators.kinds import AggregatorKind
from syncheck.base.checks import real_numbers
from syncheck.base.errors import InputError
from syncheck.base.printable import aligned
from syncheck.evaluation.metrics import (
    BootstrapSamples,
    FoldFeatures,
    bootstrap_interval,
    cross_validate,
    with_interval,
)
from syncheck.results.types import FeatureSchema, Floats

if TYPE_CHECKING:
    from syncheck.aggregators.monotone import MonotoneLogisticRegression


@dataclass(frozen=True, slots=True)
class Cell:
    """AUROC of one row's scores on one column's sentences, with its 95 % interval.

    Values are NaN if a label is missing, and the interval also if a label occurs in only one group.
    """

    auroc: float
    low: float
    high: float
    sentences: int
    unfaithful: int


@dataclass(frozen=True, slots=True)
class AurocMatrix:
    """Cells by system and source, and their means over the sources."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]

    def to_text(self) -> str:
        """Write the matrix as plain text."""
        lines = [(CORNER, *self.columns)]
        for row in self.rows:
            cells = (self.cells[row, column] for column in self.columns)
            lines.append((row, *(with_interval(c.auroc, c.low, c.high) for c in cells)))
        return "\n".join(["AUROC, 95 % intervals over groups", *aligned(lines)])


OVERLAPS = (
    *("content_overlap", "pair_overlap", "copied_run", "stem_overlap"),
    *("rarity_nearby", "pieces_2", "stems_2", "missing_rarity"),
)
"""Features that only compare words; the best of them on a source is a baseline there."""
NOTHING_TO_COMPARE = 0.8
"""Value for a feature that a sentence lacks, if the feature is the whole score."""
MEAN = "mean of sources"
CORNER = "system \\ source left out"


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
            y_there, every = labels[chosen], np.ones(int(chosen.sum()), dtype=bool)
            value, resampled = own.auroc(scores[None, chosen], y_there, every)
            sizes = len(y_there), int((y_there == 0).sum())
            cells[system, source] = Cell(value, *bootstrap_interval(resampled), *sizes)
            each.append(resampled)
        cells[system, MEAN] = _mean([cells[system, source] for source in resamples], np.mean(each, axis=0))
    return AurocMatrix(tuple(systems), (*resamples, MEAN), cells)


def with_best(matrix: AurocMatrix, rows: Collection[str], name: str) -> AurocMatrix:
    """Replace some rows with one that has the best of them in each column, and their mean without an interval.

    The best is chosen with the labels of the sentences it is tested on, so it is an optimistic baseline.
    """
    sources = [column for column in matrix.columns if column != MEAN]
    best = {c: max((matrix.cells[row, c] for row in rows), key=lambda cell: cell.auroc) for c in sources}
    cells = {key: cell for key, cell in matrix.cells.items() if key[0] not in rows}
    cells |= {(name, column): cell for column, cell in best.items()}
    cells[name, MEAN] = _mean(list(best.values()), np.full(1, np.nan))
    kept = tuple(row for row in matrix.rows if row not in rows)
    return AurocMatrix((*kept, name), matrix.columns, cells)


def _mean(cells: Sequence[Cell], resampled: Floats) -> Cell:
    return Cell(
        float(np.mean([cell.auroc for cell in cells])),
        *bootstrap_interval(resampled),
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
