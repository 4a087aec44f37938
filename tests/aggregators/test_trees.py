"""Saved trees: the same predictions to the last bit, and what is no forest is refused."""

import numpy as np
import pytest
import safetensors.numpy

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


def test_what_was_saved_predicts_and_attributes_to_the_last_bit(forest):
    X, _ = rows(1000)
    again = Forest.from_bytes(forest.to_bytes())
    np.testing.assert_array_equal(again.probability(X), forest.probability(X))
    np.testing.assert_array_equal(again.log_odds(X), forest.log_odds(X))
    for x in X[:50]:
        np.testing.assert_array_equal(again.contributions(x, x), forest.contributions(x, x))
    assert again.to_bytes() == forest.to_bytes()


@pytest.mark.parametrize(
    "arrays",
    [{"left": np.zeros(3, np.int32)}, {"ubj": np.zeros(3, np.float32)}, {"ubj": np.frombuffer(b"{}", np.uint8)}],
    ids=["other arrays", "another type", "no trees"],
)
def test_what_is_no_forest_is_refused(arrays):
    with pytest.raises(CheckpointError, match="XGBoost"):
        Forest.from_bytes(safetensors.numpy.save(arrays))


def test_a_file_of_another_format_is_refused(forest):
    with pytest.raises(CheckpointError, match="safetensors"):
        Forest.from_bytes(bytes(forest.booster.save_raw("ubj")))
