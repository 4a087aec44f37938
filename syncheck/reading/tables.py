"""Tables: their rows, worded with the names of their columns. Cells are set apart by bars, tabs, spaces or commas."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

LONG_WORDS = 40
"""Number of words from which a value, an answer or a row is cut."""
OUTER_WORDS = 8
"""Largest number of words of the name of a column, and of an outer item that inner items are read with."""

Cut = Callable[[str], Iterable[str]]
"""Function that cuts a line of a passage into sentences."""

_RULES = frozenset("|+:-= \t") | {chr(code) for code in range(0x2500, 0x2580)}
_PERIOD = re.compile(r"(?:FY\s?)?(?:1[89]|20)\d\d(?:/\d\d)?|[QH][1-4](?:\s(?:19|20)\d\d)?")
_RUNNING = frozenset("# no nr pos position place rank id index".split())
"""Names of columns with running numbers."""
HEADER_RULE = "|---|---|"
"""What stands below each header row of a table in HTML."""
_LONGEST_LINE = 20_000
"""Length from which a line is no row of values with commas."""
_WORDED = re.compile(r"(?P<subject>.+?) \([^()]+\) has (?P<cells>.+)\.", re.DOTALL)
_GAP = re.compile(r"\t+|\s{2,}")


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a passage: a line of prose, or a text that is read as one."""

    text: str
    start: int
    end: int
    """From ``start`` to here: its characters in the passage, half-open."""
    is_prose: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its break, and where it begins."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)

    def as_unit(self, text: str) -> Unit:
        """Take it as one unit, in these words."""
        return Unit(text, self.start, self.end)


Part = tuple[list[Unit] | None, int]
"""Units and the number of the line after them; or None, and the number of the line before which there are none."""


def number_of_words(text: str) -> int:
    """Count the words between white space."""
    return len(text.split())


def is_rule(line: str) -> bool:
    """Tell whether a line only rules off: ``|---|:-:|``, ``+----+``, ``=====  ====``."""
    marks = set(line)
    return marks <= _RULES and any(pair in line for pair in ("--", "==", "\u2500\u2500", "\u2550\u2550"))


def cells_of(line: str) -> list[str]:
    """Cut a row at its bars, without those at its ends; a bar after a backslash is part of its cell.

    Examples
    --------
    >>> cells_of("| Basic | 10 GB |")
    ['Basic', '10 GB']
    """
    inner = line.strip().replace("\u2502", "|").removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith(r"\|") else inner
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


_DASHES = frozenset("- -- \u2013 \u2014".split())


def _said(cell: str) -> str:
    """Read a cell; a dash as "none"."""
    return "none" if cell in _DASHES else cell


def row_as_texts(columns: Sequence[str], cells: Sequence[str], *, of: str = "") -> list[str]:
    """Word a row of a table as a sentence about its first cell that is no running number, a long one as several.

    A dash is read as "none", and so is an empty cell under a name, unless half of the cells are empty, or the first
    one is; others are left out. ``of`` names the table.

    Examples
    --------
    >>> row_as_texts(["Plan", "Storage", "Price"], ["Basic", "10 GB", "2 EUR"])
    ['Basic (Plan) has Storage 10 GB, Price 2 EUR.']
    """
    names = [*columns, *[""] * (len(cells) - len(columns))]
    if cells[0] and 2 * cells.count("") < len(cells):
        cells = [cell or "none" * bool(name) for name, cell in zip(names, cells, strict=False)]
    named = [(name.strip("*_: ").replace("_", " "), cell) for name, cell in zip(names, cells, strict=False) if cell]
    if not any(name for name, _ in named[1:]):
        paths = (f"{of} {name}".strip() for name, _ in named)
        plain = "; ".join(f"{path}: {cell}" if path else cell for path, (_, cell) in zip(paths, named, strict=True))
        return [plain] if plain else []
    is_running = [name.lower().rstrip(".") in _RUNNING and cell.isdigit() for name, cell in named]
    place = is_running.index(False) if False in is_running else 0
    column, subject = named.pop(place)
    inside = f"{of} {column}".strip().replace("_", " ")
    about = f"{subject} ({inside})" if inside else subject
    said: list[list[str]] = [[]]
    for name, cell in named:
        cell = cell if name in _DASHES else _said(cell)
        cell = f"{name}: {cell}" if name[-1:].isdigit() else f"{name} {cell}".strip()
        if said[-1] and number_of_words(" ".join([*said[-1], cell])) > LONG_WORDS:
            said.append([])
        said[-1].append(cell)
    return [f"{about} has {', '.join(own).rstrip('.')}." for own in said]


def cells_in(row: str) -> tuple[str, list[tuple[int, int]]] | None:
    """Find the subject, and the characters of each cell with its column, in a row that :func:`row_as_texts` has worded.

    None for a text that is no such row, or one without the name of its first column.

    Examples
    --------
    >>> cells_in("Basic (Plan) has Storage 10 GB, Price 2 EUR.")
    ('Basic', [(17, 30), (32, 43)])
    """
    found = _WORDED.fullmatch(row)
    if found is None:
        return None
    spans, start = [], found.start("cells")
    for cell in found["cells"].split(", "):
        spans.append((start, start + len(cell)))
        start += len(cell) + len(", ")
    return found["subject"], spans


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first of at least two rows names the columns."""
    first, rest = rows[0], rows[1:]
    if not any(first) or any(number_of_words(cell) > OUTER_WORDS for cell in first):
        return False
    plain = [cell for cell in first if not _PERIOD.fullmatch(cell)]
    if any(char.isdigit() for cell in plain for char in cell):
        return False
    numbers = all(any(char.isdigit() for cell in row for char in cell) for row in rest)
    return numbers if len(first) < 3 else numbers or len(rest) > 1


def _rows(numbered: Sequence[tuple[Line, Sequence[str]]], *, is_headed: bool) -> list[Unit]:
    """Word the rows of a table; without a header, two cells are a key and its value, and more stay as they stand."""
    if is_headed:
        columns = numbered[0][1]
        return [line.as_unit(text) for line, cells in numbered[1:] for text in row_as_texts(columns, cells)]
    return [
        line.as_unit(
            f"{cells[0].rstrip(':')}: {_said(cells[1])}" if len(cells) == 2 and all(cells) else line.text.strip()
        )
        for line, cells in numbered
    ]


def bar_table(lines: Sequence[Line], number: int, cut: Cut) -> Part:
    """Read rows with bars: below a header that is ruled off, or at least two with the same number of cells."""
    if not _is_row(lines[number].text):
        return None, number + 1
    line, cells = lines[number], cells_of(lines[number].text)
    if len(cells) == 1 and not is_rule(line.text) and not line.text.strip().startswith("\u2502"):
        cell = line.text.strip(" |")
        at = line.start + line.text.index(cell)
        return [Unit(cell, at, at + len(cell), is_prose=True)] if cell else [], number + 1
    read: list[tuple[Line, Sequence[str]]] = []
    stop, is_ruled, is_joined = number, False, False
    while stop < len(lines) and _is_row(lines[stop].text):
        line = lines[stop]
        if is_rule(line.text):
            if line.text == HEADER_RULE and is_ruled and len(read) == 2 and not is_joined:
                read, is_joined = _with_one_header(read), True
            is_ruled = is_ruled or len(read) == 1
        else:
            cells = cells_of(line.text)
            begins_other = not is_ruled and read and stop + 1 < len(lines) and is_rule(lines[stop + 1].text)
            if read and not is_ruled and (len(cells) != len(read[0][1]) or begins_other):
                break
            read.append((line, cells))
        stop += 1
    if len(read) < 2 or len(read[0][1]) < 2:
        return None, number + 1
    if is_ruled and not any(read[0][1]):
        return _rows(read[1:], is_headed=False), stop
    return _rows(read, is_headed=is_ruled or _has_header([cells for _, cells in read])), stop


def _with_one_header(rows: list[tuple[Line, Sequence[str]]]) -> list[tuple[Line, Sequence[str]]]:
    """Join two header rows, of which the upper names may span several columns, unless the lower one is but a title."""
    (line, upper), (_, lower) = rows
    if len(upper) != len(lower) or sum(map(bool, lower)) < 2:
        return rows
    names, above = [], ""
    for over, under in zip(upper, lower, strict=True):
        above = over or above
        names.append(above if under == above else f"{above} {under}".strip())
    return [(line, names)]


def _is_row(line: str) -> bool:
    if is_rule(line):
        return "|" in line or "-+-" in line or line.startswith(("+", "\u250c", "\u251c", "\u2514"))
    return "|" in line or "\u2502" in line


def aligned_table(lines: Sequence[Line], number: int, cut: Cut) -> Part:
    """Read rows whose cells are set apart by tabs, or by spaces under each other; titles may stand between them."""
    first = _placed(lines[number].text)
    if len(first) < 2:
        return None, number + 1
    tabs = lines[number].text.count("\t")
    read: list[tuple[Line, Sequence[str]]] = []
    titles: list[Unit] = []
    stop, is_ruled = number, False
    while stop < len(lines) and lines[stop].text.strip():
        line = lines[stop]
        cells = _cells_under(first, tabs, line)
        if is_rule(line.text):
            is_ruled = is_ruled or stop == number + 1
        elif cells is not None:
            read.append((line, cells))
        elif (
            not tabs
            and len(_placed(line.text)) == 1
            and _cells_under(first, tabs, lines[min(stop + 1, len(lines) - 1)])
        ):
            titles.append(line.as_unit(line.text.strip()))
        else:
            break
        stop += 1
    if len(read) < (2 if is_ruled or tabs or len(first) > 2 else 3):
        return None, number + 1
    is_long = any(number_of_words(cell) > OUTER_WORDS * 2 for _, cells in read for cell in cells)
    if is_long or all(cells[0].endswith(":") for _, cells in read):  # keys, padded so that their values stand in line
        return None, stop
    rows = _rows(read, is_headed=is_ruled or _has_header([cells for _, cells in read]))
    return sorted([*rows, *titles], key=lambda unit: unit.start), stop


def _cells_under(columns: Sequence[tuple[str, int, int]], tabs: int, line: Line) -> list[str] | None:
    if not tabs:
        return _under(columns, _placed(line.text))
    return [cell.strip() for cell in line.text.split("\t")] if line.text.count("\t") == tabs else None


def _placed(line: str) -> list[tuple[str, int, int]]:
    """Cut a line at its gaps into cells with their first and last columns."""
    cells, at = [], 0
    for gap in [*_GAP.finditer(line), None]:
        stop = len(line) if gap is None else gap.start()
        if line[at:stop].strip():
            cells.append((line[at:stop].strip(), at + (len(line[at:stop]) - len(line[at:stop].lstrip())), stop))
        at = stop if gap is None else gap.end()
    return cells


def _under(columns: Sequence[tuple[str, int, int]], cells: Sequence[tuple[str, int, int]]) -> list[str] | None:
    """Put cells under the columns that they begin, end or alone overlap with, or None if one is under no column."""
    row = [""] * len(columns)
    for cell, start, stop in cells:
        near = [min(abs(start - first), abs(stop - last)) for _, first, last in columns]
        best = near.index(min(near))
        over = [place for place, (_, first, last) in enumerate(columns) if start < last and first < stop]
        if near[best] > 1 and len(over) != 1:
            return None
        best = over[0] if near[best] > 1 else best
        if row[best]:
            return None
        row[best] = cell
    return row if sum(map(bool, row)) > 1 else None


def _is_named(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first of at least three rows has names in small letters, and each other row something else."""
    first, *others = rows
    small = re.compile(r"[a-z_][a-z_\d ]{0,20}")
    others_differ = all(any(small.fullmatch(cell) is None for cell in row if cell) for row in others)
    others_differ = others_differ and not any(row[-1].endswith((".", "!", "?")) for row in others)
    return len(others) > 1 and len(first) > 2 and all(map(small.fullmatch, first)) and others_differ


def comma_separated(lines: Sequence[Line], number: int, cut: Cut) -> Part:
    """Read comma-separated values: a header and rows with as many fields, commas mostly without a space after them."""
    mark = ";" if lines[number].text.count(";") > lines[number].text.count(",") else ","
    read: list[tuple[Line, Sequence[str]]] = []
    stop = number
    while stop < len(lines) and mark in lines[stop].text:
        text = lines[stop].text
        fields = list[str]()
        if len(text) < _LONGEST_LINE:
            fields = [cell.strip() for cell in next(csv.reader([text], delimiter=mark, skipinitialspace=True))]
        if len(fields) < 2 or (read and len(fields) != len(read[0][1])):
            break
        read.append((lines[stop], fields))
        stop += 1
    marks = sum(line.text.count(mark) for line, _ in read)
    spaced = sum(line.text.count(mark + " ") for line, _ in read)
    if len(read) < 2 or len(read[0][1]) < (2 if len(read) > 2 and mark == "," else 3):
        return None, max(stop, number + 1)
    rows = [cells for _, cells in read]
    if spaced * 2 > marks and not _is_named(rows):
        return None, stop
    is_headed = _has_header(rows) or all(re.fullmatch(r"[A-Za-z_][\w ]*", cell) for cell in rows[0])
    return _rows(read, is_headed=True) if is_headed else [line.as_unit(line.text.strip()) for line, _ in read], stop
