"""What the HTML templates draw: every text, colour, width and anchor decided, nothing left to compute."""

from __future__ import annotations

from dataclasses import dataclass

from syncheck.report.colours import ShadeView, Tint

__all__ = [
    "AnswerView",
    "CaseView",
    "DroppedView",
    "EvidenceView",
    "PassageView",
    "Segment",
    "SentenceView",
    "SignalView",
    "TokenView",
    "TraceView",
]


@dataclass(frozen=True, slots=True)
class SignalView:
    """One feature; ``change`` is what it adds to P(faithful), ``width`` its bar in percent of the longest."""

    name: str
    meaning: str
    value: str
    change: str
    pulls_down: bool
    width: float


@dataclass(frozen=True, slots=True)
class TokenView:
    """One token; ``shade`` is its KL in [0, 1] of the darkest, ``probability`` is in percent."""

    text: str
    visible: bool
    log_prob: str
    kl: str
    shade: float
    probability: float
    large_kl: bool


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """The best support: number of the passage from 1, the anchor to go to, the quote and its support."""

    passage: int
    target: str
    text: str
    support: str


@dataclass(frozen=True, slots=True)
class DroppedView:
    """A sentence that the decoder took back."""

    text: str
    score: str
    verdict: str


@dataclass(frozen=True, slots=True)
class SentenceView:
    """One sentence; ``weight`` is its length in characters, for the strip above the answer.

    ``shades`` are its characters where it was opened to them, ``dropped`` the sentences tried in its place.
    """

    anchor: str
    number: int
    text: str
    shades: tuple[ShadeView, ...]
    score: str
    percent: float
    key: str
    verdict: str
    tint: Tint | None
    weight: int
    is_lowest: bool
    unfolded: bool
    latency: str | None
    truncated: bool
    signals: tuple[SignalView, ...]
    tokens: tuple[TokenView, ...]
    evidence: EvidenceView | None
    dropped: tuple[DroppedView, ...]


@dataclass(frozen=True, slots=True)
class TraceView:
    """A sentence that the decoder tried, with those it tried behind it; ``fate`` is a class of the style sheet."""

    text: str
    score: str
    fate: str
    reason: str
    tint: Tint | None
    children: tuple[TraceView, ...]


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One decoder's answer; ``dropped`` are the sentences taken back after its last one.

    ``trace_size`` counts the sentences of ``trace``.
    """

    label: str
    anchor: str
    faithfulness: str
    tint: Tint | None
    lowest: str
    facts: tuple[str, ...]
    sentences: tuple[SentenceView, ...]
    dropped: tuple[DroppedView, ...]
    trace: tuple[TraceView, ...]
    trace_size: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a passage between two borders of evidence.

    ``refs`` are the sentences it is evidence for, ``ends`` those whose evidence ends here, both as pairs of
    label and anchor.
    """

    text: str
    refs: tuple[tuple[str, str], ...]
    ends: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PassageView:
    """A passage, cut where evidence begins and ends."""

    number: int
    anchor: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class CaseView:
    """A question with everything below it."""

    anchor: str
    question: str
    answers: tuple[AnswerView, ...]
    passages: tuple[PassageView, ...]
