"""Labels of numbers on a page: words, colours and shades."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from syncheck.base.printable import counted
from syncheck.features.schemas import LID, feature_of
from syncheck.reading.tags import quotation
from syncheck.results.report import Answer, CitationCounts, Report
from syncheck.results.spans import SpanLabels, risk_of
from syncheck.results.types import Citation, CitationStatus, Contrast, Evidence, Remark, SentenceScore, Status, Verdict
from syncheck.spans.words import cluster_borders
from syncheck.text.markup import reasoning_length

if TYPE_CHECKING:
    from syncheck.corpus.records import ScoredAnswer

VERDICTS: Mapping[Verdict, str] = {
    "supported": "the passages support it",
    "doubtful": "below the threshold that the search asks for",
    "unsupported": "below the threshold under which a sentence is dropped",
    "contradicted": "below it too, and a passage differs in its words, or the aligner takes it for contradicted",
}
"""Meaning of each verdict, best first."""

STATUS_WORDS: dict[Status, str] = {
    "scored": "scored",
    "no_aggregator": "signals only",
    "no_context": "no context",
    "not_checkable": "nothing to check",
    "not_a_claim": "not a claim",
    "degenerate": "repeats itself",
    "unsupported_language": "language not supported",
    "failed": "failed",
}

REMARKS: dict[Remark, str] = {
    "says_not_stated": "it says that something is not stated",
    "no_passage_touches": "no passage holds any of its words",
    "passages_not_read": "a passage is in a language that the aligner does not read",
}

_NO_ANSWER: Mapping[str | None, str] = {
    "abstained": "no answer: abstained",
    "quoted": "no answer: the passages are quoted",
    "nothing_passed": "no answer: no continuation passed",
    "backtracked": "no answer: its first sentence did not pass",
}

_GIVES_MESSAGE = ("abstained", "quoted")  # the answer ends with a text which the model did not write
_SUPPORTS = 0.5  # support from which a passage counts as supporting a sentence, in [0, 1]
_DIRECTIONS = {1: "higher is more faithful", -1: "higher is less faithful", 0: "either way"}


@dataclass(frozen=True, slots=True)
class FeatureLabel:
    """A feature in words; all but the name is empty for a feature of no released schema."""

    name: str
    meaning: str = ""
    unit: str = ""
    direction: str = ""


def feature_label(name: str) -> FeatureLabel:
    """Look up the words for a feature of any released schema."""
    if (known := feature_of(name)) is None:
        return FeatureLabel(name)
    meaning = known.meaning.replace("block k", f"block {name.removeprefix(LID.format(k=''))}")
    return FeatureLabel(name, meaning, known.unit, _DIRECTIONS[known.direction])


def feature_value(name: str, value: float | None) -> str:
    """Format a value with its unit, or as ``not measured`` for None."""
    if value is None:
        return "not measured"
    unit = feature_label(name).unit.partition(",")[0]
    if unit == "tokens":
        return counted(round(value), "token")
    number = f"{value:.3g}".replace("-", "−")
    return f"{number} {unit}" if unit == "nats" else number


def decimal(value: float | None, digits: int = 2) -> str:
    """Format a number with this many decimals, or as a dash for None."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.{digits}f}".replace("-", "−")


def verdict(sentence: SentenceScore) -> str:
    """Word the verdict on a sentence, or the reason why there is none, with the remarks."""
    words = sentence.verdict or STATUS_WORDS[sentence.status]
    if sentence.verdict is not None:
        words = "; ".join([words, *(REMARKS[remark] for remark in sentence.remarks)])
    return f"{words}: {sentence.reason}" if sentence.reason else words


def _by_aligner(sentence: SentenceScore) -> str:
    """Say that a sentence is called contradicted by the aligner's probability alone, without a contrast; else empty."""
    alone = sentence.verdict == "contradicted" and not sentence.contrasts
    return "the aligner takes it for contradicted" if alone else ""


def why(sentence: SentenceScore) -> str:
    """Describe how the best evidence relates to a sentence; empty for a sentence without a score.

    A sentence may be below the threshold although a passage supports it, since the other signals count too. Evidence
    counts as contradicting the sentence only if it has the words of a contrast.
    """
    if sentence.verdict is None:
        return ""
    evidence, by_aligner = sentence.evidence, _by_aligner(sentence).capitalize()
    judged = by_aligner or "No passage supports it"
    if evidence is None or not quotation(evidence.text):
        if sentence.verdict == "supported":
            return ""
        return f"{by_aligner}." if by_aligner else "No passage was found that supports it."
    passage = f"passage {evidence.passage + 1}"
    supported = evidence.score >= _SUPPORTS
    if sentence.verdict == "supported" and supported:
        return f"{passage.capitalize()} supports it:"
    if sentence.verdict == "supported":
        return f"Its signals speak for it, although no passage says it in so many words; nearest is {passage}:"
    if sentence.verdict == "contradicted" and any(_is_in(evidence, contrast) for contrast in sentence.contrasts):
        return f"{judged}, and {passage} says otherwise:"
    if supported and sentence.verdict != "contradicted":
        return f"{passage.capitalize()} may support it, but the other signals count against it; nearest:"
    return f"{judged}; nearest is {passage}:"


def _is_in(evidence: Evidence, contrast: Contrast) -> bool:
    is_there = contrast.evidence.casefold() in quotation(evidence.text).casefold()
    return contrast.passage == evidence.passage and is_there and bool(contrast.evidence or contrast.kind != "reading")


def contrast_lines(sentence: SentenceScore) -> tuple[str, ...]:
    """Describe the contrasts of a sentence in words; two kinds with the same words are described once."""
    return tuple(dict.fromkeys(map(_contrast_words, sentence.contrasts)))


def _contrast_words(contrast: Contrast) -> str:
    passage = f"passage {contrast.passage + 1}"
    if not contrast.sentence:
        return f"{passage} says “{contrast.evidence}”, the sentence does not"
    if not contrast.evidence and contrast.kind == "reading":  # the passage may have the word elsewhere
        return f"the aligner decides by “{contrast.sentence}”"
    if not contrast.evidence:
        return f"{passage} does not say “{contrast.sentence}”"
    return f"{passage} says “{contrast.evidence}”, not “{contrast.sentence}”"


_CITATION_WORDS: Mapping[CitationStatus, str] = {
    "supported": "supports it",
    "misattributed": "does not support it",
    "fabricated": "does not exist",
    "unresolved": "could not be checked",
}


def citation_words(cited: Citation) -> str:
    """Say in words whether the source that a sentence names supports it."""
    named = "its source" if cited.passage is None else f"passage {cited.passage + 1}"
    instead = "" if cited.better is None else f"; passage {cited.better + 1} does"
    return f"{cited.marker} {cited.status}: {named} {_CITATION_WORDS[cited.status]}{instead}"


def citation_verdicts(sentence: SentenceScore) -> str:
    """List the marks of a sentence, each with what became of it: "[1] supported, [2] misattributed"."""
    return ", ".join(dict.fromkeys(f"{cited.marker} {cited.status}" for cited in sentence.citations))


def notes(sentence: SentenceScore) -> tuple[str, ...]:
    """Describe what does not fit into a line of text: remarks, contrasts, citations, or why there is no score."""
    lines: list[str] = []
    if sentence.verdict is not None:
        lines += [*(REMARKS[remark] for remark in sentence.remarks), *contrast_lines(sentence), _by_aligner(sentence)]
    elif sentence.status != "no_aggregator":
        lines.append(verdict(sentence))
    lines += [citation_words(cited) for cited in sentence.citations if cited.status != "supported"]
    if sentence.relevance is not None:
        lines.append(f"answers the question: {sentence.relevance:.2f}")
    if sentence.truncated:
        lines.append("cut at the limit of tokens")
    return tuple(filter(None, lines))


def reasoning_words(length: int) -> str:
    """Say how much reasoning before an answer was not scored; empty if there is none."""
    return f"reasoning of {counted(length, 'character')} before the answer not scored" if length else ""


def no_answer(stop: str | None) -> str:
    """Say that an answer has no sentence, given why it ended; None if it was given."""
    return _NO_ANSWER.get(stop, "empty answer")


def message_of(answer: Report | ScoredAnswer) -> str:
    """Find what a decoder gave after the sentences or in their place, such as a quotation; "" if it gave nothing."""
    if answer.stop not in _GIVES_MESSAGE:
        return ""
    return answer.response[answer.sentences[-1].end if answer.sentences else 0 :].strip()


def message_label(sentences: int) -> str:
    """Say what a message is to the sentences of an answer, of which there are so many."""
    return "given after it" if sentences else "given instead"


def citation_facts(counts: CitationCounts) -> tuple[str, ...]:
    """Say how many citations there are and how good they are; nothing if there are none."""
    if not counts.statuses:
        return ()
    shares = {"precision": counts.precision, "recall": counts.recall}
    measured = [f"{name} {share:.0%}" for name, share in shares.items() if share is not None]
    return (", ".join([counted(counts.statuses.total(), "citation"), *measured]),)


def answer_facts(answer: Answer) -> tuple[str, ...]:
    """List the score of an answer as a whole, its size, its time and why it stopped, each in a few words."""
    repaired = sum(node.count("repaired") for node in answer.trace)
    report, seconds, whole = answer.report, answer.wall_seconds, answer.report.answer_score()
    return (
        *([] if whole is None else [f"whole answer {whole:.2f}"]),
        counted(len(report.sentences), "sentence"),
        *([f"{report.unscored} without a score"] if report.unscored else []),
        *([counted(len(report.tokens), "token")] if len(report.tokens) else []),
        *filter(None, [reasoning_words(reasoning_length(report.response, (s.start for s in report.sentences)))]),
        *citation_facts(CitationCounts.of(report.sentences)),
        *([f"{len(answer.dropped)} dropped"] if answer.dropped else []),
        *([f"{repaired} repaired"] if repaired else []),
        *([] if seconds is None else [f"{seconds:.1f} s"]),
        *([] if report.stop is None else [f"stop: {report.stop}"]),
        *([] if report.monitor is None else [f"monitor: {report.monitor}"]),
    )


_Rgb = tuple[int, int, int]
# All common kinds of colour blindness keep orange and blue apart.
_LIGHT: tuple[_Rgb, _Rgb, _Rgb] = ((0xF4, 0xA2, 0x6B), (0xF6, 0xEF, 0xDF), (0x9C, 0xC9, 0xEE))
_DARK: tuple[_Rgb, _Rgb, _Rgb] = ((0x8F, 0x43, 0x14), (0x3B, 0x38, 0x32), (0x1E, 0x53, 0x86))
TINTS = {"--l": _LIGHT, "--d": _DARK}
"""Background colours at the scores 0, 0.5 and 1, by CSS variable, for a script that mixes them."""

BANDS: Mapping[Verdict, tuple[float, float]] = {
    "supported": (0.65, 1.0),
    "doubtful": (0.35, 0.65),
    "unsupported": (0.0, 0.35),
    "contradicted": (0.0, 0.35),
}
"""Range of the scale from 0 to 1 in which the tints of a verdict lie, so that colours follow the thresholds."""


@dataclass(frozen=True, slots=True)
class Tint:
    """A background colour in CSS, for a light and for a dark page."""

    light: str
    dark: str


def tint(score: float, verdict: Verdict | None = None) -> Tint:
    """Choose the background of a score in [0, 1], within the band of its verdict, if any; text is readable on it."""
    low, high = (0.0, 1.0) if verdict is None else BANDS[verdict]
    place = low + (high - low) * score
    return Tint(_mix(_LIGHT, place), _mix(_DARK, place))


def _mix(ends: tuple[_Rgb, _Rgb, _Rgb], score: float) -> str:
    low, middle, high = ends
    left, right, part = (low, middle, 2 * score) if score < 0.5 else (middle, high, 2 * score - 1)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(left, right, strict=True))


@dataclass(frozen=True, slots=True)
class ShadeView:
    """Run of characters with one label: ``shade`` is their risk in [0, 1]; ``marked`` is True if they are wrong."""

    text: str
    shade: float
    marked: bool


def shades_of(text: str, labels: SpanLabels, *, start: int = 0, stop: int | None = None) -> tuple[ShadeView, ...]:
    """Cut a text, or the half-open part of it from ``start`` to ``stop``, where its labels change.

    Offsets are in code points, and risks have two decimals. If a border lies within what a reader sees as one
    character, the whole character gets the highest risk, and is marked if any part is.
    """
    risk, marked = risk_of(labels.soft, len(text)).round(2), labels.marked(len(text))
    last = len(text) if stop is None else stop
    borders = sorted({start, last, *(b for b in cluster_borders(text) if start < b < last)})
    seen = [(text[a:b], float(risk[a:b].max()), bool(marked[a:b].any())) for a, b in pairwise(borders)]
    runs = groupby(seen, key=lambda one: one[1:])
    return tuple(ShadeView("".join(one[0] for one in run), *look) for look, run in runs)
