"""Passages with the names that an answer may cite them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from syncheck.base.checks import check_sequence, check_text
from syncheck.base.errors import WrongTypeError


class PassageNames(NamedTuple):
    """Names that an answer may cite a passage by; None for those that it lacks."""

    id: str | None = None
    title: str | None = None
    url: str | None = None


class Passage(str):
    """A passage with the names that an answer may cite it by: its text, accepted wherever a passage is.

    Parameters
    ----------
    text
        The text.
    id, title, url
        Its names; None for those that it lacks.

    Attributes
    ----------
    names : PassageNames
    """

    __slots__ = ("names",)
    names: PassageNames

    def __new__(cls, text: str, *, id: str | None = None, title: str | None = None, url: str | None = None) -> Passage:
        """Make a passage."""
        made = super().__new__(cls, text)
        made.names = PassageNames(id, title, url)
        return made


GivenPassages = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
"""A passage or several: strings, or mappings with ``text`` and perhaps ``id``, ``title`` and ``url``."""


def names_of(passage: str) -> PassageNames:
    """Look up the names of a passage, of which a plain string has none."""
    return passage.names if isinstance(passage, Passage) else PassageNames()


def cited_names(passages: Sequence[str]) -> frozenset[str]:
    """Collect all names of passages."""
    return frozenset(name for passage in passages for name in names_of(passage) if name)


def given_passages(given: object, name: str) -> tuple[str, ...]:
    """Take a passage or a list of passages, see :data:`GivenPassages`, as a tuple of texts, with their names.

    Anything else raises WrongTypeError, and a lone surrogate InputError; ``name`` is that of the argument.
    """
    entries = [given] if isinstance(given, str | Mapping) else given
    check_sequence(entries, name, of="strings")
    return tuple(_passage(entry, f"{name}[{n}]") for n, entry in enumerate(entries))  # type: ignore[arg-type,var-annotated]


def _passage(entry: object, name: str) -> str:
    if not isinstance(entry, Mapping):
        check_text(entry, name)
        return entry  # type: ignore[return-value]
    if "text" not in entry:
        raise WrongTypeError(f"{name} must be a string, or a mapping with its 'text'; found one with {sorted(entry)}")
    names = {key: entry[key] for key in ("id", "title", "url") if entry.get(key) is not None}
    for key, value in {"text": entry["text"], **names}.items():
        check_text(value, f"{name}[{key!r}]")
    return Passage(entry["text"], **names)
