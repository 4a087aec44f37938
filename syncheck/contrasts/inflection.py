"""Regular inflection of English words: the forms of the verbs, nouns and adjectives in the lists of opposites."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from syncheck.contrasts.words import asset_lines

WordClass = Literal["verb", "noun", "adjective"]

_LISTS = dict(asset_lines("inflection.txt"))


def _entries(*names: str) -> list[list[str]]:
    return [entry.split() for name in names for entry in _LISTS[name].split("/")]


IRREGULAR: Mapping[str, str] = {form: forms[0] for forms in _entries("verbs") for form in forms}
"""Infinitive of each form of an irregular verb."""
_PAST: Mapping[str, Sequence[str]] = {forms[0]: forms[1:] for forms in _entries("verbs", "formed")}
"""Past forms of irregular verbs; none where they are the infinitive."""
_DOUBLED = frozenset(_LISTS["doubled"].split())
_PLURALS: Mapping[str, str] = {noun: plural for noun, plural in _entries("plurals")}
_SINGLE_SYLLABLE_CVC = re.compile(r"[^aeiou]*(?:qu)?[aeiou][^aeiouwxy]")


def forms_of(word: str, word_class: WordClass) -> frozenset[str]:
    """Collect the forms of a word: those of a verb, the plural of a noun, the adverb of an adjective."""
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
