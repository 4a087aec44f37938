"""Markup: what is left of HTML in a passage, taken out, with the place of each character that stays."""

from __future__ import annotations

import html
import re
from array import array

_INLINE = (
    "a abbr b big cite code em font i img input kbd label mark q s samp small span strike strong sub sup tt u var wbr"
)
_BLOCKS = (
    "address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form h1 "
    "h2 h3 h4 h5 h6 head header hr html iframe li link main meta nav ol p pre script section style summary table tbody "
    "td tfoot th thead title tr ul"
)
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{'|'.join(f'{_INLINE} {_BLOCKS}'.split())})"
    r"(?P<rest>(?:\s[^<>]*)?/?)>|<!--[^<>]*-->|<!doctype[^<>]*>",
    re.IGNORECASE | re.DOTALL,
)
_ENTITY = re.compile(r"&(?:[a-z][a-z0-9]{1,31}|#\d{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)
_EMPTY = frozenset("br hr img input link meta wbr".split())
_KEPT = re.compile(r"""\b(alt|href|title)\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


class Places:
    """Place in the original of each character of a text without markup."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._starts, self._ends = array("L"), array("L")

    def add(self, text: str, start: int, end: int | None = None) -> None:
        """Add text that stands in the original character by character, or as a whole from ``start`` to ``end``."""
        self.parts.append(text)
        for number in range(len(text)):
            self._starts.append(start + number if end is None else start)
            self._ends.append(start + number + 1 if end is None else end)

    def of(self, start: int, end: int) -> tuple[int, int]:
        """Find the characters of the original that some characters, at least one, were read from."""
        return self._starts[start], self._ends[end - 1]


def without_markup(passage: str) -> tuple[str, Places | None]:
    """Take tags out of a text and write out entities; cells of a table become rows with bars.

    A tag that is named in a sentence ("the <b> tag") is no markup. Links and descriptions of pictures stay, in
    brackets. A text without markup is returned as it is, with None.
    """
    tags = list(_TAG.finditer(passage)) if "<" in passage else []
    names = {tag["name"].lower() for tag in tags if tag["close"]}
    tags = [tag for tag in tags if tag["name"] is None or tag["name"].lower() in names or _is_empty(tag, passage)]
    entities = list(_ENTITY.finditer(passage)) if "&" in passage else []
    entities = [entity for entity in entities if html.unescape(entity[0]) != entity[0]]
    if not tags and not entities:
        return passage, None
    spoken, places, at = _SpokenTags(), Places(), 0
    for found in sorted([*tags, *entities], key=lambda one: one.start()):
        if found.start() < at:  # an entity within a tag
            continue
        places.add(passage[at : found.start()], at)
        text = spoken(found) if found.re is _TAG else html.unescape(found[0]).replace("\xa0", " ")
        places.add(text, *found.span())
        at = found.end()
    places.add(passage[at:], at)
    return "".join(places.parts), places


class _SpokenTags:
    """What is read in place of each tag, in order."""

    def __init__(self) -> None:
        self._link = ""
        self._has_header = False

    def __call__(self, tag: re.Match[str]) -> str:
        name, closes = (tag["name"] or "").lower(), bool(tag["close"])
        kept = {key.lower(): one or other for key, one, other in _KEPT.findall(tag["rest"] or "")}
        if name == "a":
            text = f" ({self._link})" if closes and self._link else ""
            self._link = "" if closes or kept.get("href", "#").startswith("#") else kept["href"]
            return text
        if name in ("td", "th"):
            self._has_header = self._has_header or name == "th"
            return " | " if closes else ""
        if name == "tr":
            text = "\n|---|---|" if closes and self._has_header else "" if closes else "\n"
            self._has_header = False
            return text
        if name == "img":
            return f" ({kept['alt']})" if kept.get("alt") else ""
        return "\n" if name in _BLOCKS.split() else ""


def _is_empty(tag: re.Match[str], passage: str) -> bool:
    """Tell whether a tag needs no closing one, and does not stand as a word between spaces."""
    if tag["name"].lower() not in _EMPTY:
        return False
    return not (
        passage[max(0, tag.start() - 1) : tag.start()] == " " and passage[tag.end() : tag.end() + 1] in (" ", "")
    )
