"""Regular inflection of English words: the forms of the verbs, nouns and adjectives in the lists of opposites."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

WordClass = Literal["verb", "noun", "adjective"]

_VERBS = """
pay paid / say said / make made / take took taken / give gave given / meet met / buy bought / sell sold / keep kept /
leave left / lose lost / win won / hold held / find found / send sent / spend spent / build built / go went gone goes /
come came / see saw seen / begin began begun / write wrote written / know knew known / grow grew grown /
rise rose risen / fall fell fallen / choose chose chosen / speak spoke spoken / teach taught / bring brought /
think thought / tell told / get got gotten / become became / run ran / drive drove driven / eat ate eaten /
wear wore worn / lend lent / feel felt / lead led / stand stood / break broke broken / catch caught / do did done does /
draw drew drawn / drink drank drunk / fly flew flown / forget forgot forgotten / hear heard / hide hid hidden /
sleep slept / steal stole stolen / swim swam swum / throw threw thrown / beat beaten / bear bore born borne
"""
IRREGULAR: Mapping[str, str] = {
    form: forms[0] for forms in (verb.split() for verb in _VERBS.split("/")) for form in forms
}
"""Infinitive of each form of an irregular verb."""

_OTHERS = """
understand understood / misunderstand misunderstood / withdraw withdrew withdrawn / freeze froze frozen /
sink sank sunk / shrink shrank shrunk / wake woke woken / weep wept / forbid forbade forbidden / melt melted molten /
learn learned learnt / sow sowed sown / swell swelled swollen / read / shut / quit / split / upset
"""
_PAST: Mapping[str, tuple[str, ...]] = {
    forms[0]: tuple(forms[1:]) for forms in (verb.split() for verb in (_VERBS + "/" + _OTHERS).split("/"))
}
"""Past forms of irregular verbs; none where they are the infinitive."""
_DOUBLED = frozenset("acquit admit begin emit forbid forget permit repel transmit".split())
"""Verbs of several syllables that double their last letter before -ed and -ing."""
_PLURALS: Mapping[str, str] = dict(
    pair.split()
    for pair in """
    child children / grandchild grandchildren / wife wives / wolf wolves / goose geese / mouse mice / shelf shelves /
    knife knives / fungus fungi / bacterium bacteria / potato potatoes / tomato tomatoes / hero heroes / veto vetoes /
    fisherman fishermen
    """.split("/")
)
_SINGLE_SYLLABLE_CVC = re.compile(r"[^aeiou]*(?:qu)?[aeiou][^aeiouwxy]")


def forms_of(word: str, word_class: WordClass) -> frozenset[str]:
    """Return the forms of a word: of a verb, of a noun its plural, of an adjective its adverb."""
    return frozenset({word, *_FORMS[word_class](word)})


def _verb_forms(verb: str) -> tuple[str, ...]:
    doubled = verb in _DOUBLED or _SINGLE_SYLLABLE_CVC.fullmatch(verb) is not None
    root = verb + verb[-1] if doubled else verb
    if root.endswith("e") and not root.endswith(("ee", "oe", "ye")):
        participle = (root[:-2] + "ying") if root.endswith("ie") else root[:-1] + "ing"
    else:
        participle = root + "ing"
    return (_with_s(verb), participle, *_PAST.get(verb, (_with_ed(root),)))


def _with_ed(root: str) -> str:
    if root.endswith("e"):
        return root + "d"
    return root[:-1] + "ied" if _ends_in_consonant_y(root) else root + "ed"


def _with_s(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    if _ends_in_consonant_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _noun_forms(noun: str) -> tuple[str, ...]:
    return (_with_s(noun),)


def _adjective_forms(adjective: str) -> tuple[str, ...]:
    if adjective.endswith("ly") or (adjective.endswith("ed") and not adjective.endswith("ted")):
        return ()
    if _ends_in_consonant_y(adjective):
        return (adjective[:-1] + "ily",)
    if adjective.endswith("ic"):
        return ("publicly" if adjective == "public" else adjective + "ally",)
    if adjective.endswith("ll") or (adjective.endswith("le") and adjective[-3] not in "aeiou"):
        return (adjective.removesuffix("e") + "y",)
    return (adjective + "ly",)


def _ends_in_consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"


_FORMS: Mapping[WordClass, Callable[[str], tuple[str, ...]]] = {
    "verb": _verb_forms,
    "noun": _noun_forms,
    "adjective": _adjective_forms,
}
