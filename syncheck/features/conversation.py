"""Phrases of conversation, which claim nothing: "Sure!", "Here is a summary:", "I hope this helps!"."""

from __future__ import annotations

import re

from syncheck.lexical import words

_ANSWERS = frozenset("yes no yeah yep nope sure okay ok certainly absolutely definitely indeed exactly".split())
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


def is_bare_answer(sentence: str) -> bool:
    """Return True for "Yes.", "No." and the like, which say nothing without their question."""
    return _ANSWERS.issuperset(words(sentence))


def is_conversation(sentence: str) -> bool:
    """Return True if an English sentence is no more than a phrase of conversation.

    Such a phrase has no number, and nothing after it but punctuation. It may still name things: whoever asks makes sure
    that the context has none of them.
    """
    return _PHRASES.fullmatch(sentence.strip()) is not None
