"""Repair before an upstream server: a decoder has it continue an answer over HTTP, sentence by sentence."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal

from syncheck.results import ContinuationRequest, Piece
from syncheck.results.events import EndEvent, Event
from syncheck.serving.allowed import divided_content, invalid, is_counts
from syncheck.serving.chat import ChatRequest, ServiceError, refusing, unsupported
from syncheck.serving.checked import NO_PASSAGES
from syncheck.serving.gateway import Gateway
from syncheck.serving.limits import Deadline, in_thread
from syncheck.serving.sources import LIMITS, NEUTRAL, DecoderSource, require_neutral, whole_number
from syncheck.serving.upstream import Upstream, choices_of, incomplete, index_of
from syncheck.text.markup import Reasoning
from syncheck.verifier import Verifier

Stop = Literal["end_of_text", "length"]
ContinueBy = Literal["chat", "prefill"]
"""How a server is asked to continue an answer. ``chat``: chat completions with ``continue_final_message``, as vLLM and
SGLang take it. ``prefill``: chat completions that continue a last message of the assistant by themselves; each sample
is a request of its own."""

_STOPS: Mapping[str, Stop] = {"stop": "end_of_text", "eos": "end_of_text", "length": "length"}
_SPENT = ("requests", "samples", "rounds")


@dataclass(frozen=True, slots=True)
class ServerContinuations:
    """Continues one answer; the ``continue_from`` of :class:`fod.UpstreamFOD`."""

    upstream: Upstream
    body: Mapping[str, Any]
    """The request for the answer in the form of chat completions. Its sampling is that of the stream, which is greedy
    without any; its limit on tokens is for the whole answer."""
    _: KW_ONLY
    by: ContinueBy = "chat"
    deadline: Deadline | None = None
    """The time by which all requests must be complete; None sets none beside the time-out of the upstream."""
    authorization: str | None = field(default=None, repr=False)
    """Header of a client, which is passed on if the upstream has no key."""
    opens_reasoning: bool = False
    """True if the chat template opens the model's reasoning, which is left out."""

    @property
    def takes_n(self) -> bool:
        """False if each sample is a request."""
        return self.by != "prefill"

    async def __call__(self, request: ContinuationRequest) -> AsyncGenerator[Piece]:
        """Ask for continuations; closing them cancels the request."""
        wanted = request.samples or 1
        limits = [self.body[name] for name in LIMITS if self.body.get(name) is not None]
        if limits and request.tokens >= min(limits):
            for sample in range(wanted):
                yield Piece(sample=sample, stop="length")
            return
        body = self._asked(request)
        is_open = self.opens_reasoning and not request.beginning
        readers = [Reasoning(is_open=is_open) for _ in range(wanted)]
        ended: dict[int, bool] = {}  # by the indices of the samples that have begun
        deadline = self.deadline or Deadline(math.inf)
        async with aclosing(self.upstream.streamed("/chat/completions", body, self.authorization, deadline)) as chunks:
            async for values in chunks:
                usage = values.get("usage") if is_counts(values.get("usage")) else None
                choices = choices_of(values)
                for choice in choices:
                    index = index_of(choice, wanted)
                    if ended.get(index):
                        continue
                    stop = _stop_of(choice)
                    ended[index] = stop is not None
                    text = _answer_of(readers[index], _content_of(choice), is_last=ended[index])
                    yield Piece(text, index, stop, usage)
                if not choices and usage:
                    yield Piece(sample=None, usage=usage)
        if 0 < len(ended) < wanted:
            raise invalid(f"it has {len(ended)} of {wanted} samples; a server that takes no n needs --continue prefill")
        if sum(ended.values()) < wanted:
            raise incomplete("it ended before its last chunk")

    def _asked(self, request: ContinuationRequest) -> dict[str, Any]:
        body = self._limited(request)
        messages = body["messages"]
        if request.beginning:
            messages = [*messages, {"role": "assistant", "content": request.beginning}]
            if self.by == "chat":
                body |= {"continue_final_message": True, "add_generation_prompt": False}
        return {**body, "messages": messages}

    def _limited(self, request: ContinuationRequest) -> dict[str, Any]:
        body = {**self.body, "stream": True, "stream_options": {"include_usage": True}}
        if self.by != "prefill":
            body["stream_options"]["continuous_usage_stats"] = True  # a stream that is left reports nothing at its end
        if body.get("temperature") is None:
            body["temperature"] = 0
        body |= {name: value for name in ("temperature", "top_p") if (value := getattr(request, name)) is not None}
        if request.samples is not None:
            body["seed"] = request.seed
            if request.samples > 1:
                body["n"] = request.samples
        for name in LIMITS:
            if body.get(name) is not None:
                body[name] -= request.tokens
        return body


def _content_of(choice: Mapping[str, Any]) -> str:
    delta = choice.get("delta")
    content = delta.get("content") if isinstance(delta, Mapping) else None
    if isinstance(content, list):
        content = divided_content(content)[0]
    if not isinstance(content, str | None):
        raise invalid(f"the text of a choice is no string; found {type(content).__name__}")
    return content or ""


def _stop_of(choice: Mapping[str, Any]) -> Stop | None:
    reason = choice.get("finish_reason")
    if reason and reason not in _STOPS:
        raise invalid(f"it ended with the finish_reason {str(reason)[:40]!r}, so that it cannot be continued")
    return _STOPS[reason] if reason else None


def _answer_of(reasoning: Reasoning, content: str, *, is_last: bool) -> str:
    parts = reasoning.read(content, is_last=is_last)
    if any(kind == "not_text" for kind, *_ in parts):
        raise invalid("it closes reasoning that nothing opened; if the chat template does, pass --opens-reasoning")
    return "".join(text for kind, text, _ in parts if kind == "text")


UpstreamDecoder = Callable[..., AsyncGenerator[Event]]
"""Decoder that writes an answer with a server that is continued: :meth:`fod.UpstreamFOD.stream_async`, which gets the
server as its first argument, and as keywords question, passages, seed and what runs a function in a thread."""


@dataclass(eq=False)
class RepairingGateway(DecoderSource):
    """Source of answers that the decoder ``fod`` writes with the upstream server of a gateway.

    Its ``monitor`` scores the sentences. ``by`` says how the server is asked to continue. An
    answer without passages, which only passes failing open, is the plain one of the ``gateway``.
    """

    gateway: Gateway
    monitor: Verifier
    decode: UpstreamDecoder
    _: KW_ONLY
    by: ContinueBy = "chat"
    decoders: ClassVar[tuple[str, ...]] = ("fod",)
    name: None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.failing, self.close, self.models = self.gateway.failing, self.gateway.close, self.gateway.models

    async def complete(self, request: ChatRequest, deadline: Deadline) -> dict[str, Any]:  # noqa: D102
        if request.passages:
            return await super().complete(request, deadline)
        return await self.gateway.complete(request, deadline)

    def stream(self, request: ChatRequest, deadline: Deadline) -> AsyncGenerator[dict[str, Any]]:  # noqa: D102
        return super().stream(request, deadline) if request.passages else self.gateway.stream(request, deadline)

    @refusing()
    def require_usable(self, request: ChatRequest) -> None:
        """Refuse, with a ServiceError, a request that the upstream server need not see."""
        if request.decoder not in (None, *self.decoders):
            told = f"decoder must be one of {self.decoders}; found {request.decoder!r}"
            raise ServiceError(400, "unknown_decoder", told)
        if not request.passages:
            if self.failing == "closed":
                raise ServiceError(400, "no_passages", NO_PASSAGES)
            return
        require_neutral(request.body, NEUTRAL)
        for name in LIMITS:
            whole_number(request.body, name, 1, least=1)
        whole_number(request.body, "seed", 0)
        if request.stop_below is not None:
            raise unsupported("decoder 'fod' has its own thresholds, no stop_below")
        if request.body["messages"][-1].get("role") == "assistant":
            raise unsupported("the last message is the assistant's, and the answer is continued here; leave it out")

    async def begin(self, request: ChatRequest, deadline: Deadline) -> AsyncGenerator[Event]:
        """Begin an answer; the upstream server is asked with its first event."""
        continuations = ServerContinuations(
            self.gateway.upstream,
            request.body,
            by=self.by,
            deadline=deadline,
            authorization=request.authorization,
            opens_reasoning=self.gateway.opens_reasoning,
        )
        asked: dict[str, Any] = {name: getattr(request, name) for name in ("question", "passages")}
        asked["seed"] = whole_number(request.body, "seed", 0)
        return self.decode(continuations, in_thread=in_thread, **asked)

    def usage(self, event: EndEvent) -> dict[str, Any]:
        """Count what the upstream server has spent, rejected sentences included."""
        spent = event.output.spent
        counts = {name: getattr(spent, name) for name in ("prompt_tokens", "completion_tokens")}
        own = {name: getattr(spent, name) for name in _SPENT}
        return {**counts, "total_tokens": sum(counts.values()), "syncheck": own}
