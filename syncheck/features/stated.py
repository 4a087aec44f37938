"""What a sentence states, without the numbers of a list and the words that only name its source. English."""

from __future__ import annotations

import re

__all__ = ["statement"]

_NUMBERS = r"(?:\s+#?\d+(?:\s*(?:,|and|&|-)\s*(?:passage\s+)?\d+)*)?"
_SOURCE = (
    r"(?:the\s+|these\s+|this\s+)?(?:(?:given|provided|above|available|following|supplied|relevant)\s+)*"
    r"(?:passages?|contexts?|texts?|sources?|information|documents?|article)(?:\s+(?:given|provided|above))?" + _NUMBERS
)
_BEFORE = r"\b(?:according\s+to|based\s+(?:up)?on|from|as\s+(?:stated|mentioned|per|described)\s+in|in|per)\s+"
_SAYS = r"\s+(?:states?|says?|mentions?|notes?|explains?|suggests?|indicates?|provides?|describes?)(?:\s+that)?\b"
_ASIDE = re.compile(
    rf"{_BEFORE}{_SOURCE}\s*[,:]?|\b{_SOURCE}(?:\s+also)?{_SAYS}|\(\s*{_SOURCE}\s*\)"
    r"|(?:^|\n)\s*\d+[.)](?!\d)|\[\d+\]",
    re.IGNORECASE,
)


def statement(sentence: str) -> str:
    """Return a sentence without list numbers, citation marks and phrases such as "According to passage 2,".

    A sentence of nothing else is returned as it is.

    Examples
    --------
    >>> statement("1. According to passage 2, the bridge opened in 1967 [3].")
    'the bridge opened in 1967 .'
    """
    rest = " ".join(_ASIDE.sub(" ", sentence).split())
    return rest if re.search(r"\w", rest) else sentence
