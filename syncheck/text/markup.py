"""Markup of an answer: citation marks, by which it names its sources, and tags, between which a model reasons."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import regex

from syncheck.base.files import asset_expressions

_ENGLISH = asset_expressions("english/citations.txt", end="")
_MAY_BE, _CITES_ALONE, _UNSEEN, _LISTED = (
    re.compile(_ENGLISH[name]) for name in ("may be", "cites alone", "unseen", "listed")
)
_LAST = frozenset("\u3011\u2020\u2021\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_OPENERS = _LAST - {"\u3011"} | frozenset("[(\u3010<hHsSrR")
_LONGEST = 520
_SUPERSCRIPTS = str.maketrans("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789")


@dataclass(frozen=True, slots=True)
class Mark:
    """A citation mark: its characters in a text, half-open, and its sources, each with all names that it has there."""

    start: int
    end: int
    sources: tuple[tuple[str, ...], ...]
    kept: str = ""  # what remains of it in the claim: the words of a link that is part of the sentence
    defines: str = ""
    """The mark whose source it names, if it is a line of a list of sources or a footnote; no citation then."""


@cache
def _pattern(name: str, *, final: bool = False) -> regex.Pattern[str]:
    """Compile a pattern of the packaged list; ``final`` says that the end of the text is known."""
    known = asset_expressions("english/citations.txt", end=r"|\Z") if final else _ENGLISH
    return regex.compile(known[name])


def end_of_marks(text: str, at: int, *, seen: int, final: bool) -> int | None:
    """Find where the marks end that follow a full stop, whose sentence they belong to; ``at`` if there are none.

    None if that depends on text after the first ``seen`` characters, which may come unless ``final``. Marks are in the
    same line, and what follows them does not begin with a small letter.
    """
    end = at
    while True:
        start = end
        while start < seen and text[start] in " \t\u00a0":
            start += 1
        if start == seen:
            return end if final else None
        is_open = text[start] in _OPENERS
        match = _pattern("run", final=final).match(text, start, seen, partial=not final) if is_open else None
        if match is None:
            return end
        if match.partial:
            return None
        end = match.end()


def ends_with_marks(text: str, start: int, stop: int, after: int) -> bool:
    """Tell whether a sentence ends in marks that hide its full stop: they adjoin it, or begin with a small letter."""
    if stop == after or text[after].islower():
        return False
    if text[stop - 1] not in _LAST and text.rfind("://", max(start, stop - _LONGEST), stop) < 0:
        return False
    return _UNSEEN.search(text[max(start, stop - _LONGEST) : stop]) is not None


def marks_in(text: str, *, names: Collection[str] = (), pattern: re.Pattern[str] | None = None) -> tuple[Mark, ...]:
    """Find the citation marks of a sentence, in order and without overlaps.

    ``names`` of sources are marks too, in brackets. ``pattern`` is that of the marks, instead of the known forms; its
    first group, if it has one, holds the names of sources, with commas or semicolons between them.
    """
    if pattern is not None:
        matches = ((m, m[1] if pattern.groups else m[0]) for m in pattern.finditer(text) if m[0])
        return tuple(Mark(m.start(), m.end(), tuple(_listed(inner or ""))) for m, inner in matches)
    may_be = _MAY_BE.search(text) is not None
    if not may_be and not names:
        return ()
    known = {name.casefold() for name in names}
    marks = list(_defined(text, known))
    inside = (_read(text, m.start(), m.end(), known) for m in _pattern("mark").finditer(text))
    for kind in (inside, _named(text, known)):
        taken = [(mark.start, mark.end) for mark in marks]
        marks += (mark for mark in kind if may_be and all(mark.end <= a or b <= mark.start for a, b in taken))
    return tuple(sorted(marks, key=lambda mark: mark.start))


def without_marks(text: str, marks: Iterable[Mark]) -> str:
    """Leave marks out of a sentence, with the white space before them; one of marks alone is returned as it is."""
    rest, end = "", 0
    for mark in marks:
        before = text[end : mark.start]
        rest += before + mark.kept if mark.kept else before.rstrip(" \t\u00a0")
        end = mark.end + (rest.endswith((".", "!", "?")) and text[mark.end : mark.end + 1] == ".")
    rest = (rest + text[end:]).strip()
    return rest if re.search(r"[^\W_]", rest) else text


def _read(text: str, start: int, end: int, known: Collection[str]) -> Mark:
    marker = text[start:end]
    links = regex.findall(r"\[([^\[\]]+)\]\(({target})|({url})".format_map(_ENGLISH), marker)
    if links:
        sources = tuple((target, label) if target else (url,) for label, target, url in links)
        label = links[0][0]
        is_part = marker[0] == "[" and not _CITES_ALONE.fullmatch(label) and label.casefold() not in known
        is_part = is_part and not re.search(r"[.!?][\"'\u2019\u201d)\]]*\s*\Z", text[:start])
        return Mark(start, end, sources, label if is_part else "")
    inner = _pattern("opening").sub("", marker)
    if marker[0] == "\u3010":
        return Mark(start, end, (tuple(inner.split("\u2020")),))
    if regex.fullmatch("{lead}?{noun}?{numbers}".format_map(_ENGLISH), inner):
        return Mark(start, end, tuple((str(number),) for number in _numbers(inner)))
    if _pattern("sign").fullmatch(marker):
        return Mark(start, end, ((marker.translate(_SUPERSCRIPTS),),))
    return Mark(start, end, tuple(_listed(inner, between=";")))


def _defined(text: str, known: Collection[str]) -> Iterator[Mark]:
    """Find lines that say which source a mark names, "[1] https://example.org", and what begins a footnote."""
    for match in _LISTED.finditer(text):
        label, rest = match[1] or match[3], match[4]
        link = _pattern("linked").fullmatch(rest) or (_pattern("linked").search(rest) if match[2] else None)
        if link is not None or rest.casefold() in known:
            named = Mark(0, 0, ((rest,),)) if link is None else _read(link[0], 0, len(link[0]), known)
            is_whole = link is None or link[0] == rest
            end, kept = (match.end(), named.kept) if is_whole else (match.start(4), "")
            number = label.lstrip("^")
            yield Mark(match.start(), end, named.sources[:1], kept, number if number.isdecimal() else label)
        elif label[0] == "^" and match[2]:
            yield Mark(match.start(), match.start(4), ())


def _numbers(inner: str) -> Iterator[int]:
    """Yield the numbers of a mark, with those between the ends of a range."""
    for first, last in re.findall(r"(\d+)(?:\s*[\u2013-]\s*\D?(\d+))?", inner):
        yield from range(int(first), max(int(first), int(last or first)) + 1)


def _named(text: str, known: Collection[str]) -> Iterator[Mark]:
    """Find known names in brackets, and after "Source:" at the end of a sentence."""
    for match in _pattern("named").finditer(text):
        whole, end = (match[2] or match[1]).strip(), match.end() if match[2] is None else match.end(2)
        sources = tuple(_listed(whole))
        if whole.casefold() in known:
            yield Mark(match.start(), end, ((whole,),))
        elif sources and all(name.casefold() in known for source in sources for name in source):
            yield Mark(match.start(), end, sources)


def _listed(inner: str, *, between: str = ",;") -> Iterator[tuple[str, ...]]:
    yield from ((name.strip(),) for name in re.split(f"[{between}]", inner) if name.strip())


NAMES = "(?:[a-z]{1,8}:)?(?:think|thinking|thoughts?|reasoning)"
_TAG = regex.compile(
    rf"(?P<opens><{NAMES}>|\[think\]|<\|begin_of_thought\|>)|</{NAMES}>|\[/think\]|<\|end_of_thought\|>",
    regex.IGNORECASE,
)
_QUOTES = frozenset("`'\"\u2018\u201c")  # characters before an opening tag that is only mentioned

Part = tuple[Literal["text", "reasoning", "not_text"], str, int]
"""Text of the answer; reasoning; or all text so far, which turns out to be reasoning. Text has the character at which
it begins, ``not_text`` that of the tag that shows it."""


class Reasoning:
    """Reader of the content of one answer, cut anywhere, which divides it into the answer and reasoning between tags.

    Reasoning is opened by a tag or, with ``is_open``, by the prompt; if nothing closes it, all is reasoning. A closing
    tag that nothing opened makes reasoning of the text before it. An opening tag after text that nothing closes is
    text, and so is a tag in quotation marks.
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
