"""Items of span detection: responses, labels of their spans, and the protocol of detectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from syncheck.base.checks import check_sequence, check_text, check_texts
from syncheck.base.errors import InputError


@dataclass(frozen=True, slots=True)
class SoftSpan:
    """Characters ``start`` to ``end``, half-open, with one risk ``prob``, in [0, 1]."""

    start: int
    end: int
    prob: float


@dataclass(frozen=True, slots=True)
class SpanLabels:
    """Labels of a response: soft ones with a risk, and hard ones, the half-open spans that are called hallucinated."""

    soft: tuple[SoftSpan, ...]
    hard: tuple[tuple[int, int], ...]

    def marked(self, characters: int) -> NDArray[np.bool_]:
        """Mark, in (C,) bool, each character of the response that is in a hard label."""
        marked = np.zeros(characters, dtype=np.bool_)
        for start, stop in self.hard:
            marked[start:stop] = True
        return marked

    def within(self, start: int, stop: int) -> Self:
        """Cut the labels to a part of the response, such as a sentence; offsets stay those of the response."""
        soft = (SoftSpan(max(s.start, start), min(s.end, stop), s.prob) for s in self.soft)
        hard = ((max(a, start), min(b, stop)) for a, b in self.hard)
        return type(self)(tuple(s for s in soft if s.start < s.end), tuple((a, b) for a, b in hard if a < b))


def hard_spans(soft: Sequence[SoftSpan]) -> tuple[tuple[int, int], ...]:
    """Find the spans with a risk above one half, joined where they touch, as the organisers of the task do."""
    runs: list[tuple[int, int]] = []
    for span in sorted((s for s in soft if s.prob > 0.5), key=lambda s: (s.start, s.end)):
        if runs and runs[-1][1] == span.start:
            runs[-1] = (runs[-1][0], span.end)
        else:
            runs.append((span.start, span.end))
    return tuple(runs)


_DECIMALS = 6


def labels_of(risk: NDArray[np.float64], marked: NDArray[np.bool_]) -> SpanLabels:
    """Build labels from the risk in [0, 1] of every character, and from marks of hallucinated ones, (C,) each.

    Risks are rounded to six decimals, and characters with risk 0 get no soft label. Other values raise InputError.
    """
    if risk.shape != marked.shape or risk.ndim != 1:
        raise InputError(f"expected one risk and one mark per character; found shapes {risk.shape} and {marked.shape}")
    if not np.all((risk >= 0) & (risk <= 1)):
        raise InputError("every risk must be in [0, 1]; found one outside, or NaN")
    soft = tuple(SoftSpan(*run) for run in _runs(np.round(risk, _DECIMALS)))
    return SpanLabels(soft, tuple((start, stop) for start, stop, _ in _runs(marked)))


def _runs(values: NDArray[Any]) -> list[tuple[int, int, float]]:
    borders = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    return [(a, b, values[a].item()) for a, b in pairwise(borders) if values[a:b].any()]


def risk_of(soft: Sequence[SoftSpan], characters: int) -> NDArray[np.float64]:
    """Compute the risk of every character, (C,) float64: 0 outside spans, and that of the last of overlapping ones."""
    risk = np.zeros(characters)
    for span in soft:
        if not 0 <= span.start <= span.end <= characters:
            raise InputError(
                f"a span must lie within the {characters} characters of its response; found {span.start} to {span.end}"
            )
        risk[span.start : span.end] = span.prob
    return risk


def likely_overlap(risk: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the characters, (C,) bool, with the largest expected intersection over union, given their risks in [0, 1].

    Characters are taken in order of risk, as many as maximise the ratio of the expected intersection (the sum of their
    risks) to the expected union (their number plus the risks of all others). The choice depends on the whole response:
    no single threshold suits both a response that is wrong throughout and one with a single wrong name. Characters
    with equal risk are marked together, and none if every risk is 0.
    """
    values, counts = np.unique(risk, return_counts=True)
    values, counts = values[::-1], np.cumsum(counts[::-1])  # from the highest risk down
    if not values.any():
        return np.zeros(len(risk), dtype=np.bool_)
    overlaps = np.cumsum(values * np.diff(counts, prepend=0))
    expected = overlaps / (counts + overlaps[-1] - overlaps)
    return np.asarray(risk >= values[np.argmax(expected)], dtype=np.bool_)


def label_dict(labels: SpanLabels) -> dict[str, Any]:
    """Convert labels to values that JSON can represent, under the names of the shared task."""
    return {
        "soft_labels": [{"start": s.start, "prob": s.prob, "end": s.end} for s in labels.soft],
        "hard_labels": [list(span) for span in labels.hard],
    }


@dataclass(frozen=True, slots=True)
class SpanItem:
    """A response in which to find hallucinated spans."""

    id: str
    lang: str
    """Two-letter code of the language, in upper or lower case."""
    question: str
    response: str
    passages: tuple[str, ...] = ()
    """Retrieved texts; empty if nothing was found."""
    tokens: tuple[str, ...] | None = None
    """Pieces of the generator's vocabulary that make up the response."""
    logits: tuple[float, ...] | None = None
    """Raw logits of these tokens: not normalised, so not comparable between models, or even steps of one, and never
    taken for log-probabilities."""
    generator: str = ""
    """Name of the model that wrote the response; empty if unknown."""
    source: str = ""
    """Page from which the question was made; empty if unknown."""
    labels: SpanLabels | None = None
    """The annotators' labels, if there are any."""

    def __post_init__(self) -> None:
        for name in ("id", "lang", "question", "response", "generator", "source"):
            check_text(getattr(self, name), name)
        check_texts(self.passages, "passages")
        if self.tokens is not None:
            check_texts(self.tokens, "tokens")
        if self.logits is not None:
            check_sequence(self.logits, "logits", of="numbers")


class SpanDetector(Protocol):
    """Protocol of a detector of hallucinated spans."""

    @property
    def name(self) -> str:
        """Name of the detector in tables."""

    def detect(self, item: SpanItem) -> SpanLabels:
        """Label a response; labels that the item already has are ignored."""
