"""Structure: tables, records, lists, code and markup of a passage, worded so that each part can be read by itself.

A row of a table becomes a sentence about its first cell, ``cell (column) has column cell, column cell.``, and so does
an object in a list of JSON; any other value of JSON or YAML becomes ``path: value``, an item of an inner list ``outer
item: item``, a short item or ``Key: value`` under headings ``heading, heading: item``, and a question one text with
its answer. Headings, other lines ``Key: value`` and lines of code stay as they are, uncut. Everything else is prose,
which is left to the caller to cut. No word is left out, except the names of tags and their attributes; a dash in a cell is read as "none".
"""

from __future__ import annotations

import html
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from syncheck.reading.lists import FENCE, HEADED_WORDS, HEADING, KEY_VALUE, heading_above, read_list
from syncheck.reading.records import Leaf, as_row, json_leaves, yaml_leaves
from syncheck.reading.tables import (
    HEADER_RULE,
    LONG_WORDS,
    Cut,
    Line,
    Part,
    Unit,
    aligned_table,
    bar_table,
    comma_separated,
    number_of_words,
)

KEY_VALUE_WORDS = 20
"""Largest number of words of the value in a line ``Key: value``; a longer one is prose."""


def units(passage: str, cut: Cut) -> Iterator[Unit]:
    """Divide a passage into units, in order; ``cut`` cuts long values and answers into sentences, but not prose."""
    text, places = without_markup(passage)
    for unit in _units_of(text, cut):
        if places is None:
            yield unit
            continue
        at = unit.start
        for sentence in cut(unit.text) if unit.is_prose else ():
            at = text.index(sentence, at) + len(sentence)
            yield Unit(sentence, *places.of(at - len(sentence), at))
        if not unit.is_prose:
            yield replace(unit, start=places.of(unit.start, unit.end)[0], end=places.of(unit.start, unit.end)[1])


def _units_of(text: str, cut: Cut) -> Iterator[Unit]:
    lines, number, after = _lines_of(text), 0, 0
    first = len(text) - len(text.lstrip())
    not_before: dict[_Recogniser, int] = {}
    no_record_before = 0
    while number < len(lines):
        line = lines[number]
        if line.end <= after:
            number += 1
            continue
        begin = max(line.start, after)
        leaves, start, stop = _records_in(text, max(begin, no_record_before), line.end, is_whole=begin <= first)
        if leaves is None:
            no_record_before = stop
        else:
            if text[begin:start].strip():
                yield Unit(text[begin:start], begin, start, is_prose=True)
            yield from worded(leaves, cut)
            after = stop
            continue
        if after > line.start:
            if text[after : line.end].strip(" \t,;]}"):
                yield Unit(text[after : line.end], after, line.end, is_prose=True)
            number += 1
            continue
        for recognise in _RECOGNISERS:
            if number < not_before.get(recognise, 0):
                continue
            part, stop = recognise(lines, number, cut)
            if part is not None:
                yield from part
                number = stop
                break
            not_before[recognise] = stop
        else:
            yield Unit(line.text, line.start, line.end, is_prose=True)
            number += 1


def _lines_of(text: str) -> list[Line]:
    lines, start = list[Line](), 0
    for line in text.splitlines(keepends=True):
        lines.append(Line(line.splitlines()[0], start))
        start += len(line)
    return lines


_BRACKET = re.compile(r"[{\[]")
_RECORD = re.compile(r"""\{\s*(?:"|'[^'\n]*'\s*:)|\[\s*\{\s*["']|\[\s*\[\s*["'\d]""")


def _records_in(text: str, start: int, end: int, *, is_whole: bool) -> tuple[list[Leaf] | None, int, int]:
    """Find the JSON that begins on a line: its leaves, where it begins, and where it ends.

    Without any, the leaves are None, and there is none before the end. Objects that follow each other are counted like
    those of a list. A list of plain values is JSON only if it is the whole passage.
    """
    begun = next((m.start() for m in _BRACKET.finditer(text, start, end) if _RECORD.match(text, m.start())), None)
    if begun is None:
        begun = start + len(text[start:end]) - len(text[start:end].lstrip())
        leaves, stop = (
            json_leaves(text, begun, in_rows=True) if is_whole and text[begun : begun + 1] == "[" else (None, start)
        )
        return (None, start, start) if leaves is None or text[stop:].strip() else (leaves, begun, stop)
    records: list[list[Leaf]] = []
    stop = begun
    while True:
        leaves, after = json_leaves(text, stop, in_rows=True)
        if leaves is None:
            break
        records.append(leaves)
        stop = after
        following = re.compile(r"\s*,?\s*(?=\{)").match(text, stop)
        if following is None or _RECORD.match(text, following.end()) is None:
            break
        stop = following.end()
    if not records:
        return None, begun, after
    if len(records) > 1:
        records = [
            as_row(record) or [replace(leaf, path=f"{place} {leaf.path}".strip()) for leaf in record]
            for place, record in enumerate(records, 1)
        ]
    return [leaf for record in records for leaf in record], begun, stop


def worded(leaves: Iterable[Leaf], cut: Cut) -> Iterator[Unit]:
    """Word leaves as ``path: value``, a long value sentence by sentence."""
    for leaf in leaves:
        value = " ".join(leaf.value.split())
        for part in cut(value) if number_of_words(value) > LONG_WORDS else [value]:
            yield Unit(f"{leaf.path}: {part}" if leaf.path else part, leaf.start, leaf.end)


_DATA = frozenset("json jsonl yaml yml csv tsv".split())


def _code(lines: Sequence[Line], number: int, cut: Cut) -> Part:
    """Read the lines of a fenced block, uncut; records in it as records."""
    opened = FENCE.fullmatch(lines[number].text)
    if opened is None:
        return None, number + 1
    closing = (n for n in range(number + 1, len(lines)) if lines[n].text.strip() == opened[1])
    stop = next(closing, len(lines))
    inside = lines[number + 1 : stop]
    text = "\n".join(line.text for line in inside)
    if inside and (opened[2].lower() in _DATA or text.lstrip()[:1] in ("{", "[")):
        starts = [line.start for line in _lines_of(text)]  # line breaks may be longer than one character

        def place(at: int) -> int:
            row = bisect_right(starts, at) - 1
            return inside[row].start + at - starts[row]

        read = [replace(one, start=place(one.start), end=place(one.end)) for one in _units_of(text, cut)]
        return [replace(one, is_prose=False) for one in read if one.text.strip()], stop + 1
    named = [lines[number].as_unit(opened[2])] if opened[2] else []
    return [*named, *(line.as_unit(line.text.strip()) for line in inside if line.text.strip())], stop + 1


def _yaml(lines: Sequence[Line], number: int, cut: Cut) -> Part:
    leaves, count = yaml_leaves((lines[n].text, lines[n].start) for n in range(number, len(lines)))
    return None if leaves is None else list(worded(leaves, cut)), number + max(1, count)


def _key_values(lines: Sequence[Line], number: int, cut: Cut) -> Part:
    """Read at least two lines ``Key: value`` with different keys; speakers, who come again, are not keys."""
    stop, keys = number, set()
    while stop < len(lines) and (pair := KEY_VALUE.fullmatch(lines[stop].text.strip())) is not None:
        if (
            number_of_words(pair["key"]) > 5
            or number_of_words(pair["value"]) > KEY_VALUE_WORDS
            or pair["key"].lower() in keys
        ):
            break
        if sum(number_of_words(sentence) > 3 for sentence in cut(pair["value"])) > 1:
            break
        keys.add(pair["key"].lower())
        stop += 1
    if stop - number < 2:
        return None, number + 1
    heading = heading_above(lines, number)

    def read(line: Line) -> Unit:
        text = line.text.strip()
        return line.as_unit(f"{heading}: {text}" if heading and number_of_words(text) <= HEADED_WORDS else text)

    return list(map(read, lines[number:stop])), stop


_MARKED = r"\s*(?:(?:Q|Question|FAQ)\s*\d*\s*[:.)]\s*|(?:[-*\u2022#]+|\d+[.)])\s+|\*\*)"
_QUESTION = re.compile(
    rf"(?:{_MARKED})?\*{{0,2}}(?:(?:dear|hello|hey|hi)\b[^,?]{{0,30}},\s+)?(?:am|are|can|could|did|do|does|has|have|how|is|may|must|shall|should|was|were|what|when|where|"
    r"which|who|whom|whose|why|will|would)\b[^?]{1,160}\?\*{0,2}",
    re.IGNORECASE,
)
_BY_MARK = re.compile(_MARKED)
_ANSWER = re.compile(r"\s*(?:A|Answer)\s*\d*\s*[:.)]\s")
_YES_NO = re.compile(r"(?:yes|no)(?!\s\w)\b", re.IGNORECASE)
SHORT_ANSWER_WORDS = 25
"""Largest number of words of an answer that nothing but its place marks as one; half as many on a line of its own."""


def _asked(lines: Sequence[Line], number: int, cut: Cut) -> Part:
    """Read questions with their answers, on one line or in the next one."""
    line, none = lines[number], (None, number + 1)
    if "?" not in line.text:
        return none
    depth, written = _unquoted(line.text)
    plain = written.replace("**", "")
    sentences = [sentence.strip() for sentence in cut(plain)]
    asks = [_QUESTION.fullmatch(sentence) is not None for sentence in sentences]
    if len(sentences) > 1 and not (depth and asks[-1]) or not any(asks):
        joined = _with_answers(line if plain == written else Line(plain, 0), sentences, asks) if any(asks) else []
        joined = joined if plain == written else [line.as_unit(one.text) for one in joined]
        return joined if 0 < len(joined) < len(sentences) else None, number + 1
    after = number + 1
    while after < min(len(lines), number + 3) and not lines[after].text.strip():
        after += 1
    if after >= min(len(lines), number + 3):
        return none
    of_answer, answer = _unquoted(lines[after].text)
    is_marked = bool(of_answer < depth or _BY_MARK.match(written) or _ANSWER.match(answer))
    is_other = of_answer > depth or "?" in answer or answer[:1] in ("", *"#|<{[`")
    if is_other or (_BY_MARK.match(answer) and not _ANSWER.match(answer)):
        return none
    is_short = number_of_words(answer) * 2 <= SHORT_ANSWER_WORDS and answer[-1] in ".!"
    is_short = is_short or _YES_NO.match(answer) is not None
    if not is_marked and (after > number + 1 or not is_short):
        return none
    parts = [answer] if number_of_words(answer) <= LONG_WORDS else [piece.strip() for piece in cut(answer)]
    first = Unit(f"{sentences[-1]} {parts[0]}", line.start, lines[after].end)
    before = [line.as_unit(sentence) for sentence in sentences[:-1]]
    return [*before, first, *(lines[after].as_unit(piece) for piece in parts[1:])], after + 1


def _unquoted(line: str) -> tuple[int, str]:
    """Split a line of a mail into the number of its quotation marks and what is quoted."""
    written = line.lstrip("> \t")
    return line.removesuffix(written).count(">"), written.rstrip()


def _with_answers(line: Line, sentences: Sequence[str], asks: Sequence[bool]) -> list[Unit]:
    """Join each question of a line that begins with one with all up to the next question, if that is short.

    Any other question is joined with a sentence that begins with yes or no.
    """
    joined: list[Unit] = []
    at = number = 0
    while number < len(sentences):
        stop = number + 1
        if asks[number] and stop < len(sentences):
            last = next((n for n in range(stop, len(sentences)) if asks[n]), len(sentences))
            answer = " ".join(sentences[stop:last])
            if asks[0] and number_of_words(answer) <= SHORT_ANSWER_WORDS and answer[:1] not in ("[", "-", "|"):
                stop = last
            elif _YES_NO.match(sentences[stop]):
                stop += 1
        start = line.text.index(sentences[number], at)
        for sentence in sentences[number:stop]:
            at = line.text.index(sentence, at) + len(sentence)
        joined.append(Unit(" ".join(sentences[number:stop]), line.start + start, line.start + at))
        number = stop
    return joined


def _heading(lines: Sequence[Line], number: int, cut: Cut) -> Part:
    line = lines[number]
    return [line.as_unit(line.text.strip())] if HEADING.match(line.text) else None, number + 1


_Recogniser = Callable[[Sequence[Line], int, Cut], Part]
_RECOGNISERS: tuple[_Recogniser, ...] = (
    *(_code, bar_table, aligned_table, comma_separated, _yaml),
    *(_asked, _key_values, read_list, _heading),
)
"""In the order in which they are asked."""


_INLINE = (
    "a abbr b big cite code em font i img input kbd label mark q s samp small span strike strong sub sup tt u var wbr"
)
_BLOCKS = (
    "address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form h1 "
    "h2 h3 h4 h5 h6 head header hr html iframe li link main meta nav ol p pre script section style summary table tbody "
    "td tfoot th thead title tr ul"
)
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{'|'.join(f'{_INLINE} {_BLOCKS}'.split())})"
    r"(?P<rest>(?:\s[^<>]*)?/?)>|<!--[^<>]*-->|<!doctype[^<>]*>",
    re.IGNORECASE | re.DOTALL,
)
_ENTITY = re.compile(r"&(?:[a-z][a-z0-9]{1,31}|#\d{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)
_EMPTY = frozenset("br hr img input link meta wbr".split())
_KEPT = re.compile(r"""\b(alt|href|title)\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)

_OF_TABLES = frozenset("table tbody td tfoot th thead tr".split())
_APART = _OF_TABLES | frozenset("dd dl dt li ol ul".split())
"""Tags beside which white space says nothing."""
_OPTIONAL = {
    "table": {"td", "th", "tr"},
    **dict.fromkeys(("ol", "ul"), {"li"}),
    "dl": {"dd", "dt"},
}
"""Tags that need not be closed within others."""
_DEEPEST = 8
"""Number of levels of a list that are told apart."""
_SPAN = re.compile(r"""\b(col|row)span\s*=\s*["']?([1-9]\d?)\b""", re.IGNORECASE)


class _Places:
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


def without_markup(passage: str) -> tuple[str, _Places | None]:
    """Take tags out of a text and write out entities; cells of a table become rows with bars, and items get a mark.

    A tag that is named in a sentence ("the <b> tag") is no markup. Links and descriptions of pictures stay, in
    brackets. A text without markup is returned as it is, with None.
    """
    tags = tags_in(passage)
    entities = list(_ENTITY.finditer(passage)) if "&" in passage else []
    entities = [entity for entity in entities if html.unescape(entity[0]) != entity[0]]
    if not tags and not entities:
        return passage, None
    spoken, places, at = _SpokenTags(), _Places(), 0
    for mark in sorted([*tags, *entities], key=lambda one: one.start()):
        if mark.start() < at:  # an entity within a tag
            continue
        is_tag = mark.re is _TAG
        between = spoken.text(passage[at : mark.start()], mark["name"] if is_tag else "")
        if between:
            places.add(between, at)
        text = spoken.tag(mark) if is_tag else spoken.text(html.unescape(mark[0]).replace("\xa0", " "), "")
        places.add(text, *mark.span())
        at = mark.end()
    places.add(passage[at:], at)
    return "".join(places.parts), places


def tags_in(passage: str) -> list[re.Match[str]]:
    """Find the tags of a text: those that are closed somewhere, or need not be."""
    tags = list(_TAG.finditer(passage)) if "<" in passage else []
    names = {tag["name"].lower() for tag in tags if tag["close"]}
    for outer, inner in _OPTIONAL.items():
        names |= inner if outer in names else set()
    return [tag for tag in tags if tag["name"] is None or tag["name"].lower() in names or _is_empty(tag, passage)]


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

    def text(self, text: str, before: str | None) -> str:
        """Read text in front of a tag of this name, "" for none, character by character."""
        is_apart = (before or "").lower() in _APART
        if self._within:
            text = re.sub(r"\s", " ", text)
            self._cell.append(text)
        if is_apart and not text.strip() and (self._is_fresh or self._was_apart):
            return ""
        self._is_fresh = self._is_fresh and not text.strip()
        self._was_apart = self._was_apart and not text.strip()
        return text

    def tag(self, tag: re.Match[str]) -> str:
        """Say what stands for a tag."""
        name, closes = (tag["name"] or "").lower(), bool(tag["close"])
        self._was_apart = name in _APART
        if self._was_apart:
            said = self._in_table(tag, name, closes) if name in _OF_TABLES else self._in_list(name, closes)
            if self._is_fresh:
                said = said.removeprefix("\n")
            self._is_fresh = said.endswith(("\n", "- ")) or (self._is_fresh and not said)
            return said
        said = self._inline(tag, name, closes)
        if self._within and name[:1] + name[1:].strip("123456") != "h":
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
                self._columns, self._rows = spans.get("col", 1), spans.get("row", 1)
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


def _is_empty(tag: re.Match[str], passage: str) -> bool:
    """Tell whether a tag needs no closing one, and does not stand as a word between spaces."""
    if tag["name"].lower() not in _EMPTY:
        return False
    return not (
        passage[max(0, tag.start() - 1) : tag.start()] == " " and passage[tag.end() : tag.end() + 1] in (" ", "")
    )
