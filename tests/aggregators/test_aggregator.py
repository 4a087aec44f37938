import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from syncheck.aggregators import Aggregator, fit_calibration, make_aggregator
from syncheck.base.errors import CheckpointError, InputError, MismatchError
from syncheck.results.types import FeatureSchema

KINDS = ("lr", "xgb", "mlp")
ALL_KINDS = (*KINDS, "ensemble", "monotone")
NAMES = ("min_prob", "mean_entropy", "lid_layer_2", "never_measured")
SCHEMA = FeatureSchema("test.v1", NAMES, ("",) * 4, (1, -1, -1, 0))


def sentences(count=90, seed=0):
    """Faithful sentences have a higher first and a lower second feature; a third of the third is missing."""
    rng = np.random.default_rng(seed)
    y = (rng.random(count) < 0.7).astype(int)
    X = rng.normal(size=(count, 4))
    X[:, 0] += 2 * y
    X[:, 1] -= y
    X[rng.random(count) < 0.33, 2] = np.nan
    X[:, 3] = np.nan
    return X, y


@pytest.fixture(scope="module", params=ALL_KINDS)
def trained(request):
    X, y = sentences()
    return Aggregator.fit(X, y, schema=SCHEMA, allow_unmeasured=True, kind=request.param, seed=3)


def test_higher_means_faithful(trained):
    X, y = sentences(seed=1)
    scores = trained.score(X)
    assert scores.dtype == np.float64 and scores.shape == (90,)
    assert scores[y == 1].mean() > scores[y == 0].mean() + 0.2


def test_same_data_and_seed_give_the_same_scores(trained):
    X, y = sentences()
    again = Aggregator.fit(X, y, schema=SCHEMA, allow_unmeasured=True, kind=trained.kind, seed=3)
    np.testing.assert_array_equal(again.score(X), trained.score(X))


def test_saved_is_loaded(trained, tmp_path):
    X, _ = sentences(seed=2)
    trained.save(tmp_path / "kit")
    loaded = Aggregator.load(tmp_path / "kit", schema=SCHEMA)
    np.testing.assert_array_equal(loaded.score(X), trained.score(X))
    np.testing.assert_array_equal(loaded.medians, trained.medians)
    assert (loaded.schema, loaded.kind) == (trained.schema, trained.kind)
    assert sorted(p.name for p in (tmp_path / "kit").iterdir()) == ["aggregator.json", "aggregator.safetensors"]


@given(rows=st.lists(st.integers(0, 89), min_size=1, max_size=40))
@settings(max_examples=30, deadline=None)
def test_a_row_scores_the_same_in_any_batch(trained, rows):
    X, _ = sentences()
    np.testing.assert_array_equal(trained.score(X[rows]), trained.score(X)[rows])


def test_no_rows_give_no_scores(trained):
    assert trained.score(np.zeros((0, 4))).shape == (0,)


def test_a_column_without_any_training_value_has_no_say(trained):
    X, _ = sentences()
    shifted = X.copy()
    shifted[:, 3] = 1000.0
    np.testing.assert_array_equal(trained.score(shifted), trained.score(X))
    assert np.isnan(trained.medians[3])


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_column_that_never_varied_in_training_has_no_say(kind):
    X, y = sentences()
    X[:, 3] = 0.1
    aggregator = Aggregator.fit(X, y, schema=SCHEMA, allow_unmeasured=True, kind=kind)
    shifted = X.copy()
    shifted[:, 3] = 1000.0
    np.testing.assert_array_equal(aggregator.score(shifted), aggregator.score(X))


def test_medians_are_of_the_measured_values(trained):
    X, _ = sentences()
    np.testing.assert_array_equal(trained.medians[:3], np.nanmedian(X[:, :3], axis=0))


@pytest.mark.parametrize("kind", ["lr", "monotone", "xgb", "ensemble"])
def test_attributions_add_up_to_the_log_odds(kind):
    """But for a base that is the same for all sentences; exact, missing values and what they say included."""
    X, y = sentences()
    aggregator = Aggregator.fit(X, y, schema=SCHEMA, allow_unmeasured=True, kind=kind, seed=3)
    attributions = [aggregator.attribution(x) for x in X]
    assert tuple(attributions[0]) == NAMES
    bases = logit(aggregator.score(X)) - [sum(a.values()) for a in attributions]
    np.testing.assert_allclose(bases, bases[0], rtol=0, atol=1e-5)
    assert all(a["never_measured"] == 0 for a in attributions)
    assert np.corrcoef([a["min_prob"] for a in attributions], X[:, 0])[0, 1] > 0.8


def test_attribution_of_a_network_is_the_change_against_the_median():
    X, y = sentences()
    aggregator = Aggregator.fit(X, y, schema=SCHEMA, allow_unmeasured=True, kind="mlp", seed=3)
    attribution = aggregator.attribution(X[0])
    for index, name in enumerate(NAMES):
        replaced = X[0].copy()
        replaced[index] = aggregator.medians[index]
        expected = logit(aggregator.score([X[0]])[0]) - logit(aggregator.score([replaced])[0])
        assert attribution[name] == pytest.approx(expected, abs=1e-9)


def test_an_ensemble_is_the_mean_of_the_log_odds_of_its_two():
    X, y = sentences()
    both, linear, trees = (
        Aggregator.fit(X, y, schema=SCHEMA, allow_unmeasured=True, kind=kind, seed=3)
        for kind in ("ensemble", "lr", "xgb")
    )
    expected = (logit(linear.score(X)) + logit(trees.score(X))) / 2
    np.testing.assert_allclose(logit(both.score(X)), expected, atol=1e-5)
    parts = [one.attribution(X[0]) for one in (linear, trees)]
    for name, value in both.attribution(X[0]).items():
        assert value == pytest.approx((parts[0][name] + parts[1][name]) / 2, abs=1e-12)


def test_a_calibration_leaves_attributions_alone(trained):
    X, y = sentences()
    calibrated = replace(trained, calibration=fit_calibration(trained.score(X), y, method="platt"))
    assert calibrated.score(X).tolist() != trained.score(X).tolist()
    assert calibrated.attribution(X[0]) == trained.attribution(X[0])


def test_attribution_of_another_number_of_features(trained):
    with pytest.raises(InputError, match="features"):
        trained.attribution([0.0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lr", "mlp"])
def test_scores_are_those_of_the_scikit_learn_pipeline(kind):
    X, y = sentences(count=300)
    pipeline = make_aggregator(kind, seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        pipeline.fit(X, y)
    aggregator = Aggregator.fit(X, y, schema=SCHEMA, allow_unmeasured=True, kind=kind, seed=3)
    np.testing.assert_allclose(aggregator.score(X), pipeline.predict_proba(X)[:, 1], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_estimators_can_be_cloned(kind):
    estimator = make_aggregator(kind, seed=5)
    assert clone(estimator).get_params().keys() == estimator.get_params().keys()
    assert repr(clone(estimator)) == repr(estimator)


def test_the_mlp_has_the_settings_of_the_paper_and_a_weight_decay():
    params = make_aggregator("mlp").named_steps["classify"].get_params()
    expected = {
        "alpha": 1.0,
        "hidden_layer_sizes": (100,),
        "activation": "relu",
        "solver": "adam",
        "learning_rate_init": 0.001,
        "batch_size": 128,
        "max_iter": 300,
    }
    assert expected.items() <= params.items()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, :3], y), r"\(N, 4\)"),
        (lambda X, y: (np.where(X > 1, np.inf, X), y), "infinite"),
        (lambda X, y: (X, np.ones_like(y)), "both"),
        (lambda X, y: (X, np.zeros_like(y)), "both"),
        (lambda X, y: (X, 2 * y), r"\[0, 2\]"),
        (lambda X, y: (X, y[:-1]), r"\(N,\)"),
    ],
)
def test_unusable_training_data_is_refused(change, message):
    X, y = change(*sentences())
    with pytest.raises(InputError, match=message):
        Aggregator.fit(X, y, schema=SCHEMA, allow_unmeasured=True, kind="lr")


def test_unusable_rows_are_refused(trained):
    with pytest.raises(InputError, match="features"):
        trained.score([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(InputError, match="infinite"):
        trained.score([[1.0, 2.0, np.inf, 4.0]])


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match="svm"):
        make_aggregator("svm")
    with pytest.raises(InputError, match="signal"):
        Aggregator.fit(*sentences(), schema=SCHEMA, allow_unmeasured=True, kind="signal")


def test_a_missing_file_is_named(trained, tmp_path):
    with pytest.raises(CheckpointError, match=r"aggregator\.json"):
        Aggregator.load(tmp_path)
    trained.save(tmp_path)
    weights = next(path for path in tmp_path.iterdir() if path.suffix != ".json")
    weights.unlink()
    with pytest.raises(CheckpointError, match=weights.name):
        Aggregator.load(tmp_path)


@pytest.mark.parametrize(("name", "remedy"), [("aggregator.json", "Pass"), ("mlp.pkl", "from_published")])
def test_a_file_in_place_of_the_folder_is_refused(name, remedy, tmp_path):
    (tmp_path / name).touch()
    with pytest.raises(CheckpointError, match=remedy):
        Aggregator.load(tmp_path / name)


def test_weights_that_are_saved_over_do_not_stay(tmp_path):
    X, y = sentences()
    for kind in ("xgb", "lr"):
        Aggregator.fit(X, y, schema=SCHEMA, allow_unmeasured=True, kind=kind).save(tmp_path)
    Aggregator.fit(X, y, schema=SCHEMA, allow_unmeasured=True, kind="lr").save(tmp_path / "alone")
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {
        path.name for path in (tmp_path / "alone").iterdir()
    }
    assert Aggregator.load(tmp_path).kind == "lr"


def test_half_written_weights_are_refused(trained, tmp_path):
    trained.save(tmp_path)
    weights = next(path for path in tmp_path.iterdir() if path.suffix != ".json")
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="incomplete"):
        Aggregator.load(tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda config: config[:40], "JSON"),
        (lambda config: config.replace("aggregator.v1", "aggregator.v9"), "aggregator.v9"),
        (lambda config: config.replace('"medians"', '"means"'), "medians"),
        (lambda config: config.replace('"lr"', '"svm"'), "svm"),
        (lambda config: config.replace('"min_prob",', ""), "unit"),
    ],
)
def test_a_damaged_config_is_refused(damage, message, tmp_path):
    X, y = sentences()
    Aggregator.fit(X, y, schema=SCHEMA, allow_unmeasured=True, kind="lr").save(tmp_path)
    path = tmp_path / "aggregator.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(CheckpointError, match=message):
        Aggregator.load(tmp_path)


def test_another_schema_is_refused(trained, tmp_path):
    trained.save(tmp_path)
    swapped = FeatureSchema("test.v1", NAMES[::-1], SCHEMA.units, SCHEMA.directions)
    with pytest.raises(MismatchError, match="schema"):
        Aggregator.load(tmp_path, schema=swapped)


def test_the_config_names_the_libraries(trained, tmp_path):
    trained.save(tmp_path)
    config = json.loads((tmp_path / "aggregator.json").read_text())
    assert set(config["libraries"]) == {"numpy", "scikit-learn", "xgboost"}
    assert config["medians"][3] is None
