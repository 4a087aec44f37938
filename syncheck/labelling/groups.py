"""Groups of responses that stay on one side of every split, where the records do not name them."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from syncheck.labelling.responses import LabelledResponse

DIGITS = 12
"""Hexadecimal digits of the digest of passages: among 100,000 texts with one question, two have the same with a
probability of 2e-5."""


def with_groups(responses: Sequence[LabelledResponse]) -> list[LabelledResponse]:
    """Assign a group to each response that has none (``""``).

    Such responses are in one group if they have the same question and a passage in common: where the passages were
    retrieved anew for each answer, one that differs must not put the answers on both sides of a split. The name is the
    question of the first of them, with a digest of its passages, so that it is the same in every file.
    """
    unnamed = [response for response in responses if not response.group]
    names = iter(first_names((_name(r), [(_plain(r.question), p) for p in _texts(r)]) for r in unnamed))
    return [response if response.group else replace(response, group=next(names)) for response in responses]


def first_names(named: Iterable[tuple[str, Iterable[Hashable]]]) -> list[str]:
    """Map each name, which comes with its keys, to the first of the names that keys connect it to."""
    above: dict[str, str] = {}
    owners: dict[Hashable, str] = {}
    ranks: dict[str, int] = {}

    def first(name: str) -> str:
        while above.setdefault(name, name) != name:
            name = above[name]
        return name

    names = []
    for name, keys in named:
        names.append(name)
        ranks.setdefault(name, len(ranks))
        for key in keys:
            early, late = sorted((first(name), first(owners.setdefault(key, name))), key=ranks.__getitem__)
            above[late] = early
    return [first(name) for name in names]


def _name(response: LabelledResponse) -> str:
    digest = hashlib.sha256("\0".join(_texts(response)).encode()).hexdigest()
    return f"{_plain(response.question)} [{digest[:DIGITS]}]"


def _texts(response: LabelledResponse) -> list[str]:
    return [plain for passage in response.passages if (plain := _plain(passage))]


def _plain(text: str) -> str:
    return " ".join(text.split())
