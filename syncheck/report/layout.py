"""Layout of cases on a page: all texts and measures, which the templates only write and colour."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from syncheck.base.checks import names_of
from syncheck.features.schemas import LARGE_KL_NATS
from syncheck.report.labels import (
    VERDICTS,
    FeatureLabel,
    ShadeView,
    answer_facts,
    decimal,
    feature_label,
    feature_value,
    shades_of,
)
from syncheck.results.types import Citation, SentenceScore, TokenSignals, Verdict

if TYPE_CHECKING:
    from syncheck.results.report import Answer, Case, Report

_DARKEST_KL_NATS = 2 * LARGE_KL_NATS
_WEIGHTIEST = 5  # signals that are shown without unfolding
_SMALLEST_LONGEST_BAR = 0.5  # contribution, in nats of log-odds, that fills a bar, however small all are


Link = tuple[str, str]
"""Label and anchor of a sentence."""


@dataclass(frozen=True, slots=True)
class SignalView:
    """One feature; ``change`` is its contribution to the log-odds, ``width`` its bar in percent of the longest."""

    name: str
    meaning: str
    value: str
    change: str
    pulls_down: bool
    width: float


@dataclass(frozen=True, slots=True)
class TokenView:
    """One token; ``shade`` is its KL relative to the darkest, in [0, 1], and ``probability`` is in percent."""

    text: str
    visible: bool
    log_prob: str
    kl: str
    shade: float
    probability: float
    large_kl: bool


@dataclass(frozen=True, slots=True)
class SentenceView:
    """One sentence; ``shades`` are its characters with their labels, ``dropped`` the sentences tried in its place.

    ``signals`` are those with the largest contributions, ``more_signals`` the others.
    """

    scored: SentenceScore
    anchor: str
    number: int
    is_lowest: bool
    shades: tuple[ShadeView, ...]
    signals: tuple[SignalView, ...]
    more_signals: tuple[SignalView, ...]
    tokens: tuple[TokenView, ...]
    dropped: tuple[SentenceScore, ...]

    @property
    def pieces(self) -> tuple[tuple[str, Citation | None], ...]:
        """The sentence cut at its citation marks, each with its first citation that names a passage, if any."""
        text, start = self.scored.text, self.scored.start
        marks: dict[tuple[int, int], Citation] = {}
        for cited in sorted(self.scored.citations, key=lambda one: (one.start, one.passage is None)):
            marks.setdefault((cited.start - start, cited.end - start), cited)
        borders = sorted({0, len(text), *(border for mark in marks for border in mark)})
        return tuple((text[a:b], marks.get((a, b))) for a, b in pairwise(borders))

    @property
    def unfolded(self) -> bool:
        """True if the signals of the sentence are shown from the start."""
        return self.is_lowest and self.scored.verdict != "supported"


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One decoder's answer; ``dropped`` are the sentences taken back after its last one."""

    answer: Answer
    lowest: SentenceScore | None
    anchor: str
    facts: tuple[str, ...]
    sentences: tuple[SentenceView, ...]
    dropped: tuple[SentenceScore, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a passage between two borders of evidence.

    ``refs`` are the sentences that it is evidence for, and ``ends`` those whose evidence ends here.
    """

    text: str
    refs: tuple[Link, ...]
    ends: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class CaseView:
    """A question with its answers, and its passages cut where evidence begins and ends."""

    anchor: str
    question: str
    answers: tuple[AnswerView, ...]
    passages: tuple[tuple[Segment, ...], ...]
    names: tuple[str, ...]
    """Title or id, and address, of each passage; empty if it has none."""
    citing: tuple[tuple[Link, ...], ...]
    """Sentences that cite each passage."""


def case_view(case: Case, number: int, *, prefix: str) -> CaseView:
    """Lay out a case; ``prefix`` keeps the anchors of several pages in one document apart."""
    anchor = f"{prefix}q{number}"
    answers = tuple(_answer_view(a, f"{anchor}a{i}") for i, a in enumerate(case.answers, 1))
    named = [names_of(passage) for passage in case.passages]
    names = tuple(" · ".join(part for part in (one.title or one.id, one.url) if part) for one in named)
    passages, citing = _passages(case, answers)
    return CaseView(anchor, case.question, answers, passages, names, citing)


def legend(cases: Iterable[Case]) -> dict[Verdict, str]:
    """Collect the verdicts that the legend explains, with their meanings, worst first.

    A monitor whose two thresholds are equal calls no sentence doubtful: the word is there only if a sentence has it.
    """
    answers = [answer for case in cases for answer in case.answers]
    used = {s.verdict for answer in answers for s in (*answer.report.sentences, *answer.dropped)}
    return {one: meaning for one, meaning in reversed([*VERDICTS.items()]) if one != "doubtful" or one in used}


def glossary(cases: Iterable[Case]) -> tuple[FeatureLabel, ...]:
    """List the labels of all features on the page, each once, in the order of their first sentence."""
    sentences = (s for case in cases for answer in case.answers for s in answer.report.sentences)
    return tuple(feature_label(name) for name in dict.fromkeys(name for s in sentences for name in s.features))


def mark_passage(passage: str, spans: Iterable[tuple[int, int, Link]]) -> tuple[Segment, ...]:
    """Cut a passage at half-open spans of evidence, each with its label and anchor; spans may overlap."""
    marks = sorted(spans, key=lambda mark: mark[:2])
    borders = sorted({0, len(passage), *(border for start, stop, _ in marks for border in (start, stop))})
    return tuple(
        Segment(
            text=passage[left:right],
            refs=tuple(ref for start, stop, ref in marks if start <= left and right <= stop),
            ends=tuple(ref for _, stop, ref in marks if right == stop),
        )
        for left, right in pairwise(borders)
    )


def _passages(
    case: Case, answers: Iterable[AnswerView]
) -> tuple[tuple[tuple[Segment, ...], ...], tuple[tuple[Link, ...], ...]]:
    """Cut the passages at the evidence, and list for each the sentences that cite it, with the citation's verdict."""
    spans: list[list[tuple[int, int, Link]]] = [[] for _ in case.passages]
    citing: list[dict[Link, None]] = [{} for _ in case.passages]
    for label, view in ((f"{drawn.answer.label} {view.number}", view) for drawn in answers for view in drawn.sentences):
        if (evidence := view.scored.evidence) is not None and (quote := evidence.text.strip()):
            start = case.passages[evidence.passage].find(quote)
            if start >= 0:
                spans[evidence.passage].append((start, start + len(quote), (label, view.anchor)))
        for cited in view.scored.citations:
            if cited.passage is not None:
                citing[cited.passage][f"{label}, {cited.status}", view.anchor] = None
    cut = tuple(mark_passage(passage, marks) for passage, marks in zip(case.passages, spans, strict=True))
    return cut, tuple(map(tuple, citing))


def _answer_view(answer: Answer, anchor: str) -> AnswerView:
    report = answer.report
    changes = [abs(change) for s in report.sentences for change in s.attribution.values()]
    longest = max([*changes, _SMALLEST_LONGEST_BAR])
    timeline = answer.timeline
    sentences = tuple(
        SentenceView(
            scored=sentence,
            anchor=f"{anchor}s{number}",
            number=number,
            is_lowest=sentence is report.lowest,
            shades=_shades(report, sentence),
            signals=_signals(sentence, weighty, longest),
            more_signals=_signals(sentence, [n for n in sentence.features if n not in weighty], longest),
            tokens=tuple(_token_views(report.tokens, sentence.token_start, sentence.token_end)),
            dropped=dropped,
        )
        for number, (sentence, dropped) in enumerate(timeline, 1)
        if sentence is not None
        for weighty in [_weightiest(sentence)]
    )
    trailing = timeline[-1][1] if timeline and timeline[-1][0] is None else ()
    return AnswerView(answer, report.lowest, anchor, answer_facts(answer), sentences, trailing)


def _shades(report: Report, sentence: SentenceScore) -> tuple[ShadeView, ...]:
    """Cut a sentence's characters into shades by the report's span labels; none if it is supported."""
    if report.spans is None or sentence.verdict == "supported" or sentence.start == sentence.end:
        return ()
    return shades_of(report.response, report.spans, start=sentence.start, stop=sentence.end)


def _weightiest(sentence: SentenceScore) -> tuple[str, ...]:
    """Find the features that change the score most; all features if no change is known."""
    weighed = sorted(sentence.features, key=lambda name: -abs(sentence.attribution.get(name, 0.0)))
    return tuple(weighed[:_WEIGHTIEST] if sentence.attribution else weighed)


def _signals(sentence: SentenceScore, names: Iterable[str], longest: float) -> tuple[SignalView, ...]:
    changes = sentence.attribution
    return tuple(
        SignalView(
            name=name,
            meaning=feature_label(name).meaning,
            value=feature_value(name, sentence.features[name]),
            change=f"{changes[name]:+.2f}".replace("-", "−") if name in changes else "",
            pulls_down=changes.get(name, 0.0) < 0,
            width=round(100 * abs(changes.get(name, 0.0)) / longest, 1),
        )
        for name in sorted(names, key=lambda name: changes.get(name, 0.0))
    )


def _token_views(tokens: TokenSignals, first: int | None, end: int | None) -> Iterator[TokenView]:
    """Yield the tokens of a sentence; none if it has none, or nothing was measured."""
    if first is None or end is None or np.isnan(tokens.log_prob[first:end]).all():
        return
    for i in range(first, end):
        start, stop = tokens.char_spans[i].tolist()
        text = tokens.text[start:stop].replace("\n", "⏎")
        log_prob, kl = float(tokens.log_prob[i]), float(tokens.kl[i])
        yield TokenView(
            text=text or f"id {int(tokens.token_ids[i])}",
            visible=bool(text),
            log_prob=decimal(log_prob, digits=1),
            kl=decimal(kl, digits=1),
            shade=0.0 if math.isnan(kl) else round(min(kl / _DARKEST_KL_NATS, 1.0), 3),
            probability=0.0 if math.isnan(log_prob) else round(100 * math.exp(log_prob), 1),
            large_kl=kl > LARGE_KL_NATS,
        )
