"""Words for statuses and features, so that a number on a page says what it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncheck.schemas import FEATURES, LID
from syncheck.types import Remark, SentenceScore, Status, Verdict

if TYPE_CHECKING:
    from syncheck.report.model import Answer

__all__ = [
    "FeatureLabel",
    "REMARKS",
    "VERDICTS",
    "answer_facts",
    "feature_label",
    "feature_value",
    "verdict",
]


VERDICTS: Mapping[Verdict, str] = {
    "supported": "the passages support it",
    "doubtful": "below the threshold that the search asks for",
    "unsupported": "below the threshold under which a sentence is dropped",
    "contradicted": "below it too, and the evidence says otherwise",
}
"""What each verdict means, the best first."""

_STATUS_WORDS: dict[Status, str] = {
    "scored": "scored",
    "no_aggregator": "signals only",
    "no_context": "no context",
    "not_checkable": "nothing to check",
    "unsupported_language": "language not supported",
    "failed": "failed",
}

REMARKS: dict[Remark, str] = {
    "says_not_stated": "it says that something is not stated",
    "no_passage_touches": "no passage touches it",
}

_LID_LAYER = re.compile(LID.format(k=r"(\d+)"))
_DIRECTIONS = {1: "higher is more faithful", -1: "higher is less faithful", 0: "either way"}


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


def verdict(sentence: SentenceScore) -> str:
    """Return a sentence's verdict, or why it has none, with the remarks on it."""
    words = sentence.verdict or _STATUS_WORDS[sentence.status]
    if sentence.verdict is not None:
        words = "; ".join([words, *(REMARKS[remark] for remark in sentence.remarks)])
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
        *([] if report.monitor is None else [f"monitor: {report.monitor}"]),
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
