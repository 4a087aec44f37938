"""Labels of characters as shades: where a background begins and ends, and what is underlined."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from syncheck.spans import SpanLabels, cluster_borders, risk_of

__all__ = ["ShadeView", "shades_of"]

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
