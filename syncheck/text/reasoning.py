"""Reasoning of a model between tags in its text, told apart from its answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import regex

NAMES = "(?:[a-z]{1,8}:)?(?:think|thinking|thoughts?|reasoning)"
_TAG = regex.compile(
    rf"(?P<opens><{NAMES}>|\[think\]|<\|begin_of_thought\|>)|</{NAMES}>|\[/think\]|<\|end_of_thought\|>",
    regex.IGNORECASE,
)
_QUOTES = frozenset("`'\"\u2018\u201c")
"""Characters before an opening tag that is only mentioned."""

Part = tuple[Literal["text", "reasoning", "not_text"], str, int]
"""Text of the answer; reasoning; or all text so far, which turns out to be reasoning. Text has the character at which
it begins, ``not_text`` that of the tag that shows it."""


class Reasoning:
    """Reader of the content of one answer, which divides it into the answer and reasoning between tags.

    The content may be cut anywhere. Reasoning is opened by a tag or, with ``is_open``, by the prompt; if nothing closes
    it, all of the content is reasoning. A closing tag that nothing opened makes reasoning of the text before it. An
    opening tag after text that nothing closes is text, and so is a tag in quotation marks.
    """

    def __init__(self, *, is_open: bool = False) -> None:
        self._at = 0  # characters before the rest
        self._rest = ""  # the beginning of a tag, perhaps
        self._last = ""
        self._is_inside = self._has_reasoned = is_open
        self._text: list[str] = []
        self._space = ""  # before all text
        self._held: list[str] | None = None  # from a tag after text on, until that is closed
        self._held_at = 0

    def read(self, content: str, *, is_last: bool) -> list[Part]:
        """Take content, and list the parts that are known by now; ``is_last`` ends the answer."""
        return [part for part in self._parts(content, is_last) if part[1]]

    def _parts(self, content: str, is_last: bool) -> Iterator[Part]:
        rest, at, before = self._rest + content, 0, self._at
        while (tag := _TAG.search(rest, at, partial=not is_last)) is not None:
            yield from self._passed(rest[at : tag.start()], before + at)
            at = tag.start()
            if tag.partial:
                break
            yield from self._tagged(tag[0], before + at, opens=tag["opens"] is not None)
            at = tag.end()
        else:
            yield from self._passed(rest[at:], before + at)
            at = len(rest)
        self._rest, self._at = rest[at:], before + at
        if is_last:
            held, self._held = self._held or [], None
            yield from self._passed("".join(held), self._held_at)
            if not self._has_reasoned:
                yield "text", self._space, 0

    def _passed(self, text: str, at: int) -> Iterator[Part]:
        self._last = text[-1:] or self._last
        if self._is_inside:
            yield "reasoning", text, at
        elif self._held is not None:
            self._held.append(text)
        elif text:
            if not self._text:
                end, self._space = at + len(text), self._space + text
                text = self._space.lstrip() if self._has_reasoned else self._space
                if not text.strip():
                    return
                at, self._space = end - len(text), ""
            self._text.append(text)
            yield "text", text, at

    def _tagged(self, tag: str, at: int, *, opens: bool) -> Iterator[Part]:
        is_open = self._is_inside or self._held is not None
        if opens:
            if is_open or self._last in _QUOTES:
                yield from self._passed(tag, at)
            elif self._text:
                self._held, self._held_at = [tag], at
            else:
                self._is_inside = self._has_reasoned = True
        elif is_open:
            held, self._held, self._is_inside = self._held or [""], None, False
            yield "reasoning", "".join(held[1:]), at
        elif self._last == "`":
            yield from self._passed(tag, at)
        else:
            text, self._text, self._space, self._has_reasoned = "".join(self._text), [], "", True
            yield "not_text", text, at


def answer_parts(content: str) -> list[tuple[int, int]]:
    """List the characters, half-open, of a whole content that belong to the answer: not to reasoning or its tags."""
    if _TAG.search(content) is None:
        return [(0, len(content))]
    parts: list[tuple[int, int]] = []
    for kind, text, at in Reasoning().read(content, is_last=True):
        if kind == "not_text":
            parts.clear()
        elif kind == "text":
            parts.append((at, at + len(text)))
    return parts


def answer_start(content: str) -> int:
    """Find the character of a whole content at which the answer begins, after reasoning; its end if none does."""
    return next((start for start, _ in answer_parts(content)), len(content))


def reasoning_length(content: str, starts: Iterable[int]) -> int:
    """Count the characters of reasoning before an answer whose sentences begin at ``starts``; 0 if one is of it."""
    begin = answer_start(content)
    return 0 if any(start < begin for start in starts) else begin
