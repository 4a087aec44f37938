"""JSON exactly as the standard defines it."""

from __future__ import annotations

import json
import math
import re
from itertools import accumulate
from typing import Any

from syncheck.base.printable import shortened

MOST_DEPTH = 64
"""Deepest nesting that is read; Python's reader and writer give up at depths that depend on their caller."""

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = [0] * 256
for _bracket, _step in zip(b"[]{}", (1, -1, 1, -1), strict=True):
    _STEPS[_bracket] = _step


def read_json(data: bytes) -> Any:  # noqa: ANN401 - whatever it holds
    """Read JSON that can be written again.

    Raises
    ------
    ValueError
        If it is not JSON in UTF-8, has NaN or a number beyond the range of a float, or is nested deeper than
        ``MOST_DEPTH``.
    """
    text = data.decode("utf-8-sig")
    if _is_deep(data):
        raise ValueError(f"it is nested deeper than {MOST_DEPTH}")
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _is_deep(data: bytes) -> bool:
    if data.count(b"[") + data.count(b"{") <= MOST_DEPTH:
        return False
    brackets = _STRING.sub(b"", data).translate(None, _NOT_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MOST_DEPTH


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{shortened(text, 20)} is no finite number")
    return value
