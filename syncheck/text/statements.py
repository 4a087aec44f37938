"""Statements: what a sentence states once citations and asides are left out, and whether it calls that not stated."""

from __future__ import annotations

import re
from functools import lru_cache

_SOURCE = r"(?:passages?|contexts?|texts?|sources?|documents?|articles?|excerpts?|information)"
_TELLS = (
    r"(?:mention|specif|provid|state|say|tell|contain|includ|indicat|address|discuss|describ|explain|clear|given|list|"
    r"name)"
)
_NOT_STATED = re.compile(
    rf"""
    (?<!\bhe\ )(?<!\bshe\ )
        \b(?:do(?:es)?|is|are|was|were|has|have|can)(?:\s+not|n['\u2019]t)\s+(?:\w+\s+){{0,2}}?{_TELLS}
    | \b{_SOURCE}\s+(?:\w+\s+){{0,2}}?did(?:\s+not|n['\u2019]t)\s+(?:\w+\s+){{0,2}}?{_TELLS}
    | \b(?:none\s+of|nothing\s+in)\s+(?:\w+\s+){{0,2}}?{_SOURCE}
    | \b(?:not\s+enough|insufficient)\s+(?:\w+\s+)?(?:information|details?|evidence|data)\b
    | \bsays?\s+nothing\s+(?:about|on|of)\b
    | \bnothing\s+(?:is|was)\s+(?:said|told|stated|mentioned)\b
    | \b{_SOURCE}\s+(?:is|are|remains?)\s+silent\b
    | \bnowhere\s+(?:mentioned|stated|said|given|specified)\b
    | \b{_SOURCE}\s+(?:\w+\s+)?(?:gives?|provides?|contains?|makes?|offers?)\s+no\b
    | \bI(?:\s+(?:do|can|could)\s*not|\s+(?:do|ca|could)n['\u2019]t)\s+(?:know|answer|help|find|tell|say|determine)
    | \bimpossible\s+to\s+(?:answer|determine|know|say|tell)
    | \bno\s+(?:\w+\s+){{0,2}}?(?:information|evidence|details?|mention|indication|data)\b
    | \bun(?:able\s+to\s+(?:answer|determine|find|provide|say|tell)|clear|known|specified)\b
    | \bcannot\s+(?:be\s+)?(?:answer|determin|sa(?:y|id)|tell|told|find|found)
    | \bnot\s+(?!be\s)(?:\w+\s+)?(?:mentioned|specified|provided|stated|given|clear|known|available|addressed)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)

_NUMBERS = r"(?:\s+#?\d+(?:\s*(?:,|and|&|-)\s*(?:passage\s+)?\d+)*)?"
_CITED = (
    r"(?:the\s+|these\s+|this\s+)?(?:(?:given|provided|above|available|following|supplied|relevant)\s+)*"
    r"(?:passages?|contexts?|texts?|sources?|information|documents?|article)(?:\s+(?:given|provided|above))?" + _NUMBERS
)
_BEFORE = r"\b(?:according\s+to|based\s+(?:up)?on|from|as\s+(?:stated|mentioned|per|described)\s+in|in|per)\s+"
_SAYS = r"\s+(?:states?|says?|mentions?|notes?|explains?|suggests?|indicates?|provides?|describes?)(?:\s+that)?\b"
ASIDE = re.compile(
    rf"(?:^|\n)\s*passage\s+#?\d+:|{_BEFORE}{_CITED}\s*[,:]?|\b{_CITED}(?:\s+also)?{_SAYS}|\(\s*{_CITED}\s*\)"
    r"|(?:^|\n)\s*\d+[.)](?!\d)|\[\d+(?:\s*[,;\u2013-]\s*\d+)*\]",
    re.IGNORECASE,
)


@lru_cache(maxsize=256)
def statement(sentence: str) -> str:
    """Strip a sentence of list numbers, citation marks and phrases such as "According to passage 2,".

    A sentence that consists only of these is returned as it is. Results are cached for repeated use.

    Examples
    --------
    >>> statement("1. According to passage 2, the bridge opened in 1967 [3].")
    'the bridge opened in 1967 .'
    """
    rest = " ".join(ASIDE.sub(" ", sentence).split())
    return rest if re.search(r"\w", rest) else sentence


@lru_cache(maxsize=256)
def says_not_stated(sentence: str) -> bool:
    """Tell whether an English sentence calls something not stated: "The passages do not mention a price.".

    Results are cached, since a sentence is asked about more than once.
    """
    return bool(_NOT_STATED.search(sentence))
