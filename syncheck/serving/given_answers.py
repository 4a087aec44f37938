"""Given answers: scored in rounds with those of all clients, and judged for LiteLLM's guardrail."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from syncheck.base.checks import check_share, check_texts
from syncheck.monitor import Monitor
from syncheck.reading import Claim
from syncheck.replay import GivenResponse
from syncheck.report.labels import after_end_words, contrast_lines
from syncheck.results import Report
from syncheck.results.types import Query, RagPrompt, SentenceScore, SentenceSpan
from syncheck.scoring import SentenceScorer, falls_below, report_of
from syncheck.serving.chat import ChatRequest, ServerConfig, ServiceError, read_chat, refusing, unsupported
from syncheck.serving.checked import NO_PASSAGES, Failing, is_checked, verifier_of
from syncheck.serving.limits import Metrics, in_thread, too_many
from syncheck.text.markup import answer_start
from syncheck.text.sentences import AnswerSegmenter
from syncheck.verifier import Verifier

# Work of a round, and of a slice of one response in it, in sentences with short passages: a fraction of a second.
_ROOM, _SLICE = 32, 8
# What is read in the time of such a sentence: tokens by a language model, characters of passages compared with it.
_TOKENS_OF_SENTENCE, _CHARACTERS_OF_SENTENCE = 64, 20_000
_READ_AT_ONCE = 8_192  # characters of a given response in a slice


@dataclass(eq=False)
class _Job:
    """A response to score: as text, slice by slice, or by a language model, all of it at once."""

    response: str
    spans: Sequence[SentenceSpan]
    weight: float  # work of a sentence; about 1 with short passages
    scorer: SentenceScorer | None = None  # by text; None if a language model reads the response
    read: tuple[RagPrompt, GivenResponse] | None = None  # what the model reads, if it does
    report: asyncio.Future[Report] = field(default_factory=asyncio.Future)
    sentences: list[SentenceScore] = field(default_factory=list)  # as scored so far
    # Time since which it has waited, moved later by the time for which it has been worked on.
    after: float = field(default_factory=time.monotonic)
    seconds: float = 0.0  # time for which it has been worked on
    has_begun: bool = False

    @property
    def next_spans(self) -> Sequence[SentenceSpan]:
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

    Beyond ``most`` responses at a time, further ones get the status 429.
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
        job = None
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
        monitor = self._monitor
        if not isinstance(monitor, Verifier) and monitor.reads_signals:
            prompt = await in_thread(monitor.prompt, question=question, context=context)
            response = response[await in_thread(answer_start, response) :]  # the model reads the answer alone
            given = await in_thread(monitor.read, prompt, response)
            return _Job(response, given.spans, weight, read=(prompt, given))
        verifier = verifier_of(monitor)
        query = verifier.query(question=question, passages=context)
        segmenter = AnswerSegmenter(verifier.config.segmenter)
        for start in range(0, len(response), _READ_AT_ONCE):
            await in_thread(segmenter.push, response[start : start + _READ_AT_ONCE])
        await in_thread(segmenter.finish)
        scorer = self._scorer_of(query)
        if scorer is None:
            made = await in_thread(verifier.scorer, query)
            scorer = self._scorer_of(query) or made
        return _Job(response, segmenter.spans, weight, scorer)

    def _scorer_of(self, query: Query) -> SentenceScorer | None:
        """Find the scorer of a job with the same query, so that their sentences are scored together."""
        scorers = (job.scorer for job in self._jobs if job.scorer is not None)
        return next((scorer for scorer in scorers if scorer.query == query), None)

    async def _run(self) -> None:
        try:
            while self._jobs:
                jobs = self._round()
                self._measured.waiting.dec(sum(not job.has_begun for job in jobs))
                started = time.monotonic()
                for job in jobs:
                    job.has_begun = True
                with self._measured.running.track_inprogress():
                    reports = await in_thread(_advanced, self._monitor, jobs)
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
    """Score the next slice of each job, alone if the batch fails; return the reports of those that are complete."""
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
            taken = job.seconds + seconds
            reached.append(report_of(job.scorer, job.response, job.sentences, stop=None, seconds=taken))
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


_MOST_CHARACTERS = 2**25  # of the newest requests, which are remembered
_NAMED = 3  # sentences that the reason of a refusal quotes


@dataclass(eq=False)
class Guardrail:
    """Guardrail for LiteLLM, which sends it each request before the model gets it, and then the answer."""

    score: Callable[[str, list[str], str], Awaitable[Report]]
    """Makes the report for question, passages and response."""
    at_least: float
    """Score that each sentence must reach if LiteLLM's ``additional_provider_specific_params`` do not say otherwise."""
    failing: Failing
    config: ServerConfig = field(default_factory=ServerConfig)
    _requests: OrderedDict[str, ChatRequest] = field(default_factory=OrderedDict)
    _characters: int = 0

    async def apply(self, values: object) -> dict[str, Any]:
        """Choose LiteLLM's ``action`` for a request or an answer: ``NONE``, or ``BLOCKED`` and the reason."""
        if not isinstance(values, dict) or values.get("input_type") not in ("request", "response"):
            raise ServiceError(400, "invalid_request", "expected an object with input_type request or response")
        call, options = values.get("litellm_call_id"), values.get("additional_provider_specific_params") or {}
        if not isinstance(options, dict):
            told = f"additional_provider_specific_params must be an object; found {type(options).__name__}"
            raise ServiceError(400, "invalid_request", told)
        request = await in_thread(self._request, values, options)
        if request is not None and isinstance(call, str):
            self._remember(call, request)
        if values["input_type"] == "request":
            return {"action": "NONE"}
        request = request or self._requests.get(str(call))
        if request is None or not request.passages:
            if self.failing == "open":
                return {"action": "NONE"}
            return {"action": "BLOCKED", "blocked_reason": NO_PASSAGES}
        with refusing():
            at_least = options.get("at_least", self.at_least)
            check_share(at_least, "at_least")
            answer_at_least = options.get("answer_at_least", 0.0)
            check_share(answer_at_least, "answer_at_least")
            texts = values.get("texts") or []
            check_texts(texts, "texts")
        reports = [await self.score(request.question, list(request.passages), text) for text in texts]
        reasons = [reason for report in reports for reason in self._reasons(report, at_least)]
        reasons += [reason for report in reports for reason in self._whole_answer(report, answer_at_least)]
        if not reasons:
            return {"action": "NONE"}
        more = [f"and {len(reasons) - _NAMED} more"] * (len(reasons) > _NAMED)
        told = "not faithful to the passages: " + "; ".join([*reasons[:_NAMED], *more])
        return {"action": "BLOCKED", "blocked_reason": told}

    def _reasons(self, report: Report, at_least: float) -> list[str]:
        closed = self.failing == "closed"
        below = [s for s in report.sentences if falls_below(s, at_least) and (closed or is_checked(s))]
        unread = after_end_words(report.after_end) if closed else ""
        return [*map(_words, below), *([unread] if unread else [])]

    def _whole_answer(self, report: Report, at_least: float) -> list[str]:
        """Say that an answer as a whole does not pass; one without such a score is judged by its sentences alone."""
        if not at_least:
            return []
        if report.answer_scale is None:
            why = "answer_at_least needs scores of whole answers, which the server's monitor lacks; leave it out"
            raise unsupported(why)
        score = report.answer_score(allow_unscored=self.failing == "open")
        return [] if score is None or score >= at_least else [f"the whole answer ({score:.2f})"]

    def _request(self, values: Mapping[str, Any], options: Mapping[str, Any]) -> ChatRequest | None:
        messages = values.get("structured_messages")
        if not messages:
            return None
        body = {"messages": messages} | ({"context": options["context"]} if "context" in options else {})
        return read_chat(body, self.config)

    def _remember(self, call: str, request: ChatRequest) -> None:
        kept = self._requests
        if call in kept:
            self._characters -= _length(kept.pop(call))
        kept[call] = request
        self._characters += _length(request)
        while self._characters > _MOST_CHARACTERS and len(kept) > 1:
            self._characters -= _length(kept.popitem(last=False)[1])


def _length(request: ChatRequest) -> int:
    return 1000 + len(request.question) + sum(map(len, request.passages))


def _words(sentence: SentenceScore) -> str:
    score = sentence.reason or "no score" if sentence.score is None else f"{sentence.score:.2f}"
    why = ", ".join([score, *contrast_lines(sentence)])
    return f"“{sentence.text}” ({why})"
