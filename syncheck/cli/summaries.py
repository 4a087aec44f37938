"""Summaries of ``score`` and ``generate`` for people: text at the end, and formats of lines other than JSON."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from syncheck.files import JsonDict
from syncheck.printable import counted, printable, shortened

_WORST = 3
_SHOWN = 100
"""Number of characters of a sentence in a summary."""


class Summary:
    """Counter of the lines of output, which it summarises in words."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.answers = self.errors = self.sentences = self.scored = self.below = 0
        self._worst: list[tuple[float, int, str]] = []

    def add(self, row: JsonDict) -> None:
        """Count a line of output."""
        if "error" in row:
            self.errors += 1
            return
        self.answers += 1
        for sentence in row["sentences"]:
            self.sentences += 1
            score = sentence["score"]
            if score is None:
                continue
            self.scored += 1
            self.below += score < self.threshold
            kept = (-score, -self.scored, f"{score:.2f}  {_name(row)}  {_short(sentence['text'])}")
            (heapq.heappush if len(self._worst) < _WORST else heapq.heappushpop)(self._worst, kept)

    def __str__(self) -> str:
        counts = [counted(self.answers, "answer"), counted(self.sentences, "sentence")]
        if self.scored:
            counts.append(f"{self.below / self.scored:.1%} of {self.scored} scored below {self.threshold:g}")
        if self.sentences > self.scored:
            counts.append(f"{self.sentences - self.scored} without a score")
        if self.errors:
            counts.append(f"{counted(self.errors, 'record')} with an error")
        worst = [f"  {text}" for *_, text in sorted(self._worst, reverse=True)]
        return printable("\n".join([", ".join(counts), *(["lowest scores:", *worst] if worst else [])]) + "\n")


def _name(row: Mapping[str, Any]) -> str:
    return "-" if row.get("id") is None else " ".join(str(row["id"]).split())


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), _SHOWN)


def _compact(row: JsonDict) -> str:
    """Return an answer on one line, separated by tabs: id, lowest score, sentences, and the text of the lowest."""
    if "error" in row:
        return printable(f"{_name(row)}\terror\t0\t{_short(str(row['error']))}")
    scored = [(s["score"], s["text"]) for s in row["sentences"] if s["score"] is not None]
    lowest, text = min(scored, default=(None, ""))
    shown = "-" if lowest is None else f"{lowest:.3f}"
    return printable(f"{_name(row)}\t{shown}\t{len(row['sentences'])}\t{_short(text)}")


def _human(row: JsonDict) -> str:
    """Return an answer as a block: each sentence with its score, and for a doubtful one the nearest evidence."""
    if "error" in row:
        return printable(f"{_name(row)}\n  error  {row['error']}\n")
    lines = [_name(row)]
    for sentence in row["sentences"]:
        score = "  - " if sentence["score"] is None else f"{sentence['score']:.2f}"
        said = sentence.get("verdict") or sentence["status"]
        lines.append(f"  {score}  {said:<13}  {' '.join(sentence['text'].split())}")
        evidence = sentence.get("evidence")
        if evidence and said != "supported":
            lines.append(f"{'':23}nearest: {' '.join(evidence['text'].split())}")
    return printable("\n".join(lines) + "\n")


FORMATS: Mapping[str, Callable[[JsonDict], str]] = {
    "human": _human,
    "jsonl": partial(json.dumps, ensure_ascii=False),
    "compact": _compact,
}
"""Functions that write a line of output, by the value of ``--format``."""
