"""Generators that return a value."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

S = TypeVar("S")
R = TypeVar("R")


class Returning(Generic[S, R]):
    """Iterator over a generator that keeps the generator's return value as ``value``."""

    value: R

    def __init__(self, steps: Generator[S, None, R]) -> None:
        self._steps = steps

    def __iter__(self) -> Iterator[S]:
        self.value = yield from self._steps


def drain(steps: Generator[object, None, R]) -> R:
    """Run a generator to its end and return its return value."""
    kept = Returning(steps)
    for _ in kept:
        pass
    return kept.value
