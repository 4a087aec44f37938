"""Which labelled responses do not count, and why, in a few lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from syncheck.training.measured import MeasuredSentences

__all__ = ["left_out_lines"]

_SHOWN = 5
_NUMBER = re.compile(r"\d+")


def left_out_lines(measured: MeasuredSentences) -> list[str]:
    """Say which responses count nowhere: one line for each reason, with their ids.

    Those that were measured and have no context, which get no score, come first; the others are in ``left_out``.
    Reasons that differ in numbers alone are given once, for the first response.
    """
    alike: dict[str, list[str]] = {}
    for name, reason in measured.left_out.items():
        alike.setdefault(_NUMBER.sub("0", reason), []).append(name)
    without = [record.id for record in measured.records if not record.has_context]
    lines = [f"{_listed(without)}: not counted: the context is empty, so there is no score"] if without else []
    for names in alike.values():
        first = f"{names[0]}: " if len(names) > 1 else ""
        lines.append(f"{_listed(names)}: left out: {first}{measured.left_out[names[0]]}")
    return lines


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    total = f" ({len(names)} responses)" if len(names) > 1 else ""
    return f"{', '.join(names[:_SHOWN])}{more}{total}"
