"""Rows of cells as plain text in columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from syncheck.printable import printable

__all__ = ["aligned", "json_number", "with_interval"]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Pad cells to the widest of their column, the columns two spaces apart; columns without any text are left out.

    What would steer a terminal is written out.

    Returns
    -------
    list of str
        One line for each row, without white space at its end.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max((len(cell) for cell in column), default=0) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width).rstrip() for row in rows
    ]


def with_interval(value: float, low: float, high: float, spec: str = ".3f") -> str:
    """Write a value with its interval; ``-`` where the value is NaN, ``[no interval]`` where only the interval is."""
    if math.isnan(value):
        return "-"
    return f"{value:{spec}} [no interval]" if math.isnan(low) else f"{value:{spec}} [{low:{spec}}, {high:{spec}}]"


def json_number(value: object) -> object:
    """Return a value as JSON can hold it: NaN becomes None."""
    return None if isinstance(value, float) and math.isnan(value) else value
