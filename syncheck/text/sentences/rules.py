"""Punkt, the abbreviations it is told, and rules that divide a text into blocks."""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

import regex

from syncheck.base.files import asset_lines

_ENDS = (".", "?", "!")
_PUNCTUATION = frozenset(";:,.!?")
_NO_WORD = r"""[)";}\]*:@'({\[\u2018\u2019\u201c\u201d\xab\xbb?!]"""  # characters that end a word
_SEVERAL = r"(?:-{2,}|\.{2,}|(?:\.\s){2,}\.)"  # dashes and ellipses
_NUMBER = "##number##"

_WORD_END = rf"\s|$|{_NO_WORD}|{_SEVERAL}|,(?=$|\s|{_NO_WORD}|{_SEVERAL})"
_WORD = regex.compile(rf"""{_SEVERAL}|(?=[^("`{{\[:;&#*@)}}\]\-,])\S+?(?={_WORD_END})|\S""")
_POSSIBLE_END = regex.compile(rf"[.?!](?=(?P<after>{_NO_WORD}|\s+(?P<next>\S+)))")
_CLOSING = regex.compile(r"""["')\]}\u2018\u2019\u201c\u201d\xab\xbb]+?(?:\s+|(?=--)|$)""", regex.MULTILINE)
_NUMERIC = regex.compile(r"^-?[.,]?\d[\d,.-]*\.?$")
_LONE_INITIAL = regex.compile(r"[^\W\d]\.$")


class Punkt:
    """Cuts a text into sentences.

    ``abbreviations`` are words in small letters whose full stop ends no sentence; ``before_numbers`` only before a
    number.
    """

    def __init__(self, abbreviations: Collection[str] = (), before_numbers: Collection[str] = ()) -> None:
        self._abbreviations = frozenset(abbreviations)
        self._before_numbers = frozenset(before_numbers)

    def texts(self, text: str) -> list[str]:
        """Cut a text into its sentences."""
        return [text[start:stop] for start, stop in self.spans(text)]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the sentences of a text as characters, half-open."""
        moved = 0  # characters at the beginning of a sentence that belong to the one before it
        cuts = list(self._cuts(text))
        for (start, stop), following in zip(cuts, [*cuts[1:], None], strict=True):
            begin, moved = start + moved, 0
            if following and (closers := _CLOSING.match(text[slice(*following)])):
                yield begin, following[0] + len(closers.group().rstrip())
                moved = closers.end()
            elif text[begin:stop]:
                yield begin, stop

    def _cuts(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield sentences without the quotes and brackets that close them."""
        start = 0
        for end, context in _contexts(text):
            if self._ends_within(context):
                yield start, end.end()
                start = end.start("next") if end.group("next") else end.end()
        yield start, len(text.rstrip())

    def _ends_within(self, context: str) -> bool:
        """Tell whether a sentence ends at a word other than the last."""
        words = [word for line in context.split("\n") if line.strip() for word in _WORD.findall(line)]
        return any(self._ends(word, following) for word, following in pairwise(words))

    def _ends(self, word: str, following: str) -> bool:
        ends = self._may_end(word)
        if not word.endswith("."):
            return ends
        kind, next_kind = _without_stop(_kind(word)), _kind(following)
        if next_kind != _NUMBER and self._may_end(following):
            next_kind = _without_stop(next_kind)
        if kind in self._before_numbers and next_kind == _NUMBER:
            return False
        is_initial = _LONE_INITIAL.match(word) is not None
        if is_initial or kind == _NUMBER:
            first = following[0]
            if following in _PUNCTUATION or first.islower() or (is_initial and first.isupper()):
                return False
        return ends

    def _may_end(self, word: str) -> bool:
        """Tell whether a sentence ends after a word, whatever follows."""
        if word in _ENDS:
            return True
        before, has_stop = word[:-1].lower(), word.endswith(".") and not word.endswith("..")
        return has_stop and self._abbreviations.isdisjoint((before, before.rpartition("-")[2]))


def _kind(word: str) -> str:
    """Convert a word to small letters, or any number to one common name."""
    lower = word.lower()
    return _NUMBER if _NUMERIC.match(lower) else lower


def _without_stop(kind: str) -> str:
    return kind[:-1] if len(kind) > 1 and kind.endswith(".") else kind


def _contexts(text: str) -> Iterator[tuple[regex.Match[str], str]]:
    """Yield each mark that may end a sentence, with the words around it; of several in one word, the last."""
    last: regex.Match[str] | None = None
    begin = stop = 0  # of the word before the last mark
    for mark in _POSSIBLE_END.finditer(text):
        space = max(text.rfind(char, stop, mark.start()) for char in string.whitespace)
        start = space + 1 if space > stop else begin
        if last is not None and stop <= start:
            yield last, text[begin:stop] + last.group() + last.group("after")
        last, begin, stop = mark, start, mark.start()
    if last is not None:
        yield last, text[begin:stop] + last.group() + last.group("after")


_ENGLISH = dict(asset_lines("english/words.txt"))
ENGLISH_ABBREVIATIONS = tuple(_ENGLISH["abbreviations"].split())
"""English abbreviations.

Those with a ``#`` count only before a number: "No. 5", but "No. He left." Those with a ``~``, which often end a
sentence, count only before a small letter: "At 5 p.m. he left", but "It is 5 p.m. He left."
"""

_OPENERS = _ENGLISH["openers"].split()
_SURNAMES = frozenset("a an as do he if in my no on so to we you".split())
"""Openers that are surnames too, as in "by K. He"."""
_ANY = "|".join(map(str.capitalize, _OPENERS))
_SURE = "|".join(word.capitalize() for word in _OPENERS if word not in _SURNAMES)
_AFTER_UNIT = regex.compile(
    r"(?:(?<=\d\s[a-z]\.|°\s?[CFK]\.)"
    rf"|(?<=\d\s?[A-Z]\.)(?=\s+(?:{_ANY})\s)|(?<=\w\s[A-Z]\.)(?=\s+(?:{_SURE})\s))"
    rf"[{string.whitespace}]+(?=\p{{Lu}})"
)
"""White space after a number and a small letter or a degree, as in "4 g. Then" and "4 °C. Then", or after another
capital before a word that opens sentences: "60 W. It is", "Zone B. It is"."""

_AFTER_BRACKET = re.compile(r"[(\[](?!(?:yes|no|ok)\.)[a-z]{1,6}\.\Z", re.IGNORECASE)
"""A short word with a full stop that begins a bracket, as in "(dir. J. Doe)"."""
_EMPHASIS = re.compile(r"[*_]{1,3}(?:\s+|\Z)")
"""Marks of Markdown that end a sentence in bold: "**Opening hours.** The pool opens at 6:30."."""
_INITIAL = re.compile(r"(?<!\w)[A-Z]\.(?P<closed>\))?\Z")
_LONGEST_IN_BRACKETS = 8


class SentenceCutter:
    """Untrained Punkt with abbreviations, which :class:`syncheck.SegmenterConfig` has checked.

    With abbreviations, a unit of one letter ("4 g.") ends a sentence before a capital; a short word with a full stop
    that begins a bracket ends none, nor does an initial before a bracket: "(Feat. L. D.) (Prod. by J. Doe)". Marks that
    end bold or slanted text belong to the sentence before them.
    """

    def __init__(self, abbreviations: Iterable[str]) -> None:
        words: dict[str, list[str]] = {"": [], "#": [], "~": []}
        for entry in abbreviations:
            word = entry.rstrip("#~").removesuffix(".").lower()
            words[entry[-1:] if entry[-1:] in "#~" else ""].append(word)
        self._punkt = Punkt(words[""], words["#"])
        self._has_abbreviations = any(words.values())
        often_last = [re.escape(word) for word in words["~"]]
        self._often_last = re.compile(rf"(?<!\w)(?:{'|'.join(often_last)})\.\Z", re.IGNORECASE) if often_last else None
        self._longest = max(map(len, often_last), default=0) + 2  # with its full stop, and the character before it

    def texts(self, text: str) -> list[str]:
        """Cut a text into its sentences."""
        return [text[start:stop] for start, stop in self.spans(text)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Find the sentences of a text as characters, half-open."""
        spans: list[tuple[int, int]] = []
        for start, stop in self._cut(text):
            if spans and spans[-1][1] == start and self._has_abbreviations and (marks := _EMPHASIS.match(text, start)):
                spans[-1] = spans[-1][0], start + len(marks[0].rstrip())
                start = marks.end()
            if start >= stop:
                continue
            if spans and self._is_one(text, *spans[-1], text[start]):
                start = spans.pop()[0]
            spans.append((start, stop))
        return spans

    def _cut(self, text: str) -> Iterator[tuple[int, int]]:
        for start, stop in self._punkt.spans(text):
            if self._has_abbreviations:
                for space in _AFTER_UNIT.finditer(text, start, stop):
                    yield start, space.start()
                    start = space.end()
            yield start, stop

    def _is_one(self, text: str, start: int, stop: int, letter: str) -> bool:
        """Tell whether a sentence goes on with this letter."""
        if not self._has_abbreviations or _AFTER_UNIT.match(text, stop):
            return False
        last = text[max(start, stop - _LONGEST_IN_BRACKETS) : stop]
        initial = _INITIAL.search(last)
        if _AFTER_BRACKET.search(last) or (initial and (letter == "(" if initial["closed"] else letter.isupper())):
            return True
        if self._often_last is None or not letter.islower():
            return False
        return self._often_last.search(text[max(start, stop - self._longest) : stop]) is not None


CLOSERS = frozenset("\"')]}\u2019\u201d\xbb＂＇）］｝｠〉》」』】〕〗〙〛〞〟｣")
"""Quotes and brackets that belong to the sentence before them, straight, curly, full-width and ideographic."""

_STOPS = frozenset("。！？｡")
_FULL_WIDTH_POINT = "．"
_AFTER_STOP = CLOSERS | _STOPS | frozenset(_FULL_WIDTH_POINT + ".?!\u2026")
"""Characters that belong to the sentence if they follow its full stop."""


def ends_cjk_sentence(text: str, start: int, stop: int, after: int) -> bool:
    """Tell whether a full stop ends a sentence at ``stop``, with its closing quotes and brackets.

    Text before ``start`` is ignored; ``after`` is the visible character that would start the next sentence. The
    full-width point is a full stop unless an ASCII letter or digit, or its full-width form, comes before it.
    """
    if stop == after and text[after] in _AFTER_STOP:
        return False
    end = stop
    while end > start and text[end - 1] in _AFTER_STOP:
        end -= 1
        before = text[max(end - 1, start) : end]
        is_latin = before.isalnum() and (before.isascii() or "０" <= before <= "ｚ")
        if text[end] in _STOPS or (text[end] == _FULL_WIDTH_POINT and not is_latin):
            return True
    return False


_MARKS = frozenset(",;:")
_FULL_WIDTH_MARKS = frozenset("，；：")


def ends_clause(text: str, start: int, stop: int, after: int) -> bool:
    """Tell whether a comma, semicolon or colon ends a clause; arguments as in :func:`ends_cjk_sentence`.

    White space must follow, except after full-width marks. The marks in "1,000", "May 5, 2003" and "e.g., this" end
    none.
    """
    if stop == after and text[after] in CLOSERS:
        return False
    end = stop
    while end > start and text[end - 1] in CLOSERS:
        end -= 1
    mark = text[end - 1] if end > start else ""
    if mark not in (_MARKS | _FULL_WIDTH_MARKS if stop < after else _FULL_WIDTH_MARKS):
        return False
    before = text[max(end - 2, 0)]
    return before != "." and not (before.isdigit() and text[after].isdigit())


_BULLET = r"[-*+\u2022\u2023\u25e6\u25aa\u25ab\u25cf\u25cb\u2013\u2014\u00b7]"
_HEADING = r"\#{1,6}"
_NUMERAL = r"(?:\d{1,3}|[ivx]{1,5}|[a-z])"
_IDEOGRAPHIC = r"[一二三四五六七八九十]{1,3}"  # one to ten

_BEFORE = rf"(?:(?:{_BULLET}|{_HEADING})[ \t]+)*"  # as in "- 1. " and "## 1. "
_BULLETS = re.compile(rf"(?:({_BULLET}|{_HEADING})[ \t]+)+")
_MARK = re.compile(
    rf"""{_BEFORE}(?:
        (?: {_BULLET} | {_HEADING} | {_NUMERAL}[.)] | [A-Z]\) | \((?:{_NUMERAL}|[A-Z])\) )\s
        | (?: \d{{1,3}}[．、）] | {_IDEOGRAPHIC}、
            | （(?:\d{{1,3}}|{_IDEOGRAPHIC})） | [①-⑳] )
    )""",
    re.VERBOSE,
)
"""Mark of a list item or heading; white space must follow, except after Chinese and Japanese marks."""

_BEGUN = re.compile(
    rf"""{_BEFORE}(?:
        (?: {_BULLET} | {_HEADING} | \(?(?:{_NUMERAL}|[A-Z])?[.)]? )
        | （?(?:\d{{1,3}}|{_IDEOGRAPHIC})?
    )""",
    re.VERBOSE,
)
"""Text that could become a mark, and some that could not."""

_HEADING_LINE = re.compile(rf"[ \t]*{_HEADING}[ \t]")


def ends_line(text: str, start: int, stop: int, after: int) -> bool:
    """Tell whether a line ends at ``stop``; arguments as in :func:`ends_cjk_sentence`."""
    return "\n" in text[stop:after]


def ends_paragraph(text: str, start: int, stop: int, after: int) -> bool:
    """Tell whether a blank line follows ``stop``."""
    return text.count("\n", stop, after) > 1


def ends_heading(text: str, start: int, stop: int, after: int) -> bool:
    """Tell whether a Markdown heading, which is one line, ends at ``stop``."""
    return "\n" in text[stop:after] and _HEADING_LINE.match(text, text.rfind("\n", 0, stop) + 1) is not None


def ends_item(text: str, start: int, stop: int, after: int) -> bool:
    """Tell whether a line with the mark of an item ends at ``stop``, and the next line begins a sentence."""
    if text[after - 1 : after] != "\n" or not text[after].isupper():
        return False
    line = text[text.rfind("\n", 0, stop) + 1 : stop].strip()
    return not line.rstrip("*_").endswith((":", "\uff1a")) and _MARK.match(line) is not None


_FENCE = ("```", "~~~")
_KEY_VALUE_LINE = re.compile(r"[ \t]*(?:\*\*|__)?[^\W_][^:.?!|\n]{0,40}:(?:\*\*|__)?[ \t]+\S")
_JSON_VALUE = re.compile(r"[\s\[\]{},]*\"(?:[^\"\\\n]|\\.){1,80}\"\s*:")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
ROW = re.compile(r"\s*\|")  # begins a row of a table, which is one sentence


def ends_row(text: str, start: int, stop: int, after: int) -> bool:
    """Tell whether a row of a table, a line ``Key: value``, a mark of code or a value of JSON ends at ``stop``."""
    if "\n" in text[stop:after]:
        line = text[text.rfind("\n", 0, stop) + 1 : stop]
        is_apart = text[after] in "|{" or (text[after] == "`" and line.endswith((":", ".", "}")))
        is_pair = _KEY_VALUE_LINE.match(line) is not None and not text[after].islower()
        if is_apart or is_pair or line.lstrip().startswith(("|", *_FENCE)):
            return True
    return text[after] == '"' and _ends_json_value(text, start, stop)


def _ends_json_value(text: str, start: int, stop: int) -> bool:
    """Tell whether text that a key of JSON follows, if a string does, is a value with its own key."""
    if text[stop - 1 : stop] not in (",", "{") or _JSON_VALUE.match(text, start, stop) is None:
        return False
    open_ = ""
    for mark in re.findall(r"[\[\]{}]", _STRING.sub("", text[start:stop])):
        open_ = open_ + mark if mark in "[{" else open_[:-1]
    return not open_.endswith("[")


def item_text_start(text: str, at: int, *, final: bool) -> int | None:
    """Find where the text of an item or heading begins, if its line begins at the visible character ``at``.

    ``at`` if there is no mark, and None if that depends on later text, which may come unless ``final``.
    """
    if not final and _BEGUN.fullmatch(text, at):
        return None
    mark = _MARK.match(text, at)
    return mark.end() if mark else at


def begun_mark(text: str, at: int) -> tuple[int, int]:
    """Find the last bullet from ``at`` on that only bullets precede, and the end of the white space after it.

    Without such a bullet, both are ``at``.
    """
    bullets = _BULLETS.match(text, at)
    return (bullets.start(1), bullets.end()) if bullets else (at, at)
