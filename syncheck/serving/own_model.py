"""Server of your own model: answers by any decoder, with their scores."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from syncheck.base.errors import InputError
from syncheck.base.printable import shortened
from syncheck.monitor import Monitor
from syncheck.results import Report
from syncheck.results.events import EndEvent, Event, EventWriter, SentenceEvent, why_stopped
from syncheck.results.protocol import VERSION, ProtocolEvent, Reveal, to_dict
from syncheck.results.types import RagPrompt, SentenceScore
from syncheck.scoring import falls_below
from syncheck.serving.chat import ChatRequest, ServiceError, refusing, text_of
from syncheck.serving.checked import (
    NO_PASSAGES,
    Failing,
    is_checked,
    outcome_of,
    shown_text,
    whole_answer,
    why_unchecked,
)
from syncheck.serving.limits import Deadline, in_thread

_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "stop": ([], ""),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "tools": ([],),
    "functions": ([],),
    "response_format": ({"type": "text"},),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "top_k": (-1, 0),
    "min_p": (0,),
    "repetition_penalty": (1,),
}
"""Fields of requests to OpenAI or vLLM that are not supported, with the values that have no effect and are accepted."""
_LEAST_TEMPERATURE, _MOST_TEMPERATURE = 0.01, 100.0
"""Range in which logits that are divided by the temperature are still numbers that differ."""


class Decoder(Protocol):
    """Protocol of a decoder that writes an answer as events; ``options`` are those of a request that are accepted."""

    def __call__(  # noqa: D102
        self, prompt: RagPrompt, *, reveal: Reveal, seed: int, max_new_tokens: int, **options: Any
    ) -> Iterator[Event]: ...


class OwnModel:
    """Source of answers by the monitored model, whose monitor has an aggregator.

    Of the ``decoders``, by the name that a request gives, only ``sample`` takes ``temperature`` and ``top_p``. Requests
    that name none get the ``default``, or, with a ``temperature`` above 0, are sampled. ``max_new_tokens`` is the
    length of answers for requests that give none, and the limit for all.
    """

    def __init__(
        self,
        monitor: Monitor,
        decoders: Mapping[str, Decoder],
        *,
        default: str,
        name: str,
        failing: Failing = "closed",
        max_new_tokens: int = 512,
    ) -> None:
        self.monitor = monitor
        self.decoders = tuple(sorted(decoders, key=lambda decoder: decoder != default))
        self._decoders = decoders
        self._default = default
        self._name = name
        self.failing = failing
        self._max_new_tokens = max_new_tokens

    async def close(self) -> None:
        """Do nothing; the model stays with its owner."""

    async def models(self, authorization: str | None) -> dict[str, Any]:
        """List the one model."""
        return {"object": "list", "data": [{"id": self._name, "object": "model", "owned_by": "syncheck"}]}

    async def complete(self, request: ChatRequest, authorization: str | None, deadline: Deadline) -> dict[str, Any]:
        """Write a whole answer, with its outcome as ``syncheck``."""
        writing = _Writing(self, request)
        async for _ in writing.told(deadline):
            pass
        text, own = whole_answer(writing.writer.events, writing.outcome)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": writing.finish_reason, "syncheck": own}
        return {**self._opening("chat.completion"), "choices": [choice], "usage": writing.usage}

    async def stream(
        self, request: ChatRequest, authorization: str | None, deadline: Deadline
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield an answer in chunks, with their events as ``syncheck``."""
        opening, writing = self._opening("chat.completion.chunk"), _Writing(self, request)
        delta: dict[str, Any] = {"role": "assistant"}
        async for events in writing.told(deadline):
            shown = shown_text(events)
            delta |= {"content": shown} if shown else {}
            finish = writing.finish_reason
            told = {"v": VERSION, "events": [to_dict(event) for event in events]} | (writing.outcome if finish else {})
            if finish:
                delta["syncheck"] = whole_answer(writing.writer.events, writing.outcome)[1]
            yield {
                **opening,
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "syncheck": told}],
            }
            delta = {}
        if (request.body.get("stream_options") or {}).get("include_usage"):
            yield {**opening, "choices": [], "usage": writing.usage}

    def require_usable(self, request: ChatRequest) -> None:
        """Refuse, with a ServiceError, a request that can be refused without the model."""
        if self.failing == "closed" and not request.passages:
            raise ServiceError(400, "no_passages", NO_PASSAGES)
        self._asked(request)

    def begin(self, request: ChatRequest) -> tuple[RagPrompt, Iterator[Event]]:
        """Build the prompt of a request and the iterator of its events, which has not been started."""
        self.require_usable(request)
        with refusing():
            decoder, options = self._asked(request)
            prompt = self._prompt(request)
            return prompt, self._decoders[decoder](prompt, reveal=request.reveal, **options)

    def why_empty(self, event: EndEvent) -> str | None:
        """Say why a decoder kept no sentence; None if it kept one, or wrote none.

        Failing closed, ServiceError is raised if the sentences that it tried last could not be checked.
        """
        output = event.output
        if output is None or event.report.sentences or not output.dropped:
            return None
        search = output.get("search")
        rounds = () if search is None else search.rounds
        tried = [s for c in rounds[-1].candidates for s in c.sentences] if rounds else output.dropped[-1:]
        if tried and not any(map(is_checked, tried)):
            why = f"no sentence could be checked: {tried[0].reason or tried[0].status}"
            if self.failing == "closed":
                raise ServiceError(502, "verification_failed", why)
            return why
        best = max((s.score for s in tried if s.score is not None), default=None)
        return "no sentence passed" if best is None else f"no sentence passed; the best of the last scored {best:.2f}"

    def _opening(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": self._name}

    def _asked(self, request: ChatRequest) -> tuple[str, dict[str, Any]]:
        """Choose decoder and options of a request; refuse options that would be ignored."""
        body = request.body
        for name, neutral in _NEUTRAL.items():
            if body.get(name) is not None and body[name] not in neutral:
                raise ServiceError(400, "unsupported", f"{name} is not served here; leave it out")
        sampling = _sampling(body)
        is_random = sampling.get("temperature", 0) > 0
        decoder = request.decoder or ("sample" if is_random and self._default == "greedy" else self._default)
        if decoder not in self._decoders:
            raise ServiceError(400, "unknown_decoder", f"decoder must be one of {self.decoders}; found {decoder!r}")
        if is_random and decoder != "sample":
            raise ServiceError(400, "unsupported", f"decoder {decoder!r} takes no temperature; leave it out, or send 0")
        if sampling.get("top_p", 1) != 1 and decoder not in ("greedy", "sample"):
            raise ServiceError(400, "unsupported", f"decoder {decoder!r} takes no top_p; leave it out, or send 1")
        options: dict[str, Any] = {"seed": _whole(body, "seed", 0), "max_new_tokens": self._max_new_tokens}
        for name in ("max_tokens", "max_completion_tokens"):
            options["max_new_tokens"] = min(
                options["max_new_tokens"], _whole(body, name, self._max_new_tokens, least=1)
            )
        if decoder == "sample":
            options |= {"temperature": 1.0, "top_p": 1.0} | sampling
        if request.stop_below is not None:
            if decoder not in ("greedy", "sample"):
                raise ServiceError(400, "unsupported", f"decoder {decoder!r} has its own thresholds, no stop_below")
            options["stop_below"] = request.stop_below
        return decoder, options

    def _prompt(self, request: ChatRequest) -> RagPrompt:
        """Write the prompt: by the monitor's template, or, for a chat with history, by that of the tokenizer."""
        messages, passages = request.body["messages"], list(request.passages)
        system = [text_of(m) for m in messages if m.get("role") in ("system", "developer")]
        if sum(m.get("role") in ("user", "assistant") for m in messages) == 1:
            return self.monitor.prompt(
                question=request.question, context=passages, system="\n".join(filter(None, system)) or None
            )
        if not getattr(self.monitor.tokenizer, "chat_template", None):
            raise ServiceError(
                400,
                "unsupported",
                "the model served here has no chat template, so that it takes no earlier turns; send one message of "
                "the user, with all that the question needs from earlier turns, and system messages if there are any",
            )
        turns = [{"role": str(m.get("role")), "content": text_of(m)} for m in messages]
        return self.monitor.prompt(messages=turns, context=passages, question=request.question)


class _Writing:
    """An answer that is being written."""

    def __init__(self, source: OwnModel, request: ChatRequest) -> None:
        self._source = source
        self._request = request
        self._reason: str | None = None
        self._why_empty: str | None = None
        self._report: Report | None = None
        self._withheld: SentenceScore | None = None
        self._prompt_tokens = 0
        self.writer = EventWriter(request.passages, reveal=request.reveal, passage_ids=request.passage_ids)

    async def told(self, deadline: Deadline) -> AsyncIterator[list[ProtocolEvent]]:
        """Yield the events for a reader, some at a time; the model runs in threads."""
        request = self._request
        if not request.passages:
            self._reason = NO_PASSAGES
            self.writer.notice(f"Not checked: {NO_PASSAGES}", kind="warning")
        prompt, events = await in_thread(self._source.begin, request)
        self._prompt_tokens, told = len(prompt.with_context_ids), 0
        try:
            while True:
                async with deadline.waiting():
                    event = await in_thread(next, events, None)
                if event is None:
                    break
                if isinstance(event, EndEvent):
                    self._notice_stop(event.report)
                self._write(event)
                new, told = self.writer.events[told:], len(self.writer.events)
                if request.passages:
                    withheld = [] if self._withheld is None else [self._withheld]
                    self._reason = why_unchecked([*new, *withheld], self._source.failing) or self._reason
                if isinstance(event, EndEvent):
                    self._report = event.report
                    self._why_empty = self._source.why_empty(event) if request.passages else None
                if new:
                    yield new
        except InputError as error:  # the prompt is too long, which shows when the first event is requested
            raise ServiceError(400, "invalid_request", str(error)) from error
        finally:
            close = getattr(events, "close", None)
            if close is not None:
                await in_thread(close)

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

    def _notice_stop(self, report: Report) -> None:
        """Say which score ended the answer, if one did."""
        threshold = self._request.stop_below
        if report.stop == "below_threshold" and threshold is not None:
            withheld = self._withheld is not None
            self.writer.notice(why_stopped(report.sentences[-1], threshold, withheld=withheld))

    @property
    def finish_reason(self) -> str | None:
        """OpenAI's name of the reason why the answer ended; None until then."""
        if self._report is None:
            return None
        reasons = {"length": "length", "window": "length", "below_threshold": "content_filter"}
        return reasons.get(self._report.stop or "", "stop")

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
        return checked | {"reason": checked["reason"] or self._why_empty, "stop": stop}

    @property
    def usage(self) -> dict[str, int]:
        """Numbers of tokens in prompt and answer."""
        written = 0 if self._report is None else len(self._report.written_token_ids)
        counts = {"prompt_tokens": self._prompt_tokens, "completion_tokens": written}
        return counts | {"total_tokens": sum(counts.values())}


def _sampling(body: Mapping[str, Any]) -> dict[str, float]:
    """Read temperature and top_p, as far as a request has them."""
    options = {name: body[name] for name in ("temperature", "top_p") if body.get(name) is not None}
    if any(type(value) not in (int, float) for value in options.values()):
        raise ServiceError(400, "invalid_request", "temperature and top_p must be numbers")
    temperature, top_p = options.get("temperature", 0), options.get("top_p", 1)
    if temperature != 0 and not _LEAST_TEMPERATURE <= temperature <= _MOST_TEMPERATURE:
        least, most = _LEAST_TEMPERATURE, _MOST_TEMPERATURE
        raise ServiceError(400, "invalid_request", f"temperature must be 0, or from {least:g} to {most:g}")
    if not 0 < top_p <= 1:
        raise ServiceError(400, "invalid_request", "top_p must be above 0, and at most 1")
    return options


def _whole(body: Mapping[str, Any], name: str, default: int, *, least: int = 0) -> int:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
        shown = shortened(repr(value), 40)
        raise ServiceError(
            400, "invalid_request", f"{name} must be a whole number from {least} to 2^63 - 1; found {shown}"
        )
    return value
