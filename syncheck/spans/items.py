"""An answer whose words are checked, and the labels of its spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from syncheck.errors import InputError
from syncheck.given import check_sequence, check_text, check_texts

__all__ = ["SoftSpan", "SpanDetector", "SpanItem", "SpanLabels", "hard_spans", "label_dict", "labels_of", "risk_of"]


HARD_THRESHOLD = 0.5
"""A span is hallucinated if more than this share of the annotators marked it (the organisers' majority)."""

_DECIMALS = 6


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


def hard_spans(soft: Sequence[SoftSpan]) -> tuple[tuple[int, int], ...]:
    """Return the spans whose risk exceeds one half, those that touch as one, as the organisers derive them."""
    found: list[tuple[int, int]] = []
    for span in sorted((s for s in soft if s.prob > HARD_THRESHOLD), key=lambda s: (s.start, s.end)):
        if found and found[-1][1] == span.start:
            found[-1] = (found[-1][0], span.end)
        else:
            found.append((span.start, span.end))
    return tuple(found)


def labels_of(risk: NDArray[np.float64], marked: NDArray[np.bool_]) -> SpanLabels:
    """Write a risk and a decision for every character as labels.

    Parameters
    ----------
    risk : ndarray of shape (C,), float64
        In [0, 1]; rounded to six decimals. Characters of risk 0 get no soft label.
    marked : ndarray of shape (C,), bool
        The characters called hallucinated.

    Raises
    ------
    InputError
        If the shapes differ, or a risk is not in [0, 1].
    """
    if risk.shape != marked.shape or risk.ndim != 1:
        raise InputError(f"expected one risk and one mark a character; found shapes {risk.shape} and {marked.shape}")
    if not np.all((risk >= 0) & (risk <= 1)):
        raise InputError("every risk must be in [0, 1]; found one outside, or NaN")
    soft = tuple(SoftSpan(a, b, value) for a, b, value in _runs(np.round(risk, _DECIMALS).tolist()) if value > 0)
    return SpanLabels(soft, tuple((a, b) for a, b, value in _runs(marked.tolist()) if value))


def risk_of(soft: Sequence[SoftSpan], characters: int) -> NDArray[np.float64]:
    """Return the risk of every character, (C,) float64: 0 outside the spans; where spans overlap, the last one's.

    Raises
    ------
    InputError
        If a span does not lie in the response.
    """
    risk = np.zeros(characters)
    for span in soft:
        if not 0 <= span.start <= span.end <= characters:
            raise InputError(
                f"a span must lie within the {characters} characters of its response; found {span.start} to {span.end}"
            )
        risk[span.start : span.end] = span.prob
    return risk


def label_dict(labels: SpanLabels) -> dict[str, Any]:
    """Return labels as values that JSON can hold, under the shared task's names."""
    return {
        "soft_labels": [{"start": s.start, "prob": s.prob, "end": s.end} for s in labels.soft],
        "hard_labels": [list(span) for span in labels.hard],
    }


def _runs(values: list[float]) -> list[tuple[int, int, float]]:
    lengths = [(value, len(list(members))) for value, members in groupby(values)]
    stops = np.cumsum([0, *(length for _, length in lengths)]).tolist()
    return [(start, stop, value) for (start, stop), (value, _) in zip(pairwise(stops), lengths, strict=True)]


@dataclass(frozen=True, slots=True)
class SpanItem:
    """A response to search for hallucinated spans.

    Attributes
    ----------
    id, lang
        ``lang`` is the task's code of two letters, in any case.
    question, response : str
    passages : tuple of str
        Retrieved texts; empty where nothing was found.
    tokens : tuple of str or None
        Pieces of the generator's vocabulary that the response came as.
    logits : tuple of float or None
        Raw logits of these tokens: not normalised, so that values of different models, and even of two steps of
        one, compare badly. They are never taken for log-probabilities.
    generator : str
        Name of the model that wrote the response, empty where unknown.
    source : str
        The page that the question was made from, empty where unknown.
    labels : SpanLabels or None
        The annotators', where there are any.

    Raises
    ------
    InputError
        If a text holds half of a character (a lone surrogate).
    WrongTypeError
        If a text is no string, or passages, tokens or logits are no sequence.
    """

    id: str
    lang: str
    question: str
    response: str
    passages: tuple[str, ...] = ()
    tokens: tuple[str, ...] | None = None
    logits: tuple[float, ...] | None = None
    generator: str = ""
    source: str = ""
    labels: SpanLabels | None = None

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
        """Return the labels of a response; those it carries are not looked at."""
        ...
