"""Overview page of many scored answers: shares, distributions, and the worst answers."""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import get_args

import numpy as np
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from syncheck.base.records import RefusedRecord
from syncheck.corpus.records import ScoredAnswer
from syncheck.features.schemas import feature_of
from syncheck.reading.tags import quotation
from syncheck.report import labels as wording
from syncheck.report.html import render_page
from syncheck.report.labels import VERDICTS, Tint, tint
from syncheck.results.types import WITHOUT_CLAIM, SentenceScore, Status, Verdict

MOST_ANSWERS = 10_000
"""Largest number of answers that a page lists, the worst first; all answers are counted."""
ANSWER_BYTES = 5_000
"""Largest size of an answer on the page, in bytes."""
BINS = 20
KINDS: tuple[str, ...] = (*VERDICTS, *(status for status in get_args(Status) if status != "scored"))
"""Categories of sentences: verdicts and, for sentences without a score, statuses."""

_STANDS_OUT = 0.75
_DETAILS = ((2000, 400, 5), (1000, 200, 3), (500, 120, 0))
"""Limits on an answer's details, from generous to strict: characters of a sentence, of its evidence, and signals."""
_DIGITS = 4  # of a score on the page


@dataclass(frozen=True, slots=True)
class Bar:
    """Part of a bar of a histogram: the sentences of one verdict in one bin, on top of ``below`` others."""

    verdict: Verdict
    place: int
    count: int
    below: int
    tint: Tint


class Histogram(Counter[tuple[Verdict, int]]):
    """Counts of scored sentences by verdict, which follows the monitor's thresholds, and by bin of their score."""

    def add(self, sentence: SentenceScore) -> None:
        """Count a sentence; one without a score has no bin."""
        if sentence.score is not None and sentence.verdict is not None:
            self[sentence.verdict, _bin(sentence.score)] += 1

    @property
    def totals(self) -> tuple[int, ...]:
        """Number of sentences in each bin."""
        return tuple(sum(self[kind, place] for kind in VERDICTS) for place in range(BINS))

    @property
    def bars(self) -> tuple[Bar, ...]:
        """The parts of the bars, from left to right, and in each bin from the worst verdict up."""
        drawn = []
        for place in range(BINS):
            below = 0
            for kind in reversed([*VERDICTS]):
                if count := self[kind, place]:
                    drawn.append(Bar(kind, place, count, below, tint((place + 0.5) / BINS, kind)))
                    below += count
        return tuple(drawn)


class Overview:
    """Counts scored answers, which may come from a generator, and keeps those that the page lists."""

    def __init__(self, answers: Iterable[ScoredAnswer]) -> None:
        self.kinds: Counter[str] = Counter()
        self.monitors: Counter[str] = Counter()
        self.answers = 0
        self.sentence_histogram, self.answer_histogram = Histogram(), Histogram()
        self.listed = heapq.nsmallest(MOST_ANSWERS, self._counted(answers), key=lambda answer: _rank(answer.lowest))

    def _counted(self, answers: Iterable[ScoredAnswer]) -> Iterator[ScoredAnswer]:
        for answer in answers:
            self.answers += 1
            self.monitors.update([answer.monitor] if answer.monitor else [])
            self.kinds.update(_kind(sentence) for sentence in answer.sentences)
            for sentence in answer.sentences:
                self.sentence_histogram.add(sentence)
            if answer.lowest is not None:
                self.answer_histogram.add(answer.lowest)
            yield answer

    @property
    def sentences(self) -> int:
        """Number of sentences in all answers."""
        return self.kinds.total()

    def to_html(self, *, title: str = "Scored answers", refused: Sequence[RefusedRecord] = ()) -> str:
        """Draw a complete HTML page that needs no other file and no network.

        Figures are drawn here; a script in the page lists, filters and searches the answers. All text is data or
        escaped. ``refused`` are the lines without an answer.
        """
        data = _Data(self.listed)
        drawn = data.answers()
        named = {str(kind): words for kind, words in wording.STATUS_WORDS.items()}
        bands = {str(kind): band for kind, band in wording.BANDS.items()}
        tables = {"kinds": KINDS, "bands": [bands.get(kind, (0, 1)) for kind in KINDS]}
        return render_page(
            "overview.html.j2",
            script="overview.js.j2",
            title=title,
            overview=self,
            kinds=[(kind, named.get(kind, kind), self.kinds[kind]) for kind in KINDS if self.kinds[kind]],
            bins=BINS,
            refused=refused,
            data=drawn,
            tables=_safe(tables | {"words": [*data.words], "signals": [*data.signals], "tints": wording.TINTS}),
            verdicts=VERDICTS,
        )


def _rank(sentence: SentenceScore | None) -> float:
    return 2.0 if sentence is None or sentence.score is None else sentence.score  # what has no score comes last


def _kind(sentence: SentenceScore) -> str:
    return sentence.verdict or sentence.status


def _bin(score: float) -> int:
    """Find the bin of a score, as the page's script finds it from the digits that the page has."""
    return min(int(round(score, _DIGITS) * BINS), BINS - 1)


class _Data:
    """Answers in the form that the page's script reads: arrays with indices into tables of words and signals."""

    def __init__(self, listed: Sequence[ScoredAnswer]) -> None:
        self._listed = listed
        columns: defaultdict[str, list[float]] = defaultdict(list)
        for name, value in (one for answer in listed for s in answer.sentences for one in _directed(s)):
            columns[name].append(value)
        self._columns = {name: np.sort(values) for name, values in columns.items()}
        self.words: dict[str, int] = {}
        self.signals: dict[tuple[str, str], int] = {}

    def answers(self) -> Markup:
        return Markup("[") + Markup(",\n").join(self._answer(answer) for answer in self._listed) + Markup("]")

    def _answer(self, answer: ScoredAnswer) -> Markup:
        """Write an answer with as many details as there is room for; the worst sentences keep theirs longest."""
        most = len(answer.sentences)
        for text, evidence, signals in _DETAILS:
            encoded = self._encoded(answer, range(most), text, evidence, signals)
            if len(encoded.encode()) <= ANSWER_BYTES:
                return encoded
        by_score = sorted(range(most), key=lambda i: _rank(answer.sentences[i]))
        while len(encoded.encode()) > ANSWER_BYTES:
            most = most * 2 // 3 if most > 1 else 0
            text = text if most else 0
            encoded = self._encoded(answer, sorted(by_score[:most]), text, evidence, 0)
        return encoded

    def _encoded(self, answer: ScoredAnswer, places: Iterable[int], text: int, evidence: int, signals: int) -> Markup:
        kept, lowest, given = list(places), answer.lowest, _cut(wording.message_of(answer), text)
        row: list[object] = [
            _cut(answer.id, 100),
            _cut(answer.question, 400),
            None if lowest is None or lowest.score is None else round(lowest.score, _DIGITS),
            None if lowest is None else KINDS.index(_kind(lowest)),
            sorted({KINDS.index(_kind(s)) for s in answer.sentences}),
            len(answer.sentences),
            [self._sentence(answer, i, text, evidence, signals) for i in kept],
            wording.reasoning_words(answer.reasoning),
            self._word("" if answer.sentences else wording.no_answer(answer.stop)),
            self._word(wording.message_label(len(answer.sentences)) if given else ""),
            given,
        ]
        if len(kept) < len(answer.sentences):
            left = [sentence for i, sentence in enumerate(answer.sentences) if i not in kept]
            counts = Counter((KINDS.index(_kind(s)), None if s.score is None else _bin(s.score)) for s in left)
            row.append([[kind, place, count] for (kind, place), count in counts.items()])
        return _safe(row)

    def _sentence(self, answer: ScoredAnswer, place: int, text: int, evidence: int, signals: int) -> list[object]:
        sentence = answer.sentences[place]
        near, said = sentence.evidence, wording.verdict(sentence)
        return [
            _cut(sentence.text, text),
            None if sentence.score is None else round(sentence.score, _DIGITS),
            KINDS.index(_kind(sentence)),
            self._word(said) if sentence.reason is None else _cut(said, 200),
            self._word(wording.why(sentence)),
            "" if near is None else _cut(quotation(near.text), evidence),
            None if near is None else round(near.score, _DIGITS),
            [_cut(line, 120) for line in wording.contrast_lines(sentence)[: max(signals, 1)]],
            self._signals(sentence, signals),
        ]

    def _signals(self, sentence: SentenceScore, most: int) -> list[list[object]]:
        """Write the signals that are less faithful than most, each with the share of sentences that are better."""
        if sentence.verdict == "supported" or sentence.status in WITHOUT_CLAIM:
            return []
        shares = []
        for name, value in _directed(sentence):
            column = self._columns[name]
            better = len(column) - int(np.searchsorted(column, value, side="right"))
            shares.append((better / len(column), name))
        rows: list[list[object]] = []
        for share, name in sorted((one for one in shares if one[0] >= _STANDS_OUT), key=lambda one: -one[0])[:most]:
            place = self.signals.setdefault((wording.feature_label(name).meaning, name), len(self.signals))
            rows.append([place, wording.feature_value(name, sentence.features[name]), math.floor(100 * share)])
        return rows

    def _word(self, text: str) -> int:
        return self.words.setdefault(text, len(self.words))


def _directed(sentence: SentenceScore) -> Iterator[tuple[str, float]]:
    """Yield the signals of which one side is better, so turned that higher is more faithful."""
    for name, value in sentence.features.items():
        known = feature_of(name)
        if value is not None and known is not None and known.direction:
            yield name, value * known.direction


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…" if most else "…"


def _safe(value: object) -> Markup:
    """Write JSON that is safe inside a script element: no character of it begins a tag, a comment or an entity."""
    return htmlsafe_json_dumps(value, dumps=partial(json.dumps, ensure_ascii=False, separators=(",", ":")))
