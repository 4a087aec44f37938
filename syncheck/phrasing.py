"""How a sentence is put: whether it has words for sources, words that often deny, or the beginning of a list item.

Answers that name their sources mostly repeat them, and statements that something is not said are judged otherwise
than what is said. What is looked for are a few forms, not the meaning. The words are English: in other languages the
first two are mostly 0, which an aggregator trained there learns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Phrasing", "has_letter", "phrasing"]

_SOURCE = re.compile(
    r"\b(?:passages?|contexts?|texts?|sources?|information|provided|mention(?:s|ed)?|stated?|according to|based on)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:no|not|none|neither|cannot|unable|without|however)\b|n['\u2019]t\b", re.IGNORECASE)
_LIST_ITEM = re.compile(r"\s*(?:\d+[.)](?!\d)|[-*\u2022])")


@dataclass(frozen=True, slots=True)
class Phrasing:
    """Each 1 where it is so, else 0.

    Attributes
    ----------
    source_mention : float
        Whether one of these words stands in it, in any case: passage, context, text and source, also in the plural,
        information, provided, mention, mentions, mentioned, state, stated, according to, based on.
    negation : float
        Whether one of these does: no, not, none, neither, cannot, unable, without, however, or a word on -n't. "He
        never won." and "Nothing was found." have none; "However, it rained." and "No. 5 is blue." have one.
    list_item : float
        Whether it begins, white space aside, with -, * or •, or with a number and a full stop or ")" that no digit
        follows. "-5 °C was measured." and "**Note** it." do; "(1) c" and "a) x" do not.
    """

    source_mention: float
    negation: float
    list_item: float


def has_letter(sentence: str) -> bool:
    """Whether a sentence has a letter of any script; the number of a list item has none, and says nothing by itself."""
    return any(map(str.isalpha, sentence))


def phrasing(sentence: str) -> Phrasing:
    """Return how a sentence is put."""
    return Phrasing(
        source_mention=float(bool(_SOURCE.search(sentence))),
        negation=float(bool(_NEGATION.search(sentence))),
        list_item=float(bool(_LIST_ITEM.match(sentence))),
    )
