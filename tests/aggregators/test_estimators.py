import json
import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from syncheck.aggregators import Aggregator
from syncheck.aggregators.monotone import MonotoneLogisticRegression
from syncheck.base.errors import CheckpointError, InputError, UntrustedTypesError
from syncheck.results.types import FeatureSchema

SCHEMA = FeatureSchema("made-up.v1", ("overlap", "entropy", "length"), ("share", "nats", "words"), (1, -1, 0))


def sample(rows=200, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, rows)
    X = random.normal(size=(rows, 3)) + y[:, None] * [1.0, -1.0, 0.0]
    X[::7, 1] = np.nan
    return X, y


def imputed(classifier):
    return make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler(), classifier)


CLASSIFIERS = {
    "pipeline": imputed(LogisticRegression()),
    "trees": HistGradientBoostingClassifier(max_iter=5, random_state=0),
    "forest": RandomForestClassifier(n_estimators=5, random_state=0),
    "ours": make_pipeline(MonotoneLogisticRegression()),
    "calibrated": CalibratedClassifierCV(imputed(LogisticRegression()), cv=2),
    "search": GridSearchCV(imputed(LogisticRegression()), {"logisticregression__C": [0.1, 1.0]}, cv=2),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_loaded_classifier_scores_and_explains_as_the_trained_one(tmp_path, name):
    X, y = sample()
    fitted = Aggregator.fit(X, y, schema=SCHEMA, kind=CLASSIFIERS[name])
    fitted.save(tmp_path)
    with pytest.raises(UntrustedTypesError, match="trusted") as refused:
        Aggregator.load(tmp_path)
    assert list(refused.value.types) == json.loads((tmp_path / "aggregator.json").read_text())["types"]
    loaded = Aggregator.load(tmp_path, trusted=refused.value.types)
    assert loaded.kind == "estimator"
    assert loaded.score(X).tolist() == fitted.score(X).tolist()
    assert loaded.attribution(X[0]) == fitted.attribution(X[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aggregator.json", "aggregator.skops"]


def test_our_own_with_other_parameters_is_stored_as_its_kind_is(tmp_path):
    X, y = sample()
    classifier = MonotoneLogisticRegression(directions=SCHEMA.directions, prior_weights=[2.0, 0.1, 0.0])
    fitted = Aggregator.fit(X, y, schema=SCHEMA, kind=classifier)
    assert fitted.score(X) == pytest.approx(classifier.fit(X, y).predict_proba(X)[:, 1])
    fitted.save(tmp_path)
    loaded = Aggregator.load(tmp_path)
    assert loaded.kind == "monotone"
    assert loaded.score(X).tolist() == fitted.score(X).tolist()


def test_the_classifier_passed_stays_untrained_and_scores_are_its_clone_s():
    X, y = sample()
    classifier = imputed(LogisticRegression())
    fitted = Aggregator.fit(X, y, schema=SCHEMA, kind=classifier)
    assert not hasattr(classifier, "classes_")
    assert fitted.score(X).tolist() == classifier.fit(X, y).predict_proba(X)[:, 1].tolist()


def test_attribution_is_the_change_of_the_log_odds_against_the_median():
    # A linear model of measured features: weight times the distance from the median.
    X, y = sample()
    X = np.nan_to_num(X)
    classifier = make_pipeline(SimpleImputer(), LogisticRegression())
    weights = classifier.fit(X, y)[-1].coef_[0]
    found = Aggregator.fit(X, y, schema=SCHEMA, kind=classifier).attribution(X[0])
    assert list(found.values()) == pytest.approx(weights * (X[0] - np.median(X, axis=0)))


@pytest.mark.parametrize(
    ("classifier", "share"),
    [
        (HistGradientBoostingClassifier(max_iter=2), None),
        (imputed(LogisticRegression(class_weight="balanced")), 0.5),
        (make_pipeline(MonotoneLogisticRegression()), 0.5),
        (MonotoneLogisticRegression(balanced=False), None),
    ],
)
def test_the_base_rate_is_the_share_of_the_labels_unless_classes_are_balanced(classifier, share):
    X, y = sample()
    assert Aggregator.fit(X, y, schema=SCHEMA, kind=classifier).base_rate == (share or y.mean())


@pytest.mark.parametrize("rows", [slice(None), slice(1, 7)], ids=["NaN in training", "none in training"])
def test_one_that_cannot_take_nan_is_told_of_imputers(rows):
    X, y = sample(seed=1)
    with pytest.raises(InputError, match="imputer"):
        Aggregator.fit(X[rows], y[rows], schema=SCHEMA, kind=LogisticRegression())


@pytest.mark.parametrize("kind", [SVC(), LogisticRegression, object(), "forest"])
def test_what_is_no_classifier_with_probabilities_is_refused(kind):
    X, y = sample()
    with pytest.raises(InputError, match="aggregator"):
        Aggregator.fit(X, y, schema=SCHEMA, kind=kind)


def test_what_skops_cannot_save_is_refused_on_saving(tmp_path):
    X, y = sample()
    local = make_pipeline(FunctionTransformer(lambda rows: np.nan_to_num(rows)), LogisticRegression())
    fitted = Aggregator.fit(X, y, schema=SCHEMA, kind=local)
    with pytest.raises(InputError, match="skops"):
        fitted.save(tmp_path)


def test_a_file_of_trusted_types_that_holds_no_estimator_is_damaged(tmp_path):
    X, y = sample()
    Aggregator.fit(X, y, schema=SCHEMA, kind=make_pipeline(MonotoneLogisticRegression())).save(tmp_path)
    config = json.loads((tmp_path / "aggregator.json").read_text())
    (tmp_path / "aggregator.skops").write_bytes(b"PK no archive")
    with pytest.raises(CheckpointError, match="sha256|incomplete"):
        Aggregator.load(tmp_path, trusted=config["types"])


@pytest.mark.parametrize("data", [b"", b"PK no archive"])
def test_bytes_that_are_no_archive_are_a_checkpoint_error(data):
    from syncheck.aggregators.kinds import FittedEstimator

    with pytest.raises(CheckpointError, match="skops"):
        FittedEstimator.from_bytes(data)


def test_kinds_work_in_a_search_over_a_data_frame_of_features():
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
    fitted = Aggregator.fit(frame, y, schema=SCHEMA, kind=search.best_estimator_)
    assert fitted.score(frame).tolist() == pytest.approx(search.best_estimator_.fit(X, y).predict_proba(X)[:, 1])
