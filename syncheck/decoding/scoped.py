"""Context managers that hold others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from types import TracebackType
from typing import Self

__all__ = ["Scoped"]


class Scoped(ABC):
    """Used in a ``with`` statement; what was entered is left in reverse order, also when entering it breaks off."""

    _scope: ExitStack

    def __enter__(self) -> Self:
        with ExitStack() as scope:
            self._enter(scope)
            self._scope = scope.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scope.close()

    @abstractmethod
    def _enter(self, scope: ExitStack) -> None:
        """Enter what is held, and register what is to be undone."""
