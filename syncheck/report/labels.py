"""Words for statuses and features, so that a number on a page says what it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncheck.schemas import FEATURES, LID
from syncheck.types import SentenceScore, Status

if TYPE_CHECKING:
    from syncheck.report.model import Answer

__all__ = [
    "BANDS",
    "Band",
    "FeatureLabel",
    "answer_facts",
    "band",
    "feature_label",
    "feature_value",
    "verdict",
]


@dataclass(frozen=True, slots=True)
class Band:
    """A quarter of the scale from 0 to 1, in words; ``key`` names its pattern in the page."""

    key: str
    words: str
    floor: float


BANDS = (
    Band("very-likely", "very likely faithful", 0.75),
    Band("likely", "likely faithful", 0.5),
    Band("doubtful", "doubtful", 0.25),
    Band("unlikely", "likely unfaithful", 0.0),
)
"""Quarters of P(faithful): a probability keeps its meaning where a monitor's thresholds differ."""

_STATUS_WORDS: dict[Status, str] = {
    "scored": "scored",
    "no_aggregator": "signals only",
    "no_context": "no context",
    "not_checkable": "nothing to check",
    "failed": "failed",
}

_LID_LAYER = re.compile(LID.format(k=r"(\d+)"))
_DIRECTIONS = {1: "higher speaks for faithful", -1: "higher speaks against", 0: "may speak for or against"}


@dataclass(frozen=True, slots=True)
class FeatureLabel:
    """A feature in words; all but the name are empty for one that no released schema has."""

    name: str
    meaning: str = ""
    unit: str = ""
    direction: str = ""


def feature_label(name: str) -> FeatureLabel:
    """Return the words for a feature of any released schema."""
    layer = _LID_LAYER.fullmatch(name)
    known = {feature.name: feature for feature in FEATURES}.get(LID if layer else name)
    if known is None:
        return FeatureLabel(name)
    meaning = known.meaning.replace("block k", f"block {layer[1]}") if layer else known.meaning
    return FeatureLabel(name, meaning, known.unit, _DIRECTIONS[known.direction])


def feature_value(name: str, value: float | None) -> str:
    """Return a value with its unit, ``not measured`` for None."""
    if value is None:
        return "not measured"
    unit = feature_label(name).unit.partition(",")[0]
    if unit == "tokens":
        return _count(round(value), "token")
    number = f"{value:.3g}".replace("-", "−")
    return f"{number} {unit}" if unit == "nats" else number


def band(score: float) -> Band:
    """Return the quarter of the scale that a score in [0, 1] lies in; a border belongs to the upper one."""
    return next((b for b in BANDS if score >= b.floor), BANDS[-1])


def verdict(sentence: SentenceScore) -> str:
    """Return a sentence's band in words, or why it has none."""
    if sentence.score is not None:
        return band(sentence.score).words
    words = _STATUS_WORDS[sentence.status]
    return f"{words}: {sentence.reason}" if sentence.reason else words


def answer_facts(answer: Answer) -> tuple[str, ...]:
    """Return an answer's size, time and reason to stop, each as a few words."""
    report, seconds = answer.report, answer.wall_seconds
    return (
        _count(len(report.sentences), "sentence"),
        _count(len(report.tokens), "token"),
        *([f"{len(answer.dropped)} dropped"] if answer.dropped else []),
        *([] if seconds is None else [f"{seconds:.1f} s"]),
        *([] if report.stop is None else [f"stop: {report.stop}"]),
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
