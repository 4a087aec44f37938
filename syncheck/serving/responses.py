"""OpenAI's Responses, translated to chat completions and from them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from syncheck.base.errors import InputError
from syncheck.serving.chat import ServiceError
from syncheck.serving.dialects import (
    Item,
    Sent,
    Translation,
    blocks_of,
    function_call,
    function_tool,
    object_of,
    required,
)

_STATEFUL = ("previous_response_id", "conversation", "background", "prompt")
_OWN = frozenset({"input", "instructions", "max_output_tokens", "text", "reasoning", "tools", "tool_choice", "store"})
_IGNORED = frozenset({"include", "truncation"})
_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


class Responses(Translation):
    """Writer of an answer as a response with its items; a request is translated, and no response is stored."""

    @staticmethod
    def chat(values: object) -> object:  # noqa: D102
        if not isinstance(values, dict):
            raise InputError(f"expected a JSON object; found {type(values).__name__}")
        if kept := [name for name in _STATEFUL if values.get(name)]:
            raise InputError(f"{', '.join(kept)} cannot be served, since no response is stored; send the whole input")
        body = {name: value for name, value in values.items() if name not in _OWN | _IGNORED}
        told = [{"role": "system", "content": values["instructions"]}] if values.get("instructions") else []
        body["messages"] = [*told, *_messages(values.get("input"))]
        if values.get("max_output_tokens") is not None:
            body["max_tokens"] = values["max_output_tokens"]
        if effort := object_of(values, "reasoning").get("effort"):
            body["reasoning_effort"] = effort
        shape = object_of(values, "text").get("format")
        if isinstance(shape, dict):
            inner = {name: value for name, value in shape.items() if name != "type"}
            kind = shape.get("type")
            body["response_format"] = {"type": kind, **({"json_schema": inner} if kind == "json_schema" else {})}
        if values.get("tools"):
            body["tools"] = [_tool(tool) for tool in blocks_of(values["tools"], "tools")]
        choice = values.get("tool_choice")
        if choice is not None:
            named = {"type": "function", "function": {"name": choice.get("name")}} if isinstance(choice, dict) else None
            body["tool_choice"] = named or choice
        if values.get("stream"):
            body["stream_options"] = {"include_usage": True}
        return body

    @staticmethod
    def error(error: ServiceError) -> dict[str, Any]:  # noqa: D102
        told = error.to_dict()["error"]
        return {"type": "error", "error": told, "code": error.code, "message": told["message"], "param": None}

    def begin(self) -> Iterator[Sent]:  # noqa: D102
        self._created, self._number = int(time.time()), 0
        for name in ("created", "in_progress"):
            yield self._event(f"response.{name}", response=self._response("in_progress"))

    def opened(self, item: Item) -> Iterator[Sent]:  # noqa: D102
        yield self._event("response.output_item.added", output_index=item.index, item=_written(item, is_open=True))
        if item.kind != "call":
            yield self._event("response.content_part.added", **_place(item), part=_part(item))

    def added(self, item: Item, text: str) -> Iterator[Sent]:  # noqa: D102
        told = {"logprobs": [], "syncheck": {"v": 1, "events": item.told}} if item.kind == "text" else {}
        yield self._event(f"{_NAMES[item.kind]}.delta", **_place(item), delta=text, **told)

    def closed(self, item: Item) -> Iterator[Sent]:  # noqa: D102
        place = _place(item)
        if item.kind == "call":
            yield self._event(f"{_NAMES[item.kind]}.done", **place, name=item.name, arguments=item.text)
        else:
            told: dict[str, Any] = {"logprobs": []} if item.kind == "text" else {}
            yield self._event(f"{_NAMES[item.kind]}.done", **place, text=item.text, **told)
            yield self._event("response.content_part.done", **place, part=_part(item))
        yield self._event("response.output_item.done", output_index=item.index, item=_written(item))

    def finish(self) -> Iterator[Sent]:  # noqa: D102
        answer = self.answer()
        yield self._event(f"response.{answer['status']}", response=answer)

    def answer(self) -> dict[str, Any]:  # noqa: D102
        return self._response("incomplete" if self.reason in _REASONS else "completed") | {"syncheck": self.own}

    def _event(self, kind: str, **values: Any) -> Sent:
        self._number += 1
        return kind, {"type": kind, "sequence_number": self._number - 1, **values}

    def _response(self, status: str) -> dict[str, Any]:
        why = {"reason": _REASONS[self.reason]} if status == "incomplete" else None
        read, written = self.count("prompt_tokens"), self.count("completion_tokens")
        usage = {
            "input_tokens": read,
            "input_tokens_details": {
                "cached_tokens": self.count("prompt_tokens_details", "cached_tokens"),
                "cache_write_tokens": 0,
            },
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": self.count("completion_tokens_details", "reasoning_tokens")},
            "total_tokens": read + written,
        }
        return {
            "id": f"resp_{self.key}",
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": why,
            "instructions": None,
            "metadata": self.body.get("metadata") or {},
            "model": self.model,
            "output": [] if status == "in_progress" else [_written(item) for item in self.items],
            "parallel_tool_calls": self.body.get("parallel_tool_calls", True),
            "temperature": self.body.get("temperature"),
            "tool_choice": "auto",
            "tools": [],
            "top_p": self.body.get("top_p"),
            "usage": usage if self.usage else None,
        }


_NAMES = {
    "text": "response.output_text",
    "reasoning": "response.reasoning_text",
    "call": "response.function_call_arguments",
}


def _place(item: Item) -> dict[str, Any]:
    part = {} if item.kind == "call" else {"content_index": 0}
    return {"item_id": item.id, "output_index": item.index, **part}


def _part(item: Item) -> dict[str, Any]:
    kind = "output_text" if item.kind == "text" else "reasoning_text"
    return {"type": kind, "text": item.text, **({"annotations": [], "logprobs": []} if item.kind == "text" else {})}


def _written(item: Item, *, is_open: bool = False) -> dict[str, Any]:
    values: dict[str, Any] = {"id": item.id, "status": "in_progress" if is_open else "completed"}
    content = [] if is_open else [_part(item)]
    if item.kind == "text":
        return {**values, "type": "message", "role": "assistant", "content": content}
    if item.kind == "reasoning":
        return {**values, "type": "reasoning", "summary": [], "content": content}
    return {**values, "type": "function_call", "call_id": item.id, "name": item.name, "arguments": item.text}


def _messages(given: object) -> list[dict[str, Any]]:
    """Translate the items of an input to messages; reasoning of earlier answers is left out."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    messages: list[dict[str, Any]] = []
    for number, item in enumerate(blocks_of(given, "input")):
        kind, place = item.get("type") or "message", f"input[{number}]"
        if kind == "message":
            parts = [_content(block, place) for block in blocks_of(item.get("content"), f"the content of {place}")]
            is_plain = all(part["type"] == "text" for part in parts)
            content = "\n".join(part["text"] for part in parts) if is_plain else parts
            messages.append({"role": required(item, "role", place), "content": content})
        elif kind == "function_call":
            call = function_call(*(required(item, name, place) for name in ("call_id", "name", "arguments")))
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            blocks = blocks_of(item.get("output"), f"the output of {place}")
            text = "\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
            messages.append({"role": "tool", "tool_call_id": required(item, "call_id", place), "content": text})
        elif kind != "reasoning":
            raise InputError(f"{place} has the type {kind!r}, which chat completions lack; leave it out")
    return messages


def _content(block: Mapping[str, Any], place: str) -> dict[str, Any]:
    kind = block.get("type")
    if kind in ("text", "input_text", "output_text", "refusal"):
        return {"type": "text", "text": required(block, "refusal" if kind == "refusal" else "text", place)}
    if kind == "input_image":
        detail = {"detail": block["detail"]} if block.get("detail") else {}
        return {"type": "image_url", "image_url": {"url": required(block, "image_url", place), **detail}}
    raise InputError(f"{place} has content of the type {kind!r}; chat completions take text and images")


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if tool.get("type") != "function":
        raise InputError(f"tools may be functions alone, since chat completions lack {tool.get('type')!r}")
    return function_tool(required(tool, "name", "a tool"), tool, tool.get("parameters"))
