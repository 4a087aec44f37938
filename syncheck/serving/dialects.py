"""Dialects of the server: chat completions, and the base of others, which are translated to them and from them."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from syncheck.base.errors import InputError
from syncheck.serving.chat import ServiceError, refusing

Sent = tuple[str | None, Mapping[str, Any] | str]  # name of a server-sent event, and its data


class ChatCompletions:
    """Writer of an answer in the form in which all sources give it."""

    error_event: ClassVar[str | None] = None

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body

    @classmethod
    def chat(cls, values: object) -> object:
        """Translate a request to one for chat completions; ServiceError if that is not possible."""
        return values

    @staticmethod
    def error(error: ServiceError) -> dict[str, Any]:
        """Write the body of an error."""
        return error.to_dict()

    def chunk(self, chunk: Mapping[str, Any]) -> Iterable[Sent]:
        """Translate a chunk of an answer to events."""
        return [(None, chunk)]

    def end(self) -> Iterable[Sent]:
        """Make the last events of an answer that is complete."""
        return [(None, "[DONE]")]

    def whole(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """Translate a whole answer."""
        return answer


@dataclass
class Item:
    """A part of an answer: text, reasoning, or a call of a tool; ``told`` are the events of the text last added."""

    kind: Literal["text", "reasoning", "call"]
    index: int
    id: str
    name: str = ""
    text: str = ""
    told: list[Mapping[str, Any]] = field(default_factory=list)


class Translation(ChatCompletions, ABC):
    """Base of the other dialects: it divides the first choice of an answer into items, the calls of tools at the end.

    A subclass translates the ``unlike`` fields of a request, and writes the events of each item, and the whole answer.
    """

    error_event = "error"
    unlike: ClassVar[frozenset[str]]
    """Fields of a request that chat completions lack, or have in another form."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(body)
        self.items: list[Item] = []
        self.reason = "stop"
        self.usage: Mapping[str, Any] = {}
        self.own: dict[str, Any] = {}
        self.model = ""
        self.key = uuid.uuid4().hex
        self._open: Item | None = None
        self._told: list[Mapping[str, Any]] = []
        self._calls: dict[int, Item] = {}
        self._unchecked: set[str] = set()

    @classmethod
    @refusing()
    def chat(cls, values: object) -> object:  # noqa: D102
        if not isinstance(values, dict):
            raise InputError(f"expected a JSON object; found {type(values).__name__}")
        body = {name: value for name, value in values.items() if name not in cls.unlike} | cls.translated(values)
        if values.get("tools"):
            body["tools"] = [cls._tool(tool) for tool in blocks_of(values["tools"], "tools")]
        if values.get("stream"):
            body["stream_options"] = {"include_usage": True}
        return body

    @classmethod
    def _tool(cls, tool: Mapping[str, Any]) -> dict[str, Any]:
        schema = cls.schema_of(tool)
        more = {key: tool[key] for key in ("description", "strict") if tool.get(key) is not None}
        named = {"name": required(tool, "name", "a tool"), "parameters": schema, **more}
        return {"type": "function", "function": named}

    @classmethod
    @abstractmethod
    def translated(cls, values: Mapping[str, Any]) -> dict[str, Any]: ...  # noqa: D102 - the ``unlike`` fields
    @classmethod
    @abstractmethod
    def schema_of(cls, tool: Mapping[str, Any]) -> object: ...  # noqa: D102 - of its arguments

    def chunk(self, chunk: Mapping[str, Any]) -> Iterator[Sent]:  # noqa: D102
        if not self.model:
            self.model = chunk.get("model") or self.body.get("model") or "model"
            yield from self.begin()
        self.usage = chunk.get("usage") or self.usage
        self._unchecked |= set(chunk.get("syncheck", {}).get("unchecked", ()))
        for choice in chunk["choices"]:
            delta = choice["delta"]
            yield from self._delta(delta, choice["syncheck"].get("events", []))
            if choice.get("finish_reason"):
                self.reason, self.own = choice["finish_reason"], delta.get("syncheck", {})

    def end(self) -> Iterator[Sent]:  # noqa: D102
        yield from self._close()
        for item in self._calls.values():
            text, item.text, item.index = item.text, "", len(self.items)
            yield from self._add(item, text)
            yield from self._close()
        if unchecked := self._unchecked.union(self.own.get("unchecked", ())):
            self.own["unchecked"] = sorted(unchecked)
        yield from self.finish()

    def whole(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: D102
        choices = [each | {"delta": each["message"] | {"syncheck": each["syncheck"]}} for each in answer["choices"]]
        for _ in (*self.chunk({**answer, "choices": choices}), *self.end()):
            pass
        return self.answer()

    def count(self, *names: str) -> int:
        """Read a number of tokens from the usage by the names on the way to it; 0 if the upstream does not tell it."""
        value: Any = self.usage
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, int) else 0

    def _delta(self, delta: Mapping[str, Any], told: Sequence[Mapping[str, Any]]) -> Iterator[Sent]:
        for name in ("reasoning_content", "reasoning", "thinking"):
            if isinstance(thought := delta.get(name), str) and thought:
                yield from self._add(self._item("reasoning"), thought)
                break
        self._told += told
        text = delta.get("content") or ""
        if text or (self._told and self._open is not None and self._open.kind == "text"):
            yield from self._add(self._item("text"), text)
        for call in delta.get("tool_calls") or ():
            called = call.get("function") or call.get("custom") or {}
            item = self._calls.setdefault(call.get("index", len(self._calls)), Item("call", 0, call.get("id") or ""))
            item.name = item.name or called.get("name") or ""
            item.text += called.get("arguments") or called.get("input") or ""

    def _item(self, kind: Literal["text", "reasoning"]) -> Item:
        is_open = self._open is not None and self._open.kind == kind
        return self.items[-1] if is_open else Item(kind, len(self.items), f"{kind}_{self.key}_{len(self.items)}")

    def _add(self, item: Item, text: str) -> Iterator[Sent]:
        if item is not self._open:
            yield from self._close()
            self.items.append(item)
            self._open = item
            yield from self.opened(item)
        item.text += text
        item.told, self._told = (self._told, []) if item.kind == "text" else ([], self._told)
        yield from self.added(item, text)

    def _close(self) -> Iterator[Sent]:
        item, self._open = self._open, None
        if item is not None:
            yield from self.closed(item)

    @abstractmethod
    def begin(self) -> Iterable[Sent]: ...  # noqa: D102 - events before all items
    @abstractmethod
    def opened(self, item: Item) -> Iterable[Sent]: ...  # noqa: D102 - events of an item that begins, still empty
    @abstractmethod
    def added(self, item: Item, text: str) -> Iterable[Sent]: ...  # noqa: D102 - events of text that an item has got
    @abstractmethod
    def closed(self, item: Item) -> Iterable[Sent]: ...  # noqa: D102 - events of an item that is complete
    @abstractmethod
    def finish(self) -> Iterable[Sent]: ...  # noqa: D102 - events after all items

    @abstractmethod
    def answer(self) -> dict[str, Any]:
        """Write the whole answer."""


def blocks_of(content: object, place: str) -> list[Mapping[str, Any]]:
    """List the blocks of a content, which may be a string; InputError if it is neither."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise InputError(f"{place} must be a string or a list of blocks; found {type(content).__name__}")
    return blocks


def required(values: Mapping[str, Any], name: str, place: str) -> str:
    """Read a field that must be a string."""
    value = values.get(name)
    if not isinstance(value, str):
        raise InputError(f"{place} must have {name}, a string; found {type(value).__name__}")
    return value
