"""Reports as text for a terminal, readable without colour: score, verdict and what speaks against each sentence."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import IO

from syncheck.base.printable import printable
from syncheck.reading.tags import quotation
from syncheck.report import labels as wording
from syncheck.results.report import Answer, Case
from syncheck.results.types import Evidence, SentenceScore

WIDTH = 80
"""Column at which lines are wrapped."""
_SMALLEST_PULL = 0.05  # contribution from which a signal is listed, in nats of log-odds; less hardly moves the score
_PULLS = 5  # largest number of signals that are listed
_WORD = 12  # width of the longest verdict
_NARROWEST = 60
_LEAST = 20  # width that is left for a text after a prefix, however long that is
_RESET, _BOLD, _DIM = "\x1b[0m", "\x1b[1m", "\x1b[2m"
# Orange to blue, which all common kinds of colour blindness keep apart (256-colour codes).
_COLOURS = {
    "supported": "\x1b[38;5;33m",
    "doubtful": "\x1b[38;5;74m",
    "unsupported": "\x1b[38;5;214m",
    "contradicted": "\x1b[38;5;202m",
}


def wants_colour(stream: IO[str]) -> bool:
    """Tell whether ``stream`` is a terminal whose user has not set ``NO_COLOR`` (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def render_text(cases: Sequence[Case], *, colour: bool = False, width: int = WIDTH) -> str:
    """Draw questions with their answers, sentence by sentence.

    Parameters
    ----------
    cases
        Questions with their answers; an empty sequence gives an empty text.
    colour
        True adds ANSI colours; see :func:`wants_colour`.
    width
        Column at which lines are wrapped; at least 60.

    Returns
    -------
    str
        Lines ending in a newline. Each sentence has its score and verdict, and below it remarks, contrasts and, unless
        it is supported, the nearest evidence. Each answer is followed by the signals that pulled its lowest sentence
        down (as changes of the log-odds). Characters that would control the terminal are escaped.
    """
    pen = _Pen(colour=colour, width=width)
    lines: list[str] = []
    for case in cases:
        if case.question.strip():
            lines += [*(pen.paint(line, _BOLD) for line in pen.wrap("", f"Q: {case.question}", indent=0)), ""]
        for answer in case.answers:
            lines += [*_answer_lines(answer, pen), ""]
    return "".join(f"{line}\n" for line in lines)


def render_sentences(
    sentences: Sequence[SentenceScore],
    *,
    title: str,
    stop: str | None = None,
    message: str | None = None,
    colour: bool = False,
) -> str:
    """Draw the sentences of one answer under a title, as :func:`render_text` does.

    ``stop`` says why the answer ended, and ``message`` is what a decoder gave in place of it or of its end; both are
    None for an answer that was given.
    """
    pen = _Pen(colour=colour, width=WIDTH)
    lines = [pen.paint(line, _BOLD) for line in pen.wrap("", title, indent=0)]
    for number, sentence in enumerate(sentences, 1):
        lines += _sentence_lines(number, sentence, pen)
    lines += _end_lines(sentences, stop, message, pen)
    return "".join(f"{line}\n" for line in lines)


def render_sentence(number: int, sentence: SentenceScore, *, colour: bool = False) -> str:
    """Draw one sentence of an answer, counted from 1, as :func:`render_text` does."""
    return "".join(f"{line}\n" for line in _sentence_lines(number, sentence, _Pen(colour=colour, width=WIDTH)))


class _Pen:
    def __init__(self, *, colour: bool, width: int) -> None:
        self.colour = colour
        self.width = max(width, _NARROWEST)

    def paint(self, text: str, code: str) -> str:
        return f"{code}{text}{_RESET}" if self.colour and code else text

    def wrap(self, first: str, text: str, *, indent: int) -> list[str]:
        """Wrap ``text`` after the prefix of its first line; ``indent`` is the width of that and of the other lines."""
        lines = textwrap.wrap(printable(" ".join(text.split())), max(self.width - indent, _LEAST)) or [""]
        return [first + lines[0], *(" " * indent + line for line in lines[1:])]


def _answer_lines(answer: Answer, pen: _Pen) -> list[str]:
    report = answer.report
    mean = "no score" if report.faithfulness is None else f"faithfulness {report.faithfulness:.2f}"
    title = " · ".join((f"{answer.label} {mean}", *wording.answer_facts(answer)))
    lines = [pen.paint(line, _BOLD) for line in pen.wrap("── ", title, indent=3)]
    for number, (sentence, dropped) in enumerate(answer.timeline, 1):
        for tried in dropped:
            first = f"  x  {_number(tried.score)}  {'dropped':<{_WORD}}  "
            lines += [pen.paint(line, _DIM) for line in pen.wrap(first, tried.text, indent=len(first))]
        lines += [] if sentence is None else _sentence_lines(number, sentence, pen)
    lines += _end_lines(report.sentences, report.stop, None, pen)
    lowest = report.lowest
    if lowest is not None:
        lines += ["", *_explanation(report.sentences.index(lowest) + 1, lowest, pen)]
    return lines


def _sentence_lines(number: int, sentence: SentenceScore, pen: _Pen) -> list[str]:
    unscored = wording.STATUS_WORDS[sentence.status] if sentence.status == "no_aggregator" else "no score"
    word = f"{sentence.verdict or unscored:<{_WORD}}"
    before = f"{number:>3}  {_number(sentence.score)}  "
    indent = len(f"{before}{word}  ")
    first = f"{before}{pen.paint(word, _COLOURS.get(sentence.verdict or '', ''))}  "
    lines = pen.wrap(first, sentence.text, indent=indent)
    for note in wording.notes(sentence):
        lines += pen.wrap(f"{' ' * indent}→ ", note, indent=indent + 2)
    if sentence.evidence is not None and quotation(sentence.evidence.text) and sentence.verdict != "supported":
        nearest = pen.wrap(f"{' ' * indent}  ", f"nearest: {_quote(sentence.evidence)}", indent=indent + 2)
        lines += [pen.paint(line, _DIM) for line in nearest]
    return lines


def _end_lines(sentences: Sequence[SentenceScore], stop: str | None, message: str | None, pen: _Pen) -> list[str]:
    given = None if message is None else f"given instead: “{message.strip()}”"
    words = [None if sentences else wording.no_answer(stop), given]
    said = "; ".join(word for word in words if word)
    return pen.wrap(" " * 5, f"({said})", indent=5) if said else []


def _explanation(number: int, sentence: SentenceScore, pen: _Pen) -> list[str]:
    lines = [pen.paint(f"     lowest: sentence {number}, {sentence.verdict or 'scored'}", _BOLD)]
    pulls = ((change, name) for name, change in sentence.attribution.items() if change <= -_SMALLEST_PULL)
    for change, name in sorted(pulls)[:_PULLS]:
        value = wording.feature_value(name, sentence.features.get(name))
        first = f"     {change:+.2f}  {printable(name):<19}  {value:<10}  "
        lines += pen.wrap(first, wording.feature_label(name).meaning, indent=len(first))
    if sentence.evidence is not None and sentence.verdict == "supported":
        lines += pen.wrap("     best: ", _quote(sentence.evidence), indent=11)
    if sentence.latency_ms is not None:
        lines.append(f"     scored {sentence.latency_ms:.1f} ms after it was complete")
    return lines


def _quote(evidence: Evidence) -> str:
    return f"“{quotation(evidence.text)}” (passage {evidence.passage + 1}, support {evidence.score:.2f})"


def _number(score: float | None) -> str:
    return "  – " if score is None else f"{score:.2f}"
