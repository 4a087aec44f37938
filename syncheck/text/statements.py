"""Statements: what a sentence states once citations and asides are left out, and sentences that state nothing.

Sentences that state nothing are phrases of conversation ("I hope this helps!"), short headings, references
("Source: [1]"), and those that call something not stated.
"""

from __future__ import annotations

import re
from functools import lru_cache

from syncheck.text.words import words

_SOURCE = r"(?:passages?|contexts?|texts?|sources?|documents?|articles?|excerpts?|information)"
_TELLS = (
    r"(?:mention|specif|provid|state|say|tell|contain|includ|indicat|address|discuss|describ|explain|clear|given|list)"
)
_NOT_STATED = re.compile(
    rf"""
    (?<!\bhe\ )(?<!\bshe\ )
        \b(?:do(?:es)?|is|are|was|were|has|have|can)(?:\s+not|n['\u2019]t)\s+(?:\w+\s+){{0,2}}?{_TELLS}
    | \b{_SOURCE}\s+(?:\w+\s+){{0,2}}?did(?:\s+not|n['\u2019]t)\s+(?:\w+\s+){{0,2}}?{_TELLS}
    | \b(?:none\s+of|nothing\s+in)\s+(?:\w+\s+){{0,2}}?{_SOURCE}
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
_ASIDE = re.compile(
    rf"(?:^|\n)\s*passage\s+#?\d+:|{_BEFORE}{_CITED}\s*[,:]?|\b{_CITED}(?:\s+also)?{_SAYS}|\(\s*{_CITED}\s*\)"
    r"|(?:^|\n)\s*\d+[.)](?!\d)|\[\d+(?:\s*[,;\u2013-]\s*\d+)*\]",
    re.IGNORECASE,
)
_ANSWERS = frozenset("yes no yeah yep nope sure okay ok certainly absolutely definitely indeed exactly".split())
_CITING = frozenset("source sources reference references citation citations see".split())
_CITED_PARTS = frozenset("passage passages context text document documents article section the and no".split())
_ASSENT = r"(?:sure|certainly|of\ course|absolutely|okay|ok|yes)"
_PHRASES = re.compile(
    rf"""(?:{_ASSENT}[,!.]*\s+)?(?:
        (?:here|below|following)\s+(?:is|are)\s[^.:;!?\d]{{0,60}}:
      | (?:i\ can|i[\u2019']?(?:d|ll)|let\ me|(?:i\ would|i\ am|i[\u2019']m)?\ ?(?:happy|glad|pleased)\ to)\s
        (?:be\ (?:happy|glad)\ to\s)?(?:help|assist)[^.:;!?\d]{{0,40}}
      | i\ hope\ (?:this|that|it)\ (?:helps|answers|was\ helpful)[^.:;!?\d]{{0,40}}
      | (?:please\s)?let\ me\ know\ (?:if|should)\s[^.:;!?\d]{{0,80}}
      | (?:please\s)?feel\ free\ to\ (?:ask|reach\ out)(?:\s(?:me|us))?(?:\ if\ you\ [^.:;!?\d]{{0,40}})?
      | if\ you\ have\ (?:any|more|other|further)\s[^.:;!?\d]{{0,20}}questions[^,.:;!?\d]{{0,50}},?\s
        (?:please\s|just\s)?(?:let\ me\ know|ask|feel\ free\ to\ ask|do\ not\ hesitate\ to\ ask)
      | (?:good\ luck|you[\u2019']?re\ welcome|(?:thanks|thank\ you)(?:\ for\ (?:asking|your\ question))?)
      | have\ a\ (?:nice|great|good|lovely)\s\w+
    )[!.:?\s]*""",
    re.IGNORECASE | re.VERBOSE,
)

_HEADING = re.compile(
    r"""(?:\#{1,6}\s+(?P<bold>\*\*|__)?|(?P<alone>\*\*|__))(?P<marked>[^\d.!?*_\n]+?):?\s*(?:(?P=bold)|(?P=alone)|$)
        :?\s*\#*\s*
      | (?P<label>[^\d.!?*_\n:]+):""",
    re.VERBOSE,
)
_MARKED_WORDS, _LABEL_WORDS = 5, 3
_STATING = frozenset(
    "is are was were be been has have had do does did can could will would shall should must may might need not no "
    "never none nothing nobody without all every always only".split()
)


@lru_cache(maxsize=256)
def statement(sentence: str) -> str:
    """Return a sentence without list numbers, citation marks and phrases such as "According to passage 2,".

    A sentence that consists only of these is returned as it is. One is asked about more than once.

    Examples
    --------
    >>> statement("1. According to passage 2, the bridge opened in 1967 [3].")
    'the bridge opened in 1967 .'
    """
    rest = " ".join(_ASIDE.sub(" ", sentence).split())
    return rest if re.search(r"\w", rest) else sentence


@lru_cache(maxsize=256)
def says_not_stated(sentence: str) -> bool:
    """Return True if an English sentence calls something not stated: "The passages do not mention a price.".

    A sentence is asked about more than once.
    """
    return bool(_NOT_STATED.search(sentence))


def is_bare_answer(sentence: str) -> bool:
    """Return True for "Yes.", "No." and the like, which say nothing without their question."""
    return _ANSWERS.issuperset(words(sentence))


def is_reference(sentence: str) -> bool:
    """Return True if a sentence does no more than name passages: "(Source: passage 2)", "Sources: [1], [3]"."""
    first, *rest = words(sentence) or [""]
    return first in _CITING and bool(rest) and all(word.isdigit() or word in _CITED_PARTS for word in rest)


def is_conversation(sentence: str) -> bool:
    """Return True if an English sentence is no more than a phrase of conversation.

    Such a phrase has no number, and nothing after it but punctuation. It may still name things: whoever asks makes sure
    that the context has none of them.
    """
    return _PHRASES.fullmatch(sentence.strip()) is not None


def is_heading(sentence: str) -> bool:
    """Return True for a short heading without a number or a verb that states something.

    Headings are those of Markdown, lines in bold, and up to three words with a colon: "## Overview", "**Key points**",
    "Benefits:". As with phrases of conversation, whoever asks makes sure that the context has none of their words.
    """
    found = _HEADING.fullmatch(sentence.strip())
    if found is None:
        return False
    named = words(found["marked"] or found["label"])
    return 0 < len(named) <= (_MARKED_WORDS if found["marked"] else _LABEL_WORDS) and _STATING.isdisjoint(named)
