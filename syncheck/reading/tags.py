"""Tags: a passage with HTML in it as plain text, with its tables, lists and terms, and where each part stood."""

from __future__ import annotations

import html
import re
from array import array

from syncheck.reading.tables import HEADER_RULE

_INLINE = (
    "a abbr b big button cite code data del em font i img input ins kbd label mark path picture q s samp small source "
    "span strike strong sub sup svg time tt u var wbr"
)
_BLOCKS = (
    "address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form h1 "
    "h2 h3 h4 h5 h6 head header hr html iframe li link main meta nav noscript ol optgroup option p pre section select "
    "summary table tbody td template textarea tfoot th thead title tr ul video"
)
_TAG = re.compile(
    r"<(?P<unread>script|style)\b[^<>]*>.*?</(?P=unread)\s*>|"
    rf"<(?P<close>/?)(?P<name>{'|'.join(f'{_INLINE} {_BLOCKS}'.split())})"
    r"(?P<rest>(?:\s[^<>]*)?/?)>|<!--[^<>]*-->|<!doctype[^<>]*>",
    re.IGNORECASE | re.DOTALL,
)
_ENTITY = re.compile(r"&(?:[a-z][a-z0-9]{1,31}|#\d{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)
_EMPTY = frozenset("br hr img input link meta path source wbr".split())
_KEPT = re.compile(r"""\b(alt|href|title)\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)

_OF_TABLES = frozenset("table tbody td tfoot th thead tr".split())
_OF_LISTS = frozenset("dd dl dt li ol ul".split())
_APART = _OF_TABLES | _OF_LISTS
"""Tags beside which white space says nothing."""
_OPTIONAL = {
    "table": {"td", "th", "tr"},
    **dict.fromkeys(("ol", "ul"), {"li"}),
    "dl": {"dd", "dt"},
}
"""Tags that need not be closed within others."""
_TITLE = re.compile("h[1-6]")  # stands on a line of its own even within a cell
_DEEPEST = 8
"""Number of levels of a list that are told apart."""
_MOST_SPANNED = 12
"""Number of rows and of columns that a cell may span; it is read in each row."""
_SPAN = re.compile(r"""\b(col|row)span\s*=\s*["']?([1-9]\d?)\b""", re.IGNORECASE)


class Places:
    """Place in the original of each character of a text without markup."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._starts, self._ends = array("L"), array("L")

    def add(self, text: str, start: int, end: int | None = None) -> None:
        """Add text that stands in the original character by character, or as a whole from ``start`` to ``end``."""
        self.parts.append(text)
        for number in range(len(text)):
            self._starts.append(start + number if end is None else start)
            self._ends.append(start + number + 1 if end is None else end)

    def of(self, start: int, end: int) -> tuple[int, int]:
        """Find the characters of the original that some characters, at least one, were read from."""
        return self._starts[start], self._ends[end - 1]


def without_markup(passage: str) -> tuple[str, Places | None]:
    """Take tags out of a text and write out entities; cells of a table become rows with bars, and items get a mark.

    A tag that is named in a sentence ("the <b> tag") is no markup. Links and descriptions of pictures stay, in
    brackets. A text without markup is returned as it is, with None.
    """
    tags = tags_in(passage)
    entities = list(_ENTITY.finditer(passage)) if "&" in passage else []
    entities = [entity for entity in entities if html.unescape(entity[0]) != entity[0]]
    if not tags and not entities:
        return passage, None
    spoken, places, at = _SpokenTags(), Places(), 0
    for mark in sorted([*tags, *entities], key=lambda one: one.start()):
        if mark.start() < at:  # an entity within a tag
            continue
        is_tag = mark.re is _TAG
        between, skipped = spoken.text(passage[at : mark.start()], mark["name"] if is_tag else "")
        places.add(between, at + skipped)
        text = spoken.tag(mark) if is_tag else spoken.text(html.unescape(mark[0]).replace("\xa0", " "), "")[0]
        places.add(text, *mark.span())
        at = mark.end()
    between, skipped = spoken.text(passage[at:], "")
    places.add(between, at + skipped)
    return "".join(places.parts), places


def quotation(part: str) -> str:
    """Take the tags out of part of a passage, which may begin and end within an element, and put it on one line."""
    tags = [(tag["name"].lower(), bool(tag["close"])) for tag in _TAG.finditer(part) if tag["name"]]
    cells = [closes for name, closes in tags if name in ("td", "th")]
    closed = {name for name, closes in tags if closes} | _EMPTY
    left = [name for name, _ in tags if name in _BLOCKS.split() and name not in closed]
    text, places = without_markup("<td>" * (cells[:1] == [True]) + part + "".join(f"</{name}>" for name in left))
    if places is None:
        return re.sub(r"\n[ \t]*>[> \t]*", " ", part.strip())  # of a mail that is quoted
    return " ".join(text.replace(HEADER_RULE, "").split()).removeprefix("- ").strip("| ")


def tags_in(passage: str) -> list[re.Match[str]]:
    """Find the tags of a text: those that are closed somewhere, or need not be."""
    tags = list(_TAG.finditer(passage)) if "<" in passage else []
    names = {tag["name"].lower() for tag in tags if tag["close"]}
    for outer, inner in _OPTIONAL.items():
        names |= inner if outer in names else set()
    return [
        tag
        for tag in tags
        if tag["name"] is None or tag["name"].lower() in names or _is_empty(tag, passage, is_alone=not names)
    ]


class _SpokenTags:
    """What tags become. Within a cell, an item or a term, all that breaks a line is a space."""

    def __init__(self) -> None:
        self._link = ""
        self._is_fresh = self._was_apart = False  # at the beginning of a line; after a tag of a table or list
        self._within = ""  # cell, item or term that is open: "td", "li", "dt" or "dd"
        self._cell: list[str] = []  # its text so far
        self._cells: set[str] = set()  # kinds of the cells of the row
        self._column = self._columns = self._rows = 0  # of the cell: its place, and how many it spans
        self._below: dict[int, tuple[int, str]] = {}  # rows that the cell of a column still spans, and its text
        self._depth = 0  # of lists
        self._is_named = False  # by a term without a description yet

    def text(self, text: str, before: str | None) -> tuple[str, int]:
        """Read text in front of a tag of this name, "" for none: its characters, and how many of the first to skip."""
        is_apart = (before or "").lower() in _APART
        if self._within:
            text = re.sub(r"\s", " ", text)
            self._cell.append(text)
        if is_apart and not text.strip() and (self._is_fresh or self._was_apart):
            return "", 0
        skipped = len(text) - len(text.lstrip()) if self._is_fresh and text.strip() else 0
        self._is_fresh = self._is_fresh and not text.strip()
        self._was_apart = self._was_apart and not text.strip()
        return text[skipped:], skipped

    def tag(self, tag: re.Match[str]) -> str:
        """Say what stands for a tag."""
        name, closes = (tag["name"] or "").lower(), bool(tag["close"])
        self._was_apart = name in _APART
        if self._within == "td" and name in _OF_LISTS:
            said = "; " if name in ("li", "dt") and not closes and "".join(self._cell).strip() else " "
            self._cell.append(said)
            return said
        if self._was_apart:
            said = self._in_table(tag, name, closes) if name in _OF_TABLES else self._in_list(name, closes)
            if self._is_fresh:
                said = said.removeprefix("\n")
            self._is_fresh = said.endswith(("\n", "- ")) or (self._is_fresh and not said)
            return said
        said = self._inline(tag, name, closes)
        if self._within and _TITLE.fullmatch(name) is None:
            said = said.replace("\n", " ")
        self._cell.append(said)
        self._is_fresh = self._is_fresh and not said.strip()
        return said

    def _inline(self, tag: re.Match[str], name: str, closes: bool) -> str:
        kept = {key.lower(): one or other for key, one, other in _KEPT.findall(tag["rest"] or "")}
        if name == "a":
            text = f" ({self._link})" if closes and self._link else ""
            self._link = "" if closes or kept.get("href", "#").startswith("#") else kept["href"]
            return text
        if name == "img":
            return f" ({kept['alt']})" if kept.get("alt") else ""
        return "\n" if name in _BLOCKS.split() else ""

    def _in_table(self, tag: re.Match[str], name: str, closes: bool) -> str:
        if name in ("td", "th"):
            ended = self._ended_cell()
            if not closes:
                spans = {kind.lower(): int(number) for kind, number in _SPAN.findall(tag["rest"] or "")}
                self._columns, self._rows = (min(spans.get(kind, 1), _MOST_SPANNED) for kind in ("col", "row"))
                self._within, self._cell = "td", []
                self._cells.add(name)
            return ended
        ended = self._ended_cell()
        rule = f"\n{HEADER_RULE}" if self._cells == {"th"} else ""
        self._cells = set()
        if name == "table":
            self._below = {}
        if name == "tr" and not closes:
            self._column = 0
            self._below = {place: below for place, below in self._below.items() if below[0]}
            return f"{ended}{rule}\n{self._from_above()}"
        return f"{ended}{rule}\n\n" if name == "table" else f"{ended}{rule}\n"

    def _ended_cell(self) -> str:
        if self._within != "td":
            return ""
        text, self._within = " ".join("".join(self._cell).split()), ""
        first = "|" if not self._column and not text else ""  # an empty first cell is one too
        for place in range(self._columns if self._rows > 1 else 0):
            self._below[self._column + place] = self._rows - 1, "" if place else text
        self._column += self._columns
        return first + " | " * self._columns + self._from_above()

    def _from_above(self) -> str:
        """Repeat the cells of earlier rows that span this one too."""
        said = ""
        while (rows := self._below.get(self._column, (0, ""))[0]) > 0:
            text = self._below[self._column][1]
            self._below[self._column] = rows - 1, text
            said += f"{text} | "
            self._column += 1
        return said

    def _in_list(self, name: str, closes: bool) -> str:
        """Mark items as in plain text, and terms as keys of what describes them."""
        self._within = "" if closes or name in ("dl", "ol", "ul") else name
        if name in ("ol", "ul"):
            self._depth = max(0, self._depth + (-1 if closes else 1))
        if name == "li" and not closes:
            return "\n" + "  " * min(self._depth - 1, _DEEPEST) + "- "
        if name == "dd" and not closes:
            mark = "; " if not self._is_named else " " if "".join(self._cell).rstrip().endswith(":") else ": "
            self._is_named = False
            return "" if self._is_fresh else mark
        if name == "dt":
            self._is_named, self._cell = True, [] if not closes else self._cell
            return "" if closes else "\n"
        return "" if name == "dd" else "\n"


def _is_empty(tag: re.Match[str], passage: str, *, is_alone: bool) -> bool:
    """Tell whether a tag needs no closing one; one alone in a text may be a word between spaces."""
    if tag["name"].lower() not in _EMPTY:
        return False
    before, after = passage[max(0, tag.start() - 1) : tag.start()], passage[tag.end() : tag.end() + 1]
    return not (is_alone and before == " " and after in (" ", ""))
