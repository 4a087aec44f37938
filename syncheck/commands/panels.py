"""The rows of an evaluation as panels of a plot."""

from __future__ import annotations

from itertools import groupby

from syncheck.report.plots import IntervalPanel
from syncheck.training import EvaluationTable

__all__ = ["panels_of"]


def panels_of(name: str, table: EvaluationTable) -> list[IntervalPanel]:
    """Return one panel of AUROC for each subset of a table; ``name`` is that of the set."""
    panels = []
    for subset, grouped in groupby(table.rows, key=lambda row: row.subset):
        rows = list(grouped)
        panels.append(
            IntervalPanel(
                f"{name} set, {subset}",
                tuple(row.system for row in rows),
                tuple(row.auroc for row in rows),
                tuple(row.low for row in rows),
                tuple(row.high for row in rows),
            )
        )
    return panels
