"""What is shown of a scored response: dictionaries, tables, text for a terminal and one HTML file."""

from __future__ import annotations

from syncheck.jsonlines import RefusedRecord
from syncheck.report.html import render_fragment, render_html, render_spans
from syncheck.report.report import Answer, Case, Report
from syncheck.report.span_layout import SpanAnswer
from syncheck.report.spans import SpanReport
from syncheck.report.terminal import render_text, wants_colour
from syncheck.report.trace import TraceNode

__all__ = [
    "Answer",
    "Case",
    "RefusedRecord",
    "Report",
    "SpanAnswer",
    "SpanReport",
    "TraceNode",
    "render_fragment",
    "render_html",
    "render_spans",
    "render_text",
    "wants_colour",
]
