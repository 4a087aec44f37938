"""A picture of how far P(faithful) is what it says: share of faithful sentences against mean score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from syncheck.report.plots import check_plot, wrapped

if TYPE_CHECKING:
    from syncheck.training import ReliabilityBin

__all__ = ["save_reliability_diagram"]

LARGEST_DOT = 200.0
"""Area, in square points, of the dot of a bin that holds all sentences."""

_SIDE_INCHES = 4.5
_LINE_INCHES = 0.22
_NAME_CHARACTERS = 48
_DPI = 150


def save_reliability_diagram(path: str | Path, bins: Mapping[str, Sequence[ReliabilityBin]]) -> None:
    """Draw one line for each set of scores; a dot's area is its bin's share of the sentences.

    Parameters
    ----------
    path
        Its ending is the format: ``.png``, ``.pdf``, ``.svg``.
    bins
        Name of the scores -> their bins, from :func:`syncheck.training.reliability_bins`.

    Raises
    ------
    InputError
        If the folder does not exist, or the ending is none that matplotlib writes.
    MissingExtraError
        If matplotlib is not installed.
    """
    check_plot(path)
    from matplotlib.figure import Figure

    names = {name: wrapped(name, _NAME_CHARACTERS) for name in bins}
    lines = 1 + sum(1 + name.count("\n") for name in names.values())
    figure = Figure(figsize=(_SIDE_INCHES, _SIDE_INCHES + _LINE_INCHES * lines), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle="--", label="a score is what it says")
    for name, found in bins.items():
        total = sum(b.sentences for b in found)
        scores, shares = [b.mean_score for b in found], [b.faithful for b in found]
        areas = [LARGEST_DOT * b.sentences / total for b in found]
        (line,) = axes.plot(scores, shares, linewidth=1, label=names[name])
        # dots at 0 and 1 are drawn whole, and show those below them
        axes.scatter(scores, shares, s=areas, color=line.get_color(), alpha=0.7, clip_on=False, zorder=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="mean score", ylabel="share of faithful sentences")
    figure.legend(loc="outside lower center", frameon=False)  # inside it would lie on the curves
    figure.savefig(path, dpi=_DPI)
