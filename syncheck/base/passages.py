"""Passages with their names, and passages found word for word in texts such as the messages of a chat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from syncheck.base.checks import check_sequence, check_text
from syncheck.base.errors import PromptError, WrongTypeError

_GONE = "\ud800"
"""Stands for a passage that was found. No text that was checked has it, and it is no part of a word."""
_MARKS = "\"'“”‘’„«»"
_BLANK = r"[^\S\n]"
_BULLET = r"(?:[-*+•‣▪–—]|\(?\d{1,3}[.)]|\[\d{1,3}\])"
_HELD_PASSAGES = re.compile(
    rf"^{_BLANK}*+{_BULLET}?+[{_MARKS} \t]*+(?:{_GONE}[{_MARKS} \t]*+)++(?:\n|\Z)", re.MULTILINE
)
"""A line that contained only passages, with a bullet or without."""
_BEFORE = re.compile(rf"[^\W\d_],?{_BLANK}+[{_MARKS}]?\Z")
_AFTER = re.compile(rf"[{_MARKS}]?(?:['’]\w+|,)?{_BLANK}+[{_MARKS}]?([^\W\d_])")
_QUESTION_MARK = re.compile(rf"[{_MARKS}]?{_BLANK}*[?？]")
_LONGEST_BEFORE = 50
"""Number of characters before a passage that are looked at."""


class PassageNames(NamedTuple):
    """Names that an answer may cite a passage by; None for those that it lacks."""

    id: str | None = None
    title: str | None = None
    url: str | None = None


class Passage(str):
    """A passage with the names that an answer may cite it by: its text, accepted wherever a passage is.

    Parameters
    ----------
    text
        The text.
    id, title, url
        Its names; None for those that it lacks.

    Attributes
    ----------
    names : PassageNames
    """

    __slots__ = ("names",)
    names: PassageNames

    def __new__(cls, text: str, *, id: str | None = None, title: str | None = None, url: str | None = None) -> Passage:
        """Make a passage."""
        made = super().__new__(cls, text)
        made.names = PassageNames(id, title, url)
        return made


GivenPassages = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
"""A passage or several: strings, or mappings with ``text`` and perhaps ``id``, ``title`` and ``url``."""


def names_of(passage: str) -> PassageNames:
    """Look up the names of a passage, of which a plain string has none."""
    return passage.names if isinstance(passage, Passage) else PassageNames()


def cited_names(passages: Sequence[str]) -> frozenset[str]:
    """Collect all names of passages."""
    return frozenset(name for passage in passages for name in names_of(passage) if name)


def given_passages(given: object, name: str) -> tuple[str, ...]:
    """Take a passage or a list of passages, see :data:`GivenPassages`, as a tuple of texts, with their names.

    Anything else raises WrongTypeError, and a lone surrogate InputError; ``name`` is that of the argument.
    """
    entries = [given] if isinstance(given, str | Mapping) else given
    check_sequence(entries, name, of="strings")
    return tuple(_passage(entry, f"{name}[{n}]") for n, entry in enumerate(entries))  # type: ignore[arg-type,var-annotated]


def _passage(entry: object, name: str) -> str:
    if not isinstance(entry, Mapping):
        check_text(entry, name)
        return entry  # type: ignore[return-value]
    if "text" not in entry:
        raise WrongTypeError(f"{name} must be a string, or a mapping with its 'text'; found one with {sorted(entry)}")
    names = {key: entry[key] for key in ("id", "title", "url") if entry.get(key) is not None}
    for key, value in {"text": entry["text"], **names}.items():
        check_text(value, f"{name}[{key!r}]")
    return Passage(entry["text"], **names)


@dataclass(frozen=True, slots=True)
class _Place:
    """A passage in a text.

    ``is_inside`` says whether it is a part of a longer sentence, and ``is_needed`` whether that says nothing without
    it: the passage is one word, or ends a question.
    """

    passage: str
    start: int
    stop: int
    is_inside: bool
    is_needed: bool


def without_passages(texts: Sequence[str], passages: Sequence[str]) -> list[str]:
    """Remove the passages from texts, with lines and bullets that contained nothing else.

    Where a passage is a part of a longer sentence, it stays if it is also found elsewhere: the sentence quotes it.
    A passage of one word is not looked for inside other words.

    Raises
    ------
    PromptError
        If a passage is not found in any text, or only inside a sentence that says nothing without it.
    """
    for number, passage in enumerate(passages, 1):
        if not any(_pattern(passage).search(text) for text in texts):
            raise PromptError(
                f"passage {number}, {passage[:60]!r}..., is not in the messages word for word; pass the "
                "passages exactly as they appear there, or pass without=[...], the messages without them"
            )
    found = [_places(text, passages) for text in texts]
    apart = {place.passage for places in found for place in places if not place.is_inside}
    for text, places in zip(texts, found, strict=True):
        for place in places:
            if place.is_needed and place.passage not in apart:
                around = text[max(0, place.start - _LONGEST_BEFORE) : place.stop + _LONGEST_BEFORE]
                raise PromptError(
                    f"passage {passages.index(place.passage) + 1}, {place.passage[:60]!r}, is found only inside a "
                    f"sentence that says nothing without it: {around!r}; pass without=[...], the messages as they are "
                    "without the passages"
                )
    return [
        _cut(text, [place for place in places if not (place.is_inside and place.passage in apart)])
        for text, places in zip(texts, found, strict=True)
    ]


def _pattern(passage: str) -> re.Pattern[str]:
    """Build a pattern of a passage, word for word; one without white space is not found inside a longer word."""
    before, after = (r"(?<!\w)", r"(?!\w)") if re.fullmatch(r"\w(\S*\w)?", passage, re.ASCII) else ("", "")
    return re.compile(before + re.escape(passage) + after, re.ASCII)


def _places(text: str, passages: Sequence[str]) -> list[_Place]:
    """Find where passages are, in order; of two that overlap, the longer one."""
    spans: list[tuple[int, int, str]] = []
    for passage in sorted(dict.fromkeys(passages), key=len, reverse=True):
        spans += [(*match.span(), passage) for match in _pattern(passage).finditer(text)]
        text = _pattern(passage).sub(lambda match: _GONE * len(match[0]), text)
    return [_place(text, *span) for span in sorted(spans)]


def _place(text: str, start: int, stop: int, passage: str) -> _Place:
    """Describe a place in a text in which ``_GONE`` stands for the characters of all passages."""
    before = _BEFORE.search(text[max(0, start - _LONGEST_BEFORE) : start])
    after = _AFTER.match(text, stop) if passage[-1].isalnum() else None
    is_asked = _QUESTION_MARK.match(text, stop) is not None
    is_inside = is_asked or before is not None or (after is not None and after[1].islower())
    is_needed = is_asked or (is_inside and len(passage.split()) == 1)
    return _Place(passage, start, stop, is_inside, is_needed)


def _cut(text: str, places: Sequence[_Place]) -> str:
    """Cut the passages at these places, which are in order, from a text, and what is left empty by that."""
    pieces, end = [], 0
    for place in places:
        pieces += [text[end : place.start], _GONE]
        end = place.start + len(place.passage.rstrip())  # a line break at its end ends a line
    return _HELD_PASSAGES.sub("", "".join([*pieces, text[end:]])).replace(_GONE, "")
