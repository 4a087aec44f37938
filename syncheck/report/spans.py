"""Answers with their wrong characters, and the page that shows them beside question and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncheck.jsonlines import RefusedRecord
from syncheck.report.html import render_spans, render_spans_fragment
from syncheck.report.span_layout import SpanAnswer

__all__ = ["SpanReport"]


@dataclass(frozen=True, slots=True)
class SpanReport:
    """Answers whose characters were searched for what is wrong.

    Attributes
    ----------
    answers : sequence of SpanAnswer
        In the order of the page.
    method : str
        Name of the detector.
    refused : sequence of RefusedRecord
        Those that could not be searched.
    """

    answers: Sequence[SpanAnswer]
    method: str
    refused: Sequence[RefusedRecord] = ()

    def to_html(self, *, title: str = "Which words are wrong") -> str:
        """Return a complete page that needs no other file, see :func:`syncheck.report.render_spans`."""
        return render_spans(self.answers, method=self.method, title=title, refused=self.refused)

    def _repr_html_(self) -> str:
        return render_spans_fragment(self.answers, method=self.method, refused=self.refused)
