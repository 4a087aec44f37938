"""Saved trees: the same predictions to the last bit, and nothing but trees is given to XGBoost."""

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from syncheck.aggregators import Aggregator
from syncheck.aggregators.trees import Forest
from syncheck.base.errors import CheckpointError
from syncheck.results.types import FeatureSchema

SCHEMA = FeatureSchema("test.v1", ("a", "b", "c"), ("",) * 3, (1, 1, 0))


def rows(count=400):
    source = np.random.default_rng(0)
    X = source.normal(size=(count, 3)) * (1, 1e-6, 1e6)
    X[source.random(X.shape) < 0.1] = np.nan
    return X, (np.nan_to_num(X[:, 0]) + source.normal(size=count) > 0).astype(int)


@pytest.fixture(scope="module")
def forest():
    return Aggregator.fit(*rows(), schema=SCHEMA, kind="xgb").model


@pytest.fixture
def arrays(forest):
    return {name: array.copy() for name, array in safetensors.numpy.load(forest.to_bytes()).items()}


def read(arrays):
    return Forest.from_bytes(safetensors.numpy.save(arrays))


def test_what_was_saved_predicts_and_attributes_to_the_last_bit(forest):
    X, _ = rows(1000)
    again = Forest.from_bytes(forest.to_bytes())
    np.testing.assert_array_equal(again.probability(X), forest.probability(X))
    np.testing.assert_array_equal(again.log_odds(X), forest.log_odds(X))
    for x in X[:50]:
        np.testing.assert_array_equal(again.contributions(x, x), forest.contributions(x, x))
    assert again.to_bytes() == forest.to_bytes()


@given(
    values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=2), split=st.floats(width=32, allow_nan=False)
)
@settings(max_examples=200, deadline=None)
def test_every_number_of_float32_comes_back_as_it_was(values, split):
    if not np.isfinite(split):
        return
    stump = {
        "sizes": np.array([3], np.int32),
        "left": np.array([1, -1, -1], np.int32),
        "right": np.array([2, -1, -1], np.int32),
        "feature": np.zeros(3, np.int32),
        "value": np.array([split, *values], np.float32),
        "missing_left": np.array([1, 0, 0], np.uint8),
        "cover": np.array([3, 1, 2], np.float32),
        "base": np.array([0.3], np.float32),
        "features": np.array([1], np.int32),
    }
    again = safetensors.numpy.load(read(stump).to_bytes())
    for name, array in stump.items():
        np.testing.assert_array_equal(again[name], array)


def put(name, index, value):
    def change(arrays):
        arrays[name][index] = value

    return change


def cycle(arrays):
    """The right child of a child of the first root leads back to that root."""
    node = next(n for n in range(1, arrays["sizes"][0]) if arrays["left"][n] != -1)
    arrays["right"][node] = 0


def two_parents(arrays):
    arrays["right"][0] = arrays["left"][0]


def chain(arrays):
    """A tree of one leaf at each of 40 levels."""
    count = 81
    inner = np.arange(count) < count - 2
    place = np.arange(count)
    inner &= place % 2 == 0
    arrays |= {
        "sizes": np.array([count], np.int32),
        "left": np.where(inner, place + 1, -1).astype(np.int32),
        "right": np.where(inner, place + 2, -1).astype(np.int32),
        "feature": np.zeros(count, np.int32),
        "value": np.zeros(count, np.float32),
        "missing_left": np.zeros(count, np.uint8),
        "cover": np.array([1.0 if not i else 41.0 - n // 2 for n, i in enumerate(inner)], np.float32),
    }
    return arrays


CHANGES = {
    "a child beyond its tree": put("left", 0, 10**6),
    "a child before all": put("left", 0, -7),
    "one child": put("right", 0, -1),
    "a cycle": cycle,
    "two parents": two_parents,
    "too deep": chain,
    "a feature that is none": put("feature", 0, 3),
    "a negative feature": put("feature", -1, -1),
    "no features": put("features", 0, 0),
    "features beyond all": put("features", 0, 2**31 - 1),
    "sizes that do not add up": put("sizes", 0, 1),
    "a negative size": put("sizes", 0, -5),
    "a leaf that is not finite": put("value", -1, np.nan),
    "a leaf beyond all": put("value", -1, 1e30),
    "a split that is infinite": put("value", 0, np.inf),
    "no weight": put("cover", 0, 0),
    "a weight that is NaN": put("cover", -1, np.nan),
    "a weight beyond its children's": put("cover", 0, 1e6),
    "a direction beyond 1": put("missing_left", 0, 2),
    "a base of 1": put("base", 0, 1),
    "a base that is NaN": put("base", 0, np.nan),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_arrays_that_make_no_trees_are_refused(arrays, change):
    changed = change(arrays) or arrays
    with pytest.raises(CheckpointError, match="trees"):
        read(changed)


@pytest.mark.parametrize("name", ["sizes", "left", "value", "cover", "base", "features"])
@pytest.mark.parametrize("kind", ["missing", "another type", "another shape", "shorter", "empty"])
def test_arrays_of_another_form_are_refused(arrays, name, kind):
    array = arrays.pop(name)
    if kind != "missing":
        arrays[name] = {
            "another type": array.astype(np.float64),
            "another shape": array[None],
            "shorter": array[:-1],
            "empty": array[:0],
        }[kind]
    with pytest.raises(CheckpointError, match="trees"):
        read(arrays)


def test_more_nodes_than_are_read_are_refused(arrays):
    count = 600_000
    arrays |= {name: np.zeros(count, arrays[name].dtype) for name in ("left", "right", "feature", "value", "cover")}
    arrays |= {"missing_left": np.zeros(count, np.uint8), "sizes": np.array([count], np.int32)}
    with pytest.raises(CheckpointError, match="nodes"):
        read(arrays)


def test_xgboosts_own_file_is_refused(forest):
    with pytest.raises(CheckpointError, match="XGBoost"):
        Forest.from_bytes(bytes(forest.booster.save_raw("ubj")))
