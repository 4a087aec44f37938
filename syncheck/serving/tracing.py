"""Tracing: the spans of OpenTelemetry that record answers, with attributes as its conventions for generative AI say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from syncheck.serving.allowed import is_number
from syncheck.serving.chat import ChatRequest
from syncheck.serving.limits import used_seconds
from syncheck.serving.upstream import trace_headers
from syncheck.telemetry import Telemetry

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_ASKED = {name: f"gen_ai.request.{name}" for name in ("max_tokens", "temperature", "top_p", "seed")}
_ASKED |= {"n": "gen_ai.request.choice.count"}
_USAGE = {"prompt_tokens": "gen_ai.usage.input_tokens", "completion_tokens": "gen_ai.usage.output_tokens"}


@contextmanager
def traced(
    telemetry: Telemetry | None, upstream: str | None, request: ChatRequest
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Record an answer as a span, or without telemetry not; what is yielded takes the answer or its chunks."""
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


@dataclass(eq=False)
class _TracedAnswer:
    """The span of an answer, with what is known of each choice."""

    _telemetry: Telemetry
    _span: Span
    _choices: dict[int, dict[str, Any]] = field(default_factory=dict)

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
            told = {"role": "assistant", "finish_reason": "error"}
            said = [{**told, **known, "content": known["text"]} for known in choices]
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
