"""Sources of checked answers: the span that records an answer, and the base of those with decoders."""

from __future__ import annotations

import json
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from syncheck.base.errors import InputError
from syncheck.base.printable import shortened
from syncheck.monitor import Monitor
from syncheck.results import Report
from syncheck.results.events import EndEvent, Event, EventWriter, SentenceEvent, why_stopped
from syncheck.results.protocol import VERSION, ProtocolEvent, to_dict
from syncheck.results.types import SentenceScore
from syncheck.scoring import falls_below
from syncheck.serving.allowed import is_number
from syncheck.serving.chat import ChatRequest, ServiceError, unsupported
from syncheck.serving.checked import (
    NO_PASSAGES,
    Failing,
    is_checked,
    outcome_of,
    shown_text,
    verifier_of,
    whole_answer,
    why_unchecked,
)
from syncheck.serving.limits import Deadline, in_thread, used_seconds
from syncheck.serving.upstream import trace_headers
from syncheck.telemetry import Telemetry
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_ASKED = {name: f"gen_ai.request.{name}" for name in ("max_tokens", "temperature", "top_p", "seed")}
_ASKED |= {"n": "gen_ai.request.choice.count"}
_USAGE = {"prompt_tokens": "gen_ai.usage.input_tokens", "completion_tokens": "gen_ai.usage.output_tokens"}


@contextmanager
def traced(
    telemetry: Telemetry | None, upstream: str | None, request: ChatRequest
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Record an answer as a span, or without telemetry not; what is yielded takes the answer or its chunks.

    ``upstream`` is the address of the server that writes it, if it is another one.
    """
    if telemetry is None:
        yield lambda answer: None
        return
    body, address = request.body, urlsplit(upstream or "")
    model = body["model"] if isinstance(body.get("model"), str) else ""
    about: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai" if upstream else "syncheck",
        "gen_ai.request.stream": request.stream,
        "gen_ai.request.model": model or None,
        "server.address": address.hostname,
        "server.port": address.port,
        "syncheck.passages": len(request.passages),
    }
    about |= {_ASKED[name]: body[name] for name in _ASKED if is_number(body.get(name))}
    about = {name: value for name, value in about.items() if value is not None}
    with telemetry.span(f"chat {model}".rstrip(), about, calls=bool(upstream)) as span:
        if telemetry.text:
            span.set_attribute("gen_ai.input.messages", _messages(body["messages"]))
        token, before = trace_headers.set(telemetry.headers()), used_seconds() or 0.0
        answer = _TracedAnswer(telemetry, span)
        try:
            yield answer.take
        finally:
            trace_headers.reset(token)
            used = used_seconds()  # by the check alone, unless the model is written here, too
            answer.end(None if used is None or not upstream else used - before)


class _TracedAnswer:
    """The span of an answer, with what is known of each choice."""

    def __init__(self, telemetry: Telemetry, span: Span) -> None:
        self._telemetry = telemetry
        self._span = span
        self._choices: dict[int, dict[str, Any]] = {}

    def take(self, answer: Mapping[str, Any]) -> None:
        """Record what a whole answer or a chunk says."""
        usage = answer.get("usage") or {}
        told = {_USAGE[name]: usage[name] for name in _USAGE if isinstance(usage.get(name), int)}
        for name in ("id", "model"):
            if isinstance(answer.get(name), str):
                told[f"gen_ai.response.{name}"] = answer[name]
        self._span.set_attributes(told)
        for choice in answer["choices"]:
            known = self._choices.setdefault(choice["index"], {"text": "", "sentences": []})
            said, own = choice.get("message") or choice.get("delta") or {}, choice["syncheck"]
            known["text"] += said.get("content") or ""
            results = own.get("sentences") or [e for e in own.get("events", ()) if e["type"] == "verified"]
            for sentence in results:
                self._telemetry.result(self._span, sentence)
            known["sentences"] = [*known["sentences"], *results]
            if choice.get("finish_reason"):
                known["finish_reason"] = choice["finish_reason"]
            if "status" in own:
                known["status"] = own["status"]
                known["sentences"] = (said.get("syncheck") or own)["sentences"]  # without those that were taken back

    def end(self, seconds: float | None) -> None:
        """Record the sums of the answer, as far as it came."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        self._telemetry.outcome(self._span, [s for known in choices for s in known["sentences"]], seconds)
        for attribute, name in (("gen_ai.response.finish_reasons", "finish_reason"), ("syncheck.statuses", "status")):
            self._span.set_attribute(attribute, [known[name] for known in choices if name in known])
        if self._telemetry.text:
            said = [
                {"role": "assistant", "finish_reason": "error", **known, "content": known["text"]} for known in choices
            ]
            self._span.set_attribute("gen_ai.output.messages", _messages(said))


def _messages(messages: Sequence[Mapping[str, Any]]) -> str:
    """Write messages as JSON in the form of the conventions; parts that are no text keep their type alone."""
    written = []
    for message in messages:
        content = message.get("content") or ""
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        parts = [
            {"type": "text", "content": block["text"]} if "text" in block else {"type": str(block.get("type"))}
            for block in blocks
            if isinstance(block, dict)
        ]
        rest = {name: message[name] for name in ("role", "finish_reason") if name in message}
        written.append({**rest, "parts": parts})
    return json.dumps(written)


_FILTERED = frozenset({"below_threshold", "nothing_passed", "backtracked", "abstained"})
_CUT = frozenset({"length", "window", "budget", "max_sentences"})
"""Why an answer ended for lack of a sentence that passes, and at a limit."""
LIMITS = ("max_tokens", "max_completion_tokens")
"""Fields of requests that limit the length of an answer, of which the lower one counts."""
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "tools": ([],),
    "functions": ([],),
    "response_format": ({"type": "text"},),
}
"""Fields of requests that no decoder supports, with the values that have no effect."""


class DecoderSource(ABC):
    """Base of sources of answers that a decoder writes."""

    failing: Failing
    monitor: Monitor | Verifier
    name: str | None
    """Name of the model; None if each request names it."""

    @abstractmethod
    async def begin(self, request: ChatRequest, deadline: Deadline) -> AsyncGenerator[Event]:
        """Begin an answer, of whose events none is asked for yet; one that cannot be given raises ServiceError."""

    @abstractmethod
    def usage(self, event: EndEvent) -> dict[str, Any]:
        """Count the tokens of an answer."""

    async def complete(self, request: ChatRequest, deadline: Deadline) -> dict[str, Any]:
        """Write a whole answer, with its outcome as ``syncheck``."""
        writing = _Writing(self, request)
        async with aclosing(writing.told(deadline)) as told:
            async for _ in told:
                pass
        text, own = whole_answer(writing.writer.events, writing.outcome)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": writing.finish_reason, "syncheck": own}
        return {**self._opening("chat.completion", request), "choices": [choice], "usage": writing.usage}

    async def stream(self, request: ChatRequest, deadline: Deadline) -> AsyncGenerator[dict[str, Any]]:
        """Yield an answer in chunks, with their events as ``syncheck``."""
        opening, writing = self._opening("chat.completion.chunk", request), _Writing(self, request)
        delta: dict[str, Any] = {"role": "assistant"}
        async with aclosing(writing.told(deadline)) as each:
            async for events in each:
                delta |= {"content": shown} if (shown := shown_text(events)) else {}
                told = {"v": VERSION, "events": [to_dict(event) for event in events]}
                if finish := writing.finish_reason:
                    told |= writing.outcome
                    delta["syncheck"] = whole_answer(writing.writer.events, writing.outcome)[1]
                choice = {"index": 0, "delta": delta, "finish_reason": finish, "syncheck": told}
                yield {**opening, "choices": [choice]}
                delta = {}
        if (request.body.get("stream_options") or {}).get("include_usage"):
            yield {**opening, "choices": [], "usage": writing.usage}

    def _opening(self, kind: str, request: ChatRequest) -> dict[str, Any]:
        key, model = f"chatcmpl-{uuid.uuid4().hex}", self.name or str(request.body.get("model", ""))
        return {"id": key, "object": kind, "created": int(time.time()), "model": model}


def _why_empty(event: EndEvent, failing: Failing) -> str | None:
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
        if failing == "closed":
            raise ServiceError(502, "verification_failed", why)
        return why
    best = max((s.score for s in tried if s.score is not None), default=None)
    return "no sentence passed" if best is None else f"no sentence passed; the best of the last scored {best:.2f}"


class _Writing:
    """An answer that is being written."""

    def __init__(self, source: DecoderSource, request: ChatRequest) -> None:
        self._source = source
        self._cited = verifier_of(source.monitor).cited
        self._request = request
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
            async with aclosing(await self._source.begin(request, deadline)) as events:
                while True:
                    async with deadline.waiting():
                        event = await anext(events, None)
                    if event is None:
                        break
                    if isinstance(event, EndEvent):
                        event = replace(event, report=await in_thread(self._cited, event.report))
                        self._notice_stop(event)
                    self._write(event)
                    new, told = self.writer.events[told:], len(self.writer.events)
                    if request.passages:
                        self._reason = why_unchecked([*new, self._withheld], self._source.failing) or self._reason
                    if isinstance(event, EndEvent):
                        self._report, self.usage = event.report, self._source.usage(event)
                        self._why_empty = _why_empty(event, self._source.failing) if request.passages else None
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
        return "content_filter" if stop in _FILTERED else "length" if stop in _CUT else "stop"

    @property
    def outcome(self) -> dict[str, Any]:
        """Outcome of the answer and of its check."""
        stop = None if self._report is None else self._report.stop
        reason = self._reason or (self._why_empty if self.writer.text else None)
        stopped = stop == "below_threshold"
        checked = outcome_of(self.writer.events, stop_below=self._request.stop_below, stopped=stopped, reason=reason)
        return checked | {"reason": checked["reason"] or self._why_empty or self._why_ended, "stop": stop}


def require_neutral(body: Mapping[str, Any], neutral: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse, with a ServiceError, fields that would be ignored, unless they have a value without effect."""
    for name, values in neutral.items():
        if body.get(name) is not None and body[name] not in values:
            raise unsupported(f"{name} is not served here; leave it out")


def whole_number(body: Mapping[str, Any], name: str, default: int, *, least: int = 0) -> int:
    """Read a field that must be a whole number; InputError for anything else."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
        shown = shortened(repr(value), 40)
        raise InputError(f"{name} must be a whole number from {least} to 2^63 - 1; found {shown}")
    return value
