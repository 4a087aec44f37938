"""What claims nothing: headings and labels, questions, phrases of conversation, references, and what repeats itself.

Whether a word states something is an open question, so the words that a courtesy or a label in bold may have are
listed. Anything else, such as a verb, a number or a name, makes the sentence a claim.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from syncheck.base.files import asset_patterns, asset_words
from syncheck.text.words import without_stop_words, words

_WORDS = asset_words("english/words.txt")
SOURCES = rf"(?:{'|'.join(sorted(_WORDS['sources']))})s?"
"""Pattern of the nouns by which an answer calls its passages."""
PATTERNS = asset_patterns("english/claimless.txt", sources=SOURCES)
_MARKED_WORDS, _LABEL_WORDS = 5, 3
"""Largest numbers of words of a heading, and of a label with a colon."""
_LEADING_WORDS = 8
"""Largest number of words of what leads in to a list."""
_PREPOSITIONS = frozenset("about at before by during for from in of on with".split())
_ASKING = frozenset("how what when where which who why".split())
_QUOTES = frozenset("\"'\u2018\u2019\u201c\u201d")
_REPEATED_WORDS = 5
"""Number of times in a row from which a word is repeated as no writer does."""


def is_bare_answer(sentence: str) -> bool:
    """Tell whether a sentence is "Yes.", "No." or the like, which says nothing without its question."""
    return _WORDS["answers"].issuperset(words(sentence))


def is_reference(sentence: str) -> bool:
    """Tell whether a sentence does no more than name passages: "(Source: passage 2)", "Sources: [1], [3]"."""
    if PATTERNS["locates"].fullmatch(sentence.strip(" *_#>-")) or not re.search(
        r"\w", PATTERNS["aside"].sub(" ", sentence)
    ):
        return True
    first, *rest = words(sentence) or [""]
    return first in _WORDS["citing"] and all(word.isdigit() or word in _WORDS["cited parts"] for word in rest)


def is_conversation(sentence: str) -> bool:
    """Tell whether an English sentence is no more than a phrase of conversation, or what an assistant says of itself.

    Such a phrase has no number, nothing after it but punctuation, and only words that occur in labels or courtesies, or
    says that an AI speaks.
    """
    if PATTERNS["of itself"].fullmatch(sentence.strip()):
        return True
    if PATTERNS["phrases"].fullmatch(sentence.strip()) is None:
        return False
    return all(_is_of_labels(word, also=_WORDS["polite"]) for word in without_stop_words(words(sentence)))


def is_label(sentence: str) -> bool:
    """Tell whether a sentence is a short heading that says what follows it and states nothing.

    Headings are those of Markdown, lines in bold, and up to three words with a colon: "## Overview", "**Key
    points**", "Side effects:". A text that may be a short statement ("treatment useful"), or have a verb that looks
    like a plural ("treatment causes symptoms"), is not a heading. So are up to eight words with a colon at their end
    that ask or announce, or have no verb and are in bold or begin with a preposition: "What happens next:", "Here is
    the export:", "**Prices (peak):**", "For your group on 24 May:".
    """
    if _leads_in(sentence.strip()):
        return True
    heading = PATTERNS["heading"].fullmatch(sentence.strip())
    if heading is None:
        return False
    named = words(heading["marked"] or heading["label"])
    is_heading = heading["label"] is None
    if (re.match(r"\#{1,6}\s", sentence.strip()) or not is_heading) and _is_noun_phrase(named, is_heading):
        return True
    if (
        not 0 < len(named) <= (_MARKED_WORDS if heading["marked"] else _LABEL_WORDS)
        or named[0] in _WORDS["between nouns"]
    ):
        return False
    if not all(word in _WORDS["before nouns"] | _WORDS["between nouns"] or _is_of_labels(word) for word in named):
        return False
    ends_in_noun = _is_of_labels(named[-1]) and (len(named) == 1 or named[-1] not in _WORDS["qualifying"])
    return ends_in_noun and not any(
        word.endswith("s") and word not in _WORDS["labels"] and after not in _WORDS["between nouns"]
        for word, after in pairwise(named)
    )


def _leads_in(text: str) -> bool:
    plain, read = text.strip("*_ "), words(re.sub(r"(?<!^)\bMay\b", "", text))  # the month is no verb
    if not plain.endswith(":") or not 0 < len(read) <= _LEADING_WORDS:
        return False
    is_here = read[0] == "here" and read[1:2] in (["is"], ["are"])
    if read[0] in _ASKING or (is_here and not re.match(r"\w+ \w+ [A-Z]", plain)):  # of a name more may be said
        return True
    has_verb = not _WORDS["verbs"].isdisjoint(read) or any(word.endswith(("ed", "ing")) for word in read)
    is_bold = text.startswith(("**", "__")) and text.endswith(("**", "__"))
    return not has_verb and (is_here or is_bold or read[0] in _PREPOSITIONS)


def is_question(sentence: str) -> bool:
    """Tell whether a sentence asks; "Did you know that ..." does not."""
    text = sentence.strip(" *_)")
    if text[-1:] in _QUOTES and text[:1] in _QUOTES:
        text = text[1:-1]  # a question that is quoted at the end of a sentence does not make it one
    return text.endswith(("?", "\uff1f")) and not text.lower().startswith("did you know")


def is_degenerate(sentence: str) -> bool:
    """Tell whether a sentence is a word or phrase again and again: "phone phone phone", "the cat the cat the cat"."""
    read = [word for word in words(sentence) if not word.isdigit()]
    if len(read) > 2 and len({*read}) == 1 and not _WORDS["answers"].issuperset(read):
        return True
    for size in range(1, 5):
        run = 1
        for at in range(size, len(read) - size + 1, 1 if size == 1 else size):
            run = run + 1 if read[at : at + size] == read[at - size : at] else 1
            if run >= _REPEATED_WORDS:
                return True
    return any(len(word) > 15 and word.isalpha() and len({*word}) < 3 for word in read)


def repeats_sentence(sentence: str, earlier: Sequence[str]) -> bool:
    """Tell whether a sentence of three words or more is the one before it again, or comes for the third time."""
    read = words(sentence)
    if len(read) < 3 or not earlier:
        return False
    plain = sentence.strip()
    return plain == earlier[-1].strip() or sum(plain == one.strip() for one in earlier) > 1


def _is_noun_phrase(named: Sequence[str], is_heading: bool) -> bool:
    """Tell whether the words of a heading, or of a label with a colon, hold no verb, number or negation."""
    if not 0 < len(named) <= (_MARKED_WORDS if is_heading else _LABEL_WORDS) or not named[0].isalpha():
        return False
    if not _WORDS["verbs"].isdisjoint(named) or any(
        (word.endswith("ed") and word != "asked") or any(map(str.isdigit, word)) for word in named
    ):
        return False
    inner = [word for word, after in pairwise(named) if after not in _WORDS["between nouns"]]
    return not any(word.endswith("s") and word not in _WORDS["labels"] for word in inner) and not any(
        word.endswith("ing") for word in named[1:-1]
    )


def _is_of_labels(word: str, *, also: frozenset[str] = frozenset()) -> bool:
    """Tell whether a word is an adjective or noun of labels, or another listed word, in the singular or the plural."""
    singular = word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s")
    return word in _WORDS["qualifying"] or not (_WORDS["labels"] | also).isdisjoint((word, singular))
