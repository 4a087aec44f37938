"""Reasoning of a model, told apart from its answer: fields of a message, blocks of its content, tags in its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import regex

Treatment = Literal["pass", "drop"]
"""What becomes of reasoning, which is never checked: it passes beside the answer, or is left out."""

FIELDS = frozenset({"reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks"})
"""Fields of a message in which servers send reasoning."""
FIELD = "reasoning_content"
"""Field in which reasoning passes that was part of the content."""
_BLOCKS = frozenset({"thinking", "reasoning"})
"""Types of the blocks of a content that hold reasoning."""

_NAMES = "(?:[a-z]{1,8}:)?(?:think|thinking|thoughts?|reasoning)"
_TAG = regex.compile(
    rf"(?P<opens><{_NAMES}>|\[think\]|<\|begin_of_thought\|>)|</{_NAMES}>|\[/think\]|<\|end_of_thought\|>",
    regex.IGNORECASE,
)
_OPENED = regex.compile(rf"(?:<{_NAMES}>|\[think\]|<\|begin_of_thought\|>)\s*\Z", regex.IGNORECASE)
_QUOTES = frozenset("`'\"\u2018\u201c")
"""Characters before an opening tag that is only mentioned."""

Part = tuple[Literal["text", "reasoning", "not_text"], str]
"""Text of the answer; reasoning; or all text so far, which turns out to be reasoning."""


class Reasoning:
    """Reader of the content of one answer, which divides it into the answer and reasoning between tags.

    The content may be cut anywhere. Reasoning is opened by a tag or, with ``is_open``, by the prompt; if nothing closes
    it, all of the content is reasoning. A closing tag that nothing opened makes reasoning of the text before it. An
    opening tag after text that nothing closes is text, and so is a tag in quotation marks.
    """

    def __init__(self, *, is_open: bool = False) -> None:
        self._rest = ""  # the beginning of a tag, perhaps
        self._last = ""
        self._is_inside = self._has_reasoned = is_open
        self._text: list[str] = []
        self._space = ""  # before all text
        self._held: list[str] | None = None  # from a tag after text on, until that is closed

    def read(self, content: str, *, is_last: bool) -> list[Part]:
        """Take content, and list the parts that are known by now; ``is_last`` ends the answer."""
        return [part for part in self._parts(content, is_last) if part[1]]

    def _parts(self, content: str, is_last: bool) -> Iterator[Part]:
        rest, at = self._rest + content, 0
        while (tag := _TAG.search(rest, at, partial=not is_last)) is not None:
            yield from self._passed(rest[at : tag.start()])
            at = tag.start()
            if tag.partial:
                break
            yield from self._tagged(tag[0], opens=tag["opens"] is not None)
            at = tag.end()
        else:
            yield from self._passed(rest[at:])
            at = len(rest)
        self._rest = rest[at:]
        if is_last:
            held, self._held = self._held or [], None
            yield from self._passed("".join(held))
            if not self._has_reasoned:
                yield "text", self._space

    def _passed(self, text: str) -> Iterator[Part]:
        self._last = text[-1:] or self._last
        if self._is_inside:
            yield "reasoning", text
        elif self._held is not None:
            self._held.append(text)
        else:
            if not self._text:
                self._space += text
                text = self._space.lstrip()
                if not text:
                    return
                text, self._space = text if self._has_reasoned else self._space, ""
            self._text.append(text)
            yield "text", text

    def _tagged(self, tag: str, *, opens: bool) -> Iterator[Part]:
        is_open = self._is_inside or self._held is not None
        if opens:
            if is_open or self._last in _QUOTES:
                yield from self._passed(tag)
            elif self._text:
                self._held = [tag]
            else:
                self._is_inside = self._has_reasoned = True
        elif is_open:
            held, self._held, self._is_inside = self._held or [""], None, False
            yield "reasoning", "".join(held[1:])
        elif self._last == "`":
            yield from self._passed(tag)
        else:
            text, self._text, self._space, self._has_reasoned = "".join(self._text), [], "", True
            yield "not_text", text


def without_reasoning(content: str) -> str:
    """Take the reasoning between tags out of a whole content."""
    text = ""
    for kind, part in Reasoning().read(content, is_last=True):
        text = "" if kind == "not_text" else text + part * (kind == "text")
    return text


def is_opened(message: object) -> bool:
    """Tell whether a message, the last of a request, ends with a tag that opens reasoning."""
    content = message.get("content") if isinstance(message, dict) and message.get("role") == "assistant" else None
    return isinstance(content, str) and _OPENED.search(content) is not None


def divided(content: list[Any]) -> tuple[str, str, bool]:
    """Divide the blocks of a content into its text and its reasoning; True if it has blocks of other kinds, too.

    A block that has no type raises ValueError.
    """
    text, reasoning, has_others = "", "", False
    for block in content:
        if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str):
            raise ValueError("a block of the content has no type")
        if kind in _BLOCKS:
            reasoning += _text_of(block.get(kind) or block.get("text") or "")
        elif kind in ("text", "output_text") and isinstance(block.get("text"), str):
            text += block["text"]
        else:
            has_others = True
    return text, reasoning, has_others


def _text_of(value: object) -> str:
    """Read the text of a block of reasoning, which may have blocks of its own."""
    if isinstance(value, list):
        return "".join(_text_of(each.get("text")) for each in value if isinstance(each, dict))
    return value if isinstance(value, str) else ""
