"""Plots of an evaluation: faithfulness against informativeness, faithfulness@L, and the sweep over K and S."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decoding.figures import DecoderFigures, Estimate
from syncheck.base.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Curve", "plot_curves", "plot_sweep", "plot_tradeoff"]

INK, SECOND_INK = "#1e5386", "#a3541a"
MARKERS = "os^DvPXp<>d"
"""One more than there are colours, so that a colour that comes again has another marker."""
DPI = 150
ASIDE = 0.008
"""Of an axis: how far two points of one size are drawn to its sides, so that no interval covers another."""


def plot_tradeoff(figures: Mapping[str, DecoderFigures], path: str | Path) -> None:
    """Draw each decoder's faithfulness against its informativeness, and its faithfulness@L (paper, Figure 2).

    Parameters
    ----------
    figures
        By decoder; one without a faithfulness is left out.
    path
        Its ending is the format: ``.png``, ``.pdf``, ``.svg``.

    Raises
    ------
    InputError
        If there is nothing to draw, or the file cannot be written there.
    MissingExtraError
        If matplotlib is not installed.
    """
    shown = {name: found for name, found in figures.items() if found.faithfulness.value == found.faithfulness.value}
    if not shown:
        raise InputError("expected at least one decoder with a faithfulness to plot; found none")
    figure, (left, right) = _panels(11.0, 4.5)
    for number, (name, found) in enumerate(shown.items()):
        look = {"color": f"C{number}", "marker": MARKERS[number % len(MARKERS)]}
        x, y = found.informativeness, found.faithfulness
        left.errorbar(
            [x.value], [y.value], xerr=_bar([x]), yerr=_bar([y]), linestyle="", elinewidth=1, label=name, **look
        )
        lengths = range(1, len(found.faithfulness_at) + 1)
        right.plot(lengths, [e.value for e in found.faithfulness_at], markersize=4, **look)
        right.set_xticks(list(lengths))
    left.set_xlabel("informativeness (propositions an answer)")
    left.set_ylabel("faithfulness (share of propositions)")
    right.set_xlabel("first L sentences")
    right.set_ylabel("faithfulness@L")
    figure.legend(loc="outside right center", fontsize="small")
    _write(figure, path)


Curve = Sequence[tuple[str, Estimate, Estimate]]
"""Points of one decoder: a label, empty for none; sentences kept, relative to another decoder; faithfulness."""


def plot_curves(curves: Mapping[str, Curve], path: str | Path) -> None:
    """Draw faithfulness against the sentences kept, a line for each decoder, with bars at its labelled points.

    Parameters
    ----------
    curves
        By decoder.
    path
        As in :func:`plot_tradeoff`, whose errors it has.
    """
    if not any(curves.values()):
        raise InputError("expected at least one decoder with a point to plot; found none")
    figure, axes = _panels(7.5, 5.0, 1)
    (axis,) = axes
    for number, (name, points) in enumerate(curves.items()):
        colour = f"C{number}"
        known = [(label, kept, share) for label, kept, share in points if share.value == share.value]
        labelled = [point for point in known if point[0]]
        line = axis.plot([kept.value for _, kept, _ in known], [share.value for _, _, share in known], color=colour)
        if not labelled:
            line[0].set_label(name)
            continue
        axis.errorbar(
            [kept.value for _, kept, _ in labelled],
            [share.value for _, _, share in labelled],
            xerr=_bar([kept for _, kept, _ in labelled]),
            yerr=_bar([share for _, _, share in labelled]),
            linestyle="",
            elinewidth=1,
            color=colour,
            marker=MARKERS[number % len(MARKERS)],
            label=name,
        )
        for label, kept, share in labelled:
            axis.annotate(label, (kept.value, share.value), textcoords="offset points", xytext=(6, 6), color=colour)
    axis.set_xlabel("sentences kept, of greedy decoding's")
    axis.set_ylabel("faithfulness (share of propositions)")
    axis.legend(loc="lower left", fontsize="small")
    _write(figure, path)


def plot_sweep(
    beam_sizes: Mapping[int, DecoderFigures], samples: Mapping[int, DecoderFigures], path: str | Path
) -> None:
    """Draw faithfulness and informativeness by beam size and by sample size (paper, Figures 6 and 7).

    Parameters
    ----------
    beam_sizes, samples
        Figures by K, and by S.
    path
        As in :func:`plot_tradeoff`, whose errors it has.
    """
    if not beam_sizes or not samples:
        raise InputError("expected figures by K and by S to plot; found none of one of them")
    figure, axes = _panels(11.0, 4.5)
    for axis, found, label in zip(axes, (beam_sizes, samples), ("beam size K", "sample size S"), strict=True):
        sizes = sorted(found)
        aside = (sizes[-1] - sizes[0]) * ASIDE
        _curve(axis, [size - aside for size in sizes], [found[size].faithfulness for size in sizes], INK)
        second = axis.twinx()
        _curve(second, [size + aside for size in sizes], [found[size].informativeness for size in sizes], SECOND_INK)
        axis.set_xticks(sizes)
        axis.set_xlabel(label)
        axis.set_ylabel("faithfulness", color=INK)
        second.set_ylabel("informativeness", color=SECOND_INK)
    _write(figure, path)


def _curve(axis: Axes, sizes: Sequence[float], estimates: Sequence[Estimate], colour: str) -> None:
    axis.errorbar(sizes, [e.value for e in estimates], yerr=_bar(estimates), marker="o", capsize=3, color=colour)


def _bar(estimates: Sequence[Estimate]) -> list[list[float]]:
    """Lengths below and above the values, as matplotlib wants them; 0 where a value lies outside its interval."""
    return [[max(0.0, e.value - e.low) for e in estimates], [max(0.0, e.high - e.value) for e in estimates]]


def _panels(width: float, height: float, count: int = 2) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0]
    for axis in axes:
        axis.grid(alpha=0.3)
    return figure, axes


def _write(figure: Any, path: str | Path) -> None:  # noqa: ANN401 - matplotlib's own, imported where used
    try:
        figure.savefig(path, dpi=DPI)
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot write the plot to {str(path)!r}: {error}; name a file in a folder that exists, ending in .png, "
            ".pdf or .svg"
        ) from error
