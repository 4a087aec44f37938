"""Plots of tables: values with their intervals, and a matrix of values; matplotlib is asked for only here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syncheck.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["IntervalPanel", "check_plot", "plot_intervals", "plot_matrix"]

_INK = "#1e5386"  # the blue of the reports
_SCALE = "Blues"
_DPI = 150


@dataclass(frozen=True, slots=True)
class IntervalPanel:
    """Named values with their intervals, drawn as one panel.

    Attributes
    ----------
    title : str
    names : tuple of str
    values, low, high : tuple of float
        As many; NaN leaves a point or its interval out.
    """

    title: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def check_plot(path: str | Path) -> None:
    """Check that a plot can be written before the work that it is to show.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError
        If the folder does not exist, or the name ends in no format that matplotlib writes.
    """
    _check_path(_figure(1.0, 1.0), Path(path))


def plot_intervals(panels: Sequence[IntervalPanel], path: str | Path, *, label: str, title: str = "") -> None:
    """Draw panels below each other, one row a name, and write them to a file.

    Parameters
    ----------
    panels
        At least one.
    path
        Its ending is the format: ``.png``, ``.pdf``, ``.svg``.
    label
        What the values are, with their unit.
    title
        Of the whole.

    Raises
    ------
    InputError
        If there is no panel; otherwise as :func:`check_plot`.
    MissingExtraError
        If matplotlib is not installed.
    """
    if not panels:
        raise InputError("expected at least one panel to plot; found none")
    heights = [len(panel.names) + 1 for panel in panels]
    figure = _figure(7.0, 0.3 * sum(heights) + 1.2)
    _check_path(figure, Path(path))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for axis, panel in zip(axes, panels, strict=True):
        rows = range(len(panel.names))
        for row, value, low, high in zip(rows, panel.values, panel.low, panel.high, strict=True):
            if not math.isnan(low):
                axis.plot([low, high], [row, row], color=_INK, linewidth=1.5)
            if not math.isnan(value):
                axis.plot([value], [row], marker="o", color=_INK, markersize=5)
        axis.set_yticks(list(rows), list(panel.names))
        axis.set_ylim(len(panel.names) - 0.5, -0.5)
        axis.set_title(panel.title, loc="left", fontsize="medium")
        axis.grid(axis="x", alpha=0.3)
    axes[-1].set_xlabel(label)
    _write(figure, Path(path), title)


def plot_matrix(
    values: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    path: str | Path,
    *,
    label: str,
    row_label: str = "",
    column_label: str = "",
    title: str = "",
) -> None:
    """Draw a matrix as coloured cells with their values, and write it to a file.

    Parameters
    ----------
    values
        By row, then column; NaN leaves a cell empty.
    rows, columns
        Names.
    path
        As in :func:`plot_intervals`.
    label
        What the values are, with their unit.
    row_label, column_label, title
        What the rows and columns are, and the whole.

    Raises
    ------
    InputError
        If there is no value to draw; otherwise as :func:`check_plot`.
    MissingExtraError
        If matplotlib is not installed.
    """
    known = [value for row in values for value in row if not math.isnan(value)]
    if not known:
        raise InputError("expected at least one value to plot; found none that was measured")
    figure = _figure(2.5 + 1.1 * len(columns), 1.8 + 0.5 * len(rows))
    _check_path(figure, Path(path))
    axis = figure.subplots()
    low, high = min(known), max(known)
    image = axis.imshow([list(row) for row in values], cmap=_SCALE, vmin=low, vmax=high, aspect="auto")
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            if not math.isnan(value):
                ink = "white" if value > (low + high) / 2 else "black"
                axis.text(x, y, f"{value:.3f}", ha="center", va="center", color=ink)
    axis.set_xticks(range(len(columns)), list(columns), rotation=30, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(rows)), list(rows))
    axis.set_xlabel(column_label)
    axis.set_ylabel(row_label)
    figure.colorbar(image, ax=axis, label=label)
    _write(figure, Path(path), title)


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots") from error
    return Figure(figsize=(width, height), layout="constrained")


def _check_path(figure: Figure, path: Path) -> None:
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder does not exist; make it first")
    formats = figure.canvas.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in formats:
        raise InputError(f"expected a plot's name to end in one of {', '.join(sorted(formats))}; found {path.name!r}")


def _write(figure: Figure, path: Path, title: str) -> None:
    if title:
        figure.suptitle(title)
    figure.savefig(path, dpi=_DPI)
