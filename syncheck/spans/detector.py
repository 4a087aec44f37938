"""What a span detector is, and the sentences of a report with their spans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from syncheck.report import Report
from syncheck.spans.items import SoftSpan, SpanDetector, SpanItem, SpanLabels, labels_of
from syncheck.types import SentenceScore

__all__ = ["MarkAll", "MarkNone", "OpenedSentence", "opened"]


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


@dataclass(frozen=True, slots=True)
class OpenedSentence:
    """A sentence with its score, and the labels of its characters, placed in the response."""

    sentence: SentenceScore
    labels: SpanLabels


def opened(report: Report, detector: SpanDetector, *, lang: str = "") -> list[OpenedSentence]:
    """Return the sentences of a report with the spans that a detector finds in them.

    Parameters
    ----------
    report
        From a monitor.
    detector
        Looks at the whole response at once, with the question and the passages of the report's prompt.
    lang
        Code of the response's language, for detectors with a threshold for each.

    Returns
    -------
    list of OpenedSentence
        In the order of the response; a span over a border of sentences is in both, cut there. For the page,
        :meth:`syncheck.report.Report.opened`.
    """
    labels = detector.detect(report.span_item(lang=lang))
    return [OpenedSentence(sentence, _within(labels, sentence.start, sentence.end)) for sentence in report.sentences]


def _within(labels: SpanLabels, start: int, stop: int) -> SpanLabels:
    soft = (SoftSpan(max(s.start, start), min(s.end, stop), s.prob) for s in labels.soft)
    hard = ((max(a, start), min(b, stop)) for a, b in labels.hard)
    return SpanLabels(tuple(s for s in soft if s.start < s.end), tuple((a, b) for a, b in hard if a < b))
