"""Reports as HTML pages that need no other file, fetch nothing, and run no script but their own."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from syncheck.base.printable import counted
from syncheck.base.records import RefusedRecord
from syncheck.report import labels as wording
from syncheck.report.labels import shades_of
from syncheck.report.layout import case_view, glossary, legend
from syncheck.results.spans import SpanItem, SpanLabels
from syncheck.spans.words import reading_direction

if TYPE_CHECKING:
    from syncheck.results.report import Case


@dataclass(frozen=True, slots=True)
class SpanAnswer:
    """An answer with the labels that a detector gave it."""

    item: SpanItem
    """The answer; its own labels, if any, are shown as the annotators'."""
    labels: SpanLabels
    """Labels by the detector."""
    notes: tuple[str, ...] = ()
    """Remarks on the measurement."""


def _span_view(answer: SpanAnswer, number: int, method: str) -> dict[str, Any]:
    """Lay out an answer with its labellings, each with its source, extent and shades; ``lang`` is empty if unknown."""
    item, labelled = answer.item, []
    for source, labels in ((method, answer.labels), ("annotators", item.labels)):
        if labels is not None:
            shades = shades_of(item.response, labels)
            marked = sum(len(shade.text) for shade in shades if shade.marked)
            facts = f"{counted(len(labels.hard), 'span')}, {marked} of {len(item.response)} characters"
            labelled.append((source, facts, shades))
    return {
        "answer": answer,
        "anchor": f"s{number}",
        "name": " · ".join(part for part in (item.id, item.lang, item.generator) if part),
        "lang": item.lang.lower(),
        "labelled": labelled,
    }


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render_html(
    cases: Sequence[Case],
    *,
    title: str = "Faithfulness report",
    refused: Sequence[RefusedRecord] = (),
    prefix: str = "",
) -> str:
    """Draw questions with their answers side by side as a complete HTML page.

    Each sentence is coloured by its score and also has the score, a pattern and a word, so that it can be read without
    colour and in print; its signals, tokens and evidence unfold. All text is escaped.

    Parameters
    ----------
    cases
        Questions with their answers; an empty sequence gives a page that says so.
    title
        Heading of the page.
    refused
        Records that could not be used: the page counts them at the top and lists them, with reasons, at the end.
    prefix
        Prefix of all anchors, which makes the result a fragment of a page.
    """
    return _render(
        "body.html.j2",
        prefix,
        title=title,
        cases=[case_view(case, number, prefix=prefix) for number, case in enumerate(cases, 1)],
        refused=refused,
        legend=legend(cases),
        glossary=glossary(cases),
        opened=any(answer.report.spans is not None for case in cases for answer in case.answers),
    )


def render_fragment(cases: Sequence[Case]) -> str:
    """Draw cases as :func:`render_html` does, as a fragment for a notebook whose style affects nothing outside it.

    A prefix keeps the anchors of several fragments in one notebook apart.
    """
    digest = zlib.crc32(render_html(cases, title="").encode(errors="backslashreplace"))
    return render_html(cases, title="", prefix=f"r{digest:08x}-")


def render_spans(
    answers: Sequence[SpanAnswer],
    *,
    method: str,
    title: str = "Which words are wrong",
    refused: Sequence[RefusedRecord] = (),
) -> str:
    """Draw answers with the labels of their characters as a complete HTML page.

    Soft labels are shown as shades, hard labels are underlined, and annotators' labels, if any, come below; question
    and retrieved texts are next to them. Every text runs in the direction of most of its letters.

    ``method`` is the name of the detector; ``title`` and ``refused`` are as in :func:`render_html`.
    """
    views = [_span_view(answer, number, method) for number, answer in enumerate(answers, 1)]
    languages: dict[str, list[str]] = {}
    for view in views:
        languages.setdefault(view["lang"], []).append(view["anchor"])
    return _render(
        "spans.html.j2",
        "",
        title=title,
        method=method,
        answers=views,
        annotated=any(answer.item.labels is not None for answer in answers),
        languages=languages,
        refused=refused,
    )


def render_label_page(data: Mapping[str, Any], *, name: str, title: str = "Label sentences") -> str:
    """Draw a page on which people label sentences; it contains its script, and fetches and sends nothing.

    ``data`` has ``records`` in the labelled format; ``open``, the sentences to label, in order, each with ``response``
    and ``sentence`` (indices), ``before``, ``text``, ``after`` and ``evidence``; ``whole``, true if all records are
    saved and not only those with a label; ``key``, by which the browser keeps the labels of each page apart. ``name``
    is that of the file.
    """
    return _templates().get_template("label.html.j2").render(data={**data, "name": name}, name=name, title=title)


def render_page(body: str, *, script: str, **values: object) -> str:
    """Draw a page with a script; the page's policy names the script's digest, so that no other script runs."""
    code = _templates().get_template(script).render()
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return _render(body, "", policy=f"{_POLICY}; script-src 'sha256-{digest}'", script=Markup(code), **values)  # noqa: S704


def _render(body: str, prefix: str, *, policy: str = _POLICY, **values: object) -> str:
    """Draw a page or, where its anchors have a prefix, a fragment of one."""
    template = _templates().get_template("fragment.html.j2" if prefix else "page.html.j2")
    return template.render(body=body, prefix=prefix, policy=policy, **values)


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    named = "after_end_words citation_verdicts citation_words contrast_lines decimal message_of no_answer tint"
    environment.filters |= {name: getattr(wording, name) for name in [*named.split(), "verdict", "why"]}
    environment.filters |= {"direction": reading_direction, "counted": counted}
    return environment
