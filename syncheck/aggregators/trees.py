"""Boosted trees of XGBoost, saved as plain arrays that are validated before XGBoost sees any of them.

XGBoost trusts the files that it reads, and a damaged one crashes the interpreter. It therefore only gets documents that
are written here, from arrays that are valid trees.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from syncheck.base.errors import CheckpointError
from syncheck.base.files import parse_arrays
from syncheck.results.types import Floats

MAX_TREES = 10_000
MAX_NODES = 500_000
"""Largest number of nodes in all trees together; ours have at most 15,000."""
MAX_DEPTH = 32
"""Largest depth of a tree: tree SHAP is recursive, and its time grows with the square of the depth."""
MAX_FEATURES = 100_000
MAX_VALUE = 1e6
"""Largest absolute value of a leaf, in nats of log-odds."""
COVERS = (1e-6, 1e12)
"""Smallest and largest sum of hessians of a node: tree SHAP divides by them."""
COVER_TOLERANCE = 1e-3
"""Largest relative difference of a node's cover from the sum of its children's, which are sums of float32."""
NO_CHILD = -1

DTYPES: Mapping[str, np.dtype[Any]] = {
    "sizes": np.dtype(np.int32),  # (T,): number of nodes of each tree
    "left": np.dtype(np.int32),  # (N,): position of a node's left child in its tree; -1 at a leaf
    "right": np.dtype(np.int32),  # (N,), as left
    "feature": np.dtype(np.int32),  # (N,): feature on which a node splits
    "value": np.dtype(np.float32),  # (N,): values below it go left; at a leaf, its contribution to the log-odds
    "missing_left": np.dtype(np.uint8),  # (N,): 1 if NaN goes left
    "cover": np.dtype(np.float32),  # (N,): sum of hessians of the training rows there, its weight in tree SHAP
    "base": np.dtype(np.float32),  # (1,): P(faithful) before any tree, in (0, 1)
    "features": np.dtype(np.int32),  # (1,): F
}
"""Arrays of T trees over F features with N nodes in all, and their types. The nodes of a tree follow one another, the
root first and children after their parent. The sum of the reached leaves and the base is the log-odds."""
NODES = ("left", "right", "feature", "value", "missing_left", "cover")
_NO_PARENT = 2147483647  # how XGBoost writes it

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """A trained ``xgboost.Booster`` of F features with logistic output; NaN takes the branch that each split learnt."""

    booster: Any

    @property
    def features(self) -> int:
        """Number of features F."""
        return int(self.booster.num_features())

    def probability(self, X: Floats) -> Floats:
        """Compute P(faithful), (N,) float64, of (N, F) features; NaN means not measured."""
        return np.asarray(self.booster.inplace_predict(X), dtype=np.float64)

    def log_odds(self, X: Floats) -> Floats:
        """Compute ln(p / (1 - p)), (N,) float64, in nats, of the P(faithful) that :meth:`probability` returns."""
        return np.asarray(self.booster.inplace_predict(X, predict_type="margin"), dtype=np.float64)

    def contributions(self, x: Floats, medians: Floats) -> Floats:
        """Attribute the log-odds of one row (F,), without the base, to its features, (F,) float64, by tree SHAP."""
        from xgboost import DMatrix

        values = self.booster.predict(DMatrix(x[None], nthread=1), pred_contribs=True, validate_features=False)
        return np.asarray(values[0, :-1], dtype=np.float64)

    def arrays(self) -> Arrays:
        """Take the trees out of the booster, as :data:`DTYPES` describes them."""
        learner = json.loads(bytes(self.booster.save_raw("json")))["learner"]
        trees = learner["gradient_booster"]["model"]["trees"]
        orders = [_breadth_first(tree) for tree in trees]
        places = [{NO_CHILD: NO_CHILD, **{node: place for place, node in enumerate(order)}} for order in orders]

        def joined(name: str) -> list[float]:
            return [tree[name][node] for tree, order in zip(trees, orders, strict=True) for node in order]

        def children(name: str) -> list[int]:
            each = zip(trees, orders, places, strict=True)
            return [place[tree[name][node]] for tree, order, place in each for node in order]

        values: dict[str, Any] = {
            "sizes": [len(order) for order in orders],
            "left": children("left_children"),
            "right": children("right_children"),
            "feature": joined("split_indices"),
            "value": joined("split_conditions"),
            "missing_left": joined("default_left"),
            "cover": joined("sum_hessian"),
            "base": [learner["learner_model_param"]["base_score"].strip("[]")],
            "features": [self.features],
        }
        return {name: np.array(values[name], dtype) for name, dtype in DTYPES.items()}

    def to_bytes(self) -> bytes:
        """Serialize the arrays in the safetensors format."""
        return bytes(safetensors.numpy.save(dict(self.arrays())))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read arrays; raise CheckpointError unless they are trees of bounded size, finite and without cycles.

        The booster is for one thread; its predictions and attributions are those of the one that was saved.
        """
        arrays = parse_arrays(data, what="trees, never XGBoost's own file, which ends the program where it is damaged,")
        if fault := _length_fault(arrays) or _value_fault(arrays) or _links_fault(arrays):
            raise CheckpointError(
                f"the arrays do not form decision trees: {fault}; copy the file again or train it again"
            )
        from xgboost import Booster

        booster = Booster({"nthread": 1})
        booster.load_model(bytearray(json.dumps(_document(arrays)).encode()))
        return cls(booster)


def _document(arrays: Arrays) -> dict[str, Any]:
    """Write trees as XGBoost's JSON has them."""
    width, count = str(arrays["features"][0]), len(arrays["sizes"])
    ends = np.concatenate([[0], np.cumsum(arrays["sizes"])]).tolist()
    nodes = [{name: arrays[name][start:stop] for name in NODES} for start, stop in pairwise(ends)]
    parameters = {"num_feature": width, "num_class": "0", "num_target": "1", "boost_from_average": "1"}
    model = {
        "gbtree_model_param": {"num_trees": str(count), "num_parallel_tree": "1"},
        "iteration_indptr": list(range(count + 1)),
        "tree_info": [0] * count,
        "trees": [_tree(number, of_tree, width) for number, of_tree in enumerate(nodes)],
    }
    return {
        "version": [3, 0, 0],
        "learner": {
            "attributes": {},
            "feature_names": [],
            "feature_types": [],
            "gradient_booster": {"name": "gbtree", "model": model},
            "learner_model_param": {**parameters, "base_score": str(arrays["base"][0])},
            "objective": {"name": "binary:logistic", "reg_loss_param": {"scale_pos_weight": "1"}},
        },
    }


def _tree(number: int, nodes: Arrays, width: str) -> dict[str, Any]:
    left, right, value = nodes["left"], nodes["right"], _numbers(nodes["value"])
    count = len(left)
    inner = np.flatnonzero(left != NO_CHILD)
    parents = np.full(count, _NO_PARENT)
    parents[left[inner]] = parents[right[inner]] = inner
    sizes = {"num_nodes": str(count), "num_deleted": "0", "num_feature": width, "size_leaf_vector": "1"}
    return {
        "id": number,
        "tree_param": sizes,
        "left_children": left.tolist(),
        "right_children": right.tolist(),
        "parents": parents.tolist(),
        "split_indices": nodes["feature"].tolist(),
        "split_conditions": value,
        "split_type": [0] * count,
        "default_left": nodes["missing_left"].tolist(),
        "sum_hessian": _numbers(nodes["cover"]),
        "base_weights": value,
        "loss_changes": [0.0] * count,
        **{f"categories{suffix}": [] for suffix in ("", "_nodes", "_segments", "_sizes")},
    }


def _numbers(singles: NDArray[np.float32]) -> list[float]:
    """Convert float32 to the float64 values whose JSON has the fewest digits that identify each."""
    return [float(str(value)) for value in singles]


def _breadth_first(tree: Mapping[str, Any]) -> list[int]:
    """Collect the nodes of one of XGBoost's trees from the root on, without deleted ones."""
    left, right = tree["left_children"], tree["right_children"]
    order = [0]
    for node in order:
        if left[node] != NO_CHILD:
            order += [left[node], right[node]]
    return order


def _length_fault(arrays: Arrays) -> str | None:
    if set(arrays) != set(DTYPES):
        return f"found {sorted(arrays)}"
    if wrong := [name for name, array in arrays.items() if array.dtype != DTYPES[name] or array.ndim != 1]:
        return f"{wrong} have another type or shape"
    sizes, count = arrays["sizes"], len(arrays["left"])
    if not 1 <= len(sizes) <= MAX_TREES or not 1 <= count <= MAX_NODES:
        return f"{len(sizes)} trees of {count} nodes, where 1 to {MAX_TREES} of 1 to {MAX_NODES} are read"
    if sizes.min() < 1 or sizes.sum(dtype=np.int64) != count:
        return f"the sizes of the trees do not add up to {count} nodes"
    if any(len(arrays[name]) != count for name in NODES) or len(arrays["base"]) != 1 or len(arrays["features"]) != 1:
        return "the arrays are not of one length"
    return None


def _value_fault(arrays: Arrays) -> str | None:
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


def _links_fault(trees: Arrays) -> str | None:
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
