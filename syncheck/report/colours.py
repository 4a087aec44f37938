"""One scale from orange over a neutral middle to blue, for a light and for a dark page."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Tint", "tint"]

_Rgb = tuple[int, int, int]
# All common kinds of colour blindness keep orange and blue apart.
_LIGHT: tuple[_Rgb, _Rgb, _Rgb] = ((0xF4, 0xA2, 0x6B), (0xF6, 0xEF, 0xDF), (0x9C, 0xC9, 0xEE))
_DARK: tuple[_Rgb, _Rgb, _Rgb] = ((0x8F, 0x43, 0x14), (0x3B, 0x38, 0x32), (0x1E, 0x53, 0x86))


@dataclass(frozen=True, slots=True)
class Tint:
    """A background as two CSS colours, for a light and for a dark page."""

    light: str
    dark: str


def tint(score: float) -> Tint:
    """Return the background of a score in [0, 1]; text in the page's ink stays readable on all of them."""
    return Tint(_mix(_LIGHT, score), _mix(_DARK, score))


def _mix(ends: tuple[_Rgb, _Rgb, _Rgb], score: float) -> str:
    low, middle, high = ends
    left, right, part = (low, middle, 2 * score) if score < 0.5 else (middle, high, 2 * score - 1)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(left, right, strict=True))
