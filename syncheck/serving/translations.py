"""OpenAI's Responses and Anthropic's Messages, translated to chat completions and from them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from syncheck.base.errors import InputError
from syncheck.serving.chat import ServiceError
from syncheck.serving.dialects import Item, Sent, Translation, blocks_of, required

_STATEFUL = ("previous_response_id", "conversation", "background", "prompt")
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_STOPS = {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}
_NAMES = {"text": "output_text", "reasoning": "reasoning_text", "call": "function_call_arguments"}
_ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}


class Responses(Translation):
    """Writer of an answer as a response with its items; a request is translated, and no response is stored."""

    unlike = frozenset(
        "input instructions max_output_tokens text reasoning tools tool_choice store include truncation".split()
    )

    @classmethod
    def translated(cls, values: Mapping[str, Any]) -> dict[str, Any]:  # noqa: D102
        if kept := [name for name in _STATEFUL if values.get(name)]:
            raise InputError(f"{', '.join(kept)} cannot be served, since no response is stored; send the whole input")
        told = [{"role": "system", "content": values["instructions"]}] if values.get("instructions") else []
        body: dict[str, Any] = {"messages": [*told, *_messages_of(values.get("input"))]}
        if values.get("max_output_tokens") is not None:
            body["max_tokens"] = values["max_output_tokens"]
        if effort := _object_of(values, "reasoning").get("effort"):
            body["reasoning_effort"] = effort
        shape = _object_of(values, "text").get("format")
        if isinstance(shape, dict):
            kind, inner = shape.get("type"), {name: value for name, value in shape.items() if name != "type"}
            body["response_format"] = {"type": kind} | ({"json_schema": inner} if kind == "json_schema" else {})
        if (choice := values.get("tool_choice")) is not None:
            body["tool_choice"] = _named(choice) if isinstance(choice, dict) else choice
        return body

    @classmethod
    def schema_of(cls, tool: Mapping[str, Any]) -> object:  # noqa: D102
        if tool.get("type") != "function":
            raise InputError(f"tools may be functions alone, since chat completions lack {tool.get('type')!r}")
        return tool.get("parameters") or {}

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
        yield self._event(f"response.{_NAMES[item.kind]}.delta", **_place(item), delta=text, **told)

    def closed(self, item: Item) -> Iterator[Sent]:  # noqa: D102
        told = {"name": item.name, "arguments": item.text} if item.kind == "call" else {"text": item.text}
        more: dict[str, Any] = {"logprobs": []} if item.kind == "text" else {}
        yield self._event(f"response.{_NAMES[item.kind]}.done", **_place(item), **told, **more)
        if item.kind != "call":
            yield self._event("response.content_part.done", **_place(item), part=_part(item))
        yield self._event("response.output_item.done", output_index=item.index, item=_written(item))

    def finish(self) -> Iterator[Sent]:  # noqa: D102
        answer = self.answer()
        yield self._event(f"response.{answer['status']}", response=answer)

    def answer(self) -> dict[str, Any]:  # noqa: D102
        return self._response("incomplete" if self.reason in _INCOMPLETE else "completed") | {"syncheck": self.own}

    def _event(self, kind: str, **values: Any) -> Sent:
        self._number += 1
        return kind, {"type": kind, "sequence_number": self._number - 1, **values}

    def _response(self, status: str) -> dict[str, Any]:
        read, written = self.count("prompt_tokens"), self.count("completion_tokens")
        cached = self.count("prompt_tokens_details", "cached_tokens")
        usage = {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": self.count("completion_tokens_details", "reasoning_tokens")},
            "total_tokens": read + written,
        }
        return {
            "id": f"resp_{self.key}",
            "object": "response",
            "created_at": self._created,
            "status": status,
            "incomplete_details": {"reason": _INCOMPLETE[self.reason]} if status == "incomplete" else None,
            "metadata": self.body.get("metadata") or {},
            "model": self.model,
            "output": [] if status == "in_progress" else [_written(item) for item in self.items],
            "parallel_tool_calls": self.body.get("parallel_tool_calls", True),
            "usage": usage if self.usage else None,
            **{name: self.body.get(name) for name in ("temperature", "top_p")},
            **dict.fromkeys(("error", "instructions")),
            "tool_choice": "auto",
            "tools": [],
        }


def _place(item: Item) -> dict[str, Any]:
    return {"item_id": item.id, "output_index": item.index} | ({} if item.kind == "call" else {"content_index": 0})


def _part(item: Item) -> dict[str, Any]:
    more: dict[str, Any] = {"annotations": [], "logprobs": []} if item.kind == "text" else {}
    return {"type": _NAMES[item.kind], "text": item.text, **more}


def _written(item: Item, *, is_open: bool = False) -> dict[str, Any]:
    values: dict[str, Any] = {"id": item.id, "status": "in_progress" if is_open else "completed"}
    content = [] if is_open else [_part(item)]
    if item.kind == "text":
        return {**values, "type": "message", "role": "assistant", "content": content}
    if item.kind == "reasoning":
        return {**values, "type": "reasoning", "summary": [], "content": content}
    return {**values, "type": "function_call", "call_id": item.id, "name": item.name, "arguments": item.text}


def _messages_of(given: object) -> list[dict[str, Any]]:
    """Translate the items of an input to messages; reasoning of earlier answers is left out."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    messages: list[dict[str, Any]] = []
    for number, item in enumerate(blocks_of(given, "input")):
        kind, place = item.get("type") or "message", f"input[{number}]"
        if kind == "message":
            parts = [_content(block, place) for block in blocks_of(item.get("content"), f"the content of {place}")]
            messages.append({"role": required(item, "role", place), "content": _joined(parts)})
        elif kind == "function_call":
            call = _function_call(*(required(item, name, place) for name in ("call_id", "name", "arguments")))
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


class Messages(Translation):
    """Writer of an answer as a message with blocks of content; a request is translated."""

    unlike = frozenset({"messages", "system", "stop_sequences", "tools", "tool_choice", "thinking", "metadata"})

    @classmethod
    def translated(cls, values: Mapping[str, Any]) -> dict[str, Any]:  # noqa: D102
        system = _text(values["system"], "system") if values.get("system") else None
        body: dict[str, Any] = {"messages": [] if system is None else [{"role": "system", "content": system}]}
        for number, message in enumerate(blocks_of(values.get("messages"), "messages")):
            body["messages"] += _divided(message, f"messages[{number}]")
        if values.get("stop_sequences"):
            body["stop"] = values["stop_sequences"]
        if user := _object_of(values, "metadata").get("user_id"):
            body["user"] = user
        if choice := _object_of(values, "tool_choice"):
            kinds: dict[Any, Any] = {"any": "required", "none": "none", "tool": _named(choice)}
            body["tool_choice"] = kinds.get(choice.get("type"), "auto")
            if choice.get("disable_parallel_tool_use"):
                body["parallel_tool_calls"] = False
        return body

    @classmethod
    def schema_of(cls, tool: Mapping[str, Any]) -> object:  # noqa: D102
        if tool.get("type", "custom") != "custom":
            raise InputError(f"tools must have an input_schema, since chat completions lack {tool['type']!r}")
        return tool.get("input_schema") or {}

    @staticmethod
    def error(error: ServiceError) -> dict[str, Any]:  # noqa: D102
        kind = _ERRORS.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": str(error), "code": error.code}}

    def begin(self) -> Iterator[Sent]:  # noqa: D102
        message = self.answer() | {"content": [], "stop_reason": None}
        del message["syncheck"]
        yield _event("message_start", message=message)

    def opened(self, item: Item) -> Iterator[Sent]:  # noqa: D102
        yield _event("content_block_start", index=item.index, content_block=_block(item))

    def added(self, item: Item, text: str) -> Iterator[Sent]:  # noqa: D102
        kinds = {
            "text": {"type": "text_delta", "text": text},
            "reasoning": {"type": "thinking_delta", "thinking": text},
            "call": {"type": "input_json_delta", "partial_json": json.dumps(_arguments_of(item))},
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
            "stop_reason": _STOPS.get(self.reason, "end_turn"),
            **dict.fromkeys(("stop_sequence", "stop_details", "container")),
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
    return {"type": "tool_use", "id": item.id, "name": item.name, "input": _arguments_of(item)}


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


def _divided(message: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    """Translate a message; results of tools become messages of their own, before the rest of it."""
    results, calls = [], []
    parts: list[dict[str, Any]] = []
    for block in blocks_of(message.get("content"), f"the content of {place}"):
        if block.get("type") == "tool_result":
            text = _text(block.get("content") or "", place)
            results.append({"role": "tool", "tool_call_id": required(block, "tool_use_id", place), "content": text})
        elif block.get("type") == "tool_use":
            arguments = json.dumps(block.get("input") or {})
            calls.append(_function_call(required(block, "id", place), required(block, "name", place), arguments))
        elif block.get("type") == "image":
            parts.append({"type": "image_url", "image_url": {"url": _image(block, place)}})
        elif (read := _text_of(block, place)) is not None:
            parts.append({"type": "text", "text": read})
    rest = {"role": required(message, "role", place), "content": _joined(parts) or None}
    return [*results, *([rest | ({"tool_calls": calls} if calls else {})] if parts or calls else [])]


def _image(block: Mapping[str, Any], place: str) -> str:
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") not in ("base64", "url"):
        raise InputError(f"{place} must have images as base64 or by their url")
    if source["type"] == "url":
        return required(source, "url", place)
    return f"data:{required(source, 'media_type', place)};base64,{required(source, 'data', place)}"


def _joined(parts: list[dict[str, Any]]) -> Any:
    """Join the parts of a message into its text, if all are text."""
    return parts if any(part["type"] != "text" for part in parts) else "\n".join(part["text"] for part in parts)


def _named(choice: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": choice.get("name")}}


def _object_of(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = values.get(name)
    if not isinstance(value, dict | None):
        raise InputError(f"{name} must be an object; found {type(value).__name__}")
    return value or {}


def _function_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _arguments_of(item: Item) -> Any:  # noqa: ANN401 - whatever the model wrote
    """Read the arguments of a call; a text that is no JSON object is kept under ``input``."""
    try:
        values = json.loads(item.text or "{}")
    except ValueError:
        values = None
    return values if isinstance(values, dict) else {"input": item.text}
