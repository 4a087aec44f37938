"""AUROC of several scores on several parts of the data, as a matrix with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncheck.training.auroc import Draws, deviation, interval
from syncheck.training.text_table import aligned, json_number, with_interval

__all__ = ["AurocMatrix", "Cell", "cell"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cell:
    """AUROC of one row's scores on one column's sentences; intervals are 95 %.

    Attributes
    ----------
    auroc, low, high : float
        In [0, 1]; NaN where a label is absent, the interval also where a label is in one group only, and throughout
        where there is nothing to score.
    deviation : float
        Standard deviation over the repeats (of a sample: R - 1); NaN for a single one.
    sentences, unfaithful : int
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
    """Cells by row and column.

    Attributes
    ----------
    corner : str
        What rows and columns are.
    rows, columns : tuple of str
    cells : mapping of (str, str) to Cell
        By row and column; a pair that is not there has nothing to score.
    """

    corner: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]

    @property
    def values(self) -> Floats:
        """AUROC, (rows, columns)."""
        return np.array([[self.cell(row, column).auroc for column in self.columns] for row in self.rows])

    def cell(self, row: str, column: str) -> Cell:
        """Return a cell; one of NaN where there is nothing to score."""
        return self.cells.get((row, column), EMPTY)

    def to_dict(self) -> dict[str, Any]:
        """Return the cells for JSON, row by row; NaN becomes None."""
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
        """Return the matrix as plain text."""
        lines = [(self.corner, *self.columns)]
        for row in self.rows:
            found = [self.cell(row, column) for column in self.columns]
            lines.append((row, *(_shown(c) for c in found)))
        return "\n".join(["AUROC, 95 % intervals over groups", *aligned(lines)])


def cell(scores: Floats, y: NDArray[np.int64], draws: Draws, chosen: NDArray[np.bool_]) -> Cell:
    """Measure the chosen sentences.

    Parameters
    ----------
    scores : ndarray of shape (R, N), float64
        One row per repeat, not NaN where chosen.
    y : ndarray of shape (N,), int64
        1 faithful, 0 unfaithful.
    draws
        Resamples of the groups of all N.
    chosen : ndarray of shape (N,), bool
    """
    value, resampled = draws.auroc(scores, y, chosen)
    spread = deviation(scores[:, chosen], y[chosen])
    return Cell(value, *interval(resampled), spread, int(chosen.sum()), int((chosen & (y == 0)).sum()))


def _shown(found: Cell) -> str:
    text = with_interval(found.auroc, found.low, found.high)
    return text if np.isnan(found.deviation) else f"{text} ±{found.deviation:.3f}"
