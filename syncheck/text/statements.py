"""Statements: what a sentence states once citations and asides are left out, and sentences that state nothing.

Sentences that state nothing are phrases of conversation ("I hope this helps!"), labels ("## Overview") and references
("Source: [1]"). Whether a word states something is an open question, so the words that a phrase or a label may have are
listed. Anything else, such as a verb, a number or a name, makes the sentence a claim.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from syncheck.text.words import without_stop_words, words

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
      | (?:i\ )?hope\ (?:this|that|it)\ (?:helps|answers|was\ helpful)[^.:;!?\d]{{0,40}}
      | (?:please\s)?let\ me\ know\ (?:if|should)\s[^.:;!?\d]{{0,80}}
      | (?:please\s)?feel\ free\ to\ (?:ask|reach\ out)(?:\s(?:me|us))?(?:\ if\ you\ [^.:;!?\d]{{0,40}})?
      | if\ you\ have\ (?:any|more|other|further)\s[^.:;!?\d]{{0,20}}questions[^,.:;!?\d]{{0,50}},?\s
        (?:please\s|just\s)?(?:let\ me\ know|ask|feel\ free\ to\ ask|do\ not\ hesitate\ to\ ask)
      | (?:good\ luck|you[\u2019']?re\ welcome|(?:thanks|thank\ you)(?:\ for\ (?:asking|your\ question))?)
      | have\ a\ (?:nice|great|good|lovely)\s\w+
    )(?:[!.:?\s]|[:;]-?[)D]|[\u2600-\u27bf\ufe0f\U0001f300-\U0001faff])*""",  # with a smile at the end
    re.IGNORECASE | re.VERBOSE,
)

_HEADING = re.compile(
    r"""(?:\#{1,6}\s+(?P<bold>\*\*|__)?|(?P<alone>\*\*|__))(?P<marked>[^\d.!?*_\n]+?):?\s*(?:(?P=bold)|(?P=alone)|$)
        :?\s*\#*\s*
      | (?P<label>[^\d.!?*_\n:]+):""",
    re.VERBOSE,
)
_MARKED_WORDS, _LABEL_WORDS = 5, 3
_BEFORE_NOUNS = frozenset("a an the your our this these".split())
_BETWEEN_NOUNS = frozenset("of for and or to about".split())
_QUALIFYING = frozenset(
    "additional alternative basic brief common core current detailed different extra final further future general "
    "important initial key main major minor next optional overall possible potential practical preliminary previous "
    "primary quick recent related relevant secondary short similar simple special specific supporting technical "
    "typical useful various".split()
)
_LABELS = frozenset(
    """
    abstract advantage advice agenda analysis answer application approach aspect assumption background basis benefit
    bibliography category cause caveat challenge characteristic checklist citation clarification classification comment
    comparison component composition conclusion concern condition consequence consideration content contraindication
    cost criteria data date definition description detail diagnosis difference direction disadvantage disclaimer
    discussion dosage dose drawback duration effect element eligibility equipment estimate evaluation evidence example
    exception explanation fact factor feature figure finding formula function glossary goal guidance guideline highlight
    hint history idea impact implication indication information ingredient instruction interaction introduction issue
    item keyword legend limitation link list location material meaning mechanism method methodology mistake name note
    objective observation option origin outcome outline overview part perspective phase plan point precaution
    preparation prerequisite prevention price principle problem procedure process pro con prognosis property purpose
    question range reason recap recipe recommendation reference remark reminder requirement research resource response
    result review risk role rule scope section side significance similarity solution source specification stage
    statistic step storage strategy structure subject suggestion summary symptom synopsis table takeaway task technique
    term theme theory thought time timeline tip title tool topic treatment trend trick type usage use value variation
    version view warning
    """.split()
)
"""Nouns of labels, in the singular."""
_POLITE = frozenset(
    "absolutely ask assist assistance certainly course day doubt else evening feel free glad good great happy help "
    "helpful helps hesitate hope let know like look lovely luck need nice okay ok please pleased question reach "
    "require show sure thank thanks want week welcome wish yes you're anything something everything".split()
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
    rest = " ".join(_ASIDE.sub(" ", sentence).split())
    return rest if re.search(r"\w", rest) else sentence


@lru_cache(maxsize=256)
def says_not_stated(sentence: str) -> bool:
    """Tell whether an English sentence calls something not stated: "The passages do not mention a price.".

    Results are cached, since a sentence is asked about more than once.
    """
    return bool(_NOT_STATED.search(sentence))


def is_bare_answer(sentence: str) -> bool:
    """Tell whether a sentence is "Yes.", "No." or the like, which says nothing without its question."""
    return _ANSWERS.issuperset(words(sentence))


def is_reference(sentence: str) -> bool:
    """Tell whether a sentence does no more than name passages: "(Source: passage 2)", "Sources: [1], [3]"."""
    first, *rest = words(sentence) or [""]
    return first in _CITING and bool(rest) and all(word.isdigit() or word in _CITED_PARTS for word in rest)


def is_conversation(sentence: str) -> bool:
    """Tell whether an English sentence is no more than a phrase of conversation.

    Such a phrase has no number, nothing after it but punctuation, and only words that occur in labels or courtesies.
    """
    if _PHRASES.fullmatch(sentence.strip()) is None:
        return False
    return all(_is_of_labels(word, also=_POLITE) for word in without_stop_words(words(sentence)))


def is_label(sentence: str) -> bool:
    """Tell whether a sentence is a short heading that says what follows it and states nothing.

    Headings are those of Markdown, lines in bold, and up to three words with a colon: "## Overview", "**Key points**",
    "Side effects:". A text that may be a short statement ("treatment useful"), or have a verb that looks like a
    plural ("treatment causes symptoms"), is not a heading.
    """
    found = _HEADING.fullmatch(sentence.strip())
    if found is None:
        return False
    named = words(found["marked"] or found["label"])
    if not 0 < len(named) <= (_MARKED_WORDS if found["marked"] else _LABEL_WORDS) or named[0] in _BETWEEN_NOUNS:
        return False
    if not all(word in _BEFORE_NOUNS | _BETWEEN_NOUNS or _is_of_labels(word) for word in named):
        return False
    ends_in_noun = _is_of_labels(named[-1]) and (len(named) == 1 or named[-1] not in _QUALIFYING)
    return ends_in_noun and not any(
        word.endswith("s") and word not in _LABELS and after not in _BETWEEN_NOUNS for word, after in pairwise(named)
    )


def _is_of_labels(word: str, *, also: frozenset[str] = frozenset()) -> bool:
    """Tell whether a word is an adjective or noun of labels, or another listed word, in the singular or the plural."""
    singular = word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s")
    return word in _QUALIFYING or not (_LABELS | also).isdisjoint((word, singular))
