"""Page of span labels: answers whose characters were searched for errors, and the views that the template draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncheck.base.printable import counted
from syncheck.base.records import RefusedRecord
from syncheck.report.labels import ShadeView, shades_of
from syncheck.results.drawing import renderer
from syncheck.results.spans import SpanItem, SpanLabels


@dataclass(frozen=True, slots=True)
class SpanAnswer:
    """An answer with the labels that a detector gave it."""

    item: SpanItem
    """The answer; its own labels, if any, are shown as the annotators'."""
    labels: SpanLabels
    """Labels by the detector."""
    notes: tuple[str, ...] = ()
    """Remarks on the measurement."""


@dataclass(frozen=True, slots=True)
class SpanReport:
    """Answers whose characters were searched for errors."""

    answers: Sequence[SpanAnswer]
    """In the order of the page."""
    method: str
    """Name of the detector."""
    refused: Sequence[RefusedRecord] = ()
    """Records that could not be searched, with the reasons."""

    def to_html(self, *, title: str = "Which words are wrong") -> str:
        """Return a complete HTML page that needs no other file; see :func:`syncheck.report.render_spans`."""
        return renderer("spans")(self.answers, method=self.method, title=title, refused=self.refused)

    def _repr_html_(self) -> str:
        return renderer("spans fragment")(self.answers, method=self.method, refused=self.refused)


@dataclass(frozen=True, slots=True)
class LabelsView:
    """The response in the shades of one labelling, with its source and extent."""

    source: str
    facts: str
    shades: tuple[ShadeView, ...]


@dataclass(frozen=True, slots=True)
class SpanView:
    """An answer with its labellings; ``lang`` is empty if unknown."""

    answer: SpanAnswer
    anchor: str
    name: str
    lang: str
    labelled: tuple[LabelsView, ...]


def span_view(answer: SpanAnswer, number: int, *, method: str, prefix: str) -> SpanView:
    """Return the view of an answer; ``prefix`` keeps the anchors of several pages in one document apart."""
    item = answer.item
    labelled = [_labels_view(method, item.response, answer.labels)]
    if item.labels is not None:
        labelled.append(_labels_view("annotators", item.response, item.labels))
    name = " · ".join(part for part in (item.id, item.lang, item.generator) if part)
    return SpanView(answer, f"{prefix}s{number}", name, item.lang.lower(), tuple(labelled))


def _labels_view(source: str, response: str, labels: SpanLabels) -> LabelsView:
    shades = shades_of(response, labels)
    marked = sum(len(shade.text) for shade in shades if shade.marked)
    facts = f"{counted(len(labels.hard), 'span')}, {marked} of {len(response)} characters"
    return LabelsView(source, facts, shades)
