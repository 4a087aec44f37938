"""Answers in the lines that ``syncheck score`` and ``syncheck generate`` write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from syncheck.base.errors import InputError
from syncheck.base.records import JsonDict, field, fields_found
from syncheck.report.labels import REMARKS
from syncheck.results.types import (
    Citation,
    CitationStatus,
    Contrast,
    ContrastKind,
    Evidence,
    Remark,
    SentenceScore,
    Status,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """Answer in a line that ``syncheck score`` or ``syncheck generate`` wrote."""

    id: str
    """Empty if it has none."""
    question: str
    """Empty if it is not known."""
    sentences: tuple[SentenceScore, ...]
    labels: tuple[bool | None, ...] = ()
    """One for each sentence: True for faithful, None without a label. Empty if nothing is labelled."""
    after_end: str = ""
    """What a given answer had after an end-of-text token."""
    monitor: str | None = None
    """Name of the bundled monitor that scored it; None for a monitor of one's own."""

    @property
    def lowest(self) -> SentenceScore | None:
        """The sentence with the lowest score, of equals the first; None if no sentence has a score."""
        scored = [(s.score, s) for s in self.sentences if s.score is not None]
        return min(scored, key=lambda pair: pair[0])[1] if scored else None


def answer_of(row: JsonDict) -> ScoredAnswer:
    """Read the answer in a line of output."""
    if "sentences" not in row:
        raise InputError(
            "expected a line that `syncheck score` wrote, with 'sentences'; "
            f"{fields_found('sentences', row)}; run `syncheck score` on it first"
        )
    given = field(row, "sentences", list)
    sentences = tuple(_sentence(one) for one in given)
    identity = row.get("id")
    return ScoredAnswer(
        "" if identity is None else str(identity),
        field(row, "question", str, default=""),
        sentences,
        after_end=field(row, "after_end", str, default=""),
        monitor=field(row, "monitor", str, default=None),
    )


def _sentence(given: object) -> SentenceScore:
    if not isinstance(given, dict):
        raise InputError(f"a sentence must be an object as `syncheck score` writes it; found {type(given).__name__}")
    score, status, said = given.get("score"), field(given, "status", str), given.get("verdict")
    if score is not None and not (isinstance(score, (int, float)) and 0 <= score <= 1):
        raise InputError(f"field 'score' of a sentence must be a number from 0 to 1 or null; found {score!r}")
    if status not in get_args(Status) or said not in (None, *get_args(Verdict)):
        raise InputError(
            f"a sentence must have a status and a verdict of `syncheck score`; found {status!r} and {said!r}"
        )
    if (score is None) != (said is None):
        raise InputError(f"only a sentence with a score has a verdict; found {score!r} and {said!r}")
    evidence = field(given, "evidence", dict, default=None)
    return SentenceScore(
        text=field(given, "text", str),
        start=field(given, "start", int),
        end=field(given, "end", int),
        token_start=field(given, "token_start", int, default=None),
        token_end=field(given, "token_end", int, default=None),
        score=None if score is None else float(score),
        status=status,
        features={
            name: float(value) if isinstance(value, (int, float)) else None
            for name, value in field(given, "features", dict, default={}).items()
        },
        reason=field(given, "reason", str, default=None),
        evidence=None if evidence is None else _evidence(evidence),
        verdict=said,
        remarks=_remarks(field(given, "remarks", list, default=[])),
        contrasts=tuple(_contrast(one) for one in field(given, "contrasts", list, default=[])),
        citations=tuple(_citation(one) for one in field(given, "citations", list, default=[])),
    )


def _remarks(given: Sequence[object]) -> tuple[Remark, ...]:
    if not all(isinstance(remark, str) and remark in REMARKS for remark in given):
        raise InputError(f"the remarks of a sentence must be some of {', '.join(REMARKS)}; found {given!r}")
    return tuple(remark for remark in REMARKS if remark in given)


def _contrast(given: object) -> Contrast:
    if not isinstance(given, dict) or given.get("kind") not in get_args(ContrastKind):
        raise InputError(f"a contrast must be an object with a kind as `syncheck score` writes it; found {given!r}")
    kinds = {"kind": str, "sentence": str, "evidence": str, "passage": int}
    return Contrast(**{name: field(given, name, kind) for name, kind in kinds.items()})


def _citation(given: object) -> Citation:
    if not isinstance(given, dict) or given.get("status") not in get_args(CitationStatus):
        raise InputError(f"a citation must be an object with a status as `syncheck score` writes it; found {given!r}")
    return Citation(
        marker=field(given, "marker", str),
        start=field(given, "start", int),
        end=field(given, "end", int),
        passage=field(given, "passage", int, default=None),
        status=given["status"],
        better=field(given, "better", int, default=None),
    )


def _evidence(given: JsonDict) -> Evidence:
    kinds = {"passage": int, "text": str, "score": (int, float)}
    return Evidence(**{name: field(given, name, kind) for name, kind in kinds.items()})  # type: ignore[arg-type]
