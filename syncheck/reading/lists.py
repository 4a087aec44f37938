"""Lists: short items with the headings that they stand under, and items of inner lists with those above them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from syncheck.reading.tables import LONG_WORDS, OUTER_WORDS, Cut, Line, Part, Unit, number_of_words

HEADED_WORDS = 12
"""Largest number of words of an item that is read with its headings, and of these together."""
ITEMS_ABOVE, LINES_ABOVE = 40, 400
"""Numbers of lines above an item among which its heading is looked for, and above a heading the outer ones."""

FENCE = re.compile(r"\s*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[ \t]*")
HEADING = re.compile(r"\s*#{1,6}\s")
KEY_VALUE = re.compile(
    r"(?:[-*\u2022]\s+)?(?:\*\*|__)?(?P<key>[^\W_][^:.?!|]{0,40}?)(?:\*\*|__)?:(?:\*\*|__)?\s+(?P<value>\S.*)"
)
_YES, _NO = "\u2713\u2714\u2611\u2705", "\u2717\u2718\u2612\u274c"
_ITEM = re.compile(
    r"(?P<indent>[ \t]*)"
    rf"(?P<mark>[{_YES}{_NO}]\ufe0f?"
    r"|[-*+\u2022\u25e6\u25aa]|\d{1,3}[.)]|[a-z][.)]|\((?:\d{1,2}|[a-z]|[ivx]{2,4})\))"
    r"[ \t]+(?P<item>\S.*)"
)


def is_item(line: str) -> bool:
    """Tell whether a line has the mark of an item."""
    return _ITEM.fullmatch(line) is not None


def read_list(lines: Sequence[Line], number: int, cut: Cut) -> Part:
    """Read short items with the headings that they stand under, and items of an inner list with those above them.

    Items with a tick or a cross for their mark are read as "item: yes" or "item: no".
    """
    items = _items_from(lines, number)
    stop = number + max(1, sum(len(item.lines) for item in items))
    heading = heading_above(lines, number) if items else ""
    is_flat = all(own.indent <= before.indent for before, own in pairwise(items))
    is_plain = all(len(item.lines) == 1 and item.mark[0] not in _YES + _NO for item in items)
    if not heading and is_flat and is_plain:
        return None, stop
    outer: list[tuple[int, str]] = []
    read: list[Unit] = []
    for item in items:
        while outer and outer[-1][0] >= item.indent:
            outer.pop()
        before = [name for _, name in outer if name]
        if heading and (before or (number_of_words(item.text) <= HEADED_WORDS and not item.mark[0].isalnum())):
            before.insert(0, heading)
        first, last = item.lines[0], item.lines[-1]
        if item.mark[0] in _YES + _NO:
            read.append(Unit(": ".join([*before, item.text]), first.start, last.end))
        elif before or first is not last:
            read += [Unit(": ".join([*before, sentence]), first.start, last.end) for sentence in cut(item.text)]
        else:
            read.append(Unit(first.text, first.start, first.end, is_prose=True))
        name = title_in(item.text)
        is_title = number_of_words(name) <= OUTER_WORDS and item.text[-1] not in ".!?"
        outer.append((item.indent, name if is_title else ""))
    return read, stop


@dataclass(slots=True)
class _Item:
    mark: str
    indent: int
    text: str
    lines: list[Line]

    def goes_on(self, line: str) -> bool:
        """Tell whether a line below, indented further, is a part of its text, which is not yet long."""
        is_other = line[0] in "|{[<>#+" or FENCE.fullmatch(line) or KEY_VALUE.fullmatch(line)
        return not is_other and number_of_words(self.text) < LONG_WORDS


def _items_from(lines: Sequence[Line], number: int) -> list[_Item]:
    """Collect the items of a list, each with the lines under it that go on with it."""
    items: list[_Item] = []
    for line in map(lines.__getitem__, range(number, len(lines))):
        own, text = _ITEM.fullmatch(line.text), line.text.strip()
        indent = len(line.text.expandtabs(4)) - len(line.text.expandtabs(4).lstrip())
        if own is not None:
            items.append(_Item(own["mark"], indent, own["item"].strip(), [line]))
        elif items and text and indent > items[-1].indent and items[-1].goes_on(text):
            items[-1].text += f" {text}"
            items[-1].lines.append(line)
        else:
            break
    for item in items:
        if item.mark[0] in _YES + _NO:
            item.text = f"{item.text.rstrip('.')}: {'yes' if item.mark[0] in _YES else 'no'}"
    return items


_MARKS_OF_TITLE = re.compile(r"#{1,6}\s+|\s+#+$")


def title_in(text: str) -> str:
    """Take the marks of a heading, bold type and a colon at the end off a text."""
    return _MARKS_OF_TITLE.sub("", text).rstrip(":").strip("*_ ").rstrip(":")


def heading_above(lines: Sequence[Line], number: int) -> str:
    """Find what a list stands under, the outermost first, with commas; "" for nothing.

    These are headings in Markdown, a line that announces the list ("The price includes:"), or a title with no line
    directly above it but such a heading.
    """
    places = (n for n in range(number - 1, max(number - ITEMS_ABOVE, 0) - 1, -1) if lines[n].text.strip())
    place = next((n for n in places if _ITEM.fullmatch(lines[n].text) is None), None)
    if place is None:
        return ""
    first = lines[place].text.rstrip()
    title = title_in(first)
    if not title or number_of_words(title) > HEADED_WORDS:
        return ""
    if not HEADING.match(first):
        above = lines[place - 1].text if place else ""
        stands_alone = (not above.strip() or HEADING.match(above) is not None) and not first[0].isspace()
        is_title = number_of_words(title) <= OUTER_WORDS and (first[-1].isalnum() or first.endswith(("**", ")")))
        is_title = is_title and stands_alone and KEY_VALUE.fullmatch(first) is None
        if not first.endswith(":") and not is_title:
            return ""
        outer = heading_above(lines, place) if above and is_title else ""
        return f"{outer}, {title}" if outer and number_of_words(f"{outer} {title}") <= HEADED_WORDS else title
    return ", ".join([*_outer_headings(lines, place, title), title])


def _outer_headings(lines: Sequence[Line], place: int, title: str) -> list[str]:
    """Find the headings above one in Markdown, outside fenced code, as long as all together are short."""
    found: list[str] = []
    level, is_code = _level(lines[place].text), False
    for n in range(place - 1, max(place - LINES_ABOVE, 0) - 1, -1):
        text = lines[n].text.strip()
        if level == 1:
            break
        is_code ^= FENCE.fullmatch(text) is not None
        if is_code or not HEADING.match(text) or _level(text) >= level:
            continue
        if number_of_words(" ".join([*found, title, text])) > HEADED_WORDS:
            break
        found.insert(0, title_in(text))
        level = _level(text)
    return found


def _level(heading: str) -> int:
    return len(heading.strip()) - len(heading.strip().lstrip("#"))
