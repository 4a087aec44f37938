"""Segmenters of a response that arrives token by token, and of a text that no tokenizer has read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, pairwise
from os.path import commonprefix

from syncheck.base.errors import InputError
from syncheck.results.types import SentenceSpan
from syncheck.text.markup import Part, Reasoning
from syncheck.text.sentences.boundaries import Boundary, BoundaryFinder, SegmenterConfig
from syncheck.text.sentences.tokens import CharSpan, first_token_from

_ANOTHER = "A b c d"  # text that may follow a sentence, which ends before it if it is complete
_MARK = re.compile(r"\W*(?:\d{1,3}|[a-z])[.):]\W*", re.IGNORECASE)  # a list's mark without its item
_CJK_STOP = re.compile("[\u3002\uff01\uff1f\uff61]")


class IncrementalSegmenter:
    """Cuts a growing response into sentences; by default, those that NLTK's untrained Punkt finds in the whole text.

    Reported sentences depend on the text alone, not on its tokens, and never change. Only one that has not ended after
    ``max_tokens`` is cut after the last of these tokens that completes a character.
    """

    def __init__(self, config: SegmenterConfig) -> None:
        self._max_tokens = config.max_tokens
        self._sentences = config.sentences
        self._finder = BoundaryFinder(config)
        self._text = ""
        self._char_spans: list[CharSpan] = []
        self._starts: list[tuple[int, int]] = []  # of each sentence reported: its first character, its block
        self._token_start = 0  # the open sentence's first token
        self._char_start = 0  # its first character
        self._block = 0  # and its block
        self._complete = 0  # sentences found in it, when several are taken as one

    @property
    def text(self) -> str:
        """The response so far."""
        return self._text

    @property
    def char_spans(self) -> list[CharSpan]:
        """Characters ``(start, stop)`` of each token in :attr:`text`, half-open."""
        return self._char_spans

    def push(self, text: str) -> list[SentenceSpan]:
        """Add the text of one token and return the sentences that it closes, usually as the first of the next one."""
        start = len(self._text)
        self._text += text
        self._char_spans.append((start, len(self._text)))
        boundaries = self._finder.find(self._text)
        closed = self._close_at(boundaries) if boundaries else []
        while text and len(self._char_spans) - self._token_start > self._max_tokens:
            closed.append(self._cut())
            closed += self._close_at(self._finder.find(self._text))
        return closed

    def finish(self, text: str = "") -> list[SentenceSpan]:
        """Close the open sentence at the end of the response, with all remaining tokens.

        ``text`` is text of the last token that was held back (:meth:`Detokenizer.flush`).
        """
        if text:
            self._text += text
            self._char_spans[-1] = (self._char_spans[-1][0], len(self._text))
        closed = self._close_at(self._finder.find(self._text, final=True))
        has_tokens = self._starts and self._token_start < len(self._char_spans)
        if has_tokens or self._text[self._char_start :].strip():
            closed.append(self._close(len(self._text), len(self._char_spans)))
            self._restart(len(self._text), len(self._text))
        return closed

    @property
    def breaks_off(self) -> bool:
        """True if the response, which is finished, ends before the end of its last sentence, or after a list's mark."""
        return _breaks_off(self._text[self._starts[-1][0] :] if self._starts else "", self._finder)

    def fork(self) -> IncrementalSegmenter:
        """Make an independent copy that continues from here."""
        twin = copy(self)
        twin._char_spans, twin._starts = self._char_spans.copy(), self._starts.copy()
        twin._finder = self._finder.fork()
        return twin

    def rewound(self, tokens: int, *, sentences: int) -> IncrementalSegmenter:
        """Make a copy rewound to a reported boundary, with so many tokens and sentences."""
        twin = self.fork()
        twin._char_spans = self._char_spans[:tokens]
        twin._text = self._text[: twin._char_spans[-1][1]] if tokens else ""
        twin._token_start = tokens
        char, block = [*self._starts, (self._char_start, self._block)][sentences]
        twin._starts = self._starts[:sentences]
        twin._restart(min(char, len(twin._text)), block)
        return twin

    def _restart(self, char: int, block: int) -> None:
        """Open a sentence at a character and read the text after it again."""
        self._char_start, self._block, self._complete = char, block, 0
        self._finder.restart(char, block=block)

    def _close_at(self, boundaries: Iterable[Boundary]) -> list[SentenceSpan]:
        """Close the open sentence at these boundaries, or at each n-th if n sentences are taken as one."""
        closed: list[SentenceSpan] = []
        for stop, after, block, _ in boundaries:
            token_end = first_token_from(after, self._text, self._char_spans, lowest=self._token_start)
            if token_end - self._token_start > self._max_tokens:
                break  # too long: push cuts it and reads what follows again
            self._complete += 1
            if self._complete == self._sentences:
                closed.append(self._close(stop, token_end))
                self._char_start, self._block, self._complete = after, block, 0
        return closed

    def _cut(self) -> SentenceSpan:
        """Close the open sentence after the last token within the limit that has text; no character is divided."""
        limit = self._token_start + self._max_tokens
        opened = range(self._token_start, len(self._char_spans))
        with_text = [t for t in opened if self._char_spans[t][0] < self._char_spans[t][1]]
        last = max((t for t in with_text if t < limit), default=with_text[0])
        cut = self._char_spans[last][1]
        span = self._close(cut, last + 1, truncated=True)
        self._restart(cut, cut)
        return span

    def _close(self, end: int, token_end: int, *, truncated: bool = False) -> SentenceSpan:
        start, end = visible(self._text, self._char_start, end)
        span = SentenceSpan(len(self._starts), start, end, self._token_start, token_end, truncated)
        self._starts.append((self._char_start, self._block))
        self._token_start = token_end
        return span


class TextSegmenter:
    """Cuts a growing text into sentences, regardless of how it is split into pieces.

    Only a sentence that has not ended after ``max_characters`` is cut elsewhere than the rules say: at its last white
    space before, if there is any. With ``after``, the text continues that one, which ends with a whole sentence.
    """

    def __init__(self, config: SegmenterConfig, *, after: str = "") -> None:
        self._max_characters = config.max_characters
        self._sentences = config.sentences
        self._finder = BoundaryFinder(config)
        self._start = self._last = len(after)  # of the open sentence, and of the last one that is closed
        self._complete = 0  # sentences found in it, when several are taken as one
        self._count = 0
        self.text = after
        if after:
            self._finder.restart(len(after), block=after.rfind("\n") + 1)

    def push(self, piece: str) -> list[SentenceSpan]:
        """Add text and return the sentences that it closes, whose ``token_start`` and ``token_end`` are 0."""
        self.text += piece
        closed: list[SentenceSpan] = []
        while (limit := self._limit()) < len(self.text):
            # The cut at the limit must not depend on how much of the text after it is known.
            ended = self._close_at(self._finder.find(self.text[: limit + 1]))
            closed += ended or [self._cut(limit)]
        return closed + self._close_at(self._finder.find(self.text))

    def finish(self) -> list[SentenceSpan]:
        """Close the open sentence at the end of the text."""
        closed = self._close_at(self._finder.find(self.text, final=True))
        if self.text[self._start :].strip():
            closed.append(self._close(len(self.text)))
            self._start = len(self.text)
        return closed

    @property
    def breaks_off(self) -> bool:
        """True if the text, which is finished, ends before the end of its last sentence, or after a list's mark."""
        return _breaks_off(self.text[self._last :], self._finder)

    def _limit(self) -> int:
        """Find the character after which the open sentence is cut; none while it is blank."""
        start = self._start
        while start < len(self.text) and self.text[start].isspace():
            start += 1
        return start + self._max_characters

    def _close_at(self, boundaries: Iterable[Boundary]) -> list[SentenceSpan]:
        """Close the open sentence at these boundaries, or at each n-th if n sentences are taken as one."""
        closed: list[SentenceSpan] = []
        for stop, after, _, _ in boundaries:
            self._complete += 1
            if self._complete == self._sentences:
                closed.append(self._close(stop))
                self._start, self._complete = after, 0
        return closed

    def _cut(self, limit: int) -> SentenceSpan:
        """Close the open sentence within the limit, and read what follows as the start of another."""
        start, _ = visible(self.text, self._start, limit)
        spaces = [at for at in range(start + 1, limit + 1) if self.text[at].isspace()]
        cut = spaces[-1] if spaces else limit
        span = self._close(cut, truncated=True)
        self._start, self._complete = cut, 0
        self._finder.restart(cut, block=cut)
        return span

    def _close(self, end: int, *, truncated: bool = False) -> SentenceSpan:
        span = SentenceSpan(self._count, *visible(self.text, self._start, end), 0, 0, truncated)
        self._count, self._last = self._count + 1, self._start
        return span


class AnswerSegmenter:
    """Cuts a growing answer into sentences as :class:`TextSegmenter` does, none of which has reasoning in it.

    ``text`` is all of it, and ``spans`` are the sentences so far, of which a closing tag that nothing opened takes back
    all before it. Without ``reasoning``, all text is the answer.
    """

    def __init__(self, config: SegmenterConfig, *, reasoning: bool = True) -> None:
        self._config = config
        self._reasoning = Reasoning() if reasoning else None
        self._open, self._start = TextSegmenter(config), 0  # of what follows the last reasoning, and where that begins
        self.text = ""
        self.spans: list[SentenceSpan] = []

    def push(self, piece: str) -> None:
        """Add text."""
        self._take(piece, is_last=False)

    def finish(self) -> None:
        """Close the open sentence at the end of the text."""
        self._take("", is_last=True)
        self._close(self._open.finish())

    def _take(self, piece: str, *, is_last: bool) -> None:
        at, self.text = len(self.text), self.text + piece
        parts: Iterable[Part] = [("text", piece, at)]
        for kind, text, start in parts if self._reasoning is None else self._reasoning.read(piece, is_last=is_last):
            if kind == "not_text":
                self.spans.clear()
                self._open, self._start = TextSegmenter(self._config), start
            elif kind == "text":
                if start != self._start + len(self._open.text):
                    self._close(self._open.finish())
                    self._open, self._start = TextSegmenter(self._config), start
                self._close(self._open.push(text))

    def _close(self, spans: Iterable[SentenceSpan]) -> None:
        for span in spans:
            start, end = span.start + self._start, span.end + self._start
            self.spans.append(replace(span, index=len(self.spans), start=start, end=end))


def segment_given(token_texts: Sequence[str], sentences: Sequence[str]) -> list[SentenceSpan]:
    """Assign tokens, by their texts, to given sentences; the texts of both, joined, must be the response.

    A token of white space belongs to the sentence whose string contains it. Texts that differ raise InputError.
    """
    text, joined = "".join(token_texts), "".join(sentences)
    if joined != text:
        at = len(commonprefix((text, joined)))
        raise InputError(
            f"the joined sentences must equal the response; they differ from character {at} on: expected "
            f"{text[at : at + 40]!r}, found {joined[at : at + 40]!r}; pass them in order, with all white space"
        )
    char_spans = list(pairwise(accumulate(map(len, token_texts), initial=0)))
    stops = accumulate(map(len, sentences))
    spans: list[SentenceSpan] = []
    token = 0
    for span, after in zip(spans_of(sentences), stops, strict=True):
        is_last = span.index == len(sentences) - 1
        token_end = len(char_spans) if is_last else first_token_from(after, text, char_spans, lowest=token)
        spans.append(replace(span, token_start=token, token_end=token_end))
        token = token_end
    return spans


def _breaks_off(last: str, finder: BoundaryFinder) -> bool:
    """Tell whether a text ends before the end of its last sentence, which is given, or after a list's mark."""
    last = last.strip()
    if _MARK.fullmatch(last) or not is_checkable(last):
        return is_checkable(last)
    finder = finder.fork()
    finder.restart(0, block=0)
    ends = [boundary.stop for boundary in finder.find(f"{last} {_ANOTHER}", final=True)]
    ends += [place.end() for place in _CJK_STOP.finditer(last)]
    return all(is_checkable(last[end:]) or end > len(last) for end in ends)


def is_checkable(text: str) -> bool:
    """Tell whether a sentence has a letter or digit of any script; one without makes no claim."""
    return any(char.isalnum() for char in text)


def spans_of(sentences: Sequence[str]) -> list[SentenceSpan]:
    """Locate given sentences, which are joined as they are, in their text."""
    text = "".join(sentences)
    places = pairwise(accumulate(map(len, sentences), initial=0))
    return [SentenceSpan(index, *visible(text, start, stop), 0, 0) for index, (start, stop) in enumerate(places)]


def visible(text: str, start: int, stop: int) -> tuple[int, int]:
    """Trim white space from both ends of a span; empty, at ``start``, if it has only white space."""
    inner = text[start:stop].rstrip()
    return start + (len(inner) - len(inner.lstrip())), start + len(inner)
