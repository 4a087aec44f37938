"""Sentences that repeat a passage nearly in its own words, as answers mostly do.

People who write claims about a passage word the true ones freely and the false ones closely: of 33,000 written claims
the supported share two words in five with their passages, the contradicted three in four. A network that learns from
them alone takes the passage's own words for an error. These are the true claims that are missing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

LEADS = (
    "According to the passage, {}",
    "The passage states that {}",
    "The text says that {}",
    "Based on the passages, {}",
    "In addition, {}",
    "Also, {}",
    "It is also noted that {}",
    "Yes, {}",
    "For example, {}",
)
MARKS = ("1. ", "2. ", "- ", "* ", "(a) ")
TURNS_THE_MEANING = re.compile(
    r"\b(?:if|unless|except|only|but|until|till|provided|without|not|no|never|while|although|though|whether|or|than|"
    r"before|after|instead|rather|nor|neither|either|when|where|once|as long)\b",
    re.IGNORECASE,
)
"""A part with one of these is not cut off: the rest might say something else."""
SYNONYMS = dict(
    line.split("/")
    for line in (
        "approximately/about|roughly/about|about/around|purchase/buy|purchased/bought|in order to/to|such as/like|"
        "begins/starts|began/started|large/big|children/kids|cannot/can't|do not/don't|does not/doesn't|is not/isn't|"
        "was not/wasn't|are not/aren't|it is/it's|however/still|located/situated|numerous/many|obtain/get|assist/help|"
        "require/need|requires/needs|required/needed|additional/further|per cent/percent|utilise/use|utilize/use|"
        "attempt/try|previously/earlier|currently/now|due to/because of|prior to/before|must/has to|near/close to|"
        "film/movie|physician/doctor|automobile/car|two/2|three/3|four/4|five/5|six/6|ten/10|twelve/12|"
        "first/1st|second/2nd|third/3rd|and/as well as|said/stated|says/states|made/produced|also/in addition"
    ).split("|")
)
_SYNONYM = re.compile(r"\b(" + "|".join(map(re.escape, sorted(SYNONYMS, key=len, reverse=True))) + r")\b")
_PARENTHESIS = re.compile(r"\s*(?:\([^()]{3,80}\)|\[[^\[\]]{1,20}\])")
_CUT = re.compile(r",\s+|;\s+|\s+and\s+|\s+which\s+")
_OPEN = re.compile(r"\b(?:if|when|unless|either|between|both|the|an?|of|in|to)\b[^,;]{0,20}$")
_LOWERED = frozenset(
    "the a an this these it its they their he his she her we our you your in on at from by for with as there all each "
    "every some many most not if when while after before during once since until what where who one two both any "
    "no".split()
)
SHORTEST = 5
"""Words that a part must have to stand alone."""


def near_copy(rng: random.Random, sentences: Sequence[str]) -> str:
    """Return one of the sentences, or two of them, worded nearly alike."""
    text = rng.choice(sentences).strip()
    if rng.random() < 0.25:
        return text
    if rng.random() < 0.5:
        text = _PARENTHESIS.sub("", text)
    if rng.random() < 0.4:
        text = _beginning(rng, text)
    if len(sentences) > 1 and rng.random() < 0.2:
        other = rng.choice(sentences).strip()
        text = f"{_open(text)}{rng.choice((', and ', '; ', ', while '))}{_lowered(other)}"
    if rng.random() < 0.5:
        text = _SYNONYM.sub(lambda m: SYNONYMS[m.group()] if rng.random() < 0.6 else m.group(), text)
    if rng.random() < 0.35:
        text = rng.choice(LEADS).format(_lowered(text))
    if rng.random() < 0.1:
        text = rng.choice(MARKS) + text
    return text


def _beginning(rng: random.Random, text: str) -> str:
    """Cut a sentence before one of its later parts, where the rest still says the same."""
    places = [
        cut.start()
        for cut in _CUT.finditer(text)
        if len(text[: cut.start()].split()) >= SHORTEST
        and not TURNS_THE_MEANING.search(text[cut.start() :])
        and not _OPEN.search(text[: cut.start()])
    ]
    return f"{text[: rng.choice(places)]}." if places else text


def _open(text: str) -> str:
    return text.rstrip(".!")


def _lowered(text: str) -> str:
    first, _, rest = text.partition(" ")
    return f"{first.lower()} {rest}" if first.lower() in _LOWERED else text
