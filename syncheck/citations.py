"""Citations of an answer: which passages its marks name, and whether these support the sentences."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from syncheck.base.checks import check_text, cited_names, names_of
from syncheck.base.errors import InputError
from syncheck.reading import Claim
from syncheck.results import Report
from syncheck.results.types import Citation, CitationStatus, Query, SentenceScore, SentenceSpan
from syncheck.text.markup import Mark, marks_in
from syncheck.text.words import words

if TYPE_CHECKING:
    from syncheck.scoring import SentenceScorer

_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d[a-z]?\b")
_ADDRESS = re.compile(r"(?:https?://)?(?:www\.)?([^\s#]+?)/?(?:#\S*)?", re.IGNORECASE)
_ASKABLE = frozenset({"scored", "no_aggregator"})

Ask = Callable[[Query], "SentenceScorer"]
"""Function that makes the scorer for sentences of answers to a query."""
Place = tuple[int | None, bool]
"""Index of a passage, or None with whether it is certain that there is no such passage."""


def citation_pattern(citation: str | re.Pattern[str] | None) -> re.Pattern[str] | None:
    """Compile the pattern of citation marks; InputError if it is none."""
    if citation is None or isinstance(citation, re.Pattern):
        return citation
    check_text(citation, "citation")
    try:
        return re.compile(citation)
    except re.error as error:
        raise InputError(f"citation must be a regular expression; found {citation!r}: {error}") from error


def place_of(source: Sequence[str], passages: Sequence[str]) -> Place:
    """Find the passage that a source's names mean.

    A name is an id, title or URL of a passage, or its number, from 1; an author with a year, or a part of a title,
    means the only passage whose names have all its words. There is no such passage if a number is too large, if a URL
    is not among those of the passages, or if each passage has an id or title and a title is not among them.
    """
    named = [names_of(passage) for passage in passages]
    known = {_plain(name): index for index, names in reversed([*enumerate(named)]) for name in names if name}
    for name in source:
        if _plain(name) in known:
            return known[_plain(name)], False
    for name in source:
        if name.isdecimal():
            return (int(name) - 1, False) if 1 <= int(name) <= len(passages) else (None, True)
    for name in source:
        parts = {*words(name)}
        fitting = [i for i, names in enumerate(named) if parts and parts <= {*words(" ".join(filter(None, names)))}]
        if len(fitting) == 1:
            return fitting[0], False
    if any("://" in name for name in source):
        return None, any(url for _, _, url in named)
    is_title = not any(_YEAR.search(name) or not re.search(r"[^\W\d_]", name) for name in source)
    return None, is_title and all(identity or title for identity, title, _ in named)


def has_citations(report: Report) -> bool:
    """Tell whether an answer has citation marks of a known form."""
    names = cited_names(report.prompt.passages)
    return any(marks_in(sentence.text, names=names) for sentence in report.sentences)


def check_citations(report: Report, ask: Ask, *, threshold: float, pattern: re.Pattern[str] | None = None) -> Report:
    """Check the citations of a report's sentences; a report without any is returned as it is.

    ``ask`` makes the scorer that scores a sentence against the passages that it cites, alone; these support it from the
    ``threshold`` of the score, or of the support without an aggregator. Without a pattern, marks have the known forms.
    """
    names = cited_names(report.prompt.passages)
    found = [marks_in(sentence.text, names=names, pattern=pattern) for sentence in report.sentences]
    listed = ((m.defines, place_of(m.sources[0], report.prompt.passages)) for one in found for m in one if m.defines)
    defined = {label: place for label, place in listed if place != (None, False)}
    marks = [tuple(mark for mark in one if not mark.defines) for one in found]
    if not any(marks):
        return report
    cited = [_Cited(number, one, report, defined) for number, one in enumerate(marks)]
    alone = _Supports(report, ask, threshold)
    alone.ask((one, (passage,)) for one in cited for passage in one.passages)
    open_ = [one for one in cited if not any(alone.of(one, (passage,)) for passage in one.passages)]
    alone.ask((one, one.passages) for one in open_ if len(one.passages) > 1)
    alone.ask((one, one.others) for one in cited if one.others)
    sentences = [replace(one.sentence, citations=one.citations(alone)) for one in cited]
    return replace(report, sentences=tuple(sentences))


@dataclass
class _Cited:
    number: int
    marks: tuple[Mark, ...]
    report: Report
    defined: Mapping[str, Place]
    """Places of the sources that the answer itself lists, by their marks."""
    places: list[tuple[Mark, Place]] = field(init=False)
    passages: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        passages = self.report.prompt.passages
        sources = ((mark, source) for mark in self.marks for source in mark.sources)
        self.places = [(mark, self.defined.get(source[0]) or place_of(source, passages)) for mark, source in sources]
        self.passages = tuple(sorted({index for _, (index, _) in self.places if index is not None}))

    @property
    def sentence(self) -> SentenceScore:
        return self.report.sentences[self.number]

    @property
    def others(self) -> tuple[int, ...]:
        """The passage of the best evidence, if it is not cited."""
        evidence = self.sentence.evidence
        if not self.marks or evidence is None or evidence.passage in self.passages:
            return ()
        return (evidence.passage,)

    @property
    def claim(self) -> Claim:
        sentence = self.sentence
        span = SentenceSpan(self.number, sentence.start, sentence.end, 0, 0)
        return Claim(sentence.text, span, marks=self.marks)

    def citations(self, alone: _Supports) -> tuple[Citation, ...]:
        together = len(self.passages) > 1 and bool(alone.of(self, self.passages))
        better = next((other for other in self.others if alone.of(self, (other,))), None)
        better = next((index for index in self.passages if alone.of(self, (index,))), better)
        return tuple(self._citation(mark, place, alone, together, better) for mark, place in self.places)

    def _citation(self, mark: Mark, place: Place, alone: _Supports, together: bool, better: int | None) -> Citation:
        index, is_missing = place
        start, end = self.sentence.start + mark.start, self.sentence.start + mark.end
        marker = self.sentence.text[mark.start : mark.end]
        if index is None:
            status: CitationStatus = "fabricated" if is_missing else "unresolved"
            return Citation(marker, start, end, None, status, better if is_missing else None)
        supports = alone.of(self, (index,))
        if supports is None:
            return Citation(marker, start, end, index, "unresolved")
        if supports or together:
            return Citation(marker, start, end, index, "supported")
        return Citation(marker, start, end, index, "misattributed", better)


class _Supports:
    """Whether passages, alone, support sentences of a report; None where that cannot be told."""

    def __init__(self, report: Report, ask: Ask, threshold: float) -> None:
        self._report, self._ask, self._threshold = report, ask, threshold
        self._known: dict[tuple[int, tuple[int, ...]], bool | None] = {}

    def of(self, cited: _Cited, passages: tuple[int, ...]) -> bool | None:
        return self._known.get((cited.number, passages))

    def ask(self, pairs: Iterable[tuple[_Cited, tuple[int, ...]]]) -> None:
        """Score sentences against passages, those with the same passages in one batch."""
        batches: dict[tuple[int, ...], list[_Cited]] = defaultdict(list)
        for cited, passages in pairs:
            if cited.sentence.status in _ASKABLE:
                batches[passages].append(cited)
        for passages, batch in batches.items():
            prompt, sentences = self._report.prompt, self._report.sentences
            scorer = self._ask(Query(prompt.question, tuple(prompt.passages[index] for index in passages)))
            earlier = [sentences[: cited.number] for cited in batch]
            scores = scorer.claims([[cited.claim] for cited in batch], earlier=earlier)
            for cited, (score,) in zip(batch, scores, strict=True):
                value = score.features.get("align_score") if score.status == "no_aggregator" else score.score
                self._known[cited.number, passages] = None if value is None else value >= self._threshold


def _plain(name: str) -> str:
    address = _ADDRESS.fullmatch(name.strip())
    return " ".join((address[1] if address else name).casefold().split())
