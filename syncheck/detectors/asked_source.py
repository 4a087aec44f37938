"""An instruct model's verdict on each word, as MiKaNi asks GPT-4o for one: optional, as every word source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncheck.alignment.evaluators import Evaluator
from syncheck.detectors.hallurag import asked_spans
from syncheck.spans import SpanItem, Word

__all__ = ["AskedSource"]


@dataclass(frozen=True, slots=True)
class AskedSource:
    """Whether an instruct model lists a word among the spans that the passages do not support; HalluRAG's prompt.

    See :class:`~syncheck.detectors.WordSource`. Two models are told apart by their names.
    """

    asked: Evaluator
    name: str = "asked"

    @property
    def columns(self) -> tuple[str, ...]:
        """``<name>_wrong``."""
        return (f"{self.name}_wrong",)

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """The model's name."""
        return {"evaluator": self.asked.name}

    def __call__(self, item: SpanItem, words: Sequence[Word]) -> NDArray[np.float64]:
        """Return 1 for each word that shares a character with a listed span, else 0, (W, 1) float64.

        Raises
        ------
        EvaluatorError
            As :func:`~syncheck.detectors.asked_spans`: a model that did not answer has not said that all is right.
        """
        spans = asked_spans(item, self.asked)
        listed = [any(start < word.end and stop > word.start for start, stop in spans) for word in words]
        return np.array(listed, dtype=np.float64).reshape(-1, 1)
