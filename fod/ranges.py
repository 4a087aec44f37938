"""The ranges of a decoder's parameters, checked in one place."""

from __future__ import annotations

import math
from numbers import Integral, Real

from syncheck import InputError, WrongTypeError

__all__ = ["check_count", "check_sampling", "check_share", "check_strength"]


def check_share(value: object, name: str) -> None:
    """Refuse what is no number in [0, 1].

    Raises
    ------
    InputError
        If it is outside, or NaN.
    WrongTypeError
        If it is no number.
    """
    if not 0.0 <= _number(value, name) <= 1.0:
        raise InputError(f"{name} must be in [0, 1]; found {value}")


def check_count(value: object, name: str) -> None:
    """Refuse what is no whole number of at least 1; errors as :func:`check_share`."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise WrongTypeError(f"{name} must be a whole number; found {value!r}")
    if value < 1:
        raise InputError(f"{name} must be at least 1; found {value}")


def check_strength(value: object, name: str) -> None:
    """Refuse what is no finite number of 0 or more; errors as :func:`check_share`."""
    if not 0 <= _number(value, name) < math.inf:
        raise InputError(f"{name} must be 0 or more, and finite; found {value}")


def check_sampling(*, temperature: object, top_p: object) -> None:
    """Refuse a temperature that is not above 0 and finite, and a nucleus not in (0, 1]; errors as above."""
    if not 0 < _number(temperature, "temperature") < math.inf or not 0 < _number(top_p, "top_p") <= 1:
        raise InputError(f"temperature must be above 0, finite, and top_p in (0, 1]; found {temperature} and {top_p}")


def _number(value: object, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise WrongTypeError(f"{name} must be a number; found {value!r}")
    return float(value)
