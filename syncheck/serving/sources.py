"""Sources of checked answers that a decoder writes: their base, and the server of your own model."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Protocol

from syncheck.base.errors import InputError
from syncheck.base.printable import counted, shortened
from syncheck.monitor import Monitor
from syncheck.results import Report
from syncheck.results.events import EndEvent, Event, EventWriter, SentenceEvent, why_stopped
from syncheck.results.protocol import VERSION, ProtocolEvent, Reveal, to_dict
from syncheck.results.types import RagPrompt, SentenceScore
from syncheck.scoring import falls_below
from syncheck.serving.chat import ChatRequest, ServiceError, refusing, text_of, unsupported, unverifiable
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
from syncheck.serving.limits import Deadline, in_thread
from syncheck.verifier import Verifier

_FILTERED = frozenset({"below_threshold", "nothing_passed", "backtracked", "abstained"})
_CUT = frozenset({"length", "window", "budget", "max_sentences"})
"""Why an answer ended for lack of a sentence that passes, and at a limit."""
LIMITS = ("max_tokens", "max_completion_tokens")  # of the length of an answer; the lower one counts
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
    name: str | None  # of the model; None if each request names it

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
        key = f"chatcmpl-{uuid.uuid4().hex}"
        model = str(request.body.get("model", "")) if self.name is None else self.name
        return {"id": key, "object": kind, "created": int(time.time()), "model": model}


def _why_empty(event: EndEvent, failing: Failing) -> str | None:
    """Say why a decoder kept no sentence, if it kept none; failing closed, it is an error if none could be checked."""
    output = event.output
    if output is None or event.report.sentences or not output.dropped:
        return None
    rounds = getattr(getattr(output, "search", None), "rounds", ())
    tried = [s for c in rounds[-1].candidates for s in c.sentences] if rounds else output.dropped[-1:]
    if tried and not any(map(is_checked, tried)):
        why = f"no sentence could be checked: {tried[0].reason or tried[0].status}"
        if failing == "closed":
            raise unverifiable(why)
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
                    new, told = self.writer.since(told), len(self.writer.events)
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
            self._request.tell_withheld(event.sentence)
        elif isinstance(event, EndEvent) and self._withheld is not None:
            kept = event.report.sentences[:-1]
            response = event.report.response[: kept[-1].end if kept else 0]
            self.writer.end(replace(event.report, response=response, sentences=kept))
        else:
            self.writer.write(event)

    def _notice_stop(self, event: EndEvent) -> None:
        report, threshold = event.report, self._request.stop_below
        if report.hidden:
            left_out = counted(len(report.hidden), "sentence")
            self.writer.notice(f"Left out: {left_out} that the model wrote", kind="warning")
        if report.stop == "nothing_passed":
            self.writer.notice("Incomplete: the next sentence did not pass", kind="warning")
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
        return {**checked, "reason": checked["reason"] or self._why_empty or self._why_ended, "stop": stop}


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


_OWN_MODEL_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    **NEUTRAL,
    "stop": ([], ""),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "top_k": (-1, 0),
    "min_p": (0,),
    "repetition_penalty": (1,),
}
"""Fields of requests to OpenAI or vLLM that are not supported, with the values that have no effect and are accepted."""
_LEAST_TEMPERATURE, _MOST_TEMPERATURE = 0.01, 100.0  # between them, logits that are divided by it still differ


class Decoder(Protocol):
    """Protocol of a decoder that writes an answer as events; ``options`` are those of a request that are accepted."""

    def __call__(  # noqa: D102
        self, prompt: RagPrompt, *, reveal: Reveal, seed: int, max_new_tokens: int, **options: Any
    ) -> Iterator[Event]: ...


@dataclass(eq=False)
class OwnModel(DecoderSource):
    """Source of answers by the monitored model, whose monitor has an aggregator.

    Of the ``decoders``, by the name that a request gives, only ``sample`` takes ``temperature`` and ``top_p``. Requests
    that name none get the ``default``, or, with a ``temperature`` above 0, are sampled. ``max_new_tokens`` is the
    length of answers for requests that give none, and the limit for all.
    """

    monitor: Monitor
    decoders: Mapping[str, Decoder]
    _: KW_ONLY
    default: str
    name: str
    failing: Failing = "closed"
    max_new_tokens: int = 512

    def __post_init__(self) -> None:
        self.decoders = dict(sorted(self.decoders.items(), key=lambda decoder: decoder[0] != self.default))

    async def close(self) -> None:
        """Do nothing; the model stays with its owner."""

    async def models(self, authorization: str | None) -> dict[str, Any]:
        """List the one model."""
        return {"object": "list", "data": [{"id": self.name, "object": "model", "owned_by": "syncheck"}]}

    def require_usable(self, request: ChatRequest) -> None:
        """Refuse, with a ServiceError, a request that can be refused without the model."""
        if self.failing == "closed" and not request.passages:
            raise ServiceError(400, "no_passages", NO_PASSAGES)
        self._asked(request)

    async def begin(self, request: ChatRequest, deadline: Deadline) -> AsyncGenerator[Event]:
        """Build the prompt of a request, and the events, for which the model runs in threads."""
        return _in_threads(await in_thread(self._begun, request))

    def usage(self, event: EndEvent) -> dict[str, Any]:
        """Count the tokens of prompt and answer."""
        assert isinstance(event.report.prompt, RagPrompt)
        read, written = len(event.report.prompt.with_context_ids), len(event.report.written_token_ids)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}

    @refusing()
    def _begun(self, request: ChatRequest) -> Iterator[Event]:
        decoder, options = self._asked(request)
        return self.decoders[decoder](self._prompt(request), reveal=request.reveal, **options)

    @refusing()
    def _asked(self, request: ChatRequest) -> tuple[str, dict[str, Any]]:
        """Choose decoder and options of a request; refuse options that would be ignored."""
        body = request.body
        require_neutral(body, _OWN_MODEL_NEUTRAL)
        sampling = _sampling(body)
        is_random = sampling.get("temperature", 0) > 0
        decoder = request.decoder or ("sample" if is_random and self.default == "greedy" else self.default)
        if decoder not in self.decoders:
            told = f"decoder must be one of {tuple(self.decoders)}; found {decoder!r}"
            raise ServiceError(400, "unknown_decoder", told)
        if is_random and decoder != "sample":
            raise unsupported(f"decoder {decoder!r} takes no temperature; leave it out, or send 0")
        if sampling.get("top_p", 1) != 1 and decoder not in ("greedy", "sample"):
            raise unsupported(f"decoder {decoder!r} takes no top_p; leave it out, or send 1")
        options: dict[str, Any] = {"seed": whole_number(body, "seed", 0)}
        lengths = [whole_number(body, name, self.max_new_tokens, least=1) for name in LIMITS]
        options["max_new_tokens"] = min(self.max_new_tokens, *lengths)
        if decoder == "sample":
            options |= {"temperature": 1.0, "top_p": 1.0} | sampling
        if request.stop_below is not None:
            if decoder not in ("greedy", "sample"):
                raise unsupported(f"decoder {decoder!r} has its own thresholds, no stop_below")
            options["stop_below"] = request.stop_below
        return decoder, options

    def _prompt(self, request: ChatRequest) -> RagPrompt:
        """Write the prompt: by the monitor's template, or, for a chat with history, by that of the tokenizer."""
        messages, passages = request.body["messages"], list(request.passages)
        system = [text_of(m) for m in messages if m.get("role") in ("system", "developer")]
        if sum(m.get("role") in ("user", "assistant") for m in messages) == 1:
            told = "\n".join(filter(None, system)) or None
            return self.monitor.prompt(question=request.question, context=passages, system=told)
        if not getattr(self.monitor.tokenizer, "chat_template", None):
            why = "the model served here has no chat template, so that it takes no earlier turns; send one message of "
            why += "the user, with all that the question needs from earlier turns, and system messages if there are any"
            raise unsupported(why)
        turns = [{"role": str(m.get("role")), "content": text_of(m)} for m in messages]
        return self.monitor.prompt(messages=turns, context=passages, question=request.question)


async def _in_threads(events: Iterator[Event]) -> AsyncGenerator[Event]:
    try:
        while (event := await in_thread(next, events, None)) is not None:
            yield event
    finally:
        if (close := getattr(events, "close", None)) is not None:
            await in_thread(close)


def _sampling(body: Mapping[str, Any]) -> dict[str, float]:
    options = {name: body[name] for name in ("temperature", "top_p") if body.get(name) is not None}
    if any(type(value) not in (int, float) for value in options.values()):
        raise InputError("temperature and top_p must be numbers")
    temperature, top_p = options.get("temperature", 0), options.get("top_p", 1)
    if temperature != 0 and not _LEAST_TEMPERATURE <= temperature <= _MOST_TEMPERATURE:
        raise InputError(f"temperature must be 0, or from {_LEAST_TEMPERATURE:g} to {_MOST_TEMPERATURE:g}")
    if not 0 < top_p <= 1:
        raise InputError("top_p must be above 0, and at most 1")
    return options
