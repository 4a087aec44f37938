"""A response whose words are checked, the labels of its spans, and the protocol of detectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from syncheck.errors import InputError
from syncheck.given import check_sequence, check_text, check_texts


@dataclass(frozen=True, slots=True)
class SoftSpan:
    """Characters ``start`` to ``end`` (half-open) with one risk, in [0, 1]."""

    start: int
    end: int
    prob: float


@dataclass(frozen=True, slots=True)
class SpanLabels:
    """Soft labels with a risk, and hard labels: the half-open spans that are called hallucinated."""

    soft: tuple[SoftSpan, ...]
    hard: tuple[tuple[int, int], ...]

    def marked(self, characters: int) -> NDArray[np.bool_]:
        """Return whether each character of the response is in a hard label, (C,) bool."""
        found = np.zeros(characters, dtype=np.bool_)
        for start, stop in self.hard:
            found[start:stop] = True
        return found

    def within(self, start: int, stop: int) -> Self:
        """Return the labels of a part of the response, such as a sentence, cut at its borders; offsets stay."""
        soft = (SoftSpan(max(s.start, start), min(s.end, stop), s.prob) for s in self.soft)
        hard = ((max(a, start), min(b, stop)) for a, b in self.hard)
        return type(self)(tuple(s for s in soft if s.start < s.end), tuple((a, b) for a, b in hard if a < b))


def hard_spans(soft: Sequence[SoftSpan]) -> tuple[tuple[int, int], ...]:
    """Return the spans that a majority marked (risk above one half), joined where they touch, as the organisers do."""
    found: list[tuple[int, int]] = []
    for span in sorted((s for s in soft if s.prob > 0.5), key=lambda s: (s.start, s.end)):
        if found and found[-1][1] == span.start:
            found[-1] = (found[-1][0], span.end)
        else:
            found.append((span.start, span.end))
    return tuple(found)


_DECIMALS = 6


def labels_of(risk: NDArray[np.float64], marked: NDArray[np.bool_]) -> SpanLabels:
    """Write a risk, in [0, 1], and whether it is called hallucinated, of every character, (C,) each, as labels.

    Risks are rounded to six decimals; characters of risk 0 get no soft label.
    """
    if risk.shape != marked.shape or risk.ndim != 1:
        raise InputError(f"expected one risk and one mark per character; found shapes {risk.shape} and {marked.shape}")
    if not np.all((risk >= 0) & (risk <= 1)):
        raise InputError("every risk must be in [0, 1]; found one outside, or NaN")
    soft = tuple(SoftSpan(*run) for run in _runs(np.round(risk, _DECIMALS).tolist()))
    return SpanLabels(soft, tuple((start, stop) for start, stop, _ in _runs(marked.tolist())))


def _runs(values: list[float]) -> list[tuple[int, int, float]]:
    """Return the runs of equal values above 0."""
    lengths = [(value, len(list(members))) for value, members in groupby(values)]
    stops = np.cumsum([0, *(length for _, length in lengths)]).tolist()
    return [(a, b, value) for (a, b), (value, _) in zip(pairwise(stops), lengths, strict=True) if value > 0]


def risk_of(soft: Sequence[SoftSpan], characters: int) -> NDArray[np.float64]:
    """Return the risk of every character, (C,) float64: 0 outside the spans; where spans overlap, the last one's."""
    risk = np.zeros(characters)
    for span in soft:
        if not 0 <= span.start <= span.end <= characters:
            raise InputError(
                f"a span must lie within the {characters} characters of its response; found {span.start} to {span.end}"
            )
        risk[span.start : span.end] = span.prob
    return risk


def likely_overlap(risk: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the characters with the largest expected intersection over union.

    In order of risk, as many characters are taken as maximise the ratio of the expected intersection, the sum of their
    risks, to the expected union, their number plus the risks of all others. The choice depends on the whole response:
    no single threshold suits both one that is wrong throughout and one with a single wrong name.

    Characters of equal risk are marked together; none if every risk, in [0, 1], is 0.
    """
    values, counts = np.unique(risk, return_counts=True)
    values, counts = values[::-1], np.cumsum(counts[::-1])  # from the highest risk down
    if not values.any():
        return np.zeros(len(risk), dtype=np.bool_)
    found = np.cumsum(values * np.diff(counts, prepend=0))
    expected = found / (counts + found[-1] - found)
    return np.asarray(risk >= values[np.argmax(expected)], dtype=np.bool_)


def label_dict(labels: SpanLabels) -> dict[str, Any]:
    """Return labels as JSON values, under the shared task's names."""
    return {
        "soft_labels": [{"start": s.start, "prob": s.prob, "end": s.end} for s in labels.soft],
        "hard_labels": [list(span) for span in labels.hard],
    }


@dataclass(frozen=True, slots=True)
class SpanItem:
    """A response to search for hallucinated spans."""

    id: str
    lang: str
    """``lang`` is the task's code of two letters, in any case."""
    question: str
    response: str
    passages: tuple[str, ...] = ()
    """Retrieved texts; empty if nothing was found."""
    tokens: tuple[str, ...] | None = None
    """Pieces of the generator's vocabulary that make up the response."""
    logits: tuple[float, ...] | None = None
    """Raw logits of these tokens: not normalised, so not comparable between models, or even between steps of one. They
    are never taken for log-probabilities."""
    generator: str = ""
    """Name of the model that wrote the response, empty if unknown."""
    source: str = ""
    """The page that the question was made from, empty if unknown."""
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
    """Finds hallucinated spans."""

    @property
    def name(self) -> str:
        """For tables."""
        ...

    def detect(self, item: SpanItem) -> SpanLabels:
        """Return the labels of a response, whatever labels the item has."""
        ...
