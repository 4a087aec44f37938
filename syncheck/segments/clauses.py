"""Clauses: the parts of a sentence between commas, semicolons and colons."""

from __future__ import annotations

from syncheck.segments.cjk import CLOSERS

__all__ = ["ends_clause"]

_MARKS = frozenset(",;:")
_FULL_WIDTH_MARKS = frozenset("，；：")


def ends_clause(text: str, start: int, stop: int, after: int) -> bool:
    """Whether a comma, semicolon or colon ends a clause at ``stop``, with closing quotes and brackets.

    Parameters
    ----------
    text, start, stop, after
        As for :func:`syncheck.segments.cjk.ends_cjk_sentence`.

    Notes
    -----
    White space must follow, but for the full-width marks. Between digits a mark belongs to a number or a date
    ("1,000", "May 5, 2003"), after a full stop to an abbreviation ("e.g., this").
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
