"""Answers with labels of their characters into views: decides what stands where on the page of spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncheck.files import RefusedRecord
from syncheck.report.labels import ShadeView, shades_of
from syncheck.spans.items import SpanItem, SpanLabels

__all__ = ["LabelsView", "LanguageView", "SpanAnswer", "SpanReport", "SpanView", "language_views", "span_view"]


@dataclass(frozen=True, slots=True)
class SpanAnswer:
    """An answer with the labels that a detector gave it.

    Attributes
    ----------
    item : SpanItem
        Labels that it carries are shown too, as the annotators'.
    labels : SpanLabels
        What the detector found.
    notes : tuple of str
        What a reader should know of how it was measured.
    """

    item: SpanItem
    labels: SpanLabels
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelsView:
    """One way to label the response: who did, how much of it is called wrong, the response in shades."""

    source: str
    facts: str
    shades: tuple[ShadeView, ...]


@dataclass(frozen=True, slots=True)
class SpanView:
    """An answer with everything beside it; ``lang`` is empty where unknown."""

    anchor: str
    name: str
    lang: str
    question: str
    labelled: tuple[LabelsView, ...]
    passages: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LanguageView:
    """A language on the page, with the anchor of its first answer."""

    lang: str
    answers: int
    anchor: str


def span_view(answer: SpanAnswer, number: int, *, method: str, prefix: str) -> SpanView:
    """Return the view of an answer; ``prefix`` keeps the anchors of several pages in one document apart."""
    item = answer.item
    labelled = [_labels_view(method, item.response, answer.labels)]
    if item.labels is not None:
        labelled.append(_labels_view("annotators", item.response, item.labels))
    name = " · ".join(part for part in (item.id, item.lang, item.generator) if part)
    return SpanView(
        f"{prefix}s{number}", name, item.lang.lower(), item.question, tuple(labelled), item.passages, answer.notes
    )


def language_views(views: Sequence[SpanView]) -> tuple[LanguageView, ...]:
    """Return the languages of a page in the order of their first answers."""
    found: dict[str, list[str]] = {}
    for view in views:
        found.setdefault(view.lang, []).append(view.anchor)
    return tuple(LanguageView(lang, len(anchors), anchors[0]) for lang, anchors in found.items())


def _labels_view(source: str, response: str, labels: SpanLabels) -> LabelsView:
    shades = shades_of(response, labels)
    marked = sum(len(shade.text) for shade in shades if shade.marked)
    spans = len(labels.hard)
    facts = f"{spans} span{'' if spans == 1 else 's'}, {marked} of {len(response)} characters"
    return LabelsView(source, facts, shades)


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
        from syncheck.report.html import render_spans

        return render_spans(self.answers, method=self.method, title=title, refused=self.refused)

    def _repr_html_(self) -> str:
        from syncheck.report.html import render_spans_fragment

        return render_spans_fragment(self.answers, method=self.method, refused=self.refused)
