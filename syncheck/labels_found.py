"""What labels there are, in words: what a message says where both are needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["has_both_labels", "labels_found"]

_NAMES = {1: "faithful (label 1)", 0: "unfaithful (label 0)"}


def has_both_labels(y: ArrayLike) -> bool:
    """Whether some labels are 1 (faithful), some 0 (unfaithful), and all one of the two."""
    return set(np.unique(np.asarray(y)).tolist()) == set(_NAMES)


def labels_found(y: ArrayLike) -> str:
    """Return which labels there are: how many of each, that all are of one kind, or what stands in their place."""
    values, counts = np.unique(np.asarray(y), return_counts=True)
    found = dict(zip(values.tolist(), counts.tolist(), strict=True))
    if not found:
        return "no sentences at all"
    if not found.keys() <= _NAMES.keys():
        return f"{sorted(found)}"
    if len(found) == 1:
        ((label, count),) = found.items()
        return f"that all {count} sentences are {_NAMES[label]}"
    return " and ".join(f"{found[label]} {name}" for label, name in _NAMES.items())
