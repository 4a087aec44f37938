"""Limits of a server: turns in a few threads, places for requests, batches for scoring, and counters."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from syncheck.monitor import Monitor
from syncheck.reading import Claim
from syncheck.replay import GivenResponse
from syncheck.results import Report
from syncheck.results.types import Query, RagPrompt, SentenceScore, SentenceSpan
from syncheck.scoring import SentenceScorer, report_of
from syncheck.serving.chat import ServiceError
from syncheck.text.reasoning import answer_start
from syncheck.text.sentences import AnswerSegmenter
from syncheck.verifier import Verifier

_P = ParamSpec("_P")
_T = TypeVar("_T")

_SLICE_CHARACTERS = 2**22
_SENTENCE_CHARACTERS = 2**14
"""Work of a slice of text, and of a sentence beside its passages, in characters of passages read."""


class Turns:
    """Threads that requests use in turn.

    The slice that has waited longest comes first, but the time for which a request has used the threads is deducted
    from its wait: a small request passes a large one, and neither waits for ever.
    """

    def __init__(self, threads: int) -> None:
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix="syncheck-turn")
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

    def close(self) -> None:
        """End the threads; no slice may wait or run."""
        self.executor.shutdown(wait=False, cancel_futures=True)

    def _pass_on(self) -> None:
        while self._waiting:
            turn = heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class _Share:
    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.used = 0.0  # seconds


_share: contextvars.ContextVar[_Share | None] = contextvars.ContextVar("syncheck_share", default=None)


def used_seconds() -> float | None:
    """Tell how long the current request has used the threads; None outside of one."""
    share = _share.get()
    return None if share is None else share.used


async def in_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a function in a thread when it is the request's turn; see :class:`Turns`.

    The function is one slice of work: its end is awaited even when cancelled, so that no resource in use is released.
    """
    share = _share.get()
    call = partial(contextvars.copy_context().run, function, *args, **kwargs)
    if share is None:
        return await _ended(call, None)
    async with share.turns.turn(share.used):
        started = time.monotonic()
        try:
            return await _ended(call, share.turns.executor)
        finally:
            share.used += time.monotonic() - started


async def _ended(call: Callable[[], _T], executor: ThreadPoolExecutor | None) -> _T:
    running = asyncio.get_running_loop().run_in_executor(executor, call)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


def slices(text: str, passages: int) -> Iterator[str]:
    """Yield a text in slices that take a fraction of a second to check against this many characters of passages.

    The more there is to read for each sentence, the shorter a slice; the whole text may be sentences of two characters.
    """
    size = max(16, _SLICE_CHARACTERS // (_SENTENCE_CHARACTERS + passages))
    for start in range(0, len(text), size):
        yield text[start : start + size]


_ROOM = 32
"""Work of a round, in sentences with short passages: a fraction of a second."""
_SLICE = 8
"""Work of one slice of a response, in the same unit; a round takes slices of several responses."""
_TOKENS_OF_SENTENCE = 64
"""Number of tokens that a language model reads in the time of such a sentence."""
_CHARACTERS_OF_SENTENCE = 20_000
"""Number of characters of passages that are compared with a sentence in the same time."""
_READ_AT_ONCE = 8_192
"""Number of characters of a given response that are read in one slice."""


class Deadline:
    """Time by which an answer has to be complete: ``seconds`` after this object is made, or earlier if it is ended."""

    def __init__(self, seconds: float) -> None:
        self._at = asyncio.get_running_loop().time() + seconds
        self._waits: set[asyncio.Timeout] = set()
        told = f"no complete answer after {seconds:g} seconds (--timeout {seconds:g})"
        self._error = ServiceError(504, "timeout", told)

    def end_in(self, seconds: float, error: ServiceError) -> None:
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
            raise self._raised()
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
            raise self._raised() from error

    def _raised(self) -> ServiceError:
        return ServiceError(self._error.status, self._error.code, str(self._error))


class Queue:
    """Queue with places for some requests at a time, and for some more that wait."""

    def __init__(self, running: int, waiting: int, measured: Metrics) -> None:
        self._free = asyncio.Semaphore(running)
        self._most = waiting
        self._measured = measured
        self._waiting = 0

    @property
    def is_full(self) -> bool:
        """True if no more request may wait."""
        return self._free.locked() and self._waiting >= self._most

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place, and hold it; ServiceError if too many requests wait already."""
        if self.is_full:
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
    """Make the refusal of a request that may not wait."""
    return ServiceError(
        429, "too_many_requests", "too many requests are waiting; try again", headers={"Retry-After": "1"}
    )


@dataclass(eq=False)
class _Job:
    """A response to score: as text, slice by slice, or by a language model, all of it at once."""

    response: str
    spans: Sequence[SentenceSpan]
    scorer: SentenceScorer | None
    """Scores its sentences by their text; None if a language model reads the response."""
    read: tuple[RagPrompt, GivenResponse] | None
    """What the model reads, if it does."""
    report: asyncio.Future[Report]
    weight: float
    """Work of a sentence; about 1 with short passages."""
    sentences: list[SentenceScore] = field(default_factory=list)
    """Its sentences as scored so far."""
    after: float = field(default_factory=time.monotonic)
    """Time since which the job has waited, moved later by the time for which it has been worked on."""
    seconds: float = 0.0
    """Time for which it has been worked on."""
    has_begun: bool = False

    @property
    def next_spans(self) -> Sequence[SentenceSpan]:
        """The sentences of the next slice."""
        known = len(self.sentences)
        return self.spans[known : known + max(1, int(_SLICE / self.weight))]

    @property
    def work(self) -> float:
        """Work of the next slice, in sentences with short passages."""
        if self.read is not None:
            return len(self.read[1].token_ids) / _TOKENS_OF_SENTENCE
        return self.weight * len(self.next_spans)


class ScoreBatches:
    """Scores given responses of all clients in rounds: some sentences of each, so that a short one is soon complete.

    Responses that a language model reads are read whole, as many in a batch as a round has room for. Beyond ``most``
    responses at a time, further ones get the status 429.
    """

    def __init__(self, monitor: Monitor | Verifier, most: int, measured: Metrics) -> None:
        self._monitor = monitor
        self._most = most
        self._measured = measured
        self._entered = 0
        self._jobs: list[_Job] = []
        self._work: asyncio.Task[None] | None = None

    async def score(self, question: str, context: Sequence[str], response: str) -> Report:
        """Wait for the report of a response."""
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
        weight = 1 + sum(map(len, context)) / _CHARACTERS_OF_SENTENCE
        report: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        monitor = self._monitor
        if not isinstance(monitor, Verifier):
            if monitor.reads_signals:
                prompt = await in_thread(monitor.prompt, question=question, context=context)
                response = response[await in_thread(answer_start, response) :]  # the model reads the answer alone
                given = await in_thread(monitor.read, prompt, response)
                return _Job(response, given.spans, None, (prompt, given), report, weight)
            monitor = monitor.verifier
        query = monitor.query(question=question, passages=context)
        segmenter = AnswerSegmenter(monitor.config.segmenter)
        for start in range(0, len(response), _READ_AT_ONCE):
            await in_thread(segmenter.push, response[start : start + _READ_AT_ONCE])
        await in_thread(segmenter.finish)
        scorer = self._scorer_of(query)
        if scorer is None:
            made = await in_thread(monitor.scorer, query)
            scorer = self._scorer_of(query) or made
        return _Job(response, segmenter.spans, scorer, None, report, weight)

    def _scorer_of(self, query: Query) -> SentenceScorer | None:
        """Find the scorer of a job with the same query, so that their sentences are scored together."""
        scorers = (job.scorer for job in self._jobs if job.scorer is not None)
        return next((scorer for scorer in scorers if scorer.query == query), None)

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
                    reports = await in_thread(_advanced, self._monitor, jobs)
                finally:
                    self._measured.running.dec()
                seconds = time.monotonic() - started
                for job, report in zip(jobs, reports, strict=True):
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
        """Choose the jobs of the next round: the first in line, as many as it has room for."""
        jobs: list[_Job] = []
        room = float(_ROOM)
        for job in sorted(self._jobs, key=lambda job: job.after):
            if jobs and job.work > room:
                break
            jobs.append(job)
            room -= job.work
        return jobs


def _advanced(monitor: Monitor | Verifier, jobs: Sequence[_Job]) -> list[Report | Exception | None]:
    """Score the next slice of each job; return the reports of those that are complete, None for the others.

    If the batch fails, or a sentence in it, each job is scored alone, so that one cannot fail those of other clients.
    """
    before = [len(job.sentences) for job in jobs]
    started = time.monotonic()
    try:
        reports = _scored(monitor, jobs)
    except Exception as error:
        return [error] if len(jobs) == 1 else [reached for job in jobs for reached in _advanced(monitor, [job])]
    seconds = time.monotonic() - started
    reached: list[Report | Exception | None] = []
    for job, report, known in zip(jobs, reports, before, strict=True):
        sentences = job.sentences[known:] if report is None else report.sentences
        if len(jobs) > 1 and any(sentence.status == "failed" for sentence in sentences):
            del job.sentences[known:]
            reached += _advanced(monitor, [job])
        elif report is not None:
            reached.append(report)
        elif len(job.sentences) < len(job.spans):
            reached.append(None)
        else:
            assert job.scorer is not None
            whole = report_of(job.scorer, job.response, job.sentences, stop=None, seconds=job.seconds + seconds)
            reached.append(whole)
    return reached


def _scored(monitor: Monitor | Verifier, jobs: Sequence[_Job]) -> list[Report | None]:
    """Add the scores of the next slice of each job; return the reports of those that a language model has read."""
    reports: list[Report | None] = [None] * len(jobs)
    for scorer in {job.scorer for job in jobs if job.scorer is not None}:
        own = [job for job in jobs if job.scorer is scorer]
        claims = [[Claim(job.response[s.start : s.end], s) for s in job.next_spans] for job in own]
        for job, scored in zip(own, scorer.claims(claims, earlier=[job.sentences for job in own]), strict=True):
            job.sentences += scored
    read = [(place, *job.read) for place, job in enumerate(jobs) if job.read is not None]
    if read:
        assert not isinstance(monitor, Verifier)
        started = time.monotonic()
        places, prompts, given = zip(*read, strict=True)
        answers = dict(monitor.replay_batch(prompts, given, batch_size=len(read)))
        for index, place in enumerate(places):
            seconds = time.monotonic() - started
            reports[place] = answers[index].report(given[index].transcript, stop=None, seconds=seconds)
    return reports


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
