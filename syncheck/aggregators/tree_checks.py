"""Whether arrays make decision trees that XGBoost can be given: of bounded size, in range, finite, without cycles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NO_CHILD", "tree_fault"]

MAX_TREES = 10_000
MAX_NODES = 500_000
"""Of all trees together; ours have 15,000 at most."""

MAX_DEPTH = 32
"""Splits between root and leaf: tree SHAP descends by recursion and takes time with the square of the depth."""

MAX_FEATURES = 100_000
MAX_VALUE = 1e6
"""Largest value of a leaf, either sign, in nats of log-odds."""

COVERS = (1e-6, 1e12)
"""Smallest and largest sum of hessians of a node: tree SHAP divides by them."""

COVER_TOLERANCE = 1e-3
"""How far, relatively, a node's cover may be from the sum of its children's: they are sums of float32."""

NO_CHILD = -1

_DTYPES = {
    **dict.fromkeys(("sizes", "left", "right", "feature", "features"), np.dtype(np.int32)),
    **dict.fromkeys(("value", "cover", "base"), np.dtype(np.float32)),
    "missing_left": np.dtype(np.uint8),
}
_NODES = ("left", "right", "feature", "value", "missing_left", "cover")


def tree_fault(arrays: Mapping[str, NDArray[Any]]) -> str | None:
    """Say what keeps arrays from being those of :class:`~syncheck.aggregators.trees.Trees`; None where nothing does."""
    return _length_fault(arrays) or _value_fault(arrays) or _links_fault(arrays)


def _length_fault(arrays: Mapping[str, NDArray[Any]]) -> str | None:
    """Say what is wrong with names, types or lengths; None where nothing is."""
    if set(arrays) != set(_DTYPES):
        return f"found {sorted(arrays)}"
    if wrong := [name for name, array in arrays.items() if array.dtype != _DTYPES[name] or array.ndim != 1]:
        return f"{wrong} have another type or shape"
    sizes, count = arrays["sizes"], len(arrays["left"])
    if not 1 <= len(sizes) <= MAX_TREES or not 1 <= count <= MAX_NODES:
        return f"{len(sizes)} trees of {count} nodes, where 1 to {MAX_TREES} of 1 to {MAX_NODES} are read"
    if sizes.min() < 1 or sizes.sum(dtype=np.int64) != count:
        return f"the sizes of the trees do not add up to {count} nodes"
    if any(len(arrays[name]) != count for name in _NODES) or len(arrays["base"]) != 1 or len(arrays["features"]) != 1:
        return "the arrays are not of one length"
    return None


def _value_fault(arrays: Mapping[str, NDArray[Any]]) -> str | None:
    """Say which value is beyond its range; None where none is."""
    if not 1 <= (width := int(arrays["features"][0])) <= MAX_FEATURES:
        return f"{width} features, where 1 to {MAX_FEATURES} are read"
    if not ((arrays["feature"] >= 0) & (arrays["feature"] < width)).all():
        return f"a node splits on a feature that is none of the {width}"
    if not 0 < arrays["base"][0] < 1:
        return f"the base is {arrays['base'][0]}, no probability between 0 and 1"
    if not np.isfinite(arrays["value"]).all() or arrays["missing_left"].max() > 1:
        return "a split or a leaf has a value that is not finite, or a direction other than 0 and 1"
    if not ((arrays["cover"] >= COVERS[0]) & (arrays["cover"] <= COVERS[1])).all():
        return f"a cover is outside [{COVERS[0]}, {COVERS[1]}]"
    return None


def _links_fault(trees: Mapping[str, NDArray[Any]]) -> str | None:
    """Say what keeps arrays of the right lengths from being trees; None where nothing does."""
    sizes = trees["sizes"].astype(np.int64)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)  # (N,) root of each node's tree
    left, right = trees["left"].astype(np.int64), trees["right"].astype(np.int64)
    leaf = left == NO_CHILD
    if (leaf != (right == NO_CHILD)).any():
        return "a node has one child"
    if (np.abs(trees["value"][leaf]) > MAX_VALUE).any():
        return f"a leaf is beyond {MAX_VALUE:g}"
    parents = np.flatnonzero(~leaf)
    ends = (starts + np.repeat(sizes, sizes))[parents]
    children = np.stack([left[parents], right[parents]]) + starts[parents]  # (2, inner nodes)
    if (children <= parents).any() or (children >= ends).any():
        return "a child lies before its parent or beyond its tree"
    if not np.array_equal(np.sort(children, axis=None), np.flatnonzero(np.arange(len(left)) != starts)):
        return "a node has two parents or none"
    covers = trees["cover"][parents].astype(np.float64)
    if (np.abs(trees["cover"][children].sum(axis=0, dtype=np.float64) - covers) > COVER_TOLERANCE * covers).any():
        return "a cover is not the sum of its children's"
    depth = np.zeros(len(left), np.int64)
    for _ in range(MAX_DEPTH):  # each round settles one level more
        depth[children] = depth[parents] + 1
    if depth.max() >= MAX_DEPTH:
        return f"a leaf lies {MAX_DEPTH} splits or more below its root"
    return None
