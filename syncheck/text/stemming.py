"""English stems by Porter's second algorithm (Snowball), as in NLTK, whose import takes longer than scoring an answer.

Its steps and endings are those of snowballstem.org, in the form that NLTK (Apache-2.0) has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_VOWELS = "aeiouy"
_REGION = re.compile(rf"[{_VOWELS}][^{_VOWELS}](.*)", re.DOTALL)
"""What follows the first consonant after a vowel."""
_Y = re.compile(rf"(^|[{_VOWELS}])y")
"""A y that is a consonant: the first letter, or after a vowel."""
_APOSTROPHE = re.compile("[\u2018\u2019\u201b]")
_VOWEL = re.compile(rf"[{_VOWELS}]")
_SHORT = re.compile(rf"(?:.*[^{_VOWELS}])?[{_VOWELS}][^{_VOWELS}wxY]|[{_VOWELS}][^{_VOWELS}]", re.DOTALL)
_DOUBLE = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_BEFORE_LI = "cdeghkmnrt"
_IRREGULAR: Mapping[str, str] = {
    "skis": "ski",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "idly": "idl",
    "gently": "gentl",
    "ugly": "ugli",
    "early": "earli",
    "only": "onli",
    "singly": "singl",
    **{word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")},
    **{f"{word}{end}": word for word in ("inning", "outing", "canning", "herring", "earring") for end in ("", "s")},
    **{f"{word}{end}": word for word in ("proceed", "exceed", "succeed") for end in ("", "s", "ed", "ing")},
}


class _Parts(NamedTuple):
    """A word and its regions: what follows the first consonant after a vowel (``r1``), and the same of that."""

    word: str
    r1: str
    r2: str

    def cut(self, count: int) -> _Parts:
        """Take letters from the end."""
        return _Parts(self.word[:-count], self.r1[:-count], self.r2[:-count])

    def replaced(self, ending: str, new: str, short: str = "") -> _Parts:
        """Replace an ending; a second region that is shorter than the ending becomes ``short``."""
        count = len(ending)
        r1 = self.r1[:-count] + new if len(self.r1) >= count else ""
        r2 = self.r2[:-count] + new if len(self.r2) >= count else short
        return _Parts(self.word[:-count] + new, r1, r2)


_STEP_2: Mapping[str, int | tuple[str, ...]] = {
    "ization": ("ize",),
    "ational": ("ate", "e"),
    "fulness": 4,
    "ousness": ("ous",),
    "iveness": ("ive", "e"),
    "tional": 2,
    "biliti": ("ble",),
    "lessli": 2,
    "entli": 2,
    "ation": ("ate", "e"),
    "alism": ("al",),
    "aliti": ("al",),
    "ousli": ("ous",),
    "iviti": ("ive", "e"),
    "fulli": 2,
    "enci": ("ence",),
    "anci": ("ance",),
    "abli": ("able",),
    "izer": ("ize",),
    "ator": ("ate", "e"),
    "alli": ("al",),
    "bli": ("ble",),
    "ogi": 1,
    "li": 2,
}
"""Endings, and how many letters go, or what takes their place, with what is left of a second region that is shorter."""
_STEP_3: Mapping[str, int | tuple[str, ...]] = {
    "ational": ("ate",),
    "tional": 2,
    "alize": 3,
    "icate": ("ic",),
    "iciti": ("ic",),
    "ative": 5,
    "ical": ("ic",),
    "ness": 4,
    "ful": 3,
}
_STEP_4 = "ement ance ence able ible ment ant ent ism ate iti ous ive ize ion al er ic".split()


def snowball_stem(word: str) -> str:
    """Return the stem of an English word, in small letters.

    Examples
    --------
    >>> snowball_stem("relations"), snowball_stem("relational"), snowball_stem("flies")
    ('relat', 'relat', 'fli')
    """
    word = word.lower()
    if len(word) <= 2:
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    parts = _parts(_Y.sub(r"\1Y", _APOSTROPHE.sub("'", word).removeprefix("'")))
    for step in (_possessive, _plural, _past, _final_y, _double_endings, _single_endings, _last_endings):
        parts = step(parts)
    return _without_e_or_l(parts).replace("Y", "y")


def _parts(word: str) -> _Parts:
    prefix = next((p for p in ("gener", "commun", "arsen") if word.startswith(p)), None)
    r1 = _region(word) if prefix is None else word[len(prefix) :]
    return _Parts(word, r1, _region(r1))


def _region(text: str) -> str:
    found = _REGION.search(text)
    return found[1] if found else ""


def _ending(word: str, *endings: str) -> str:
    return next(filter(word.endswith, endings), "")


def _possessive(parts: _Parts) -> _Parts:
    ending = _ending(parts.word, "'s'", "'s", "'")
    return parts.cut(len(ending)) if ending else parts


def _plural(parts: _Parts) -> _Parts:
    word = parts.word
    match _ending(word, "sses", "ied", "ies", "us", "ss", "s"):
        case "sses":
            return parts.cut(2)
        case "ied" | "ies":
            return parts.cut(2 if len(word) > 4 else 1)
        case "s" if _VOWEL.search(word[:-2]):
            return parts.cut(1)
    return parts


def _past(parts: _Parts) -> _Parts:
    ending = _ending(parts.word, "eedly", "ingly", "edly", "eed", "ing", "ed")
    if ending in ("eedly", "eed"):
        return parts.replaced(ending, "ee") if parts.r1.endswith(ending) else parts
    if not ending or not _VOWEL.search(parts.word[: -len(ending)]):
        return parts
    word, r1, r2 = parts = parts.cut(len(ending))
    if word.endswith(("at", "bl", "iz")):
        return _Parts(word + "e", r1 + "e", r2 + "e" if len(word) > 4 or len(r1) > 1 else r2)
    if word.endswith(_DOUBLE):
        return parts.cut(1)
    return parts._replace(word=word + "e") if not r1 and _SHORT.fullmatch(word) else parts


def _final_y(parts: _Parts) -> _Parts:
    word = parts.word
    ends = len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS
    return parts.replaced(word[-1], "i") if ends else parts


def _double_endings(parts: _Parts) -> _Parts:
    ending = _ending(parts.word, *_STEP_2)
    before = parts.word[: -len(ending)][-1:] if ending else ""
    if (ending == "ogi" and before != "l") or (ending == "li" and before not in _BEFORE_LI):
        return parts
    return _changed(parts, ending, _STEP_2)


def _single_endings(parts: _Parts) -> _Parts:
    ending = _ending(parts.word, *_STEP_3)
    if ending == "ative" and not parts.r2.endswith(ending):
        return parts
    return _changed(parts, ending, _STEP_3)


def _changed(parts: _Parts, ending: str, changes: Mapping[str, int | tuple[str, ...]]) -> _Parts:
    if not ending or not parts.r1.endswith(ending):
        return parts
    change = changes[ending]
    return parts.cut(change) if isinstance(change, int) else parts.replaced(ending, *change)


def _last_endings(parts: _Parts) -> _Parts:
    ending = _ending(parts.word, *_STEP_4)
    if not ending or not parts.r2.endswith(ending) or (ending == "ion" and parts.word[-4] not in "st"):
        return parts
    return parts.cut(len(ending))


def _without_e_or_l(parts: _Parts) -> str:
    word, r1, r2 = parts
    if (r2.endswith("l") and word[-2] == "l") or r2.endswith("e"):
        return word[:-1]
    if r1.endswith("e") and len(word) >= 4:
        is_short = word[-2] not in f"{_VOWELS}wxY" and word[-3] in _VOWELS and word[-4] not in _VOWELS
        return word if is_short else word[:-1]
    return word
