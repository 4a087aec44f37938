"""What claims nothing: phrases of conversation ("I hope this helps!"), short headings, references ("Source: [1]")."""

from __future__ import annotations

import re

from syncheck.text.words import words

_ANSWERS = frozenset("yes no yeah yep nope sure okay ok certainly absolutely definitely indeed exactly".split())
_CITING = frozenset("source sources reference references citation citations see".split())
_CITED = frozenset("passage passages context text document documents article section the and no".split())
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


def is_bare_answer(sentence: str) -> bool:
    """Return True for "Yes.", "No." and the like, which say nothing without their question."""
    return _ANSWERS.issuperset(words(sentence))


def is_reference(sentence: str) -> bool:
    """Return True if a sentence does no more than name passages: "(Source: passage 2)", "Sources: [1], [3]"."""
    first, *rest = words(sentence) or [""]
    return first in _CITING and bool(rest) and all(word.isdigit() or word in _CITED for word in rest)


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
