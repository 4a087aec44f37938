"""Structure: tables, records, lists, code and markup of a passage, worded so that each part can be read by itself.

A row of a table becomes a sentence about its first cell, ``cell (column) has column cell, column cell.``, and so does
an object in a list of JSON or YAML; any other value of these becomes ``path: value``, an item of an inner list ``outer
item: item``, a short item or ``Key: value`` under headings ``heading, heading: item``, and a question one text with
its answer. Headings, other lines ``Key: value`` and lines of code stay as they are, uncut. Everything else is prose,
which is left to the caller to cut. No word is left out, except the names of tags and their attributes; a dash in a
cell, and an empty one, are read as "none".
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from syncheck.reading.lists import FENCE, HEADED_WORDS, HEADING, KEY_VALUE, heading_above, is_item, read_list
from syncheck.reading.records import Leaf, as_row, json_leaves, yaml_leaves
from syncheck.reading.tables import (
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
from syncheck.reading.tags import without_markup

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
        text = " ".join(line.text.split())
        return line.as_unit(f"{heading}: {text}" if heading and number_of_words(text) <= HEADED_WORDS else text)

    return list(map(read, lines[number:stop])), stop


_MARKED = r"\s*(?:(?:Q|Question|FAQ)\s*\d*\s*[:.)]\s*|(?:[-*\u2022#]+|\d+[.)])\s+|\*\*)"
_QUESTION = re.compile(
    rf"(?:{_MARKED})?\*{{0,2}}(?:(?:dear|hello|hey|hi)\b[^,?]{{0,30}},\s+)?(?:am|are|can|could|did|do|does|has|have|how|is|may|must|shall|should|was|were|what|when|where|"
    r"which|who|whom|whose|why|will|would)\b[^?]{1,160}\?\*{0,2}",
    re.IGNORECASE,
)
_BY_MARK = re.compile(_MARKED)
_BOLD = re.compile(r"(?<!\w)\*\*(?=\S)|(?<=\S)\*\*(?!\w)")
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
    plain = _BOLD.sub("", written)
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


_OPEN = frozenset("a an and at by for from in of on or the to with".split())
"""Words that no sentence and no title ends in."""
_BEFORE_NUMBERS = frozenset("about are between cost costs is least most over pay pays per than under was were".split())
_WRAPPED_CHARACTERS = 30
"""Smallest number of characters of a line that a margin may have broken."""


def _wrapped(lines: Sequence[Line], number: int, cut: Cut) -> Part:
    """Read prose that a margin has broken, and mail that is quoted, without its marks."""
    depth, text = _unquoted(lines[number].text)
    parts, places = list[str](), array("L")  # what is read, and where each of its characters stands
    stop = number
    while True:
        begin = lines[stop].start + (lines[stop].text.rindex(text) if text else 0)
        stop += 1
        after, following = _unquoted(lines[stop].text) if stop < len(lines) else (-1, "")
        is_broken = after == depth and _is_broken(text, following)
        if is_broken:
            text = text[:-1] if text[-1] == "-" else f"{text} "
        parts.append(text)
        places.extend(range(begin, begin + len(text)))
        if not is_broken:
            break
        text = following
    if stop == number + 1 and not depth:
        return None, stop
    read, units, at = "".join(parts), list[Unit](), 0
    for sentence in cut(read):
        at = read.index(sentence, at) + len(sentence)
        units.append(Unit(sentence, places[at - len(sentence)], places[at - 1] + 1))
    return units, stop


def _is_broken(text: str, following: str) -> bool:
    """Tell whether a line breaks off within a sentence that the next one goes on with."""
    if not text or text[-1] in ".!?:;" or not following:
        return False
    if following[0] in "|{[<>#*" or KEY_VALUE.fullmatch(following) or is_item(following):
        return False
    *before, last = text.split()
    if before and (last in _OPEN or (last in _BEFORE_NUMBERS and following[0].isdigit())):
        return True
    return len(text) >= _WRAPPED_CHARACTERS and (following[0].islower() or text[-1] == ",")


_Recogniser = Callable[[Sequence[Line], int, Cut], Part]
_RECOGNISERS: tuple[_Recogniser, ...] = (
    *(_code, bar_table, aligned_table, comma_separated, _yaml),
    *(_asked, _key_values, read_list, _heading, _wrapped),
)
"""In the order in which they are asked."""
