"""What every way of finding spans has in common, and the two that need no look at the response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from syncheck.spans import SpanItem, SpanLabels, labels_of

__all__ = ["MarkAll", "MarkNone", "SpanDetector"]


class SpanDetector(Protocol):
    """Finds hallucinated spans."""

    @property
    def name(self) -> str:
        """For tables."""
        ...

    def detect(self, item: SpanItem) -> SpanLabels:
        """Return the labels of a response; those it carries are not looked at."""
        ...


@dataclass(frozen=True, slots=True)
class MarkAll:
    """Calls every character hallucinated, with risk 1 (a baseline of the shared task)."""

    name: str = "mark-all"

    def detect(self, item: SpanItem) -> SpanLabels:
        """Return one span over the response; see :class:`SpanDetector`."""
        size = len(item.response)
        return labels_of(np.ones(size), np.ones(size, dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class MarkNone:
    """Calls nothing hallucinated (a baseline of the shared task)."""

    name: str = "mark-none"

    def detect(self, item: SpanItem) -> SpanLabels:
        """Return no span; see :class:`SpanDetector`."""
        return SpanLabels((), ())
