"""What a sentence states without citations and asides, and sentences that state nothing: courtesies, headings, echoes.

Whether a word states something is an open question, so the words that a courtesy or a label in bold may have are
listed. Anything else, such as a verb, a number or a name, makes the sentence a claim.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from syncheck.text.words import without_stop_words, words

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


_ANSWERS = frozenset("yes no yeah yep nope sure okay ok certainly absolutely definitely indeed exactly".split())
_CITING = frozenset("source sources reference references citation citations see".split())
_CITED_PARTS = frozenset("passage passages context text document documents article section the and no".split())
_ASSENT = r"(?:sure|certainly|of\ course|absolutely|okay|ok|yes)"
_OFFERED = (
    r"(?:help|assist|provide|explain|answer|clarify|elaborate|look|summari[sz]e|translate|check|share|give|tell|walk|try|"
    r"rephrase|repeat|expand|read|write|speak|understand|reply|respond|talk|chat)"
)
_LANGUAGES = (
    r"(?:english|german|french|spanish|italian|dutch|portuguese|polish|chinese|japanese|korean|arabic|hindi|russian|"
    r"turkish|swedish|danish|norwegian|finnish|greek|any\ (?:other\ )?language|your\ (?:own\ )?language|"
    r"(?:other|many|several|different)\ languages)"
)
_PHRASES = re.compile(
    rf"""(?:{_ASSENT}[,!.]*\s+)?(?:
        (?:(?:here|below|following)\s+(?:is|are)|here[\u2019']s)\s[^.:;!?\d]{{0,60}}:
      | (?:i\ can|i[\u2019']?(?:d|ll)|let\ me|(?:i\ would|i\ am|i[\u2019']m)?\ ?(?:happy|glad|pleased)\ to)\s
        (?:also\s)?(?:be\ (?:happy|glad)\ to\s)?{_OFFERED}\b[^.:;!?\d]{{0,60}}
      | (?:please\s|note\ that\s|also,?\s|feel\ free\ to\s)*(?:you\ can\s)?(?:also\s)?
        (?:write|ask|chat|talk|reply|answer|type|message|speak)(?:\ (?:to|with))?(?:\ me)?(?:\ (?:anything|questions?))?
        (?:\ (?:in|using)\ {_LANGUAGES}(?:(?:,|,?\ and|,?\ or)\ {_LANGUAGES})*
          (?:\ (?:too|as\ well|if\ you\ (?:like|prefer)))?)?
      | (?:hi|hello|hey)(?:\ there)? | let[\u2019']s\ (?:dive\ in|get\ started|begin|start|take\ a\ look|see)
      | of\ course | certainly | sure(?:\ thing)? | okay | ok | absolutely
      | (?:great|good|excellent|interesting)\ question | no\ problem | got\ it | understood | you\ are\ welcome
      | (?:i\ )?hope\ (?:this|that|it)\ 
          (?:helps|answers|clarifies|explains|(?:was|is)\ (?:helpful|useful|clear)|makes\ sense)[^.:;!?\d]{{0,40}}
      | (?:please\s)?let\ me\ know\ (?:if|should|how|what|when|whether)\s[^.:;!?\d]{{0,80}}
      | (?:please\s)?feel\ free\ to\ (?:ask|reach\ out)(?:\s(?:me|us))?(?:\ if\ you\ [^.:;!?\d]{{0,40}})?
      | if\ you\ have\ (?:any|more|other|further)\s[^.:;!?\d]{{0,20}}questions[^,.:;!?\d]{{0,50}},?\s
        (?:please\s|just\s)?(?:let\ me\ know|ask|feel\ free\ to\ ask|do\ not\ hesitate\ to\ ask)
      | good\ luck | you[\u2019']?re\ welcome
      | (?:thanks|thank\ you)(?:\ for\ (?:asking|your\ (?:question|message|patience)))?
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
    "absolutely also anything arabic article ask asked assist assistance based begin brief certainly chat "
    "check chinese clarifies clarify clear context course danish day dive document doubt dutch elaborate else "
    "english evening everything excellent expand explain explains feel find finnish found free french german "
    "get given glad good got great greek happy hello help helpful helps here's hesitate hey hi hindi hope i'd "
    "i'll interesting italian japanese know korean language let let's like look lovely luck makes many message "
    "need nice norwegian ok okay other own passage patience please pleased polish portuguese prefer problem "
    "provide provided question reach read repeat rephrase reply requested require respond russian say says see "
    "sense several share short show something spanish speak start started summarise summarize sure swedish "
    "talk tell text thank thanks thing things translate try turkish type understand understood useful walk "
    "want way week welcome what wish write yes you're".split()
)


_OF_ITSELF = re.compile(
    r"""(?:please\ note(?:\ that)?,?\s|note\ that\s|(?:sorry|hello|hi)[,!]?\s(?:but\s)?)*
        (?:i[\u2019']m|i\ am|as)\ (?:just\ |only\ |simply\ )?an?\ (?:\w+\ ){0,2}?
        (?:ai|a\.i\.|artificial\ intelligence|language\ model|llm|assistant|chat\ ?bot|bot)\b
        (?:(?:,?\ (?:and|so|but))?,?\ (?:i\b|that\b|developed\b|trained\b|designed\b|created\b|made\b)[^.:;!?\d]{0,120}
          |(?:\ (?:language\ |chat\ )?(?:model|assistant|bot|program))?)
        [.!]?
      | i\ (?:can\ )?only\ (?:speak|understand|write|read|answer|reply)\ (?:in\ )?[a-z]+(?:\ and\ [a-z]+)?[.!]?
      | i\ was\ (?:trained|developed|created|built|made)\ (?:by|on)\b[^.:;!?]{0,80}[.!]?
      | my\ (?:knowledge|training)(?:\ data)?\ (?:cut-?off|ends?|ended|stops|goes|only|is|was)\b[^.:;!?]{0,60}[.!]?""",
    re.IGNORECASE | re.VERBOSE,
)
_LOCATES = re.compile(
    r"(?:passage|context|document|source|text|article|excerpt|chunk|answer|response|question|a|q)\s*#?\s*\d*\s*[:.)]?|\[\d+\]:?",
    re.IGNORECASE,
)
_VERBS = frozenset(
    "am are is was were be been being has have had do does did can cannot could may might must shall should "
    "will would not no never none only made built got get gets went goes go came come comes became become took "
    "take took gave give won lost ran run runs said says say means mean use used need needs costs cost opens "
    "open closes close".split()
)
_HASHED = re.compile(r"\#{1,6}\s")
_QUOTES = frozenset("\"'\u2018\u2019\u201c\u201d")
_REPEATED_WORDS = 5
"""Number of times in a row from which a word is repeated as no writer does."""


def is_bare_answer(sentence: str) -> bool:
    """Tell whether a sentence is "Yes.", "No." or the like, which says nothing without its question."""
    return _ANSWERS.issuperset(words(sentence))


def is_reference(sentence: str) -> bool:
    """Tell whether a sentence does no more than name passages: "(Source: passage 2)", "Sources: [1], [3]"."""
    if _LOCATES.fullmatch(sentence.strip(" *_#>-")) or not re.search(r"\w", ASIDE.sub(" ", sentence)):
        return True
    first, *rest = words(sentence) or [""]
    return first in _CITING and all(word.isdigit() or word in _CITED_PARTS for word in rest)


def is_conversation(sentence: str) -> bool:
    """Tell whether an English sentence is no more than a phrase of conversation, or what an assistant says of itself.

    Such a phrase has no number, nothing after it but punctuation, and only words that occur in labels or courtesies, or
    says that an AI speaks.
    """
    if _OF_ITSELF.fullmatch(sentence.strip()):
        return True
    if _PHRASES.fullmatch(sentence.strip()) is None:
        return False
    return all(_is_of_labels(word, also=_POLITE) for word in without_stop_words(words(sentence)))


def is_label(sentence: str) -> bool:
    """Tell whether a sentence is a short heading that says what follows it and states nothing.

    Headings are those of Markdown, lines in bold, and up to three words with a colon: "## Overview", "**Key points**",
    "Side effects:". A text that may be a short statement ("treatment useful"), or have a verb that looks like a
    plural ("treatment causes symptoms"), is not a heading.
    """
    heading = _HEADING.fullmatch(sentence.strip())
    if heading is None:
        return False
    named = words(heading["marked"] or heading["label"])
    if (_HASHED.match(sentence.strip()) or heading["label"]) and _is_noun_phrase(named, heading["label"] is None):
        return True
    if not 0 < len(named) <= (_MARKED_WORDS if heading["marked"] else _LABEL_WORDS) or named[0] in _BETWEEN_NOUNS:
        return False
    if not all(word in _BEFORE_NOUNS | _BETWEEN_NOUNS or _is_of_labels(word) for word in named):
        return False
    ends_in_noun = _is_of_labels(named[-1]) and (len(named) == 1 or named[-1] not in _QUALIFYING)
    return ends_in_noun and not any(
        word.endswith("s") and word not in _LABELS and after not in _BETWEEN_NOUNS for word, after in pairwise(named)
    )


def is_question(sentence: str) -> bool:
    """Tell whether a sentence asks; "Did you know that ..." does not."""
    text = sentence.strip(" *_)")
    if text[-1:] in _QUOTES and text[:1] in _QUOTES:
        text = text[1:-1]  # a question that is quoted at the end of a sentence does not make it one
    return text.endswith(("?", "\uff1f")) and not text.lower().startswith("did you know")


def is_degenerate(sentence: str) -> bool:
    """Tell whether a sentence is a word or phrase again and again: "phone phone phone", "the cat the cat the cat"."""
    read = [word for word in words(sentence) if not word.isdigit()]
    if len(read) > 2 and len({*read}) == 1 and not _ANSWERS.issuperset(read):
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
    if not _VERBS.isdisjoint(named) or any(
        (word.endswith("ed") and word != "asked") or any(map(str.isdigit, word)) for word in named
    ):
        return False
    inner = [word for word, after in pairwise(named) if after not in _BETWEEN_NOUNS]
    return not any(word.endswith("s") and word not in _LABELS for word in inner) and not any(
        word.endswith("ing") for word in named[1:-1]
    )


def _is_of_labels(word: str, *, also: frozenset[str] = frozenset()) -> bool:
    """Tell whether a word is an adjective or noun of labels, or another listed word, in the singular or the plural."""
    singular = word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s")
    return word in _QUALIFYING or not (_LABELS | also).isdisjoint((word, singular))
