"""What a span detector is given: a question, a response, and what is known of how it came about."""

from __future__ import annotations

from dataclasses import dataclass

from syncheck.spans.labels import SpanLabels

__all__ = ["SpanItem"]


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
