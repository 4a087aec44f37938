"""Closed classes of English words, and units of measurement, from the packaged lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import NamedTuple


def asset_lines(name: str) -> Iterator[tuple[str, str]]:
    """Yield name and words of each line of an asset; indented lines continue the one before, # begins a comment."""
    text = (files("syncheck") / "assets" / "contrasts" / name).read_text(encoding="utf-8")
    for line in re.sub(r"#.*", "", text).replace("\n    ", " ").splitlines():
        title, _, words = line.partition(": ")
        if words:
            yield title, words


class Unit(NamedTuple):
    """A unit: what it measures, its size in the basic unit, 0 if it is not converted, and its first name."""

    quantity: str
    size: float
    name: str


def _units() -> Iterator[tuple[str, Unit]]:
    for quantity, line in asset_lines("units.txt"):
        for entry in line.split("/"):
            size, *names = entry.split()
            yield from ((name, Unit(quantity, float(size), names[0])) for name in names)


CLASSES: Mapping[str, frozenset[str]] = {name: frozenset(line.split()) for name, line in asset_lines("words.txt")}
"""Words of each class."""
UNITS: Mapping[str, Unit] = dict(_units())
"""Unit of each name."""
SYMBOLS = {"%": "percent", "$": "dollars", "€": "euros", "£": "pounds"}
"""Names of signs."""
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
MAY = "may (month)"
"""Word and stem of the month, which the verb does not share."""
CALENDAR = CLASSES["calendar"]
