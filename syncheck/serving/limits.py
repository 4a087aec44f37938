"""Limits of a server: places for requests, batches for scoring, and counters."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from syncheck.decoding import ScoredAnswer
from syncheck.decoding.measuring import unmeasured
from syncheck.decoding.scored import score_next
from syncheck.features.schemas import needs_signals
from syncheck.monitor import Monitor
from syncheck.replay import GivenResponse
from syncheck.results import Report
from syncheck.results.types import RagPrompt, SentenceSignals, SentenceSpan
from syncheck.scoring import SentenceScorer
from syncheck.serving.chat import ServiceError
from syncheck.serving.turns import in_thread
from syncheck.watching.tokens import GrowingResponse

_ROOM = 32
"""Work of a round, in sentences with short passages: a fraction of a second."""
_SLICE = 8
"""Work of one response in a round, of which there are more while others wait."""
_TOKENS_OF_SENTENCE = 64
"""Number of tokens that a language model reads in the time of such a sentence."""
_CHARACTERS_OF_SENTENCE = 20_000
"""Number of characters of passages that are compared with a sentence in the same time."""
_READ_AT_ONCE = 8_192
"""Number of characters of a given response that are read in one slice."""


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
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place, and hold it; ServiceError if too many requests wait already."""
        if self._free.locked() and self._waiting >= self._most:
            raise too_many()
        self._waiting += 1
        self._measured.waiting.inc()
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
            self._measured.waiting.dec()
        self._measured.running.inc()
        try:
            yield
        finally:
            self._measured.running.dec()
            self._free.release()


def too_many() -> ServiceError:
    """Return the refusal of a request that may not wait."""
    return ServiceError(
        429, "too_many_requests", "too many requests are waiting; try again", headers={"Retry-After": "1"}
    )


@dataclass(eq=False)
class _Job:
    prompt: RagPrompt
    given: GivenResponse
    answer: ScoredAnswer | None
    """The sentences so far; None if a language model reads the response, so that all are scored at once."""
    report: asyncio.Future[Report]
    weight: float = 1.0
    """Work of a sentence; about 1 with short passages."""
    after: float = field(default_factory=time.monotonic)
    """Time since which the job waits, and so much later as it has been worked on already."""
    seconds: float = 0.0
    """Time for which it has been worked on."""
    has_begun: bool = False

    @property
    def spans(self) -> list[SentenceSpan]:
        """The sentences of the next slice."""
        if self.answer is None:
            return self.given.spans
        known = len(self.answer.sentences)
        return self.given.spans[known : known + max(1, int(_SLICE / self.weight))]

    @property
    def work(self) -> float:
        """Work of the next slice, in sentences with short passages."""
        if self.answer is None:
            return len(self.given.token_ids) / _TOKENS_OF_SENTENCE
        return self.weight * len(self.spans)


class ScoreBatches:
    """Scores given responses of all clients in rounds: some sentences of each, so that a short one is soon complete.

    Responses whose sentences need a language model are read whole, as many in a batch as a round has room for.

    Parameters
    ----------
    monitor
        The monitor that scores.
    most
        Largest number of responses at a time; further ones get the status 429.
    measured
        Counters of the application.
    """

    def __init__(self, monitor: Monitor, most: int, measured: Metrics) -> None:
        self._monitor = monitor
        self._most = most
        self._measured = measured
        self._entered = 0
        self._jobs: list[_Job] = []
        self._work: asyncio.Task[None] | None = None

    async def score(self, question: str, context: Sequence[str], response: str) -> Report:
        """Return the report of :meth:`syncheck.Monitor.score`."""
        if self._entered >= self._most:
            raise too_many()
        self._entered += 1
        self._measured.waiting.inc()
        job: _Job | None = None
        try:
            job = await self._read(question, context, response)
            self._jobs.append(job)
            if self._work is None:
                self._work = asyncio.create_task(self._run(), context=contextvars.Context())
            return await job.report
        finally:
            self._entered -= 1
            if job is None or not job.has_begun:
                self._measured.waiting.dec()
            if job in self._jobs:
                self._jobs.remove(job)

    async def _read(self, question: str, context: Sequence[str], response: str) -> _Job:
        monitor = self._monitor
        prompt = await in_thread(monitor.prompt, question=question, context=context)
        is_long = len(response) > _READ_AT_ONCE and monitor.tokenizer.is_fast
        is_whole = needs_signals(monitor.config.schema)
        if is_whole or not is_long:
            given = await in_thread(monitor.read, prompt, response, signals=False)
        else:
            reading = GrowingResponse(monitor, prompt, in_window=False)
            spans: list[SentenceSpan] = []
            for start in range(0, len(response), _READ_AT_ONCE):
                spans += await in_thread(reading.feed, response[start : start + _READ_AT_ONCE])
            spans += await in_thread(reading.finish)
            given = GivenResponse(reading.token_ids, spans, reading.transcript)
        weight = 1 + sum(map(len, prompt.passages)) / _CHARACTERS_OF_SENTENCE
        answer = None
        if not is_whole:
            scorer = self._scorer_of(prompt)
            if scorer is None:
                made = await in_thread(monitor.scorer, prompt)
                scorer = self._scorer_of(prompt) or made
            answer = ScoredAnswer(scorer)
        return _Job(prompt, given, answer, asyncio.get_running_loop().create_future(), weight)

    def _scorer_of(self, prompt: RagPrompt) -> SentenceScorer | None:
        """Return the scorer of a job with the same prompt, so that their sentences are scored together."""
        return next((job.answer.scorer for job in self._jobs if job.answer and job.prompt == prompt), None)

    async def _run(self) -> None:
        try:
            while self._jobs:
                jobs = self._round()
                self._measured.waiting.dec(sum(not job.has_begun for job in jobs))
                self._measured.running.inc()
                started = time.monotonic()
                for job in jobs:
                    job.has_begun = True
                try:
                    found = await in_thread(_advanced, self._monitor, jobs)
                finally:
                    self._measured.running.dec()
                seconds = time.monotonic() - started
                for job, report in zip(jobs, found, strict=True):
                    job.seconds += seconds / len(jobs)
                    job.after = time.monotonic() + job.seconds
                    if report is None or job.report.done():  # not complete, or its client has left
                        continue
                    if isinstance(report, Exception):
                        job.report.set_exception(report)
                    else:
                        job.report.set_result(report)
                    self._jobs.remove(job)
        finally:
            self._work = None

    def _round(self) -> list[_Job]:
        """Return the jobs of the next round: those that come first, as many as it has room for."""
        jobs: list[_Job] = []
        room = float(_ROOM)
        for job in sorted(self._jobs, key=lambda job: job.after):
            if jobs and job.work > room:
                break
            jobs.append(job)
            room -= job.work
        return jobs


def _advanced(monitor: Monitor, jobs: Sequence[_Job]) -> list[Report | Exception | None]:
    """Score the next slice of each job; return the reports of those that are complete, None for the others.

    If the batch fails, or a sentence in it, each job is scored alone, so that one cannot fail those of other clients.
    """
    before = [0 if job.answer is None else len(job.answer.sentences) for job in jobs]
    started = time.monotonic()
    try:
        answers = _scored(monitor, jobs)
    except Exception as error:
        return [error] if len(jobs) == 1 else [found for job in jobs for found in _advanced(monitor, [job])]
    seconds = time.monotonic() - started
    found: list[Report | Exception | None] = []
    for job, answer, known in zip(jobs, answers, before, strict=True):
        if len(jobs) > 1 and any(sentence.status == "failed" for sentence in answer.sentences[known:]):
            del answer.sentences[known:], answer.signals[known:]
            found += _advanced(monitor, [job])
        elif len(answer.sentences) < len(job.given.spans):
            found.append(None)
        else:
            found.append(answer.report(job.given.transcript, stop=None, seconds=job.seconds + seconds))
    return found


def _scored(monitor: Monitor, jobs: Sequence[_Job]) -> list[ScoredAnswer]:
    """Return the answers with the next slice of each; a batch that fails leaves them as they were."""
    growing = [job.answer for job in jobs if job.answer is not None]
    if len(growing) < len(jobs):
        prompts, given = [job.prompt for job in jobs], [job.given for job in jobs]
        answers = dict(monitor.replay_batch(prompts, given, signals=False, batch_size=len(jobs)))
        return [answers[i] for i in range(len(jobs))]
    before = [len(answer.sentences) for answer in growing]
    parts = [job.spans for job in jobs]
    try:
        score_next(growing, [_measured(job.given, part) for job, part in zip(jobs, parts, strict=True)])
    except Exception:
        for answer, known in zip(growing, before, strict=True):
            del answer.sentences[known:], answer.signals[known:]
        raise
    return growing


def _measured(given: GivenResponse, spans: Sequence[SentenceSpan]) -> list[SentenceSignals]:
    if not spans:
        return []
    start, stop = spans[0].token_start, spans[-1].token_end
    return unmeasured(given.token_ids[start:stop], spans, given.transcript, start=start)


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
