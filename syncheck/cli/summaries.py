"""Summaries of ``score`` and ``generate`` for people: text at the end, and formats of lines other than JSON."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Mapping
from typing import IO, Any

from syncheck.base.printable import counted, printable, shortened
from syncheck.base.records import JsonDict
from syncheck.report import wants_colour
from syncheck.report.rows import answer_of
from syncheck.report.terminal import render_sentences

_WORST = 3
_SHOWN = 100
"""Number of characters of a sentence in a summary."""


class Summary:
    """Counter of the lines of output, which it summarises in words, with the lowest scores below the threshold."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.answers = self.errors = self.sentences = self.scored = self.below = self.cut = 0
        self._worst: list[tuple[float, int, str]] = []
        self._monitors: dict[str, None] = {}

    def add(self, row: JsonDict) -> None:
        """Count a line of output."""
        if "error" in row:
            self.errors += 1
            return
        self.answers += 1
        self.cut += bool(row.get("after_end"))
        if row.get("monitor"):
            self._monitors[row["monitor"]] = None
        for sentence in row["sentences"]:
            self.sentences += 1
            score = sentence["score"]
            if score is None:
                continue
            self.scored += 1
            if score >= self.threshold:
                continue
            self.below += 1
            kept = (-score, -self.scored, f"{score:.2f}  {_name(row)}  {_short(sentence['text'])}")
            (heapq.heappush if len(self._worst) < _WORST else heapq.heappushpop)(self._worst, kept)

    def __str__(self) -> str:
        counts = [counted(self.answers, "answer"), counted(self.sentences, "sentence")]
        if self.scored:
            counts.append(f"{self.below / self.scored:.1%} of {self.scored} scored below {_rounded(self.threshold)}")
        if self.sentences > self.scored:
            counts.append(f"{self.sentences - self.scored} without a score")
        if self.cut:
            counts.append(f"{counted(self.cut, 'answer')} with text after an end-of-text token, which was not read")
        if self.errors:
            counts.append(f"{counted(self.errors, 'record')} with an error")
        if self._monitors:
            counts.append(f"monitor {' and '.join(self._monitors)}")
        worst = [f"  {text}" for *_, text in sorted(self._worst, reverse=True)]
        return printable("\n".join([", ".join(counts), *(["lowest scores:", *worst] if worst else [])]) + "\n")


def _rounded(threshold: float) -> str:
    """Return a threshold with three digits; with more where it would be 1 otherwise."""
    shown = f"{threshold:.3g}"
    return f"{threshold:g}" if float(shown) == 1 else shown


def _name(row: Mapping[str, Any]) -> str:
    return "-" if row.get("id") is None else " ".join(str(row["id"]).split())


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), _SHOWN)


def _compact(row: JsonDict, stream: IO[str]) -> str:
    """Return an answer on one line, separated by tabs: id, lowest score, sentences, and the text of the lowest."""
    if "error" in row:
        return printable(f"{_name(row)}\terror\t0\t{_short(str(row['error']))}")
    scored = [(s["score"], s["text"]) for s in row["sentences"] if s["score"] is not None]
    lowest, text = min(scored, default=(None, ""))
    shown = "-" if lowest is None else f"{lowest:.3f}"
    return printable(f"{_name(row)}\t{shown}\t{len(row['sentences'])}\t{_short(text)}")


def _human(row: JsonDict, stream: IO[str]) -> str:
    """Return an answer as a block, each sentence with score and verdict, in colour if the stream is a terminal."""
    if "error" in row:
        return printable(f"{_name(row)}\n  error  {row['error']}\n")
    answer = answer_of(row)
    return render_sentences(
        answer.sentences,
        title=_name(row),
        stop=row.get("stop"),
        message=row.get("trace", {}).get("message"),
        after_end=answer.after_end,
        colour=wants_colour(stream),
    )


def _json(row: JsonDict, stream: IO[str]) -> str:
    text = json.dumps(row, ensure_ascii=False)
    return printable(text) if stream.isatty() else text


FORMATS: Mapping[str, Callable[[JsonDict, IO[str]], str]] = {
    "human": _human,
    "jsonl": _json,
    "compact": _compact,
}
"""Functions that write a line of output for a stream, by the value of ``--format``."""
