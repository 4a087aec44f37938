"""A threshold above which sentences may be released, with the promise that it carries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from syncheck.errors import InputError

__all__ = ["ReleaseThreshold"]


@dataclass(frozen=True, slots=True)
class ReleaseThreshold:
    """Sentences with at least this score are unfaithful in at most ``risk`` of the cases, with ``confidence``.

    Attributes
    ----------
    threshold : float
        A score of the aggregator it is kept with, calibrated if that is.
    risk : float
        Largest share of released sentences that may be unfaithful, in (0, 1).
    confidence : float
        Probability, over the choice of the held-out sentences, that the promise holds; in (0, 1).
    sentences, released, unfaithful : int
        Held-out sentences it was chosen on, those of them that it releases, and those of these that are unfaithful.
    bound : float
        Clopper-Pearson upper bound, at ``confidence``, of the share of released sentences that are unfaithful.
    one_per_question : bool
        Whether it was chosen on one random sentence of each question. If not, the promise assumes that the sentences
        were independent of each other, which those of one question are not; it may then be broken more often than
        stated. False too in files that do not say.
    """

    threshold: float
    risk: float
    confidence: float
    sentences: int
    released: int
    unfaithful: int
    bound: float
    one_per_question: bool = False

    def __post_init__(self) -> None:
        if not (0 < self.risk < 1 and 0 < self.confidence < 1 and math.isfinite(self.threshold) and self.released):
            raise InputError(
                "a release threshold needs a finite threshold, released sentences, and a risk and a confidence between "
                f"0 and 1; found {self.threshold}, {self.released}, {self.risk} and {self.confidence}"
            )
        if not 0 <= self.unfaithful <= self.released <= self.sentences or not 0 <= self.bound <= self.risk:
            raise InputError(
                "a release threshold needs unfaithful <= released <= sentences and a bound of at most its risk; found "
                f"{self.unfaithful}, {self.released}, {self.sentences} and a bound of {self.bound} for {self.risk}"
            )

    @property
    def observed(self) -> float:
        """Share of the released held-out sentences that are unfaithful."""
        return self.unfaithful / self.released

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ReleaseThreshold:
        """Rebuild from ``dataclasses.asdict``.

        Raises
        ------
        InputError
            If the numbers contradict each other.
        KeyError, TypeError, ValueError
            If a field other than ``one_per_question`` is missing, or one is of another type.
        """
        one_per_question = stored.get("one_per_question", False)
        if not isinstance(one_per_question, bool):
            raise TypeError(f"one_per_question must be true or false; found {one_per_question!r}")
        counts = {name: int(stored[name]) for name in ("sentences", "released", "unfaithful")}
        shares = {name: float(stored[name]) for name in ("threshold", "risk", "confidence", "bound")}
        return cls(**counts, **shares, one_per_question=one_per_question)  # type: ignore[arg-type]  # joined by mypy
