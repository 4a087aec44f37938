"""Line breaks that end a sentence, and the marks that begin an item of a list or a heading."""

from __future__ import annotations

import re

__all__ = ["ends_heading", "ends_line", "ends_paragraph", "item_text_start"]

_BULLET = r"[-*+\u2022\u2023\u25e6\u25aa\u25ab\u25cf\u25cb\u2013\u2014\u00b7]"
_HEADING = r"\#{1,6}"
_NUMERAL = r"(?:\d{1,3}|[ivx]{1,5}|[a-z])"
_IDEOGRAPHIC = r"[一二三四五六七八九十]{1,3}"  # one to ten

_BEFORE = rf"(?:(?:{_BULLET}|{_HEADING})[ \t]+)*"  # as in "- 1. " and "## 1. "
_MARK = re.compile(
    rf"""{_BEFORE}(?:
        (?: {_BULLET} | {_HEADING} | {_NUMERAL}[.)] | [A-Z]\) | \((?:{_NUMERAL}|[A-Z])\) )\s
        | (?: \d{{1,3}}[．、）] | {_IDEOGRAPHIC}、
            | （(?:\d{{1,3}}|{_IDEOGRAPHIC})） | [①-⑳] )
    )""",
    re.VERBOSE,
)
"""White space must follow, but for the marks of Chinese and Japanese."""

_BEGUN = re.compile(
    rf"""{_BEFORE}(?:
        (?: {_BULLET} | {_HEADING} | \(?(?:{_NUMERAL}|[A-Z])?[.)]? )
        | （?(?:\d{{1,3}}|{_IDEOGRAPHIC})?
    )""",
    re.VERBOSE,
)
"""All that could become a mark, and some that could not."""

_HEADING_LINE = re.compile(rf"[ \t]*{_HEADING}[ \t]")


def ends_line(text: str, start: int, stop: int, after: int) -> bool:
    """Whether a line ends at ``stop``; the arguments are those of :func:`syncheck.segments.cjk.ends_cjk_sentence`."""
    return "\n" in text[stop:after]


def ends_paragraph(text: str, start: int, stop: int, after: int) -> bool:
    """Whether a blank line follows ``stop``."""
    return text.count("\n", stop, after) > 1


def ends_heading(text: str, start: int, stop: int, after: int) -> bool:
    """Whether a Markdown heading, which is one line, ends at ``stop``."""
    return "\n" in text[stop:after] and _HEADING_LINE.match(text, text.rfind("\n", 0, stop) + 1) is not None


def item_text_start(text: str, at: int, *, final: bool) -> int | None:
    """Return where the text of a list's item or of a heading begins, behind its mark.

    Parameters
    ----------
    text
        The response as far as it is known.
    at
        Where a line's first visible character is.
    final
        Whether no more text will come.

    Returns
    -------
    int or None
        ``at`` when no mark is there; None when it takes more text to tell.
    """
    if not final and _BEGUN.fullmatch(text, at):
        return None
    mark = _MARK.match(text, at)
    return mark.end() if mark else at
