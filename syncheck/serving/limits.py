"""Limits of a server: places for requests, batches for scoring, and counters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from syncheck.monitor import Monitor
from syncheck.results import Report
from syncheck.serving.chat import ServiceError
from syncheck.serving.checked import in_thread
from syncheck.verifier import Verifier

_MOST_AT_ONCE = 32
"""Largest number of responses that are scored in one batch."""


class Deadline:
    """Time at which an answer has to be complete, ``seconds`` after this is made."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = asyncio.get_running_loop().time() + seconds

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
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise self._error() from error

    def _error(self) -> ServiceError:
        seconds = f"{self._seconds:g}"
        return ServiceError(504, "timeout", f"no complete answer after {seconds} seconds (--timeout {seconds})")


class Queue:
    """Queue with places for some requests at a time, and for some more that wait."""

    def __init__(self, running: int, waiting: int, measured: Metrics) -> None:
        self._free = asyncio.Semaphore(running)
        self._most = waiting
        self._measured = measured
        self._waiting = 0

    @asynccontextmanager
    async def place(self, *, is_counted: bool = False) -> AsyncIterator[None]:
        """Wait for a place, and hold it; ``is_counted`` is True for a request that has entered already."""
        if not is_counted:
            self.enter()
        try:
            await self._free.acquire()
        finally:
            if not is_counted:
                self.leave()
        self._measured.running.inc()
        try:
            yield
        finally:
            self._measured.running.dec()
            self._free.release()

    def enter(self) -> None:
        """Begin to wait; ServiceError if too many requests wait already."""
        if self._free.locked() and self._waiting >= self._most:
            raise ServiceError(
                429, "too_many_requests", "too many requests are waiting; try again", headers={"Retry-After": "1"}
            )
        self._waiting += 1
        self._measured.waiting.set(self._waiting)

    def leave(self) -> None:
        """End the wait."""
        self._waiting -= 1
        self._measured.waiting.set(self._waiting)


@dataclass(eq=False)
class _Job:
    question: str
    passages: Sequence[str]
    response: str
    report: asyncio.Future[Report]


class ScoreBatches:
    """Scores given responses, in one place for all clients that wait at the same time."""

    def __init__(self, monitor: Monitor | Verifier, queue: Queue) -> None:
        self._monitor = monitor
        self._queue = queue
        self._waiting: list[_Job] = []
        self._work: asyncio.Task[None] | None = None

    async def score(self, question: str, passages: Sequence[str], response: str) -> Report:
        """Return the report of a response."""
        self._queue.enter()
        job = _Job(question, passages, response, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        if self._work is None:
            self._work = asyncio.create_task(self._run())
        try:
            return await job.report
        finally:
            if job in self._waiting:
                self._waiting.remove(job)
                self._queue.leave()

    async def _run(self) -> None:
        try:
            while self._waiting:
                async with self._queue.place(is_counted=True):
                    jobs, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
                    for _ in jobs:
                        self._queue.leave()
                    for job in jobs:
                        if not job.report.done():  # its client has left
                            await self._answer(job)
        finally:
            self._work = None

    async def _answer(self, job: _Job) -> None:
        try:
            report = await in_thread(checked, self._monitor, job.question, job.passages, job.response)
        except Exception as error:
            job.report.set_exception(error)
        else:
            job.report.set_result(report)


def checked(monitor: Monitor | Verifier, question: str, passages: Sequence[str], response: str) -> Report:
    """Score a given response."""
    if isinstance(monitor, Verifier):
        return monitor.check(response, question=question, passages=passages)
    return monitor.score(monitor.prompt(question=question, context=passages), response)


class Metrics:
    """Counters of one application for Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        said: dict[str, Any] = {"registry": self.registry, "namespace": "syncheck"}
        self.requests = Counter("requests", "Answers asked for, by status of HTTP or client_left", ["status"], **said)
        self.sentences = Counter("sentences", "Sentences, by status and verdict", ["status", "verdict"], **said)
        self.retractions = Counter("retractions", "Events that took text back", **said)
        self.scores = Histogram("score", "Scores of sentences", buckets=[i / 10 for i in range(1, 11)], **said)
        self.seconds = Histogram("answer_seconds", "Seconds of an answer, waiting included", **said)
        self.running = Gauge("running", "Answers at work", **said)
        self.waiting = Gauge("waiting", "Requests that wait", **said)

    def observe(self, told: Iterable[Mapping[str, Any]]) -> None:
        """Count sentences, or the events of a stream."""
        for values in told:
            if values.get("type") in ("retract", "replace"):
                self.retractions.inc()
            if values.get("type", "verified") != "verified":
                continue
            self.sentences.labels(values["status"], values["verdict"] or "none").inc()
            if values["score"] is not None:
                self.scores.observe(values["score"])
