"""Words of an English text for the rules: the packaged lists, and tokens with their normal forms and clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

import snowballstemmer

from syncheck.base.files import asset_lines, asset_words
from syncheck.text.notation import ORDINALS, number_of, roman_value
from syncheck.text.words import NUMBER_WORDS, content_words, packaged_names, packaged_rarity, stem, word_pattern, words


class Unit(NamedTuple):
    """A unit: what it measures, its size in the basic unit, 0 if it is not converted, and its first name."""

    quantity: str
    size: float
    name: str


CLASSES: Mapping[str, frozenset[str]] = asset_words("contrasts/words.txt")  # words of each class
UNITS: Mapping[str, Unit] = {
    name: Unit(quantity, float(size), names[0])
    for quantity, line in asset_lines("contrasts/units.txt")
    for size, *names in map(str.split, line.split(" / "))
    for name in names
}
SYMBOLS = {"%": "percent", "$": "dollars", "€": "euros", "£": "pounds", "¥": "yen", "CHF": "francs"}
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
MAY = "may (month)"  # word and stem of the month, which the verb does not share

IRREGULAR: Mapping[str, str] = {
    form: entry.split()[0]
    for _, line in asset_lines("contrasts/inflection.txt")
    for entry in line.split("/")
    for form in entry.split()
}
"""Infinitive of each form of an irregular verb."""
LONG = 4  # number of letters from which a word is not an abbreviation
LONG_TITLES = frozenset("Prof Capt Messrs Supt".split())  # those that are abbreviations nevertheless
HALVES_OF_DAY = {"a.m": "am", "p.m": "pm"}

_SIGNS = r"[%$€£¥]|\b[AaPp]\.[Mm]\b|\b(?:km/h|m/s)\b|"
_NUMBER = r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?(?![^\W\d_]*\d)|\d+"
_ORDINALS = {f"{n}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(n, 'th') }": word for word, n in ORDINALS.items()}
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_KNOWN = {**HALVES_OF_DAY, **NUMBER_WORDS, **_ORDINALS}
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_STOP = re.compile(r"[.!?;:\n](?=\s)|\n")


@dataclass(frozen=True, slots=True)
class Token:
    """A word or number as written, normalised and as a stem; ``content`` and ``name`` are flags of its kind."""

    text: str
    word: str
    stem: str
    content: bool
    name: bool
    start: int
    clause: int  # number of stops, colons and semicolons before it
    number: bool  # in figures or spelled out; "one" only before a unit, since it is often a pronoun

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


def tokens_of(text: str) -> Iterator[Token]:
    """Read the words and numbers of a text that is written out (:class:`~syncheck.text.notation.WrittenOut`)."""
    matches, start, clause, end, last = list(word_pattern(_SIGNS, _NUMBER).finditer(text)), True, 0, 0, ""
    for match, following in zip_longest(matches, matches[1:]):
        written = match.group()
        stop = None if text[end : match.start()] in ("", " ") else _STOP.search(text, end, match.start() + 1)
        if stop and not (stop.group() == "." and _is_abbreviated(last, written)):
            clause, start = clause + 1, True
        word, root, content = _word_of(written)
        after = "" if following is None else following.group().lower()
        beside_number = after[:1].isdigit() or (not start and last[:1].isdigit())
        if written == "May" and (beside_number or (not start and last.lower() in CLASSES["before_months"])):
            word, root, content = MAY, MAY, True
        # A Roman numeral after a name, as in "Louis XIV" and "World War I", is written in figures.
        is_numeral = last.istitle() and (len(written) > 1 or last == "War" or written in "VX")
        if is_numeral and (value := roman_value(written)) is not None:
            word, root, content = str(value), str(value), True
        if written.lower() == "one" and after not in UNITS and after not in SCALES:
            word = "one"
        begins_name = start and following is not None and following.group()[0].isupper()
        is_free = begins_name or not start or text.startswith(":", match.end())
        name = written[0].isupper() and content and (is_free or _is_like_a_name(written, word))
        yield Token(written, word, root, content, name, match.start(), clause, word[0].isdigit())
        start, end, last = False, match.end(), written


def is_year(token: Token) -> bool:
    """Tell whether a token is a number from 1000 to 2099 in four figures."""
    return _YEAR.fullmatch(token.text) is not None


def ordinal_of(token: Token) -> int | None:
    """Look up the number of an ordinal, such as "3rd" or "third"; None for any other word."""
    figures = _ORDINAL.fullmatch(token.word)
    return int(figures[1]) if figures else ORDINALS.get(token.word)


def between(text: str, before: Token, after: Token) -> str:
    """Quote what stands between two tokens, without white space; any other text if they are in reversed order."""
    return text[before.end : after.start].strip() if before.start < after.start else "<"


def _is_abbreviated(word: str, following: str) -> bool:
    """Tell whether a full stop after a word ends no clause: after "Dr.", or after "p.m." before a small letter."""
    is_title = word.istitle() and (len(word) < LONG or word in LONG_TITLES)
    return is_title or (word.lower() in HALVES_OF_DAY and following[0].islower())


def _is_like_a_name(written: str, word: str) -> bool:
    """Tell whether the first word of a sentence is a name, or unknown: "Laudo founded it"."""
    may_be = written.istitle() and len(written) >= LONG - 1
    return may_be and (word in packaged_names() or not packaged_rarity().counts.get(stem(word)))


@lru_cache(1 << 14)
def _word_of(written: str) -> tuple[str, str, bool]:
    """Find a word's normal form, its stem, and whether it is a content word."""
    lower = written.lower()
    known = lower if lower in UNITS else SYMBOLS.get(written) or _KNOWN.get(lower) or _figures(written)
    word = known or next(iter(words(written)), written)
    stemmer = snowballstemmer.stemmer("english")  # made anew, since a stemmer is for one thread
    root = word if word[0].isdigit() else str(stemmer.stemWord(IRREGULAR.get(word, word)))
    return word, root, bool(content_words(word)) and word not in CLASSES["negators"]


def _figures(written: str) -> str:
    """Write a number in figures without marks of thousands, a time of day without ":00"; "" for anything else."""
    if not written[0].isdigit():
        return ""
    if ":" in written:
        return written.lstrip("0").removesuffix(":00") or "0"
    try:
        return f"{number_of(written):.12g}"
    except ValueError:  # an ordinal, an address or a date, such as 1st, 1.2.3 or 12,5,7
        return written
