"""Relevance: how likely a sentence answers what was asked, by its words; it is never part of a score.

A faithful sentence may be beside the question. :func:`rated` adds P(gives some of what was asked) to the sentences of a
report, from six counts, whose weights ``benchmarks/relevance.py`` fits.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import takewhile

from syncheck.base.checks import check_count
from syncheck.base.errors import InputError
from syncheck.contrasts.parsing import ParsedText, parse
from syncheck.reading.claimless import is_label, is_question
from syncheck.reading.evidence import Context, object_around
from syncheck.reading.tables import cells_in, number_of_words
from syncheck.reading.tags import quotation, tags_in
from syncheck.results.report import Report
from syncheck.results.types import WITHOUT_CLAIM, Evidence, Query
from syncheck.text.sentences.rules import ENGLISH_ABBREVIATIONS

WEIGHTS: Mapping[str, float] = {
    "": -2.09,
    "asked": 2.96,  # share of the question's content words that it has, rarer ones counting more
    "place": 0.41,  # the same of its chunk and the neighbours of that, relative to the chunk with the largest share
    "kind": 0.18,  # 1 if it has what is asked for (a new number, time or name), -1 if not, 0 if no such thing is asked
    "yes": 2.99,  # 1 if it begins like an answer to a question that wants yes or no, else 0
    "of_itself": -0.87,  # 1 if it speaks of the passages or of answers, else 0
    "new": 0.14,  # number of its content words that the question lacks, at most MOST_NEW
}
"""Log-odds for each count of a sentence, and with "" where all are 0."""
BESIDE = 0.5
"""Weight of the chunks next to one."""
LEAST_QUOTED = 3
"""Smallest number of words of a part of a passage that is quoted as an answer."""
MOST_NEW = 8
"""Number of new words from which more do not count."""
TITLE_WORDS = 10
"""Largest number of words of a first line without a mark at its end that is a title."""
MOST_ROWS = 4
"""Largest number of equally relevant rows that are quoted together."""
ELLIPSIS = " \u2026 "
"""Stands for what a quotation leaves out."""
NEARLY = 0.7
"""Relevance of a further part that is quoted, at least, relative to that of the first; an answer with a sentence as
relevant needs no quotation."""

_SET_APART = (",", ";", "\t", "  ")
"""What stands between cells, where no bars do."""

_ENDED = re.compile(r"[.!?:;\u2026)\"\u201d]\s*$")
_LISTED = re.compile(r"^[-*+\u2022\u25e6\u25aa]\s+")
_AMOUNT = re.compile(r"\bhow (?:many|much|long|old|far|often|big|large|tall|high|deep|heavy)\b|\b(?:price|cost|fee)\b")
_TIME = re.compile(r"\bwhen\b|\bwhat (?:time|date|year|day)\b")
_PERSON = re.compile(r"\bwho(?:m|se)?\b")
_YES_OR_NO = re.compile(r"(?:is|are|was|were|can|could|do|does|did|may|must|will|would|should|has|have|am)\b")
_YES = re.compile(r"(?:yes|no|you (?:can|may|must|cannot|can't)|it (?:is|does))\b")
_OF_ITSELF = re.compile(r"\b(?:passages?|answer|question)\b")


class Asked:
    """A question beside its passages, which rates sentences."""

    def __init__(self, context: Context) -> None:
        self._text = context.query.question.lower().strip()
        self._question = parse(context.query.question)
        self._index = context.index
        self._stems = [parse(chunk.read).stems for chunk in context.chunks]
        number = len(self._stems) + 1
        self._rarity = {
            stem: math.log(number / (sum(stem in stems for stems in self._stems) + 0.5))
            for stem in self._question.content
        }
        self._held = [self._share(stems) for stems in self._stems]
        self._has_tags = cache(lambda passage: bool(tags_in(context.index.passages[passage])))

    def _share(self, stems: frozenset[str]) -> float:
        total = sum(self._rarity.values())
        return sum(rarity for stem, rarity in self._rarity.items() if stem in stems) / total if total else 0.0

    def counts(self, sentence: str) -> dict[str, float]:
        """Count what a sentence has of what was asked; :data:`WEIGHTS` says what the counts are."""
        read, text = parse(sentence), sentence.lower()
        return {
            "asked": self._share(read.stems),
            "place": self._place(sentence),
            "kind": self._kind(read),
            "yes": float(bool(_YES_OR_NO.match(self._text) and _YES.match(text.strip()))),
            "of_itself": float(bool(_OF_ITSELF.search(text))),
            "new": float(min(MOST_NEW, len(read.content - self._question.content))),
        }

    def _place(self, sentence: str) -> float:
        best = self._index.best(sentence, 1)
        most = max(self._held, default=0.0)
        if not best or not most:
            return 0.0
        beside = [self._held[n] for n in (best[0] - 1, best[0] + 1) if 0 <= n < len(self._held)]
        return (self._held[best[0]] + BESIDE * max(beside, default=0.0)) / most

    def _kind(self, read: ParsedText) -> float:
        known = {quantity.number for quantity in self._question.quantities}
        is_new = any(quantity.number not in known for quantity in read.quantities)
        if _AMOUNT.search(self._text) or _TIME.search(self._text):
            return 1.0 if is_new else -1.0
        if _PERSON.search(self._text):
            return 1.0 if any(token.name for token in read.tokens[1:]) else -1.0
        return 0.0

    def evidence(self, count: int, *, said: Sequence[str]) -> tuple[Evidence, ...]:
        """Find the most relevant chunks that have a word of the question and state something, one text a passage."""
        chunks = self._index.chunks
        rated = {n: self.relevance(chunks[n].read) for n, held in enumerate(self._held) if held and self._states(n)}
        ranked = sorted(rated, key=lambda n: -rated[n])
        if any(self.relevance(sentence) >= NEARLY * max(rated.values(), default=0.0) for sentence in said):
            return ()
        quotes: dict[int, str] = {}
        for number in ranked:
            quote = self._quoted(number)
            if len(quotes) == count or rated[number] < NEARLY * rated[ranked[0]]:
                break
            if not any(quote in other or other in quote for other in quotes.values()):
                quotes[number] = quote
        by_passage: dict[int, list[int]] = {}
        for number in quotes:
            by_passage.setdefault(chunks[number].passage, []).append(number)
        return tuple(
            Evidence(passage, self._joined({n: quotes[n] for n in sorted(own)}), rated[own[0]])
            for passage, own in by_passage.items()
        )

    def _joined(self, quotes: Mapping[int, str]) -> str:
        """Join quotations of one passage in its order: rows under one header, others with an ellipsis between."""
        (last, text), *others = quotes.items()
        for number, quote in others:
            between = "\n" if "\n" in quote else ELLIPSIS
            header, _, rest = quote.partition(between)
            if rest and text.startswith(header):
                text += between + rest
            else:
                beside = number == last + 1 and self._index.chunks[number].place is None
                text += (" " if beside else ELLIPSIS) + quote
            last = number
        return text

    def _states(self, number: int) -> bool:
        """Tell whether a chunk is more than a few words, a heading, a question, or the first line as a title."""
        chunks, chunk = self._index.chunks, self._index.chunks[number]
        if number_of_words(chunk.text) < LEAST_QUOTED or is_label(chunk.text) or is_question(chunk.text):
            return False
        before, after = ([c for c in chunks[n : n + 1] if c.passage == chunk.passage] for n in (number - 1, number + 1))
        is_line = (
            chunk.place is None and _ENDED.search(chunk.text) is None and number_of_words(chunk.text) <= TITLE_WORDS
        )
        return not (is_line and not before and after)

    def _quoted(self, number: int) -> str:
        """Quote a chunk with what it stands under, as a row with its header; of a text with tags, as it is read.

        Rows that have as much of what was asked are quoted with it, and a value or object of JSON with what holds it.
        """
        chunks, chunk = self._index.chunks, self._index.chunks[number]
        passage, quote = self._index.passages[chunk.passage], chunk.quoted_from(self._index.passages)
        if self._has_tags(chunk.passage):
            return _LISTED.sub("", chunk.text)
        quote = html.unescape(quotation(quote))
        if chunk.place is None:
            return quote
        start, end = chunk.place
        if quote.startswith("{"):
            return object_around(passage, start, end) or quote
        if quote.startswith("|"):
            rows = [
                one.quoted_from(self._index.passages)
                for one, held in zip(chunks, self._held, strict=True)
                if one.passage == chunk.passage and one.place and held == self._held[number]
            ]
            above = takewhile(lambda line: line.lstrip().startswith("|"), reversed(passage[:start].splitlines()))
            header = next(reversed(list(above)), "").strip()
            rows = rows if len(rows) <= MOST_ROWS and all(row.startswith("|") for row in rows) else [quote]
            return "\n".join(filter(None, [header, *rows]))
        item = _LISTED.sub("", quote)
        if not chunk.text.endswith(item):
            header = self._header(number) if cells_in(chunk.text) else ""
            is_row = any(mark in header and mark in quote for mark in _SET_APART)
            return f"{header}\n{quote}" if is_row else quote
        heading = chunk.text.removesuffix(item).rstrip(": ")
        return f"{heading}{ELLIPSIS}{item}" if heading else quote

    def _header(self, number: int) -> str:
        """Find the line above a row and its neighbours that is no chunk, since its cells are read with each row."""
        chunk = self._index.chunks[number]
        own = [one for one in self._index.chunks if one.passage == chunk.passage]
        starts = {one.place[0] for one in own if one.place}
        start = chunk.place[0] if chunk.place else 0
        while start:
            above = self._index.passages[chunk.passage][:start].rstrip("\n")
            start = above.rfind("\n") + 1
            if start not in starts:
                line = above[start:].strip()
                return "" if any(line in one.text for one in own) else line
        return ""

    def relevance(self, sentence: str) -> float:
        """Compute P(gives some of what was asked), in [0, 1]."""
        log_odds = WEIGHTS[""] + sum(WEIGHTS[name] * count for name, count in self.counts(sentence).items())
        return 1 / (1 + math.exp(-log_odds))


def rated(report: Report) -> Report:
    """Add the relevance of the sentences that make a claim; raise InputError if the report has no question."""
    if not report.prompt.question.strip():
        raise InputError("relevance is that to a question, and the report has none; give question= to check")
    asked = Asked(Context(report.prompt))
    sentences = (
        one if one.status in WITHOUT_CLAIM else replace(one, relevance=asked.relevance(one.text))
        for one in report.sentences
    )
    return replace(report, sentences=tuple(sentences))


def closest_evidence(
    question: str, passages: Sequence[str], *, count: int = 1, said: Sequence[str] = ()
) -> tuple[Evidence, ...]:
    """Find the sentences or rows of the passages, which may be empty, that most likely answer a question.

    At most ``count`` parts are quoted, the most likely one and others with at least 0.7 of its relevance; of equal ones
    the first. Each passage with some of them gives one evidence, the best one first: its number, the parts as they
    stand there (of a passage with tags, as they are read), with an ellipsis where something is left out, and as
    ``score`` their largest relevance in [0, 1]. A row comes with the header of its table, an item after its headings
    and an ellipsis, and a value of JSON as its object, if that has at most 40 words. Empty if no part of three words or
    more has a content word of the question, or if one of the sentences that are ``said`` has at least 0.7 of the
    relevance of the best part.
    """
    check_count(count, "count")
    asked = Asked(Context(Query(question, tuple(passages)), abbreviations=ENGLISH_ABBREVIATIONS))
    return asked.evidence(count, said=said)
