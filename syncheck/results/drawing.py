"""Registry of what draws results: results hold data, and find their renderers here by name."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

_RENDERERS: dict[str, str] = {}


def register_renderer(name: str, place: str) -> None:
    """Register the function at ``place``, ``"module:function"``, which is imported when it is first asked for."""
    _RENDERERS[name] = place


def renderer(name: str) -> Callable[..., str]:
    """Look up the function that is registered under a name."""
    found: Any = resolve_name(_RENDERERS[name])
    return found  # type: ignore[no-any-return]
