"""The monotone regression as scikit-learn knows it: with parameters of one's own, in searches, over data frames."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from syncheck.aggregators import Aggregator
from syncheck.aggregators.monotone import MonotoneLogisticRegression
from syncheck.base.errors import InputError
from syncheck.results.types import FeatureSchema

SCHEMA = FeatureSchema("made-up.v1", ("overlap", "entropy", "length"), ("share", "nats", "words"), (1, -1, 0))


def sample(rows=200, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, rows)
    X = random.normal(size=(rows, 3)) + y[:, None] * [1.0, -1.0, 0.0]
    X[::7, 1] = np.nan
    return X, y


def test_other_parameters_are_stored_as_the_kind_is(tmp_path):
    X, y = sample()
    classifier = MonotoneLogisticRegression(directions=SCHEMA.directions, prior_weights=[2.0, 0.1, 0.0])
    fitted = Aggregator.fit(X, y, schema=SCHEMA, kind=classifier)
    assert not hasattr(classifier, "classes_")
    assert fitted.score(X) == pytest.approx(classifier.fit(X, y).predict_proba(X)[:, 1])
    fitted.save(tmp_path)
    loaded = Aggregator.load(tmp_path)
    assert loaded.kind == "monotone"
    assert loaded.score(X).tolist() == fitted.score(X).tolist()


@pytest.mark.parametrize("balanced", [True, False])
def test_the_base_rate_is_the_share_of_the_labels_unless_classes_are_balanced(balanced):
    X, y = sample()
    fitted = Aggregator.fit(X, y, schema=SCHEMA, kind=MonotoneLogisticRegression(balanced=balanced))
    assert fitted.base_rate == (0.5 if balanced else y.mean())


@pytest.mark.parametrize("kind", [SVC(), LogisticRegression(), MonotoneLogisticRegression, object(), "forest"])
def test_any_other_classifier_is_refused(kind):
    X, y = sample()
    with pytest.raises(InputError, match="aggregator"):
        Aggregator.fit(X, y, schema=SCHEMA, kind=kind)


def test_it_works_in_a_search_over_a_data_frame_of_features():
    pandas = pytest.importorskip("pandas")
    X, y = sample()
    frame = pandas.DataFrame(X, columns=list(SCHEMA.names))
    questions = np.arange(len(y)) // 4
    pipeline = make_pipeline(FunctionTransformer(np.arctan), MonotoneLogisticRegression())
    grid = {"monotonelogisticregression__strength": [0.0, 0.3]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GridSearchCV(pipeline, grid, cv=GroupKFold(3), scoring="roc_auc").fit(frame, y, groups=questions)
    assert search.best_score_ > 0.75
