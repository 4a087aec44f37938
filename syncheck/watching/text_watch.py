"""Watches over text: an answer is scored while its text arrives, whichever model writes it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from syncheck.base.errors import InputError, NotReadyError, WrongTypeError
from syncheck.results import Report
from syncheck.results.events import EventWriter, why_stopped
from syncheck.results.protocol import ProtocolEvent, Reveal
from syncheck.results.types import Query, SentenceScore
from syncheck.scoring import check_stop_below, first_below
from syncheck.watching.growing import GrowingText

MOST_TOGETHER = 8
"""Number of sentences of a sequence of pieces that are scored together."""
_NOT_ENTERED = "enter the watch first: with verifier.watch_text(...) as watch"


class TextWatch:
    """Scores the sentences of an answer while its text arrives; a context manager.

    Made by :meth:`syncheck.Verifier.watch_text` and :meth:`syncheck.Monitor.watch_text`. An option outside its range
    raises InputError, and ``stop_below`` NotReadyError if no sentence has a score.

    Parameters
    ----------
    answer
        Reads and scores the text.
    query
        The question and the passages of the answer.
    has_scores
        False if no sentence has a score, for lack of an aggregator.
    reveal
        When text is appended; see :data:`syncheck.results.Reveal`.
    stop_below
        A score in [0, 1]: the answer ends with the first sentence that scores lower, or that makes a claim and has no
        score. None never ends it early.
    stop_after
        True ends the answer after that sentence, False before it; only a notice then says that it was written.
    at_once
        Number of sentences that are scored together, at least 1. More take less work, but each sentence is reported
        later.
    passage_ids
        The caller's names for the passages, one for each.
    finish
        Completes the report at the end of the answer; None leaves it as it is.

    Attributes
    ----------
    is_over : bool
        True if no more text is accepted: a sentence fell below ``stop_below``, the text has ended, or the watch was
        closed.
    withheld : SentenceScore or None
        The sentence before which ``stop_below`` ended the answer.
    report : Report or None
        The report of the answer, once it is closed.
    """

    def __init__(
        self,
        answer: GrowingText,
        query: Query,
        *,
        has_scores: bool = True,
        reveal: Reveal = "verified",
        stop_below: float | None = None,
        stop_after: bool = True,
        at_once: int = 1,
        passage_ids: Sequence[str] | None = None,
        finish: Callable[[Report], Report] | None = None,
    ) -> None:
        check_stop_below(stop_below, has_scores=has_scores)
        if not isinstance(at_once, int) or isinstance(at_once, bool) or at_once < 1:
            raise InputError(f"at_once must be a whole number of at least 1; found {at_once!r}")
        self._answer = answer
        self._at_once = at_once
        self._waiting = 0  # sentences that are complete and not scored yet
        self._stop_below = stop_below
        self._stop_after = stop_after
        self._finish = finish
        self._writer = EventWriter(query.passages, reveal=reveal, passage_ids=passage_ids)
        self._scope: ExitStack | None = None
        self._stop: str | None = None
        self._started = time.perf_counter()
        self.is_over = False
        self.withheld: SentenceScore | None = None
        self.report: Report | None = None

    def __enter__(self) -> TextWatch:
        if self._scope is not None:
            raise NotReadyError("a watch can be entered only once; make another one for another answer")
        self._scope = ExitStack()
        self._scope.enter_context(self._answer)
        return self

    def __exit__(self, *raised: object) -> None:
        self.is_over = True
        if self._scope is not None:
            self._scope.close()

    async def __aenter__(self) -> TextWatch:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *raised: object) -> None:
        self.__exit__(*raised)

    @property
    def events(self) -> list[ProtocolEvent]:
        """All events so far; those after an id are ``events[id:]``."""
        return self._writer.events

    @property
    def sentences(self) -> tuple[SentenceScore, ...]:
        """Sentences scored so far."""
        return tuple(self._answer.sentences)

    def feed(self, piece: str) -> list[ProtocolEvent]:
        """Add text and return the new events for a reader.

        The ``piece`` is the next part of the answer; words, characters and surrogate pairs may be divided anywhere.

        Raises
        ------
        InputError
            If the piece has half of a character that no piece completes.
        NotReadyError
            Outside the ``with`` block, or if the watch is over.
        PromptError
            If a language model has to read prompt and response and they do not fit its window.
        WrongTypeError
            If the piece is not a string.
        """
        self._require_open()
        if not isinstance(piece, str):
            raise WrongTypeError(f"a piece must be a string; found {_kind(piece)}")
        answer = self._answer
        known, since = len(self.events), time.perf_counter()
        before, scored = len(answer.text), len(answer.sentences)
        self._waiting = answer.feed(piece)
        if len(answer.sentences) < scored:
            self._writer.retract(scored, "it was reasoning, and no part of the answer")
            before = 0
        self._writer.append(answer.text[before:])
        if self._waiting >= self._at_once:
            self._score(since)
        if answer.is_over:
            self.is_over = True
        return self.events[known:]

    def close(self) -> list[ProtocolEvent]:
        """End the answer and return the last events for a reader; NotReadyError outside the ``with`` block."""
        if self.report is not None:
            return []
        if self._scope is None:
            raise NotReadyError(_NOT_ENTERED)
        known, since = len(self.events), time.perf_counter()
        if self._stop is None:
            self._waiting = self._answer.finish()
            self._score(since)
        report = self._answer.report(stop=self._stop, seconds=time.perf_counter() - self._started)
        self.report = report if self._finish is None else self._finish(report)
        self.is_over = True
        self._writer.end(self.report)
        return self.events[known:]

    async def feed_async(self, piece: str) -> list[ProtocolEvent]:
        """Add text in a thread, so that the event loop continues; otherwise as :meth:`feed`."""
        return await asyncio.to_thread(self.feed, piece)

    async def close_async(self) -> list[ProtocolEvent]:
        """End the answer in a thread; otherwise as :meth:`close`."""
        return await asyncio.to_thread(self.close)

    def _require_open(self) -> None:
        if self._scope is None:
            raise NotReadyError(_NOT_ENTERED)
        if self.is_over:
            raise NotReadyError(
                "the watch is over; check is_over before feeding more, and create another watch for a new answer"
            )

    def _score(self, since: float) -> None:
        """Score and report the complete sentences, up to one that falls below ``stop_below``."""
        if not self._waiting:
            return
        self._waiting = 0
        answer = self._answer
        known, end = len(answer.sentences), answer.sentences[-1].end if answer.sentences else 0
        answer.score(since=since)
        below = first_below(answer.sentences[known:], self._stop_below)
        failing = None if below is None else answer.sentences[known + below]
        if below is not None:
            answer.cut(known + below + self._stop_after)
            self.is_over, self._stop = True, "below_threshold"
            self.withheld = None if self._stop_after else failing
        for sentence in answer.sentences[known:]:
            self._writer.sentence(sentence, lead=answer.text[end : sentence.start])
            end = sentence.end
        if failing is not None and self._stop_below is not None:
            self._writer.notice(why_stopped(failing, self._stop_below, withheld=not self._stop_after))


def watch(stream: Iterable[str], begin: Callable[..., TextWatch], /, **options: Any) -> Iterator[ProtocolEvent]:  # noqa: ANN401
    """Score a stream of text with the watch that ``begin`` makes; see :meth:`syncheck.Verifier.watch`."""
    _require_stream(stream, Iterable, "an iterable of texts; an asynchronous one goes to watch_async")
    if isinstance(stream, Sequence):
        options = {"at_once": MOST_TOGETHER} | options
    try:
        with begin(**options) as watched:
            for piece in stream:
                yield from watched.feed(piece)
                if watched.is_over:
                    break
            yield from watched.close()
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()


async def watch_async(stream: AsyncIterable[str], begin: Callable[[], TextWatch]) -> AsyncIterator[ProtocolEvent]:
    """Score an asynchronous stream of text; otherwise as :func:`watch`."""
    _require_stream(stream, AsyncIterable, "an asynchronous iterable of texts; another one goes to watch")
    try:
        async with begin() as watched:
            async for piece in stream:
                for event in await watched.feed_async(piece):
                    yield event
                if watched.is_over:
                    break
            for event in await watched.close_async():
                yield event
    finally:
        close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
        closing = close() if close is not None else None
        if closing is not None:
            await closing


def _require_stream(stream: object, kind: type, expected: str) -> None:
    if not isinstance(stream, kind):
        raise WrongTypeError(f"the stream must be {expected}; found {type(stream).__name__}")


def _kind(piece: object) -> str:
    """Name the type of something that is no piece, for a message."""
    advice = ". Decode them first, as with codecs.iterdecode(stream, 'utf-8'), which joins the bytes of a character"
    return type(piece).__name__ + (advice if isinstance(piece, bytes) else "")
