"""Limits of a server: time for headers, turns in a few threads, places for requests; and its counters."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from syncheck.results.types import SentenceScore
from syncheck.serving.chat import ServiceError

HEADER_SECONDS = 10.0  # how long the line and the headers of a request may take


class PromptConnection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Connection that is closed if the headers of a request are not complete in time; Uvicorn sets no such limit."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # noqa: D102
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:  # noqa: D102
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: D102
        super().connection_lost(exc)
        self._end_watch()

    def _watch(self) -> None:
        """Start waiting for the next request, or stop waiting if its headers are there."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_watch()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _end_watch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_P = ParamSpec("_P")
_T = TypeVar("_T")

# Work of a slice of text, and of a sentence beside its passages, in characters of passages read.
_SLICE_CHARACTERS, _SENTENCE_CHARACTERS = 2**22, 2**14


class Turns:
    """Threads that requests use in turn.

    The time for which a request has used them is deducted from its wait, so that a small request passes a large one.
    """

    def __init__(self, threads: int) -> None:
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix="syncheck-turn")
        self.close = partial(self.executor.shutdown, wait=False, cancel_futures=True)
        self._free = threads
        self._numbers = count()
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    def share(self) -> None:
        """Let the current task, and those that it creates, use the threads as one request."""
        _share.set(_Share(self))

    @asynccontextmanager
    async def turn(self, used: float) -> AsyncIterator[None]:
        """Wait for a turn of a request that has used the threads for so many seconds, and keep it."""
        if self._free:
            self._free -= 1
        else:
            turn = asyncio.get_running_loop().create_future()
            heappush(self._waiting, (time.monotonic() + used, next(self._numbers), turn))
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # it came at the same moment
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            turn = heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


@dataclass
class _Share:
    turns: Turns
    used: float = 0.0  # seconds


_share: contextvars.ContextVar[_Share | None] = contextvars.ContextVar("syncheck_share", default=None)


async def in_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a slice of work in a thread when it is the request's turn; its end is awaited even when cancelled."""
    share = _share.get()
    turn: AbstractAsyncContextManager[None] = nullcontext() if share is None else share.turns.turn(share.used)
    async with turn:
        started = time.monotonic()
        call = partial(contextvars.copy_context().run, function, *args, **kwargs)
        running = asyncio.get_running_loop().run_in_executor(None if share is None else share.turns.executor, call)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise
        finally:
            if share is not None:
                share.used += time.monotonic() - started


def slices(text: str, passages: int) -> Iterator[str]:
    """Yield a text in slices that take a fraction of a second to check against this many characters of passages."""
    size = max(16, _SLICE_CHARACTERS // (_SENTENCE_CHARACTERS + passages))
    for start in range(0, len(text), size):
        yield text[start : start + size]


class Deadline:
    """Time by which an answer has to be complete: ``seconds`` after this object is made, or earlier if it is ended."""

    def __init__(self, seconds: float) -> None:
        self._at = asyncio.get_running_loop().time() + seconds
        self._waits: set[asyncio.Timeout] = set()
        told = f"no complete answer after {seconds:g} seconds (--timeout {seconds:g})"
        self._error: Callable[[], ServiceError] = partial(ServiceError, 504, "timeout", told)

    def end_in(self, seconds: float, error: Callable[[], ServiceError]) -> None:
        """Move it to so many seconds from now, unless it is earlier, with this error; waits end by then, too."""
        at = asyncio.get_running_loop().time() + seconds
        if at < self._at:
            self._at, self._error = at, error
            for wait in self._waits:
                wait.reschedule(at)

    @asynccontextmanager
    async def waiting(self, *, at_least: float = 0.0) -> AsyncIterator[None]:
        """Limit a wait to the deadline, or to ``at_least`` seconds if that is later; beyond it, raise ServiceError."""
        now = asyncio.get_running_loop().time()
        end = max(self._at, now + at_least)
        if end <= now:
            raise self._error()
        limit = asyncio.timeout_at(end)
        try:
            async with limit:
                self._waits.add(limit)
                try:
                    yield
                finally:
                    self._waits.discard(limit)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise self._error() from error


class Queue:
    """Queue with places for some requests at a time, and for some more that wait."""

    def __init__(self, running: int, waiting: int, measured: Metrics) -> None:
        self._free = asyncio.Semaphore(running)
        self._most = waiting
        self._measured = measured
        self._waiting = 0

    @property
    def is_full(self) -> bool:
        """True if no further request may wait."""
        return self._free.locked() and self._waiting >= self._most

    @asynccontextmanager
    async def place(self, deadline: Deadline) -> AsyncIterator[None]:
        """Wait for a place up to the deadline, and hold it; ServiceError if too many requests wait already."""
        if self.is_full:
            told = "too many requests are waiting; try again"
            raise ServiceError(429, "too_many_requests", told, headers={"Retry-After": "1"})
        self._waiting += 1
        try:
            with self._measured.waiting.track_inprogress():
                async with deadline.waiting():
                    await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            with self._measured.running.track_inprogress():
                yield
        finally:
            self._free.release()


class Metrics:
    """Counters of one application for Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        said: dict[str, Any] = {"registry": self.registry, "namespace": "syncheck"}
        self.requests = Counter("requests", "Answers asked for, by status of HTTP or client_left", ["status"], **said)
        self.sentences = Counter("sentences", "Sentences, by status and verdict", ["status", "verdict"], **said)
        self.retractions = Counter("retractions", "Events that took text back", **said)
        self.scores = Histogram("score", "Scores of sentences", buckets=[i / 10 for i in range(1, 11)], **said)
        times = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320)
        self.seconds = Histogram("answer_seconds", "Seconds of an answer, waiting included", buckets=times, **said)
        self.running = Gauge("running", "Answers at work", **said)
        self.waiting = Gauge("waiting", "Requests that wait", **said)

    def observe(self, answer: Mapping[str, Any]) -> None:
        """Count the sentences of a whole answer, or the events of a chunk."""
        told = (choice["syncheck"] for choice in answer["choices"])
        for values in (each for own in told for each in own.get("events") or own.get("sentences", ())):
            kind = values.get("type", "verified")
            if kind == "retract":
                self.retractions.inc()
            elif kind == "verified":
                self._count(values["status"], values["verdict"], values["score"])

    def withheld(self, sentence: SentenceScore) -> None:
        """Count a sentence that no event tells of."""
        self._count(sentence.status, sentence.verdict, sentence.score)

    def _count(self, status: str, verdict: str | None, score: float | None) -> None:
        self.sentences.labels(status, verdict or "none").inc()
        if score is not None:
            self.scores.observe(score)
