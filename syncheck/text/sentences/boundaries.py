"""Boundaries of sentences in a growing text, found once later text cannot change them, and their configuration."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Literal, NamedTuple

from syncheck.base.checks import check_choice
from syncheck.base.errors import InputError
from syncheck.text.markup import end_of_marks, ends_with_marks
from syncheck.text.sentences import rules

LineBreaks = Literal["none", "paragraphs", "lists", "lines"]

MAX_SENTENCE_TOKENS = 256  # a sentence that has not ended by then is cut there and marked ``truncated``
MAX_SENTENCE_CHARACTERS = 1024  # for text that no tokenizer has read: about four to a token


@dataclass(frozen=True, slots=True)
class SegmenterConfig:
    """Segmentation of text into sentences; the defaults are those of NLTK's untrained Punkt, as in the paper.

    A monitor keeps the config it was trained with, so that it segments new text in the same way.

    Raises
    ------
    InputError
        If a value is outside the range described here.
    """

    max_tokens: int = MAX_SENTENCE_TOKENS
    """Longest sentence (or sentences taken as one) in tokens, at least 1; longer ones are cut there and marked
    ``truncated``."""
    max_characters: int = MAX_SENTENCE_CHARACTERS
    """The same in characters, where text alone is read."""
    abbreviations: tuple[str, ...] = ()
    """Words whose full stop ends no sentence, with the stop (``"Dr."``), in any case; with a ``#`` (``"No.#"``), only
    before a number; with a ``~`` (``"p.m.~"``), only before a small letter. Untrained Punkt knows none;
    :data:`syncheck.text.sentences.ENGLISH_ABBREVIATIONS` has English ones. A sentence that ends in an abbreviation is
    joined with the next."""
    line_breaks: LineBreaks = "none"
    """Line breaks that end a sentence. ``none``: none, as in Punkt. ``paragraphs``: those before a blank line.
    ``lists``: also those around a heading (``#``), a row of a table and a line ``Key: value``, before an item (``-``,
    ``*``, ``1.``, ``1)``, ``(a)`` and the like), whose mark then stays with its text, and after the line of an item if
    a capital follows; a value of JSON is a sentence too. Citation marks after a full stop ("[1]", links) then stay with
    the sentence before them. ``lines``: every line break."""
    cjk_stops: bool = False
    """True ends a sentence after a Chinese or Japanese full stop, and the closing quotes and brackets that follow it,
    with or without white space."""
    clauses: bool = False
    """True also ends a sentence at commas, semicolons and colons before white space (full-width ones anywhere)."""
    sentences: int = 1
    """Number of sentences (or clauses, with that option) that are taken together as one, at least 1."""

    def __post_init__(self) -> None:
        for name in ("max_tokens", "max_characters", "sentences"):
            if type(value := getattr(self, name)) is not int or value < 1:
                raise InputError(f"{name} must be a whole number of at least 1; found {value!r}")
        for name in ("cjk_stops", "clauses"):
            if type(getattr(self, name)) is not bool:
                raise InputError(f"{name} must be True or False; found {getattr(self, name)!r}")
        check_choice(self.line_breaks, "line_breaks", LineBreaks)
        if not isinstance(self.abbreviations, tuple):
            raise InputError(f"abbreviations must be a tuple of strings; found {self.abbreviations!r}")
        for entry in self.abbreviations:
            if not isinstance(entry, str) or entry.split() != [entry] or not any(map(str.isalpha, entry)):
                raise InputError(
                    f"each entry of abbreviations must be a word with a letter, such as 'Dr.'; found {entry!r}"
                )


Break = Callable[[str, int, int, int], bool]
"""Tells whether a sentence ends, whatever Punkt says, from the text, where to begin, its end and the next start."""

_LINE_BREAKS: dict[str, tuple[Break, ...]] = {
    "none": (),
    "paragraphs": (rules.ends_paragraph,),
    "lists": (rules.ends_paragraph, rules.ends_heading, rules.ends_item, rules.ends_row, ends_with_marks),
    "lines": (rules.ends_line,),
}
_TERMINALS = frozenset(".?!")
_UNDECIDED = _TERMINALS | frozenset("\"')]}\u2018\u2019\u201c\u201d\xab\xbb-,")
"""Text that starts with these may belong to the sentence before (closers, ellipses, dashes), or is not yet a word."""
_ASCII_SPACE = frozenset(string.whitespace)
_LETTERS = re.compile(r"[^\W_]+")
_NEXT = " A"  # text that is put after a block for Punkt, which would divide "!!" at the end of a text
_LONGEST_MARK = 10  # number of characters at the start of a line that show whether there is a mark
_WORDS = 2  # after a full stop, at whose starts Punkt runs: it may depend on all of the first word
_READ_WORDS = 3  # that Punkt reads: the last, which may go on, the one before, which depends on it, and one more
_CJK_STOP = re.compile("[\u3002\uff01\uff1f\uff61]")


class Boundary(NamedTuple):
    """Characters where one sentence ends (``stop``) and the next starts (``after``), with white space between them."""

    stop: int
    after: int
    block: int  # where the text that decides the end of the later sentence begins, at most ``after``
    seen: int  # the boundary is certain once the text is known up to here


class BoundaryFinder:
    """Finds the boundaries that the rules of a config give for the whole text; by default those of untrained Punkt.

    Line breaks, CJK full stops and clauses divide the text into blocks. The end of a block is certain at the next
    visible character, or once the mark of an item is complete. With ``lists``, a boundary that citation marks follow
    moves behind them, once what comes after them is known.

    Within a block, Punkt runs at the first character of a word after a full stop, on the text since the last boundary.
    Quotes, closing brackets, full stops, dashes and commas are passed over: until another character follows, they may
    belong to the earlier sentence. A boundary that Punkt finds there, and that ASCII white space follows, it also finds
    in the whole text, since it looks at the word before a full stop and at the beginning of the word after it. So a
    word is settled once the word after it is complete: Punkt reads the last three words alone, and the work grows with
    the text and not with its square.
    """

    def __init__(self, config: SegmenterConfig) -> None:
        self._cutter = rules.SentenceCutter(config.abbreviations)
        cjk = (rules.ends_cjk_sentence,) if config.cjk_stops else ()
        clauses = (rules.ends_clause,) if config.clauses else ()
        self._breaks = (*_LINE_BREAKS[config.line_breaks], *cjk, *clauses)
        self._has_items = config.line_breaks in ("lists", "lines")
        self._keeps_marks = config.line_breaks == "lists"
        self.restart(0, block=0)

    def restart(self, char: int, *, block: int) -> None:
        """Restart at a character where a sentence starts; ``block`` is as in :class:`Boundary`."""
        # Of citation marks that may follow a boundary: those boundaries, and the end of the last marks.
        self._waiting: tuple[Boundary, ...] = ()
        self._cited = -1
        self._tail = self._seen = char  # the last boundary; characters looked at
        self._block = block  # nothing before it is looked at
        self._unsettled = char  # Punkt found no boundary before that is not reported
        self._begun = (0, 0)  # last bullet of a line of bullets alone, and the end of the white space after it
        self._terminal = -1  # the last one
        self._word: int | None = None  # start of a word of which only white space is known
        self._clear()

    def _clear(self) -> None:
        self._armed = False  # white space and only undecided characters since
        self._is_between = False  # between words
        self._words: tuple[int, ...] = ()  # starts of the last words
        self._words_left = 0  # at whose start Punkt is to run

    def fork(self) -> BoundaryFinder:
        """Make an independent copy."""
        return copy(self)

    def find(self, text: str, *, final: bool = False) -> list[Boundary]:
        """Find the boundaries that have become certain since the last call; all of them if the text is ``final``."""
        boundaries = self._find(text, final=final)
        return self._after_marks(text, boundaries, final=final) if self._keeps_marks else boundaries

    def _after_marks(self, text: str, boundaries: Iterable[Boundary], *, final: bool) -> list[Boundary]:
        """Move boundaries behind the citation marks that follow them; those within marks are left out."""
        self._waiting += tuple(boundaries)
        settled: list[Boundary] = []
        while self._waiting:
            boundary, *others = self._waiting
            if not self._is_within_marks(text, boundary):
                end = end_of_marks(text, boundary.stop, seen=len(text), final=final)
                if end is None:
                    break
                seen = max(boundary.seen, boundary.after + 1)
                while seen < len(text) and end_of_marks(text, boundary.stop, seen=seen, final=False) != end:
                    seen += 1
                boundary = boundary._replace(seen=seen)
                if end > boundary.stop:
                    after = next((at for at in range(end, len(text)) if not text[at].isspace()), len(text))
                    if not final and self._seen <= after:
                        break  # a block may end there too
                    block = next((other.block for other in others if other.after == after), boundary.block)
                    seen = min(max(seen, after + _LONGEST_MARK), len(text))
                    boundary, self._cited = Boundary(end, after, block, seen), after
                if boundary.after < len(text):
                    settled.append(boundary)
            self._waiting = tuple(others)
        return settled

    def _is_within_marks(self, text: str, boundary: Boundary) -> bool:
        """Tell whether a boundary lies within the last citation marks, or Punkt found it for a full stop of theirs."""
        if self._cited < 0 or boundary.after <= self._cited:
            return self._cited >= 0
        terminals = (text.find(terminal, self._cited, boundary.stop) for terminal in _TERMINALS)
        return boundary.block < boundary.stop and max(terminals) < 0

    def _find(self, text: str, *, final: bool) -> list[Boundary]:
        boundaries: list[Boundary] = []
        while self._seen < len(text):
            at = self._seen
            char = text[at]
            if char.isspace():
                self._pass_space(at, is_ascii=char in _ASCII_SPACE)
                self._seen += 1
                continue
            if self._breaks and not (at and text[at - 1].isalnum()):
                stop = _stop_before(text, at)
                text_start = self._text_start(text, stop, at, final=final)
                if text_start is None:
                    return boundaries
                boundaries += self._end_block(text, stop, at, text_start)
                if text_start > at:
                    continue
            if self._is_between:
                self._words = (*self._words[1 - _READ_WORDS :], at if self._word is None else self._word)
                self._is_between = False
            if char in _TERMINALS:
                self._words_left, self._terminal = _WORDS, at
            if char not in _UNDECIDED:
                if self._armed and self._words_left:
                    boundaries += self._ask_punkt(text, at + 1)
                self._armed = False
            letters = _LETTERS.match(text, at)
            self._seen = letters.end() if letters else at + 1  # what goes on decides nothing
        return boundaries + self._boundaries(text, len(text)) if final else boundaries

    def _pass_space(self, at: int, *, is_ascii: bool) -> None:
        """Pass over white space, which ends a word of Punkt if it is ASCII, and else may begin one."""
        if is_ascii:
            self._armed, self._is_between, self._word = True, True, None
        elif self._is_between and self._word is None:
            self._word = at

    def _text_start(self, text: str, stop: int, at: int, *, final: bool) -> int | None:
        """Find where the text after the mark of an item begins: ``at`` without a mark, None if not yet decided."""
        if not (self._has_items and (stop == 0 or "\n" in text[stop:at])):
            return at
        bullet, seen = self._begun
        if bullet >= at and not final and seen < len(text) and not text[seen:].strip(" \t"):
            self._begun = bullet, len(text)
            return None
        text_start = rules.item_text_start(text, max(bullet, at), final=final)
        if text_start is None:
            self._begun = rules.begun_mark(text, max(bullet, at))
        return text_start

    def _end_block(self, text: str, stop: int, at: int, text_start: int) -> list[Boundary]:
        """Collect all boundaries up to ``at`` if a block ends there, and pass over the mark of an item."""
        boundaries: list[Boundary] = []
        breaks = text_start > at or any(ends(text, self._block, stop, at) for ends in self._breaks)
        if breaks and text[self._tail : stop].strip():
            inner = self._boundaries(text, stop, after=_NEXT)
            seen = min(text_start + (_LONGEST_MARK if self._has_items else 1), len(text))
            before = (boundary._replace(seen=seen) for boundary in inner if boundary.after < stop)
            boundaries = [*before, Boundary(stop, at, stop, seen)]
            self._tail, self._block = at, stop
            self._clear()
        if text_start > at:
            self._tail = self._block = self._seen = text_start
            self._clear()
        return boundaries

    def _ask_punkt(self, text: str, seen: int) -> list[Boundary]:
        """Find Punkt's boundaries in the text up to ``seen`` that white space follows."""
        boundaries = self._boundaries(text, seen)
        certain = list(takewhile(lambda boundary: not _ASCII_SPACE.isdisjoint(text[boundary.stop : seen]), boundaries))
        if certain:
            self._tail = certain[-1].after
        if self._terminal < self._tail:
            self._words_left = 0
        elif len(certain) == len(boundaries):
            self._words_left -= 1
        if len(self._words) == _READ_WORDS:
            self._unsettled = self._words[0]
        return certain

    def _boundaries(self, text: str, seen: int, *, after: str = "") -> list[Boundary]:
        """Find Punkt's boundaries in the open text up to ``seen``."""
        if self._has_items and rules.ROW.match(text, self._block):
            return []
        offset = self._unsettled if self._unsettled > self._tail else self._start(text, seen)
        spans = self._cutter.spans(text[offset:seen] + after)
        boundaries: list[Boundary] = []
        last = self._tail
        for (_, stop), (start, _) in pairwise(spans):
            if text[last : offset + stop].strip():  # else it has been reported
                last = offset + start
                boundaries.append(Boundary(offset + stop, last, self._block, seen))
        return boundaries

    def _start(self, text: str, seen: int) -> int:
        """Go back to the start of Punkt's word, the text between ASCII white space."""
        offset = self._tail
        while 0 < offset < seen and text[offset].isspace():
            offset += 1
        while offset > self._block and text[offset - 1] not in _ASCII_SPACE:
            offset -= 1
        return offset


def _stop_before(text: str, at: int) -> int:
    while at and text[at - 1].isspace():
        at -= 1
    return at
