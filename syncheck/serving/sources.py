"""Sources of checked answers: their protocol, and one that records the answers of another as spans."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from syncheck.monitor import Monitor
from syncheck.serving.chat import ChatRequest
from syncheck.serving.checked import Failing
from syncheck.serving.limits import Deadline, used_seconds
from syncheck.serving.upstream import trace_headers
from syncheck.telemetry import Telemetry
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_ASKED = {
    "max_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "seed": "gen_ai.request.seed",
    "n": "gen_ai.request.choice.count",
}
_USAGE = {"prompt_tokens": "gen_ai.usage.input_tokens", "completion_tokens": "gen_ai.usage.output_tokens"}


class AnswerSource(Protocol):
    """Protocol of a source of checked answers: an upstream server, or your own model.

    ``decoders`` are those that a request may choose from, the default first; empty for an upstream server, whose
    ``address`` is known. What ``require_usable`` refuses takes no place in the queue. An answer that is not complete by
    the deadline ends with its ServiceError.
    """

    @property
    def monitor(self) -> Monitor | Verifier:
        """What scores the sentences."""

    decoders: tuple[str, ...]
    failing: Failing
    address: str | None

    def require_usable(self, request: ChatRequest) -> None: ...  # noqa: D102
    async def complete(  # noqa: D102
        self, request: ChatRequest, authorization: str | None, deadline: Deadline
    ) -> dict[str, Any]: ...
    def stream(  # noqa: D102
        self, request: ChatRequest, authorization: str | None, deadline: Deadline
    ) -> AsyncGenerator[dict[str, Any]]: ...
    async def models(self, authorization: str | None) -> dict[str, Any]: ...  # noqa: D102
    async def close(self) -> None: ...  # noqa: D102


class TracedSource:
    """Source of the answers of another one, each recorded as a span."""

    def __init__(self, source: AnswerSource, telemetry: Telemetry) -> None:
        self.monitor = source.monitor
        self.decoders = source.decoders
        self.failing = source.failing
        self.address = source.address
        self.require_usable = source.require_usable
        self.models = source.models
        self.close = source.close
        self._source = source
        self._telemetry = telemetry

    async def complete(self, request: ChatRequest, authorization: str | None, deadline: Deadline) -> dict[str, Any]:
        """Write a whole answer."""
        with self._answering(request) as answering:
            answer = await self._source.complete(request, authorization, deadline)
            answering.take(answer)
        return answer

    async def stream(
        self, request: ChatRequest, authorization: str | None, deadline: Deadline
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield an answer in chunks."""
        with self._answering(request) as answering:
            async with aclosing(self._source.stream(request, authorization, deadline)) as chunks:
                async for chunk in chunks:
                    answering.take(chunk)
                    yield chunk

    @contextmanager
    def _answering(self, request: ChatRequest) -> Iterator[_Answering]:
        body, address = request.body, urlsplit(self.address or "")
        model = body["model"] if isinstance(body.get("model"), str) else None
        about: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai" if self.address else "syncheck",
            "gen_ai.request.stream": request.stream,
            "syncheck.passages": len(request.passages),
        }
        asked = {_ASKED[name]: body[name] for name in _ASKED if _is_number(body.get(name))}
        about |= {"gen_ai.request.model": model} if model else {}
        about |= {"server.address": address.hostname} if address.hostname else {}
        about |= {"server.port": address.port} if address.port else {}
        name = f"chat {model}" if model else "chat"
        with self._telemetry.span(name, about | asked, calls=bool(self.address)) as span:
            if self._telemetry.text:
                span.set_attribute("gen_ai.input.messages", _messages(body["messages"]))
            token, before = trace_headers.set(self._telemetry.headers()), used_seconds() or 0.0
            answering = _Answering(self._telemetry, span)
            try:
                yield answering
            finally:
                trace_headers.reset(token)
                used = used_seconds()  # by the check alone, unless the model is written here, too
                answering.end(None if used is None or not self.address else used - before)


class _Answering:
    """The span of an answer, which takes the answer or its chunks."""

    def __init__(self, telemetry: Telemetry, span: Span) -> None:
        self._telemetry = telemetry
        self._span = span
        self._sentences: dict[int, list[Mapping[str, Any]]] = {}
        self._texts: dict[int, str] = {}
        self._finished: dict[int, str] = {}
        self._statuses: dict[int, str] = {}

    def take(self, answer: Mapping[str, Any]) -> None:
        """Record what a whole answer or a chunk says."""
        usage = answer.get("usage") or {}
        told = {_USAGE[name]: usage[name] for name in _USAGE if isinstance(usage.get(name), int)}
        for name in ("id", "model"):
            if isinstance(answer.get(name), str):
                told[f"gen_ai.response.{name}"] = answer[name]
        self._span.set_attributes(told)
        for choice in answer["choices"]:
            self._choice(choice["index"], choice)

    def _choice(self, index: int, choice: Mapping[str, Any]) -> None:
        said, own = choice.get("message") or choice.get("delta") or {}, choice["syncheck"]
        self._texts[index] = self._texts.get(index, "") + (said.get("content") or "")
        results = own.get("sentences") or [e for e in own.get("events", ()) if e["type"] == "verified"]
        for sentence in results:
            self._telemetry.result(self._span, sentence)
        self._sentences.setdefault(index, []).extend(results)
        if choice.get("finish_reason"):
            self._finished[index] = choice["finish_reason"]
        if "status" in own:
            self._statuses[index] = own["status"]
            self._sentences[index] = (said.get("syncheck") or own)["sentences"]  # without those that were taken back

    def end(self, seconds: float | None) -> None:
        """Record the sums of the answer, as far as it came."""
        self._telemetry.outcome(self._span, [s for own in self._sentences.values() for s in own], seconds)
        finished = [self._finished[index] for index in sorted(self._finished)]
        self._span.set_attribute("gen_ai.response.finish_reasons", finished)
        self._span.set_attribute("syncheck.statuses", [self._statuses[index] for index in sorted(self._statuses)])
        if self._telemetry.text:
            said = [
                {"role": "assistant", "content": text, "finish_reason": self._finished.get(index, "error")}
                for index, text in sorted(self._texts.items())
            ]
            self._span.set_attribute("gen_ai.output.messages", _messages(said))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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
