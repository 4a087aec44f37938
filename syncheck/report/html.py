"""Reports as one HTML page: no script, no other file, nothing fetched."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from syncheck.report.colours import tint
from syncheck.report.labels import BANDS
from syncheck.report.layout import case_view, glossary

if TYPE_CHECKING:
    from syncheck.report.report import Case

__all__ = ["render_fragment", "render_html"]


def render_html(cases: Sequence[Case], *, title: str = "Faithfulness report") -> str:
    """Draw questions with their answers side by side as a complete page.

    Parameters
    ----------
    cases
        What to draw; an empty sequence gives a page that says so.
    title
        Heading of the page.

    Returns
    -------
    str
        An HTML document. Each sentence is coloured by its score and carries the score, a pattern and a word
        too, so that it can be read without colour and in print; its signals, tokens and evidence unfold.
        All text is escaped.
    """
    return _render("page.html.j2", cases, title=title, prefix="")


def render_fragment(cases: Sequence[Case]) -> str:
    """Draw the same without the page around it, for a notebook: its style reaches nothing outside it."""
    digest = zlib.crc32(repr([(c.question, c.answers) for c in cases]).encode())
    return _render("fragment.html.j2", cases, title="", prefix=f"r{digest:08x}-")


def _render(template: str, cases: Sequence[Case], *, title: str, prefix: str) -> str:
    views = [case_view(case, number, prefix=prefix) for number, case in enumerate(cases, 1)]
    page = _templates().get_template(template)
    scale = [tint(score) for score in (0.0, 0.5, 1.0)]
    return page.render(title=title, cases=views, bands=BANDS, scale=scale, glossary=glossary(cases))


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
