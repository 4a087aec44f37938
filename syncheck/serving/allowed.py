"""Fields of an upstream's answer that may pass beside the text that is checked; all others are withheld or marked."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import regex

from syncheck.serving.chat import ServiceError
from syncheck.text.markup import NAMES

Withheld = set[str]  # names of what is not checked
Fields = Mapping[str, Callable[[Any], bool]]  # names of fields that may pass, with the test of their values
Treatment = Literal["pass", "drop"]
"""What becomes of reasoning, which is never checked: it passes beside the answer, or is left out."""

REASONINGS = frozenset({"reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks"})
"""Fields of a message in which servers send reasoning."""
REASONING = "reasoning_content"  # for what was part of the content
_FIELD = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
_NAME = re.compile(r"[\w.:/@+-]{1,128}", re.ASCII)
_MOST_COUNTS, _DEEPEST_COUNTS = 64, 3
_OPENED = regex.compile(rf"(?:<{NAMES}>|\[think\]|<\|begin_of_thought\|>)\s*\Z", regex.IGNORECASE)


def is_opened(message: object) -> bool:
    """Tell whether a message, the last of a request, ends with a tag that opens reasoning."""
    content = message.get("content") if isinstance(message, dict) and message.get("role") == "assistant" else None
    return isinstance(content, str) and _OPENED.search(content) is not None


def divided_content(content: list[Any]) -> tuple[str, str, bool]:
    """Divide the blocks of a content into its text and its reasoning; True if it has blocks of other kinds, too."""
    text, reasoning, has_others = "", "", False
    for block in content:
        if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str):
            raise invalid("a block of the content has no type")
        if kind in ("thinking", "reasoning"):
            reasoning += _reasoning_of(block.get(kind) or block.get("text") or "")
        elif kind in ("text", "output_text") and isinstance(block.get("text"), str):
            text += block["text"]
        else:
            has_others = True
    return text, reasoning, has_others


def _reasoning_of(value: object) -> str:
    """Read the text of a block of reasoning, which may have blocks of its own."""
    if isinstance(value, list):
        return "".join(_reasoning_of(each.get("text")) for each in value if isinstance(each, dict))
    return value if isinstance(value, str) else ""


def _is_name(value: object) -> bool:
    """Tell whether a value is one word without white space, such as an identifier or the name of a model."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_number(value: object) -> bool:
    """Tell whether a value is a number of ordinary size."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63


def is_counts(value: object, depth: int = _DEEPEST_COUNTS) -> bool:
    """Tell whether a value holds only numbers by name, such as those of tokens; they may be grouped."""
    if not isinstance(value, dict):
        return value is None or isinstance(value, bool) or _is_number(value)
    inside = (_FIELD.fullmatch(name) and is_counts(each, depth - 1) for name, each in value.items())
    return depth > 0 and len(value) <= _MOST_COUNTS and all(inside)


_ANSWER: Fields = {
    **dict.fromkeys(("id", "object", "model", "system_fingerprint", "service_tier"), _is_name),
    **dict.fromkeys(("usage", "timings"), is_counts),
    "created": _is_number,
    "choices": lambda value: True,
}
_CHOICE: Fields = {"index": _is_number, "finish_reason": _is_name}
_MESSAGE: Fields = {"role": _is_name, **dict.fromkeys(("content", "tool_calls", "function_call"), lambda value: True)}
_CALLED = ("function", "custom")
_CALL: Fields = {"index": _is_number, "id": _is_name, "type": _is_name, **dict.fromkeys(_CALLED, lambda value: True)}
_FUNCTION: Fields = {"name": _is_name, **dict.fromkeys(("arguments", "input"), lambda value: isinstance(value, str))}


class Allowed:
    """The fields of answers to one request that may pass, such as calls of the tools in its ``body``.

    What is not checked is named, and passes if ``is_open``; reasoning passes if ``has_reasoning``.
    """

    def __init__(self, body: Mapping[str, Any], *, is_open: bool, has_reasoning: bool) -> None:
        self.is_open = is_open
        self.has_reasoning = has_reasoning
        self._tools = frozenset(_tools(body))

    def answer(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], Withheld]:
        """Keep what may pass of an answer or a chunk, and name what is not checked."""
        passed, withheld = self._passed(values, _ANSWER)
        if passed.pop("syncheck", None) is not None:  # the field for our own results
            withheld.add("syncheck")
        return passed, withheld

    def choice(self, values: Mapping[str, Any], *, part: str) -> tuple[dict[str, Any], Withheld]:
        """Do the same for a choice, whose ``part`` (its message or delta) and log-probabilities the caller keeps."""
        if not isinstance(values.get("finish_reason"), str | None):
            raise invalid(f"a finish_reason is no string; found {type(values['finish_reason']).__name__}")
        passed, withheld = self._passed({k: v for k, v in values.items() if k not in (part, "logprobs")}, _CHOICE)
        if "finish_reason" in withheld:
            passed["finish_reason"] = "stop"
        return passed, withheld

    def message(self, values: object) -> tuple[dict[str, Any], str | None, Withheld]:
        """Do the same for a message or a delta, whose text is returned apart from it."""
        if not isinstance(values, dict | None):
            raise invalid(f"a message or delta is no object; found {type(values).__name__}")
        values = values or {}
        reasoning = {k: v for k, v in values.items() if k in REASONINGS and v not in (None, "", [])}
        passed, withheld = self._passed({k: v for k, v in values.items() if k not in reasoning}, _MESSAGE)
        text = passed.pop("content", None)
        if isinstance(text, list):
            text, thought, has_others = divided_content(text)
            withheld |= {"content"} if has_others else set()
            reasoning |= {REASONING: thought} if thought else {}
        if not isinstance(text, str | None):
            raise invalid(f"the content is no string; found {type(text).__name__}")
        withheld |= reasoning.keys()
        passed |= reasoning if self.has_reasoning else {}
        for name, take in (("tool_calls", self._calls), ("function_call", self._function)):
            if passed.get(name):
                withheld.add(name)
                if not self.is_open and (taken := take(passed[name])) is not None:
                    passed[name] = taken
                elif not self.is_open:
                    del passed[name]
        return passed, text, withheld

    def _passed(self, values: Mapping[str, Any], fields: Fields) -> tuple[dict[str, Any], Withheld]:
        passed, withheld = {}, set()
        for name, value in values.items():
            is_known = name in fields and fields[name](value)
            is_empty = value is None or isinstance(value, bool) or value in ("", [], {})
            is_named = _FIELD.fullmatch(name) is not None
            passes = is_known or (is_empty and is_named)
            if passes or self.is_open:
                passed[name] = value
            if not passes:
                withheld.add(name if is_named else "other")
        return passed, withheld

    def _calls(self, values: object) -> list[dict[str, Any]] | None:
        """Keep calls of the request's tools; None if they are in another form, or of other tools."""
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            return None
        calls = [self._passed(value, _CALL)[0] for value in values]
        for call in calls:
            called = {name: self._function(call[name]) for name in _CALLED if call.get(name) is not None}
            if None in called.values():
                return None
            call |= called
        return calls

    def _function(self, values: object) -> dict[str, Any] | None:
        if not self._tools or not isinstance(values, dict):
            return None
        function, _ = self._passed(values, _FUNCTION)
        return function if (function.get("name") or None) in {*self._tools, None} else None


class Logprobs:
    """Log-probabilities of the tokens of one choice; a token passes, without alternatives, where the text has it."""

    def __init__(self) -> None:
        self.withheld: Withheld = set()
        self._text = bytearray()
        self._placed = self._shown = 0
        self._waiting: deque[tuple[bytes, dict[str, Any]]] = deque()
        self._ready: deque[tuple[int, dict[str, Any]]] = deque()

    def add(self, logprobs: object, text: str, *, is_beside: bool = False) -> None:
        """Take the next text and tokens; with ``is_beside``, the tokens may write text that is withheld."""
        self._text += _bytes(text)
        entries = list(self._entries(logprobs))
        if is_beside and not text:
            self.withheld |= {"logprobs"} if entries else set()
            return
        self._waiting.extend(entries)
        while self._waiting:
            written, entry = self._waiting[0]
            there = bytes(self._text[self._placed : self._placed + len(written)])
            if there != written and written.startswith(there):
                return  # the text that it writes is not there yet
            self._waiting.popleft()
            if there == written:
                self._placed += len(written)
                self._ready.append((self._placed, entry))
            else:
                self.withheld.add("logprobs")

    def whole(self, logprobs: object, text: str) -> None:
        """Take a whole text, which ends what the tokens write, save for those that end it."""
        entries, wanted = list(self._entries(logprobs)), _bytes(text)
        written = b"".join(each for each, _ in entries)
        behind = written[::-1].find(wanted[::-1])  # find is linear, rfind is not
        first = len(written) - behind - len(wanted)
        if behind < 0:
            self.withheld |= {"logprobs"} if entries else set()
            return
        end = 0
        for each, entry in entries:
            start, end = end, end + len(each)
            if first <= start and end <= first + len(wanted):
                self._ready.append((end - first, entry))
            else:
                self.withheld.add("logprobs")

    def due(self, shown: str) -> dict[str, Any] | None:
        """Take those of the next part of the text, which is shown; None if there are none."""
        content = []
        self._shown += len(_bytes(shown))
        while self._ready and self._ready[0][0] <= self._shown:
            content.append(self._ready.popleft()[1])
        return {"content": content} if content else None

    def close(self) -> Withheld:
        """End the answer, and name what was withheld; tokens that still wait for text do not pass."""
        return self.withheld | ({"logprobs"} if self._waiting or self._ready else set())

    def _entries(self, logprobs: object) -> Iterator[tuple[bytes, dict[str, Any]]]:
        told = logprobs if isinstance(logprobs, dict) else {"": logprobs}
        if any(value for name, value in told.items() if name != "content"):
            self.withheld.add("logprobs")
        content = told.get("content")
        for entry in content if isinstance(content, list) else ():
            written = _written(entry)
            if written is None:
                self.withheld.add("logprobs")
                continue
            alternatives = entry.get("top_logprobs")
            others = alternatives if isinstance(alternatives, list) else []
            own = [_entry(other, written) for other in others if _written(other) == written]
            if len(own) != len(others):
                self.withheld.add("top_logprobs")
            yield written, {**_entry(entry, written), "top_logprobs": own}


def invalid(why: str) -> ServiceError:
    """Make the error of an answer that is in no form of this interface."""
    return ServiceError(502, "upstream_invalid", f"the upstream's answer is none of this interface: {why}")


def _tools(body: Mapping[str, Any]) -> Iterator[str]:
    for name in ("tools", "functions"):
        given = body.get(name)
        for tool in given if isinstance(given, list) else ():
            function = tool.get(str(tool.get("type")), tool) if isinstance(tool, dict) else None
            if isinstance(function, dict) and isinstance(function.get("name"), str):
                yield function["name"]


def _written(entry: object) -> bytes | None:
    """Read what a token writes; None if its entry does not say."""
    if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
        return None
    given = entry.get("bytes")
    if given is None:
        return _bytes(entry["token"])
    if not isinstance(given, list) or not all(type(each) is int and 0 <= each < 256 for each in given):
        return None
    return bytes(given)


def _entry(entry: Mapping[str, Any], written: bytes) -> dict[str, Any]:
    value = entry.get("logprob")
    return {
        "token": written.decode(errors="replace"),
        "logprob": value if _is_number(value) else None,
        "bytes": None if entry.get("bytes") is None else list(written),
    }


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
