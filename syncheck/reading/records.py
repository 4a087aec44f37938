"""Records: JSON and YAML as leaves with their paths. Broken and cut-off JSON is read too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import NamedTuple

from syncheck.reading.tables import LONG_WORDS, OUTER_WORDS, number_of_words, row_as_texts

_CONSTANTS = frozenset({"true", "false", "null", "none", "nan"})
DEEPEST = 40
"""Number of levels from which brackets within brackets are no record."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value of a record: its path, the value, and its characters in the text, with its key."""

    path: str
    value: str
    start: int
    end: int
    key: str = ""
    """The last key of the path; empty for the values of a list."""


class _Token(NamedTuple):
    kind: str
    value: str
    start: int
    end: int

    def is_mark(self, *marks: str) -> bool:
        return self.kind == "mark" and self.value in marks


_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<plain>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|True|False|None|NaN)\b
      | (?P<mark>[{}\[\],:])
    )""",
    re.VERBOSE | re.DOTALL,
)
_CUT_OFF = re.compile(r"""\s*(?:["'](?P<text>[^\n]*))?\Z""")
"""The end of the text, perhaps in a string."""


class _NotJsonError(ValueError):
    pass


@dataclass(slots=True)
class _Value:
    start: int
    end: int
    plain: str | None = None
    inner: list[tuple[str, int, _Value]] | None = None
    is_object: bool = False


class _Parser:
    """Parser of JSON and Python literals, with commas too many, and brackets that the end of the text leaves open."""

    def __init__(self, text: str, start: int) -> None:
        self._text, self.at = text, start

    def value(self, depth: int = 0) -> _Value:
        token = self._next()
        if token.kind in ("text", "plain"):
            return _Value(token.start, token.end, token.value)
        if token.kind == "end" or token.value not in ("{", "[") or depth > DEEPEST:
            raise _NotJsonError
        is_object = token.value == "{"
        inner: list[tuple[str, int, _Value]] = []
        while (after := self._peek()).kind != "end" and not after.is_mark("}" if is_object else "]"):
            if inner and after.is_mark(","):
                self._next()
                continue
            key = self._key() if is_object else ""
            then = self._peek()
            value = _Value(then.start, then.end, "") if then.kind == "end" else self.value(depth + 1)
            inner.append((key, after.start, value))
            then = self._peek()
            if then.kind != "end" and not then.is_mark(",", "]", "}"):
                raise _NotJsonError
        self._next()
        return _Value(token.start, after.end, None, inner, is_object)

    def _key(self) -> str:
        named = self._next()
        if named.kind not in ("text", "plain"):
            raise _NotJsonError
        if self._peek().kind == "mark" and not self._next().is_mark(":"):
            raise _NotJsonError
        return named.value

    def _next(self) -> _Token:
        token = self._peek()
        self.at = token.end
        return token

    def _peek(self) -> _Token:
        matched = _TOKEN.match(self._text, self.at)
        if matched is not None and (kind := matched.lastgroup) is not None:
            return _Token(kind, _spoken(matched[kind]), matched.start(kind), matched.end())
        rest = _CUT_OFF.match(self._text, self.at)
        if rest is None:
            raise _NotJsonError
        if rest["text"]:
            return _Token("text", rest["text"].rstrip(), rest.start("text") - 1, len(self._text))
        return _Token("end", "", len(self._text), len(self._text))


def _spoken(token: str) -> str:
    """Read what a quoted string says; anything else is returned as it is."""
    if token[0] not in "\"'":
        return token
    inner = token[1:-1] if token[0] == '"' else token[1:-1].replace(r"\'", "'").replace('"', r"\"")
    try:
        return str(json.loads(f'"{inner}"', strict=False))
    except ValueError:  # an escape that JSON does not know
        return token[1:-1]


def json_leaves(text: str, start: int, *, in_rows: bool = False) -> tuple[list[Leaf] | None, int]:
    """Read the JSON that begins at a character: its leaves, and where it ends; or None, and where it breaks off.

    A path is the keys joined by spaces. In a list, the first value of an object, or else its name or title, if that
    is a few words, is in the path of its other values; otherwise, if the list has several objects or lists, the
    position is, from 1. Plain values of a list are one leaf, joined by ``; ``. With ``in_rows``, an object in a list
    that has plain values alone is one leaf without a path, worded as a row of a table.

    Examples
    --------
    >>> [(leaf.path, leaf.value) for leaf in json_leaves('{"title": ["In Rainbows"], "Label": ["XL", "TBD"]}', 0)[0]]
    [('title', 'In Rainbows'), ('Label', 'XL; TBD')]
    """
    parser = _Parser(text, start)
    try:
        value = parser.value()
    except _NotJsonError:
        return None, parser.at
    return list(_leaves(value, (), value.start, in_rows=in_rows)) or None, parser.at


def _leaves(value: _Value, path: tuple[str, ...], start: int, *, in_rows: bool) -> Iterator[Leaf]:
    name = " ".join(path)
    if value.inner is None:
        yield Leaf(name, value.plain or "", start, value.end, path[-1] if path else "")
        return
    if not value.inner:
        if path:
            yield Leaf(name, "{}" if value.is_object else "[]", start, value.end)
        return
    if value.is_object:
        for key, at, inner in value.inner:
            yield from _leaves(inner, (*path, key) if key else path, at, in_rows=in_rows)
        return
    plain = [inner for _, _, inner in value.inner if inner.inner is None]
    if plain:
        is_all = len(plain) == len(value.inner)
        begin, end = (start, value.end) if is_all else (plain[0].start, plain[-1].end)
        yield Leaf(name, "; ".join(inner.plain or "" for inner in plain), begin, end)
    nested = [inner for _, _, inner in value.inner if inner.inner is not None]
    for place, inner in enumerate(nested, 1):
        if in_rows and inner.is_object and inner.inner and all(_plain(one) is not None for _, _, one in inner.inner):
            columns, cells = [key for key, _, _ in inner.inner], [_plain(one) or "" for _, _, one in inner.inner]
            texts = row_as_texts(columns, cells, of=" ".join(path))
            yield from (Leaf("", text, inner.start, inner.end) for text in texts)
        else:
            yield from _item(inner, path, str(place) if len(nested) > 1 else "", in_rows=in_rows)


def as_row(leaves: Sequence[Leaf]) -> list[Leaf] | None:
    """Word the leaves of an object as a row of a table; None if it is nested, has one value or a long one."""
    if len(leaves) < 2 or any(one.path != (one.key or one.path.split(" ")[0]) for one in leaves):
        return None
    if any(number_of_words(one.value) > LONG_WORDS for one in leaves):
        return None
    texts = row_as_texts([one.path for one in leaves], [one.value for one in leaves])
    return [Leaf("", text, leaves[0].start, leaves[-1].end) for text in texts]


def _plain(value: _Value) -> str | None:
    """Write a plain value, or a list of such values, as text; None for a long one, and for any other value."""
    plain = [value.plain] if value.inner is None else [inner.plain for _, _, inner in value.inner]
    if not plain:
        return "{}" if value.is_object else "[]"
    text = None if value.is_object or None in plain else "; ".join(map(str, plain))
    return None if text is None or number_of_words(text) > LONG_WORDS else text


def _item(value: _Value, path: tuple[str, ...], place: str, *, in_rows: bool) -> Iterator[Leaf]:
    inner = value.inner if value.is_object and value.inner else []
    first = next(
        (n for n, (key, _, one) in enumerate(inner) if (not n or _NAMING.fullmatch(key)) and _is_name(one)), None
    )
    if first is None:
        yield from _leaves(value, (*path, place) if place else path, value.start, in_rows=in_rows)
        return
    key, at, name = inner[first]
    others = [*inner[:first], *inner[first + 1 :]]
    yield from _leaves(name, (*path, key), at, in_rows=in_rows)
    if others:
        yield from _leaves(replace(value, inner=others), (*path, name.plain or ""), value.start, in_rows=in_rows)


_NAMING = re.compile(r"(?:[a-z]+[ _-]?)?(?:name|title|label)", re.IGNORECASE)


def _is_name(value: _Value) -> bool:
    """Tell whether a value can name the object that it stands in: a few words."""
    words = value.plain or ""
    few = number_of_words(words) <= OUTER_WORDS
    return few and any(map(str.isalpha, words)) and words.lower() not in _CONSTANTS


_ENTRY = re.compile(r"(?P<indent> *)(?P<dash>- +)?(?P<key>[\w./-]+|\"[^\"]+\"):(?:\s+(?P<value>\S.*))?")
_LISTED = re.compile(r"(?P<indent> *)- +(?P<value>\S.*)")
_COMMENT = re.compile(r"\s*#\s")
_LONGEST_PLAIN = 12
_Entry = tuple[int, str | None, str, int, int, bool]
"""Indent, key, value, its characters, and whether it opens an item of a list."""


def yaml_leaves(lines: Iterable[tuple[str, int]]) -> tuple[list[Leaf] | None, int]:
    """Read the YAML that begins with the first of some lines, given with their places, and count its lines.

    Only what nests is YAML: at least two keys, and one with values on lines of their own. The leaves of other lines
    are None. Objects with plain values in a list are worded as rows of a table, as in JSON; a comment on a line of its
    own is a leaf without a path.
    """
    entries: list[_Entry] = []
    comments: list[Leaf] = []
    stop = 0
    for text, start in lines:
        text = text.rstrip()
        entry, listed = _ENTRY.fullmatch(text), _LISTED.fullmatch(text)
        if entry is not None:
            indent = len(entry["indent"]) + len(entry["dash"] or "")
            value = (entry["value"] or "").strip("\"'|>")
            entries.append((indent, entry["key"].strip('"'), value, start, start + len(text), bool(entry["dash"])))
        elif listed is not None and entries and len(listed["value"].split()) <= _LONGEST_PLAIN:
            entries.append((len(listed["indent"]), None, listed["value"], start, start + len(text), False))
        elif entries and _COMMENT.match(text):
            comments.append(Leaf("", text.strip(), start, start + len(text)))
        elif stop or text != "---":
            break
        stop += 1
    keys = [entry for entry in entries if entry[1] is not None]
    opens = any(not one[2] and (other[0] > one[0] or other[1] is None) for one, other in pairwise(entries))
    if len(keys) < 2 or not opens or not any(entry[2] for entry in keys) or entries[0][5]:
        return None, stop
    return sorted([*_paths(entries), *comments], key=lambda leaf: leaf.start), stop


def _paths(entries: Sequence[_Entry]) -> list[Leaf]:
    leaves: list[Leaf] = []
    above: list[tuple[int, str]] = []
    counts: dict[tuple[str, ...], int] = {}
    worded = 0  # entries that are in a row already
    for number, (indent, key, value, start, end, is_first) in enumerate(entries):
        if number < worded:
            continue
        above = [one for one in above if one[0] < indent + (key is None)]
        if is_first:
            outer = tuple(name for _, name in above if not name.isdigit())
            above = [one for one in above if not (one[1].isdigit() and one[0] == indent - 1)]
            counts[outer] = counts.get(outer, 0) + 1
            row = _row_from(entries, number)
            if row:
                leaves += _worded(row, of=" ".join(name for _, name in above))
                worded = number + len(row)
                continue
            if _is_several(entries, number):
                above.append((indent - 1, str(counts[outer])))
        path = " ".join(name for _, name in above)
        after = entries[number + 1 : number + 2]
        if key is None:
            is_next = number > 0 and entries[number - 1][1] is None and leaves[-1].path == path
            last = leaves.pop() if is_next else None
            said = value.strip("\"'") if last is None else f"{last.value}; {value}"
            leaves.append(Leaf(path, said, start if last is None else last.start, end))
        elif value or not after or (after[0][0] <= indent and after[0][1] is not None and not after[0][5]):
            leaves.append(Leaf(f"{path} {key}".strip(), value or "null", start, end))
        if key is not None and not value:
            above.append((indent, key))
    return leaves


def _row_from(entries: Sequence[_Entry], number: int) -> Sequence[_Entry]:
    """Find the entries of the object that begins with one; none unless it has several values, all short and plain."""
    indent = entries[number][0]
    after = takewhile(lambda one: one[0] >= indent and not (one[5] and one[0] == indent), entries[number + 1 :])
    row = [entries[number], *after]
    is_plain = all(one[0] == indent and one[1] and one[2] and number_of_words(one[2]) <= LONG_WORDS for one in row)
    return row if is_plain and len(row) > 1 else []


def _worded(row: Sequence[_Entry], *, of: str) -> list[Leaf]:
    texts = row_as_texts([str(key) for _, key, *_ in row], [value for _, _, value, *_ in row], of=of)
    return [Leaf("", text, row[0][3], row[-1][4]) for text in texts]


def _is_several(entries: Sequence[_Entry], number: int) -> bool:
    """Tell whether the list that an item belongs to has other items that are objects."""
    indent = entries[number][0]
    around = (entries[number + 1 :], entries[number - 1 :: -1])
    beside = (one for side in around for one in takewhile(lambda one: one[0] >= indent, side))
    return any(one[0] == indent and one[5] for one in beside)
