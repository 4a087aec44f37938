"""Cases into views: decides what stands where on the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from syncheck.config import LARGE_KL_NATS
from syncheck.report.colours import ShadeView, shades_of, tint
from syncheck.report.labels import FeatureLabel, answer_facts, feature_label, feature_value, verdict
from syncheck.report.views import (
    AnswerView,
    CaseView,
    DroppedView,
    EvidenceView,
    PassageView,
    Segment,
    SentenceView,
    SignalView,
    TokenView,
    TraceView,
)
from syncheck.types import SentenceScore, TokenSignals

if TYPE_CHECKING:
    from syncheck.report.model import Answer, Case, Report, TraceNode

__all__ = ["case_view", "glossary", "mark_passage"]

_DARKEST_KL_NATS = 2 * LARGE_KL_NATS
_SMALLEST_LONGEST_BAR = 0.5
"""Nats of log-odds; less never fills a bar, however small all contributions are."""


def case_view(case: Case, number: int, *, prefix: str) -> CaseView:
    """Return the view of a case; ``prefix`` keeps the anchors of several pages in one document apart."""
    anchor = f"{prefix}q{number}"
    answers = tuple(_answer_view(a, f"{anchor}a{i}", anchor) for i, a in enumerate(case.answers, 1))
    return CaseView(anchor, case.question, answers, _passage_views(case, answers, anchor))


def glossary(cases: Iterable[Case]) -> tuple[FeatureLabel, ...]:
    """Return the words for every feature on the page, each once, in the order of their first sentence."""
    sentences = (s for case in cases for answer in case.answers for s in answer.report.sentences)
    return tuple(feature_label(name) for name in dict.fromkeys(name for s in sentences for name in s.features))


def mark_passage(passage: str, spans: Iterable[tuple[int, int, tuple[str, str]]]) -> tuple[Segment, ...]:
    """Cut a passage at half-open spans of evidence, each with its label and anchor; spans may overlap."""
    marks = sorted(spans, key=lambda mark: mark[:2])
    borders = {0, len(passage), *(start for start, _, _ in marks), *(stop for _, stop, _ in marks)}
    pieces = sorted(borders)
    return tuple(
        Segment(
            text=passage[left:right],
            refs=tuple(ref for start, stop, ref in marks if start <= left and right <= stop),
            ends=tuple(ref for _, stop, ref in marks if right == stop),
        )
        for left, right in zip(pieces, pieces[1:], strict=False)
    )


def _passage_views(case: Case, answers: Sequence[AnswerView], anchor: str) -> tuple[PassageView, ...]:
    spans: list[list[tuple[int, int, tuple[str, str]]]] = [[] for _ in case.passages]
    for answer, drawn in zip(case.answers, answers, strict=True):
        for sentence, view in zip(answer.report.sentences, drawn.sentences, strict=True):
            evidence = sentence.evidence
            if evidence is None:
                continue
            quote = evidence.text.strip()
            start = case.passages[evidence.passage].find(quote)
            if quote and start >= 0:
                label = f"{answer.label} {view.number}"
                spans[evidence.passage].append((start, start + len(quote), (label, view.anchor)))
    return tuple(
        PassageView(i, f"{anchor}p{i}", mark_passage(passage, marks))
        for i, (passage, marks) in enumerate(zip(case.passages, spans, strict=True), 1)
    )


def _answer_view(answer: Answer, anchor: str, case_anchor: str) -> AnswerView:
    report = answer.report
    changes = [abs(change) for s in report.sentences for change in s.attribution.values()]
    longest = max([*changes, _SMALLEST_LONGEST_BAR])
    drawn: list[SentenceView] = []
    trailing: tuple[DroppedView, ...] = ()
    for sentence, dropped in answer.timeline:
        tried = tuple(DroppedView(d.text, _decimal(d.score), verdict(d)) for d in dropped)
        if sentence is None:
            trailing = tried
            continue
        number = len(drawn) + 1
        drawn.append(
            SentenceView(
                anchor=f"{anchor}s{number}",
                number=number,
                text=sentence.text,
                shades=_shade_views(report, sentence),
                score=_decimal(sentence.score),
                percent=round(100 * (sentence.score or 0.0), 1),
                key=sentence.verdict or sentence.status,
                verdict=verdict(sentence),
                tint=None if sentence.score is None else tint(sentence.score),
                weight=max(sentence.end - sentence.start, 1),
                is_lowest=sentence is report.lowest,
                unfolded=sentence is report.lowest and sentence.verdict != "supported",
                latency=None if sentence.latency_ms is None else f"{sentence.latency_ms:.1f} ms",
                truncated=sentence.truncated,
                signals=_signal_views(sentence, longest),
                tokens=tuple(_token_view(report.tokens, i) for i in _measured_tokens(report, sentence)),
                evidence=_evidence_view(sentence, case_anchor),
                dropped=tried,
            )
        )
    return AnswerView(
        label=answer.label,
        anchor=anchor,
        faithfulness=_decimal(report.faithfulness),
        tint=None if report.faithfulness is None else tint(report.faithfulness),
        lowest=_decimal(None if report.lowest is None else report.lowest.score),
        facts=answer_facts(answer),
        sentences=tuple(drawn),
        dropped=trailing,
        trace=tuple(_trace_view(node) for node in answer.trace),
        trace_size=sum(node.size for node in answer.trace),
    )


def _trace_view(node: TraceNode) -> TraceView:
    return TraceView(
        text=node.text,
        score=_decimal(node.score),
        fate=node.fate.replace("_", "-"),
        reason=node.reason,
        tint=None if node.score is None else tint(node.score),
        children=tuple(_trace_view(child) for child in node.children),
    )


def _shade_views(report: Report, sentence: SentenceScore) -> tuple[ShadeView, ...]:
    """Shade what is wrong in a sentence, unless it is supported."""
    if report.spans is None or sentence.verdict == "supported" or sentence.start == sentence.end:
        return ()
    return shades_of(report.response, report.spans, start=sentence.start, stop=sentence.end)


def _measured_tokens(report: Report, sentence: SentenceScore) -> range:
    """Return the tokens of a sentence; none where no language model was asked."""
    tokens = _tokens_of(sentence)
    return tokens if not np.isnan(report.tokens.log_prob[tokens.start : tokens.stop]).all() else range(0)


def _tokens_of(sentence: SentenceScore) -> range:
    return range(sentence.token_start, sentence.token_end)


def _evidence_view(sentence: SentenceScore, case_anchor: str) -> EvidenceView | None:
    evidence = sentence.evidence
    if evidence is None:
        return None
    number = evidence.passage + 1
    return EvidenceView(number, f"{case_anchor}p{number}", evidence.text.strip(), _decimal(evidence.score))


def _signal_views(sentence: SentenceScore, longest: float) -> tuple[SignalView, ...]:
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
        for name in sorted(sentence.features, key=lambda name: changes.get(name, 0.0))
    )


def _token_view(tokens: TokenSignals, i: int) -> TokenView:
    start, stop = tokens.char_spans[i].tolist()
    text = tokens.text[start:stop].replace("\n", "⏎")
    log_prob, kl = float(tokens.log_prob[i]), float(tokens.kl[i])
    return TokenView(
        text=text or f"id {int(tokens.token_ids[i])}",
        visible=bool(text),
        log_prob=_decimal(log_prob, digits=1),
        kl=_decimal(kl, digits=1),
        shade=0.0 if math.isnan(kl) else round(min(kl / _DARKEST_KL_NATS, 1.0), 3),
        probability=0.0 if math.isnan(log_prob) else round(100 * math.exp(log_prob), 1),
        large_kl=kl > LARGE_KL_NATS,
    )


def _decimal(value: float | None, digits: int = 2) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.{digits}f}".replace("-", "−")
