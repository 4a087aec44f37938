"""Untrained Punkt (Kiss and Strunk, 2006), as in NLTK, whose import takes longer than scoring an answer.

Its rules, and the patterns of a word and of a possible end of a sentence, are NLTK's (Apache-2.0); what only training
could teach, other than abbreviations, is left out.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Iterator
from functools import cache
from itertools import pairwise

import regex

_ENDS = (".", "?", "!")
_PUNCTUATION = frozenset(";:,.!?")
_NO_WORD = r"""[)";}\]*:@'({\[\u2018\u2019\u201c\u201d\xab\xbb?!]"""
"""Characters that end a word."""
_SEVERAL = r"(?:-{2,}|\.{2,}|(?:\.\s){2,}\.)"
"""Dashes and ellipses."""
_NUMBER = "##number##"


@cache
def _word() -> regex.Pattern[str]:
    end = rf"\s|$|{_NO_WORD}|{_SEVERAL}|,(?=$|\s|{_NO_WORD}|{_SEVERAL})"
    return regex.compile(rf"""{_SEVERAL}|(?=[^("`{{\[:;&#*@)}}\]\-,])\S+?(?={end})|\S""")


@cache
def _possible_end() -> regex.Pattern[str]:
    return regex.compile(rf"[.?!](?=(?P<after>{_NO_WORD}|\s+(?P<next>\S+)))")


@cache
def _closers() -> regex.Pattern[str]:
    return regex.compile(r"""["')\]}\u2018\u2019\u201c\u201d\xab\xbb]+?(?:\s+|(?=--)|$)""", regex.MULTILINE)


@cache
def _numeric() -> regex.Pattern[str]:
    return regex.compile(r"^-?[.,]?\d[\d,.-]*\.?$")


@cache
def _initial() -> regex.Pattern[str]:
    return regex.compile(r"[^\W\d]\.$")


class Punkt:
    """Cuts a text into sentences.

    Parameters
    ----------
    abbreviations
        Words in small letters that a full stop may follow within a sentence.
    before_numbers
        Such words that are abbreviations only before a number.
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
            if following and (closers := _closers().match(text[slice(*following)])):
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
        found = [word for line in context.split("\n") if line.strip() for word in _word().findall(line)]
        return any(self._ends(word, following) for word, following in pairwise(found))

    def _ends(self, word: str, following: str) -> bool:
        ends = self._may_end(word)
        if not word.endswith("."):
            return ends
        kind, next_kind = _without_stop(_kind(word)), _kind(following)
        if next_kind != _NUMBER and self._may_end(following):
            next_kind = _without_stop(next_kind)
        if kind in self._before_numbers and next_kind == _NUMBER:
            return False
        is_initial = _initial().match(word) is not None
        if is_initial or kind == _NUMBER:
            first = following[0]
            if following in _PUNCTUATION or first.islower() or (is_initial and first.isupper()):
                return False
        return ends

    def _may_end(self, word: str) -> bool:
        """Tell whether a sentence ends after a word, whatever follows."""
        if word in _ENDS:
            return True
        before = word[:-1].lower()
        return (
            word.endswith(".")
            and not word.endswith("..")
            and before not in self._abbreviations
            and before.rpartition("-")[2] not in self._abbreviations
        )


def _kind(word: str) -> str:
    """Convert a word to small letters, or any number to one common name."""
    lower = word.lower()
    return _NUMBER if _numeric().match(lower) else lower


def _without_stop(kind: str) -> str:
    return kind[:-1] if len(kind) > 1 and kind.endswith(".") else kind


def _contexts(text: str) -> Iterator[tuple[regex.Match[str], str]]:
    """Yield each mark that may end a sentence, with the words around it.

    Of several marks in one word, only the last counts.
    """
    last: regex.Match[str] | None = None
    begin = stop = 0  # of the word before the last mark
    for mark in _possible_end().finditer(text):
        space = max(text.rfind(char, stop, mark.start()) for char in string.whitespace)
        start = space + 1 if space > stop else begin
        if last is not None and stop <= start:
            yield last, text[begin:stop] + last.group() + last.group("after")
        last, begin, stop = mark, start, mark.start()
    if last is not None:
        yield last, text[begin:stop] + last.group() + last.group("after")
