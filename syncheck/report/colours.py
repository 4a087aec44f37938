"""Colours of scores, and shades of marked words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from syncheck.spans.items import SpanLabels, risk_of
from syncheck.spans.words import cluster_borders

__all__ = ["ShadeView", "Tint", "shades_of", "tint"]


_Rgb = tuple[int, int, int]
# All common kinds of colour blindness keep orange and blue apart.
_LIGHT: tuple[_Rgb, _Rgb, _Rgb] = ((0xF4, 0xA2, 0x6B), (0xF6, 0xEF, 0xDF), (0x9C, 0xC9, 0xEE))
_DARK: tuple[_Rgb, _Rgb, _Rgb] = ((0x8F, 0x43, 0x14), (0x3B, 0x38, 0x32), (0x1E, 0x53, 0x86))


@dataclass(frozen=True, slots=True)
class Tint:
    """A background as two CSS colours, for a light and for a dark page."""

    light: str
    dark: str


def tint(score: float) -> Tint:
    """Return the background of a score in [0, 1]; text in the page's ink stays readable on all of them."""
    return Tint(_mix(_LIGHT, score), _mix(_DARK, score))


def _mix(ends: tuple[_Rgb, _Rgb, _Rgb], score: float) -> str:
    low, middle, high = ends
    left, right, part = (low, middle, 2 * score) if score < 0.5 else (middle, high, 2 * score - 1)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(left, right, strict=True))


_DECIMALS = 2


@dataclass(frozen=True, slots=True)
class ShadeView:
    """Characters that look alike: ``shade`` is their risk in [0, 1], ``marked`` whether they are called wrong."""

    text: str
    shade: float
    marked: bool


def shades_of(text: str, labels: SpanLabels, *, start: int = 0, stop: int | None = None) -> tuple[ShadeView, ...]:
    """Cut a part of a text where its labels change.

    Parameters
    ----------
    text
        The response that the labels are of.
    labels
        Offsets in code points. Where a border lies within what a reader sees as one character, all of it has the
        highest risk, and is marked if any of it is: half a letter cannot be shaded.
    start, stop
        The part, half-open; the whole text without them.

    Returns
    -------
    tuple of ShadeView
        In order; their texts, joined, are the part. Risks have two decimals.

    Raises
    ------
    InputError
        If a span does not lie in the text.
    """
    risk = risk_of(labels.soft, len(text)).round(_DECIMALS)
    marked = np.zeros(len(text), dtype=np.bool_)
    for first, last in labels.hard:
        marked[first:last] = True
    last = len(text) if stop is None else stop
    borders = sorted({start, last, *(b for b in cluster_borders(text) if start < b < last)})
    seen = [(text[a:b], float(risk[a:b].max()), bool(marked[a:b].any())) for a, b in pairwise(borders)]
    runs = groupby(seen, key=lambda one: one[1:])
    return tuple(ShadeView("".join(one[0] for one in run), *look) for look, run in runs)
