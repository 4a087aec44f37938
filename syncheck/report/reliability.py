"""A picture of how far P(faithful) is what it says: share of faithful sentences against mean score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from syncheck.report.plots import check_plot

if TYPE_CHECKING:
    from syncheck.training import ReliabilityBin

__all__ = ["save_reliability_diagram"]

LARGEST_DOT = 200.0
"""Area, in square points, of the dot of a bin that holds all sentences."""


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

    figure = Figure(figsize=(4.5, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle="--")
    for name, found in bins.items():
        total = sum(b.sentences for b in found)
        scores, shares = [b.mean_score for b in found], [b.faithful for b in found]
        (line,) = axes.plot(scores, shares, linewidth=1, label=name)
        axes.scatter(scores, shares, s=[LARGEST_DOT * b.sentences / total for b in found], color=line.get_color())
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="mean score", ylabel="share of faithful sentences")
    axes.legend(loc="upper left")
    figure.savefig(path)
