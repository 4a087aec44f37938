"""What a span detector is given: a question, a response, and what is known of how it came about."""

from __future__ import annotations

from dataclasses import dataclass

from syncheck.given import check_sequence, check_text, check_texts
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
