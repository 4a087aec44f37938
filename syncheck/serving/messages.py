"""Anthropic's Messages, translated to chat completions and from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from syncheck.base.errors import InputError
from syncheck.serving.chat import ServiceError
from syncheck.serving.dialects import (
    Item,
    Sent,
    Translation,
    arguments_of,
    blocks_of,
    function_call,
    function_tool,
    object_of,
    required,
)

_OWN = frozenset({"messages", "system", "stop_sequences", "tools", "tool_choice", "thinking", "metadata"})
_REASONS = {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}


class Messages(Translation):
    """Writer of an answer as a message with blocks of content; a request is translated."""

    @staticmethod
    def chat(values: object) -> object:  # noqa: D102
        if not isinstance(values, dict):
            raise InputError(f"expected a JSON object; found {type(values).__name__}")
        body = {name: value for name, value in values.items() if name not in _OWN}
        body["messages"] = []
        if values.get("system"):
            body["messages"].append({"role": "system", "content": _text(values["system"], "system")})
        for number, message in enumerate(blocks_of(values.get("messages"), "messages")):
            body["messages"] += _messages(message, f"messages[{number}]")
        if values.get("stop_sequences"):
            body["stop"] = values["stop_sequences"]
        if user := object_of(values, "metadata").get("user_id"):
            body["user"] = user
        if values.get("tools"):
            body["tools"] = [_tool(tool) for tool in blocks_of(values["tools"], "tools")]
        if choice := object_of(values, "tool_choice"):
            named = {"type": "function", "function": {"name": choice.get("name")}}
            kinds: dict[Any, Any] = {"any": "required", "none": "none", "tool": named}
            body["tool_choice"] = kinds.get(choice.get("type"), "auto")
            if choice.get("disable_parallel_tool_use"):
                body["parallel_tool_calls"] = False
        if values.get("stream"):
            body["stream_options"] = {"include_usage": True}
        return body

    @staticmethod
    def error(error: ServiceError) -> dict[str, Any]:  # noqa: D102
        kind = _ERRORS.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": str(error), "code": error.code}}

    def begin(self) -> Iterator[Sent]:  # noqa: D102
        message = self.answer() | {"content": [], "stop_reason": None}
        del message["syncheck"]
        yield _event("message_start", message=message)

    def opened(self, item: Item) -> Iterator[Sent]:  # noqa: D102
        empty = Item(item.kind, item.index, item.id, item.name)
        yield _event("content_block_start", index=item.index, content_block=_block(empty))

    def added(self, item: Item, text: str) -> Iterator[Sent]:  # noqa: D102
        kinds = {
            "text": {"type": "text_delta", "text": text},
            "reasoning": {"type": "thinking_delta", "thinking": text},
            "call": {"type": "input_json_delta", "partial_json": json.dumps(arguments_of(item))},
        }
        told = {"syncheck": {"v": 1, "events": item.told}} if item.kind == "text" else {}
        yield _event("content_block_delta", index=item.index, delta=kinds[item.kind], **told)

    def closed(self, item: Item) -> Iterator[Sent]:  # noqa: D102
        yield _event("content_block_stop", index=item.index)

    def finish(self) -> Iterator[Sent]:  # noqa: D102
        answer = self.answer()
        delta = {name: answer[name] for name in ("stop_reason", "stop_sequence", "stop_details", "container")}
        yield _event("message_delta", delta=delta, usage=answer["usage"], syncheck=self.own)
        yield _event("message_stop")

    def answer(self) -> dict[str, Any]:  # noqa: D102
        return {
            "id": f"msg_{self.key}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [_block(item) for item in self.items],
            "stop_reason": _REASONS.get(self.reason, "end_turn"),
            "stop_sequence": None,
            "stop_details": None,
            "container": None,
            "usage": {
                "input_tokens": self.count("prompt_tokens"),
                "output_tokens": self.count("completion_tokens"),
                "cache_read_input_tokens": self.count("prompt_tokens_details", "cached_tokens"),
            },
            "syncheck": self.own,
        }


def _event(kind: str, **values: Any) -> Sent:
    return kind, {"type": kind, **values}


def _block(item: Item) -> dict[str, Any]:
    if item.kind == "text":
        return {"type": "text", "text": item.text, "citations": None}
    if item.kind == "reasoning":
        return {"type": "thinking", "thinking": item.text, "signature": ""}
    return {"type": "tool_use", "id": item.id, "name": item.name, "input": arguments_of(item)}


def _text(content: object, place: str) -> str:
    """Join the text of blocks; documents and results of a search become ``<document>`` elements."""
    return "\n".join(filter(None, (_text_of(block, place) for block in blocks_of(content, place))))


def _text_of(block: Mapping[str, Any], place: str) -> str | None:
    """Read a block as text; None if it is an image, or reasoning of an earlier answer."""
    kind, source = block.get("type"), block.get("source")
    if kind == "text":
        return required(block, "text", place)
    if kind == "search_result":
        return f"<document>\n{_text(block.get('content'), place)}\n</document>"
    if kind == "document" and isinstance(source, dict) and source.get("type") in ("text", "content"):
        name = "data" if source["type"] == "text" else "content"
        return f"<document>\n{_text(source.get(name), place)}\n</document>"
    if kind in ("thinking", "redacted_thinking", "image", "tool_use", "tool_result"):
        return None
    raise InputError(f"{place} has a block of the type {kind!r} that chat completions lack; send its text")


def _messages(message: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    """Translate a message; results of tools become messages of their own, before the rest of it."""
    blocks = blocks_of(message.get("content"), f"the content of {place}")
    results, calls = [], []
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if block.get("type") == "tool_result":
            text = _text(block.get("content") or "", place)
            results.append({"role": "tool", "tool_call_id": required(block, "tool_use_id", place), "content": text})
        elif block.get("type") == "tool_use":
            arguments = json.dumps(block.get("input") or {})
            calls.append(function_call(required(block, "id", place), required(block, "name", place), arguments))
        elif block.get("type") == "image":
            parts.append({"type": "image_url", "image_url": {"url": _image(block, place)}})
        elif (read := _text_of(block, place)) is not None:
            parts.append({"type": "text", "text": read})
    is_plain = all(part["type"] == "text" for part in parts)
    content: Any = "\n".join(str(part["text"]) for part in parts) if is_plain else parts
    rest = {"role": required(message, "role", place), "content": content or None}
    return [*results, *([rest | ({"tool_calls": calls} if calls else {})] if parts or calls else [])]


def _image(block: Mapping[str, Any], place: str) -> str:
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") not in ("base64", "url"):
        raise InputError(f"{place} must have images as base64 or by their url")
    if source["type"] == "url":
        return required(source, "url", place)
    return f"data:{required(source, 'media_type', place)};base64,{required(source, 'data', place)}"


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if tool.get("type", "custom") != "custom":
        raise InputError(f"tools must have an input_schema, since chat completions lack {tool['type']!r}")
    return function_tool(required(tool, "name", "a tool"), tool, tool.get("input_schema"))
