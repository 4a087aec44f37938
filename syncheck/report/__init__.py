"""What is shown of a scored response: dictionaries, tables, text for a terminal and one HTML file."""

from __future__ import annotations

from syncheck.report.html import render_fragment, render_html
from syncheck.report.report import Answer, Case, Report
from syncheck.report.terminal import render_text, wants_colour
from syncheck.report.trace import TraceNode

__all__ = ["Answer", "Case", "Report", "TraceNode", "render_fragment", "render_html", "render_text", "wants_colour"]
