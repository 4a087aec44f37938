"""From marked spans of a response to one label per sentence: 1 faithful, 0 unfaithful."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from syncheck.features.sentence import has_letter

__all__ = ["LabelledSentence", "Rule", "UnfaithfulSpan", "label_sentences", "labelled_sentences"]


Rule = Literal["overlap", "paper"]
"""``overlap``: a sentence is unfaithful if it shares a character with a span. ``paper``: only if one of the two
contains the other (the published benchmark)."""


@dataclass(frozen=True, slots=True)
class UnfaithfulSpan:
    """Characters ``start`` to ``end`` of a response that an annotator marked.

    Attributes
    ----------
    start, end : int
    implicit_true : bool
        True of the world although the context does not say it (RAGTruth).
    due_to_null : bool
        An effect of a null in structured data (RAGTruth).
    label_type : str or None
        The annotators' category.
    """

    start: int
    end: int
    implicit_true: bool = False
    due_to_null: bool = False
    label_type: str | None = None


@dataclass(frozen=True, slots=True)
class LabelledSentence:
    """Characters ``start`` to ``end`` of a response, without white space around them, and their label."""

    start: int
    end: int
    faithful: bool


def label_sentences(
    bounds: Sequence[tuple[int, int]],
    spans: Sequence[UnfaithfulSpan],
    *,
    rule: Rule = "overlap",
    implicit_true: bool = True,
) -> NDArray[np.int64]:
    """Label sentences by the spans that annotators marked.

    Parameters
    ----------
    bounds
        Start and end of each sentence in the response, without the white space around it.
    spans
        The marked characters of the same response.
    rule
        When a span makes a sentence unfaithful; see :data:`Rule`.
    implicit_true
        Whether spans that are true of the world, though not said by the context, count.

    Returns
    -------
    ndarray of shape (N,), int64
        1 faithful, 0 unfaithful.
    """
    counted = [span for span in spans if implicit_true or not span.implicit_true]
    marks = _overlaps if rule == "overlap" else _contains_or_contained
    return np.array([not any(marks(s, e, span) for span in counted) for s, e in bounds], dtype=np.int64)


def labelled_sentences(
    response: str,
    spans: Sequence[UnfaithfulSpan],
    *,
    rule: Rule = "overlap",
    implicit_true: bool = True,
    with_letter: bool = True,
) -> tuple[LabelledSentence, ...]:
    """Cut a response with NLTK's untrained Punkt, as the paper does, and label each sentence.

    Parameters
    ----------
    response
    spans, rule, implicit_true
        As in :func:`label_sentences`.
    with_letter
        Whether sentences without a letter (the number of a list item, a row of dashes) are left out.

    Notes
    -----
    The defaults give the strict benchmark set; ``rule="paper", implicit_true=False, with_letter=False`` gives
    the set that the paper measures.
    """
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    bounds = [
        (start, end)
        for start, end in PunktSentenceTokenizer().span_tokenize(response)
        if not with_letter or has_letter(response[start:end])
    ]
    labels = label_sentences(bounds, spans, rule=rule, implicit_true=implicit_true)
    return tuple(LabelledSentence(s, e, bool(label)) for (s, e), label in zip(bounds, labels, strict=True))


def _overlaps(start: int, end: int, span: UnfaithfulSpan) -> bool:
    return span.start < end and start < span.end


def _contains_or_contained(start: int, end: int, span: UnfaithfulSpan) -> bool:
    return (start <= span.start and span.end <= end) or (span.start <= start and end <= span.end)
