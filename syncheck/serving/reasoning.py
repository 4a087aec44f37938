"""Reasoning of a model in a message: fields that hold it, blocks of its content, and a tag that opens it."""

from __future__ import annotations

from typing import Any, Literal

import regex

from syncheck.text.reasoning import NAMES

Treatment = Literal["pass", "drop"]
"""What becomes of reasoning, which is never checked: it passes beside the answer, or is left out."""

FIELDS = frozenset({"reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks"})
"""Fields of a message in which servers send reasoning."""
FIELD = "reasoning_content"
"""Field in which reasoning passes that was part of the content."""
_BLOCKS = frozenset({"thinking", "reasoning"})
"""Types of the blocks of a content that hold reasoning."""

_OPENED = regex.compile(rf"(?:<{NAMES}>|\[think\]|<\|begin_of_thought\|>)\s*\Z", regex.IGNORECASE)


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
