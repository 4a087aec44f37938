"""Plots drawn with matplotlib: values with their intervals, curves, and reliability."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syncheck.base.errors import InputError, MissingExtraError
from syncheck.evaluation.metrics import ReliabilityBin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INK = "#1e5386"  # the blue of the reports
_DPI = 150
_MARGIN_INCHES = 0.08
_ROW_INCHES = 0.3
_LINE_ROWS = 0.6  # height of each further line of a name or title
_NAME_CHARACTERS = 36
_PANEL_TITLE_CHARACTERS = 48
_LARGEST_DOT = 200.0  # area, in square points, of the dot of a bin with all sentences
_SIDE_INCHES = 4.5
_LINE_INCHES = 0.22
_LEGEND_CHARACTERS = 48


@dataclass(frozen=True, slots=True)
class IntervalPanel:
    """Named values with intervals; a NaN value is drawn as "not measured", and a NaN interval is left out."""

    title: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def check_plot(path: str | Path) -> None:
    """Refuse a plot that cannot be written, before the work for it is done."""
    _figure(1.0, 1.0, path)


def plot_intervals(panels: Sequence[IntervalPanel], path: str | Path, *, label: str) -> None:
    """Draw panels one below the other, with a row for each name, and write them to a file.

    ``label`` names the values, with their unit; the ending of ``path`` is the format: ``.png``, ``.pdf``, ``.svg``.
    """
    if not panels:
        raise InputError("expected at least one panel to plot; found none")
    heights = [_rows(panel) for panel in panels]
    figure = _figure(7.0, _ROW_INCHES * sum(heights) + 1.2, path)
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for axis, panel in zip(axes, panels, strict=True):
        rows = range(len(panel.names))
        for row, value, low, high in zip(rows, panel.values, panel.low, panel.high, strict=True):
            if not math.isnan(low):
                axis.plot([low, high], [row, row], color=_INK, linewidth=1.5)
            if math.isnan(value):
                # x is a share of the panel's width: such a row has no place among the values
                at = axis.get_yaxis_transform()
                axis.text(0.01, row, "not measured", transform=at, va="center", color="0.4", style="italic")
            else:
                axis.plot([value], [row], marker="o", color=_INK, markersize=5)
        axis.set_yticks(list(rows), [wrapped(name, _NAME_CHARACTERS) for name in panel.names])
        axis.set_ylim(len(panel.names) - 0.5, -0.5)
        axis.set_title(wrapped(panel.title, _PANEL_TITLE_CHARACTERS), loc="left", fontsize="medium")
        axis.grid(axis="x", alpha=0.3)
    axes[-1].set_xlabel(wrapped(label, _PANEL_TITLE_CHARACTERS))
    figure.savefig(path, dpi=_DPI)


def plot_curve(x: Sequence[float], y: Sequence[float], path: str | Path, *, labels: tuple[str, str]) -> None:
    """Draw shares in [0, 1] against each other and write the plot to a file; errors as in :func:`check_plot`."""
    figure = _figure(5.0, 4.0, path)
    axis = figure.subplots()
    axis.plot(x, y, color=_INK, linewidth=1.5)
    axis.set(xlim=(0, 1), xlabel=labels[0], ylabel=labels[1])
    axis.grid(alpha=0.3)
    figure.savefig(path, dpi=_DPI)


def save_reliability_diagram(path: str | Path, bins: Mapping[str, Sequence[ReliabilityBin]]) -> None:
    """Draw one line for each set of scores; the area of a dot is proportional to its bin's share of sentences."""
    names = {name: wrapped(name, _LEGEND_CHARACTERS) for name in bins}
    lines = 1 + sum(1 + name.count("\n") for name in names.values())
    figure = _figure(_SIDE_INCHES, _SIDE_INCHES + _LINE_INCHES * lines, path)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle="--", label="perfectly calibrated")
    for name, own in bins.items():
        total = sum(b.sentences for b in own)
        scores, shares = [b.mean_score for b in own], [b.faithful for b in own]
        areas = [_LARGEST_DOT * b.sentences / total for b in own]
        (line,) = axes.plot(scores, shares, linewidth=1, label=names[name])
        # dots at 0 and 1 are drawn whole, and show those below them
        axes.scatter(scores, shares, s=areas, color=line.get_color(), alpha=0.7, clip_on=False, zorder=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="mean score", ylabel="share of faithful sentences")
    figure.legend(loc="outside lower center", frameon=False)  # inside it would lie on the curves
    figure.savefig(path, dpi=_DPI)


def wrapped(text: str, characters: int) -> str:
    """Wrap a text in lines of at most this many characters; dollar signs are escaped so that none begins a formula."""
    return "\n".join(textwrap.wrap(text, characters)).replace("$", r"\$")


def _rows(panel: IntervalPanel) -> float:
    """Compute the height of a panel in rows of one line; each row takes as many lines as the longest name."""
    name_breaks = max(wrapped(name, _NAME_CHARACTERS).count("\n") for name in panel.names)
    title_breaks = wrapped(panel.title, _PANEL_TITLE_CHARACTERS).count("\n")
    return len(panel.names) * (1 + _LINE_ROWS * name_breaks) + 1 + _LINE_ROWS * title_breaks


def _figure(width: float, height: float, path: str | Path) -> Figure:
    with MissingExtraError.unless("matplotlib", "plots"):
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder does not exist; create it first")
    margins = ConstrainedLayoutEngine(w_pad=_MARGIN_INCHES, h_pad=_MARGIN_INCHES)
    figure = Figure(figsize=(width, height), layout=margins)
    formats = figure.canvas.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in formats:
        raise InputError(f"expected a plot's name to end in one of {', '.join(sorted(formats))}; found {path.name!r}")
    return figure
