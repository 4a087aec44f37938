"""Reports as text for a terminal, readable without colour: a bar and a number for every sentence."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from syncheck.printable import printable
from syncheck.report.labels import REMARKS, answer_facts, contrast_lines, feature_label, feature_value, verdict
from syncheck.types import SentenceScore

if TYPE_CHECKING:
    from syncheck.report.model import Answer, Case

_BAR_CELLS = 10
_SMALLEST_PULL = 0.05
"""Smallest contribution that is listed, in nats of log-odds; a smaller one hardly moves the score."""
_PULLS = 5
"""Largest number of signals that are listed."""
_INDENT = " " * 22
_RESET, _BOLD, _DIM = "\x1b[0m", "\x1b[1m", "\x1b[2m"
# Orange to blue, which all common kinds of colour blindness keep apart (256-colour codes).
_COLOURS = {
    "supported": "\x1b[38;5;33m",
    "doubtful": "\x1b[38;5;74m",
    "unsupported": "\x1b[38;5;214m",
    "contradicted": "\x1b[38;5;202m",
}


def wants_colour(stream: TextIO) -> bool:
    """Return True if ``stream`` is a terminal whose user has not set ``NO_COLOR`` (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def render_text(cases: Sequence[Case], *, colour: bool = False, width: int = 100) -> str:
    """Draw questions with their answers, sentence by sentence.

    Parameters
    ----------
    cases
        Questions with their answers; an empty sequence gives an empty text.
    colour
        True adds ANSI colours; see :func:`wants_colour`.
    width
        Column at which lines are wrapped.

    Returns
    -------
    str
        Lines ending in a newline. Each answer is followed by its lowest sentence, with the signals that pulled it down
        (as changes of P(faithful)) and the evidence for it. Characters that would control the terminal are escaped.
    """
    pen = _Pen(colour=colour, width=max(width, 60))
    lines: list[str] = []
    for case in cases:
        question = textwrap.wrap(f"Q: {_on_one_line(case.question)}", pen.width)
        lines += [pen.paint(line, _BOLD) for line in question]
        for answer in case.answers:
            lines += ["", *_answer_lines(answer, pen)]
        lines.append("")
    return "".join(f"{line}\n" for line in lines)


class _Pen:
    """Colours text, or leaves it plain, and wraps it."""

    def __init__(self, *, colour: bool, width: int) -> None:
        self.colour = colour
        self.width = width

    def paint(self, text: str, code: str) -> str:
        return f"{code}{text}{_RESET}" if self.colour else text

    def wrap(self, text: str, first: str) -> list[str]:
        """Wrap ``text`` after the first line's prefix, whose visible width is that of ``_INDENT``."""
        lines = textwrap.wrap(_on_one_line(text), self.width - len(_INDENT)) or [""]
        return [first + lines[0], *(_INDENT + line for line in lines[1:])]


def _answer_lines(answer: Answer, pen: _Pen) -> list[str]:
    report = answer.report
    mean = "no score" if report.faithfulness is None else f"faithfulness {report.faithfulness:.2f}"
    lines = [pen.paint(f"── {printable(answer.label)} ", _BOLD) + " · ".join((mean, *answer_facts(answer)))]
    for number, (sentence, dropped) in enumerate(answer.timeline, 1):
        lines += _dropped_lines(dropped, pen)
        lines += [] if sentence is None else _sentence_lines(number, sentence, pen)
    lowest = report.lowest
    if lowest is not None:
        lines += ["", *_explanation(report.sentences.index(lowest) + 1, lowest, pen)]
    return lines


def _sentence_lines(number: int, sentence: SentenceScore, pen: _Pen) -> list[str]:
    if sentence.score is None:
        return pen.wrap(f"{sentence.text}  [{verdict(sentence)}]", f"{number:>3}     –  {'·' * _BAR_CELLS} ")
    full = round(sentence.score * _BAR_CELLS)
    bar = pen.paint("█" * full + "░" * (_BAR_CELLS - full), _COLOURS.get(sentence.verdict or "", ""))
    notes = [*(REMARKS[remark] for remark in sentence.remarks), *contrast_lines(sentence)]
    notes += ["cut at the limit of tokens"] if sentence.truncated else []
    note = f"  [{'; '.join(notes)}]" if notes else ""
    return pen.wrap(sentence.text + note, f"{number:>3}  {sentence.score:.2f}  {bar} ")


def _dropped_lines(dropped: Sequence[SentenceScore], pen: _Pen) -> list[str]:
    return [
        pen.paint(line, _DIM)
        for d in dropped
        for line in pen.wrap(d.text, f"  x  {_number(d.score)}  {'dropped':<{_BAR_CELLS}} ")
    ]


def _explanation(number: int, sentence: SentenceScore, pen: _Pen) -> list[str]:
    lines = [pen.paint(f"     lowest: sentence {number}, {printable(verdict(sentence))}", _BOLD)]
    pulls = ((change, name) for name, change in sentence.attribution.items() if change <= -_SMALLEST_PULL)
    for change, name in sorted(pulls)[:_PULLS]:
        value = feature_value(name, sentence.features.get(name))
        lines.append(f"     {change:+.2f}  {name:<22} {value:<13} {feature_label(name).meaning}")
    if sentence.evidence is not None:
        best = sentence.evidence
        quote = f"“{best.text.strip()}” (support {best.score:.2f})"
        lines += pen.wrap(quote, f"     best: {f'passage {best.passage + 1}':<12}")
    if sentence.latency_ms is not None:
        lines.append(f"     scored {sentence.latency_ms:.1f} ms after it was complete")
    return lines


def _on_one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _number(score: float | None) -> str:
    return "  – " if score is None else f"{score:.2f}"
