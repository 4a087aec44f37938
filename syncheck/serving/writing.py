"""Answers that a decoder writes as events, for the sources that have decoders: whole, or in chunks."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from syncheck.base.errors import InputError
from syncheck.base.printable import shortened
from syncheck.monitor import Monitor
from syncheck.results import Report
from syncheck.results.events import EndEvent, Event, EventWriter, SentenceEvent, why_stopped
from syncheck.results.protocol import VERSION, ProtocolEvent, to_dict
from syncheck.results.types import SentenceScore
from syncheck.scoring import falls_below
from syncheck.serving.chat import ChatRequest, ServiceError
from syncheck.serving.checked import (
    NO_PASSAGES,
    Failing,
    cited,
    is_checked,
    outcome_of,
    shown_text,
    whole_answer,
    why_unchecked,
)
from syncheck.serving.limits import Deadline, in_thread
from syncheck.verifier import Verifier

_FILTERED = frozenset({"below_threshold", "nothing_passed", "backtracked", "abstained"})
_LIMITS = frozenset({"length", "window", "budget", "max_sentences"})
"""Why an answer ended for lack of a sentence that passes, and at a limit."""
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "tools": ([],),
    "functions": ([],),
    "response_format": ({"type": "text"},),
}
"""Fields of requests that no decoder supports, with the values that have no effect."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An answer whose first event has not been asked for."""

    events: AsyncGenerator[Event]
    usage: Callable[[EndEvent], dict[str, Any]]
    """Counts the tokens of prompt and answer at its end."""


class DecoderSource(ABC):
    """Base of sources of answers that a decoder writes."""

    failing: Failing
    monitor: Monitor | Verifier

    @abstractmethod
    async def begin(self, request: ChatRequest, authorization: str | None, deadline: Deadline) -> Begun:
        """Begin an answer; a request that cannot be answered raises ServiceError."""

    @abstractmethod
    def model_of(self, request: ChatRequest) -> str:
        """Name the model that answers."""

    async def complete(self, request: ChatRequest, authorization: str | None, deadline: Deadline) -> dict[str, Any]:
        """Write a whole answer, with its outcome as ``syncheck``."""
        writing = _Writing(self, request, authorization)
        async with aclosing(writing.told(deadline)) as told:
            async for _ in told:
                pass
        text, own = whole_answer(writing.writer.events, writing.outcome)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": writing.finish_reason, "syncheck": own}
        return {**self._opening("chat.completion", request), "choices": [choice], "usage": writing.usage}

    async def stream(
        self, request: ChatRequest, authorization: str | None, deadline: Deadline
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield an answer in chunks, with their events as ``syncheck``."""
        opening, writing = self._opening("chat.completion.chunk", request), _Writing(self, request, authorization)
        delta: dict[str, Any] = {"role": "assistant"}
        async with aclosing(writing.told(deadline)) as each:
            async for events in each:
                shown = shown_text(events)
                delta |= {"content": shown} if shown else {}
                finish = writing.finish_reason
                told = {"v": VERSION, "events": [to_dict(event) for event in events]} | (
                    writing.outcome if finish else {}
                )
                if finish:
                    delta["syncheck"] = whole_answer(writing.writer.events, writing.outcome)[1]
                yield {
                    **opening,
                    "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "syncheck": told}],
                }
                delta = {}
        if (request.body.get("stream_options") or {}).get("include_usage"):
            yield {**opening, "choices": [], "usage": writing.usage}

    def why_empty(self, event: EndEvent) -> str | None:
        """Say why a decoder kept no sentence; None if it kept one, or wrote none.

        Failing closed, ServiceError is raised if the sentences that it tried last could not be checked.
        """
        output = event.output
        if output is None or event.report.sentences or not output.dropped:
            return None
        search = getattr(output, "search", None)
        rounds = () if search is None else search.rounds
        tried = [s for c in rounds[-1].candidates for s in c.sentences] if rounds else output.dropped[-1:]
        if tried and not any(map(is_checked, tried)):
            why = f"no sentence could be checked: {tried[0].reason or tried[0].status}"
            if self.failing == "closed":
                raise ServiceError(502, "verification_failed", why)
            return why
        best = max((s.score for s in tried if s.score is not None), default=None)
        return "no sentence passed" if best is None else f"no sentence passed; the best of the last scored {best:.2f}"

    def _opening(self, kind: str, request: ChatRequest) -> dict[str, Any]:
        name = f"chatcmpl-{uuid.uuid4().hex}"
        return {"id": name, "object": kind, "created": int(time.time()), "model": self.model_of(request)}


class _Writing:
    """An answer that is being written."""

    def __init__(self, source: DecoderSource, request: ChatRequest, authorization: str | None) -> None:
        self._source = source
        self._request = request
        self._authorization = authorization
        self._reason: str | None = None
        self._why_empty: str | None = None
        self._report: Report | None = None
        self._withheld: SentenceScore | None = None
        self._why_ended: str | None = None
        self.usage: dict[str, Any] = {}
        self.writer = EventWriter(request.passages, reveal=request.reveal, passage_ids=request.passage_ids)

    async def told(self, deadline: Deadline) -> AsyncGenerator[list[ProtocolEvent]]:
        """Yield the events for a reader, some at a time."""
        request = self._request
        if not request.passages:
            self._reason = NO_PASSAGES
            self.writer.notice(f"Not checked: {NO_PASSAGES}", kind="warning")
        told = 0
        try:
            begun = await self._source.begin(request, self._authorization, deadline)
            async with aclosing(begun.events) as events:
                while True:
                    async with deadline.waiting():
                        event = await anext(events, None)
                    if event is None:
                        break
                    if isinstance(event, EndEvent):
                        event = replace(event, report=await in_thread(cited, self._source.monitor, event.report))
                        self._notice_stop(event)
                    self._write(event)
                    new, told = self.writer.events[told:], len(self.writer.events)
                    if request.passages:
                        withheld = [] if self._withheld is None else [self._withheld]
                        self._reason = why_unchecked([*new, *withheld], self._source.failing) or self._reason
                    if isinstance(event, EndEvent):
                        self._report, self.usage = event.report, begun.usage(event)
                        self._why_empty = self._source.why_empty(event) if request.passages else None
                    if new:
                        yield new
        except InputError as error:  # the prompt is too long, which shows when the first event is requested
            raise ServiceError(400, "invalid_request", str(error)) from error

    def _write(self, event: Event) -> None:
        """Write an event, except for the sentence before which the answer ends."""
        threshold = None if self._request.stop_after else self._request.stop_below
        if isinstance(event, SentenceEvent) and threshold is not None and falls_below(event.sentence, threshold):
            self._withheld = event.sentence
        elif isinstance(event, EndEvent) and self._withheld is not None:
            kept = event.report.sentences[:-1]
            response = event.report.response[: kept[-1].end if kept else 0]
            self.writer.end(replace(event.report, response=response, sentences=kept))
        else:
            self.writer.write(event)

    def _notice_stop(self, event: EndEvent) -> None:
        """Say which score or budget ended the answer, if one did."""
        report, threshold = event.report, self._request.stop_below
        if report.stop == "budget":
            self._why_ended = event.output.trace[-1].reason
            self.writer.notice(f"Incomplete: {self._why_ended}", kind="warning")
        if report.stop == "below_threshold" and threshold is not None:
            withheld = self._withheld is not None
            self.writer.notice(why_stopped(report.sentences[-1], threshold, withheld=withheld))

    @property
    def finish_reason(self) -> str | None:
        """OpenAI's name of the reason why the answer ended; None until then."""
        if self._report is None:
            return None
        stop = self._report.stop
        return "content_filter" if stop in _FILTERED else "length" if stop in _LIMITS else "stop"

    @property
    def outcome(self) -> dict[str, Any]:
        """Outcome of the answer and of its check."""
        stop = None if self._report is None else self._report.stop
        reason = self._reason or (self._why_empty if self.writer.text else None)
        checked = outcome_of(
            self.writer.events,
            stop_below=self._request.stop_below,
            stopped=stop == "below_threshold",
            reason=reason,
        ).to_dict()
        return checked | {"reason": checked["reason"] or self._why_empty or self._why_ended, "stop": stop}


def require_neutral(body: Mapping[str, Any], neutral: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse, with a ServiceError, fields that would be ignored, unless they have a value without effect."""
    for name, values in neutral.items():
        if body.get(name) is not None and body[name] not in values:
            raise ServiceError(400, "unsupported", f"{name} is not served here; leave it out")


def whole_number(body: Mapping[str, Any], name: str, default: int, *, least: int = 0) -> int:
    """Read a field that must be a whole number; ServiceError for anything else."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
        shown = shortened(repr(value), 40)
        raise ServiceError(
            400, "invalid_request", f"{name} must be a whole number from {least} to 2^63 - 1; found {shown}"
        )
    return value
