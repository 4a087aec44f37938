import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from syncheck.aggregators.monotone import MonotoneLogisticRegression


def sample(rows=200, columns=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, rows)
    return random.normal(size=(rows, columns)) + y[:, None], y


@parametrize_with_checks([MonotoneLogisticRegression(), MonotoneLogisticRegression(fill=0.0, balanced=False)])
def test_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)
