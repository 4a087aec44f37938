"""Scores every sentence of a retrieval-augmented answer for faithfulness, and watches the model that writes it."""

import lazy_loader

from syncheck.results.drawing import register_renderer

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# A report draws itself without importing what draws it.
register_renderer("page", "syncheck.report.html:render_html")
register_renderer("fragment", "syncheck.report.html:render_fragment")
register_renderer("text", "syncheck.report.terminal:render_text")
