"""Growing responses: text that a language model reads as it arrives, as :mod:`syncheck.replay` reads a whole one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from syncheck.decoding import Transcript, end_tokens_of
from syncheck.decoding.generation import after_end, check_response
from syncheck.decoding.scored import ScoredGiven
from syncheck.results import Report
from syncheck.results.types import RagPrompt, SentenceScore, SentenceSpan
from syncheck.signals import check_window
from syncheck.text.sentences import BoundaryFinder, IncrementalSegmenter, SegmenterConfig, TextTokens, ends_of
from syncheck.watching.growing import WholeCharacters

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_OVERLAP = 16
"""Number of tokens that are made again when more text is tokenised, so that the tokenizer sees the text before it."""
_SAME = 4
"""Number of these tokens, at the end, that must come out as before."""
_UNREAD = 512
"""Number of characters after which text is tokenised although no sentence seems to end."""
_LONG_WORD = 32
"""Number of characters, at the end of a run without white space, whose tokens may still change."""
_CERTAIN = re.compile(r"\s+(?=\S)|(?<=[。！？｡，、；：])(?=\S)")
"""Position before which later text cannot change the tokens."""


class GrowingResponse:
    """Growing text of a response, with its tokens and sentences as soon as more text cannot change them.

    Only the tail of the text is tokenised, once for each sentence, so that the work grows with the text and not with
    its square. (A slow tokenizer, which does not report the positions of its tokens, gets the whole text each time.)
    ``text`` lacks half a character at its end, ``token_ids`` are the tokens that are certain, and ``after_end`` is what
    has come after an end-of-text token and is not read.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        prompt: RagPrompt,
        *,
        segmenter: SegmenterConfig,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._prompt = prompt
        self._ends = end_tokens_of(model, tokenizer)
        self._tokens = TextTokens(tokenizer, prompt.with_context_ids)
        self._segmenter = IncrementalSegmenter(segmenter)
        self._finder = BoundaryFinder(segmenter)
        self._pieces = WholeCharacters()
        self._wanted: list[int] = []  # characters up to which tokens close a sentence
        self._skipped: int | None = None  # characters before the first token; None until there is text
        self._places: list[tuple[int, int]] = []  # of each token, as the tokenizer reports them
        self._read = 0  # characters whose tokens are certain
        self.text = ""
        self.token_ids: list[int] = []
        self.after_end = ""
        self.is_over = False

    @property
    def char_spans(self) -> list[tuple[int, int]]:
        """Characters of each token in :attr:`text`, half-open."""
        return self._segmenter.char_spans

    @property
    def transcript(self) -> Transcript:
        """Text and tokens so far."""
        return Transcript(self.text, self.char_spans, self.after_end)

    def feed(self, piece: str) -> list[SentenceSpan]:
        """Add text and return the sentences that it closes."""
        if self.is_over:
            return []
        self.text += self._pieces.add(piece)
        self._wanted += [boundary.seen for boundary in self._finder.find(self.text)]
        if not self._wanted and len(self.text) - self._read < _UNREAD:
            return []
        certain = self._certain()
        if certain - self._read < _UNREAD and not any(place <= certain for place in self._wanted):
            return []
        closed = self._take(certain)
        self._wanted = [place for place in self._wanted if place > self._read]
        return closed

    def finish(self) -> list[SentenceSpan]:
        """Close and return the sentences that are open at the end of the response."""
        self._pieces.finish()
        closed = [] if self.is_over else self._take(None)
        if not self.token_ids:
            self.text = self.text if not self.is_over else ""
            return closed
        return closed + self._segmenter.finish(self.text[len(self._segmenter.text) :])

    def _certain(self) -> int:
        """Find the end of the text whose tokens are certain."""
        begin = max(self._read, len(self.text) - 8 * _LONG_WORD)
        places = [match.start() for match in _CERTAIN.finditer(self.text, begin)]
        return max([*places[-1:], len(self.text) - _LONG_WORD, self._read])

    def _take(self, certain: int | None) -> list[SentenceSpan]:
        """Read the tokens that end before a character (None: all) and return the sentences that they close."""
        start = self._read
        every, places = self._unread()
        count = len(every)
        if certain is not None:
            count = next((i for i, (_, end) in enumerate(places) if end > certain), count)
        over = next((i for i, token in enumerate(every[:count]) if token in self._ends), None)
        read = len(self.text) if certain is None else places[count - 1][1] if count else start
        if over is not None:
            count, self.is_over = over, True
            first, last = places[over]
            read = first if first < last else read
            self.after_end, self.text = after_end(self._model, self._tokenizer, every[over + 1 :]), self.text[:read]
        if not count:
            self._read = read if certain is None or self.is_over else start
            return []
        self._check_room(count)
        return self._add(every[:count], places[:count], read)

    def _add(self, ids: list[int], places: list[tuple[int, int]], read: int) -> list[SentenceSpan]:
        """Add certain tokens, which end at ``read``, and return the sentences that they close."""
        spans: list[SentenceSpan] = []
        end = len(self._segmenter.text)
        for token, stop in zip(ids, ends_of(places, start=end), strict=True):
            spans += self._segmenter.push(self._tokens.as_read(token, self.text[end:stop]))
            end = stop
        self.token_ids += ids
        self._places += places
        self._read = read
        return spans

    def _unread(self) -> tuple[list[int], list[tuple[int, int]]]:
        """Tokenise the text after the known tokens, and locate its tokens."""
        if self._skipped is None:
            self._skipped = self._tokens.skipped(self.text)
        known = self.token_ids
        overlap = self._places[-_OVERLAP][0] if self._tokenizer.is_fast and len(known) > _OVERLAP else None
        if overlap is not None:
            ids, places = self._tokens(self.text, overlap)
            for i in range(_SAME, len(ids) + 1):
                if places[i - 1] == self._places[-1] and ids[i - _SAME : i] == known[-_SAME:]:
                    return ids[i:], places[i:]
        ids, places = self._tokens(self.text, self._skipped)
        if ids[: len(known)] == known:
            return ids[len(known) :], places[len(known) :]
        first = next((i for i, (start, _) in enumerate(places) if start >= self._read), len(ids))
        return ids[first:], places[first:]

    def _check_room(self, more: int) -> None:
        model, prompt, count = self._model, self._prompt, len(self.token_ids) + more
        check_window(model, len(prompt.with_context_ids) + count)
        check_response(model, prompt, count)


class MeasuredText:
    """A growing answer that a language model reads; see :class:`~syncheck.watching.growing.GrowingAnswer`.

    Its ``session``, for the prompt, is closed with it.
    """

    def __init__(self, session: ScoredGiven, reading: GrowingResponse, *, sources: Mapping[str, str]) -> None:
        self._session = session
        self._reading = reading
        self._answer = session.answers[0]
        self._scope = ExitStack()
        self._waiting: list[SentenceSpan] = []
        self._stop: int | None = None
        self.sources = sources

    def __enter__(self) -> Self:
        self._scope.enter_context(self._session)
        return self

    def __exit__(self, *raised: object) -> None:
        self._scope.close()

    @property
    def text(self) -> str:
        """The answer so far, without half a character at its end."""
        return self._reading.text

    @property
    def is_over(self) -> bool:
        """True if an end-of-text token was found in the text."""
        return self._reading.is_over

    @property
    def sentences(self) -> list[SentenceScore]:
        """Its scored sentences."""
        return self._answer.sentences

    def feed(self, piece: str) -> int:
        """Add text and return the number of sentences that it completes."""
        return self._complete(self._reading.feed(piece))

    def finish(self) -> int:
        """End the text and return the number of sentences that this completes."""
        return self._complete(self._reading.finish())

    def score(self, *, since: float) -> None:
        """Measure and score the complete sentences."""
        spans, self._waiting = self._waiting, []
        first = self._answer.signals[-1].span.token_end if self._answer.signals else 0
        ids = self._reading.token_ids[first : spans[-1].token_end]
        self._session.extend(ids, spans, self._reading.transcript, since=since)

    def cut(self, sentences: int) -> None:
        """End the answer after this many of its sentences."""
        self._answer.cut(sentences)
        self._stop = self._answer.sentences[-1].end if self._answer.sentences else 0

    def report(self, *, stop: str | None, seconds: float) -> Report:
        """Build the report of the answer as scored so far."""
        read = self._reading.transcript
        cut = read if self._stop is None else Transcript(read.text[: self._stop], read.char_spans)
        return self._answer.report(cut, stop=stop, seconds=seconds)

    def _complete(self, spans: Sequence[SentenceSpan]) -> int:
        self._waiting += spans
        return len(spans)
