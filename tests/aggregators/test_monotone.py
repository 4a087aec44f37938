import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from syncheck.aggregators.kinds import KINDS, fit_model
from syncheck.aggregators.monotone import MonotoneLogisticRegression
from syncheck.base.errors import CheckpointError
from syncheck.features.schemas import feature_schema


def sample(rows=200, columns=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, rows)
    return random.normal(size=(rows, columns)) + y[:, None], y


@parametrize_with_checks([MonotoneLogisticRegression(), MonotoneLogisticRegression(fill=0.0, balanced=False)])
def test_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)


def test_no_weight_speaks_against_its_direction():
    X, y = sample()
    model = MonotoneLogisticRegression(directions=[1, -1, 1], prior_weights=0.0, strength=0.0).fit(X, y)
    assert model.weights_.min() >= 0
    assert model.coef_[0, 1] == 0  # the column rises with the class, and was said to fall


def test_without_directions_each_column_keeps_its_own():
    X, y = sample()
    assert MonotoneLogisticRegression().fit(X * [1, -1, 1], y).directions_.tolist() == [1, -1, 1]


def test_a_strong_pull_leaves_the_prior_weights():
    X, y = sample()
    model = MonotoneLogisticRegression(prior_weights=[0.1, 0.2, 0.7], strength=1e9).fit(X, y)
    assert model.weights_ == pytest.approx([0.1, 0.2, 0.7], abs=1e-6)


def test_the_gradient_vanishes_at_the_minimum():
    # Closed form: at the minimum sum_i w_i s_i sigma(-m_i) x_ij = strength (t_j - t0) for weights above 0.
    X, y = sample()
    model = MonotoneLogisticRegression(strength=0.3, prior_weights=0.15).fit(X, y)
    rows, signs = (X - model.mean_) / model.scale_, 2.0 * y - 1
    counts = 1 / (2 * np.bincount(y)[y])
    pull = counts * signs / (1 + np.exp(signs * model.decision_function(X)))
    assert pull @ rows == pytest.approx(0.3 * (model.weights_ - 0.15), abs=1e-6)
    assert pull.sum() == pytest.approx(0, abs=1e-6)


@given(st.integers(0, 50))
@settings(max_examples=20, deadline=None)
def test_contributions_add_up_to_the_log_odds(seed):
    X, y = sample(seed=seed)
    X[::5, 0] = np.nan
    model = MonotoneLogisticRegression().fit(X, y)
    at_mean = model.intercept_[0] + model.coef_[0] @ model.mean_
    assert at_mean + model.contributions(X).sum(axis=1) == pytest.approx(model.decision_function(X))


def test_what_was_not_measured_says_nothing():
    X, y = sample()
    X[:60, 1] = np.nan
    model = MonotoneLogisticRegression(balanced=False).fit(X, y)
    assert model.contributions([[0.0, np.nan, 0.0]])[0, 1] == pytest.approx(0)


def test_a_value_may_stand_for_what_was_not_measured():
    X, y = sample()
    model = MonotoneLogisticRegression(fill=0.8).fit(X, y)
    filled, missing = model.decision_function([[0.0, 0.8, 0.0], [0.0, np.nan, 0.0]])
    assert filled == missing


def test_a_column_never_measured_and_a_constant_one_add_nothing():
    X, y = sample()
    X[:, 0], X[:, 2] = np.nan, 3.0
    model = MonotoneLogisticRegression().fit(X, y)
    assert model.coef_[0, [0, 2]].tolist() == [0, 0]
    assert np.isfinite(model.predict_proba(X)).all()


def test_balanced_classes_count_one_half_each():
    X, y = sample(rows=400)
    kept = np.flatnonzero((y == 1) | (np.arange(400) % 5 == 0))
    rare = MonotoneLogisticRegression(strength=0.0).fit(X[kept], y[kept])
    weights = 1 / np.bincount(y[kept])[y[kept]]
    by_hand = MonotoneLogisticRegression(strength=0.0, balanced=False).fit(X[kept], y[kept], sample_weight=weights)
    assert rare.decision_function(X) == pytest.approx(by_hand.decision_function(X), abs=1e-5)


def test_it_fits_in_pipelines_and_searches():
    X, y = sample()
    search = GridSearchCV(MonotoneLogisticRegression(), {"strength": [0.1, 1.0]}, scoring="roc_auc", cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert make_pipeline(MonotoneLogisticRegression()).fit(X, y).score(X, y) > 0.75


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"directions": [1, 1]}, "directions"),
        ({"directions": [1, 2, 1]}, "directions"),
        ({"prior_weights": -0.1}, "prior_weights"),
        ({"prior_weights": [0.1, 0.1]}, "prior_weights"),
        ({"strength": -1.0}, "strength"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, word):
    with pytest.raises(ValueError, match=word):
        MonotoneLogisticRegression(**options).fit(*sample())


def text_rows(rows=150, seed=1):
    """Rows of the schema of text features; the first column misleads, and every seventh value is missing."""
    schema = feature_schema("syncheck.v5", ())
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, rows)
    X = random.normal(size=(rows, len(schema.names))) + 0.5 * np.outer(2 * y - 1, schema.directions)
    X[:, 0] -= 2 * y
    X[np.arange(X.size).reshape(X.shape) % 7 == 0] = np.nan
    return schema, X, y


def test_the_kind_is_the_regression_with_the_directions_of_the_schema():
    schema, X, y = text_rows()
    weights = [{"align_logit": 0.55}.get(n, 0.1 if n == "contrasts" else 0.15) for n in schema.names]
    expected = MonotoneLogisticRegression(directions=schema.directions, prior_weights=weights).fit(X, y)
    model = fit_model(X, y, kind="monotone", seed=0, names=schema.names)
    assert model.features == len(schema.names)
    contrasts = [n == "contrasts" for n in schema.names]
    X[::2, contrasts] = np.minimum(X[::2, contrasts], 0.0)
    capped = (X[:, contrasts] > 0).any(axis=1)
    assert 0 < capped.sum() < len(X)
    unbounded = expected.predict_proba(X)[:, 1]
    assert model.probability(X) == pytest.approx(np.where(capped, 0.2, 1.0) * unbounded, rel=1e-12)
    found = np.array([model.contributions(x, np.nanmedian(X, axis=0)) for x in X])
    assert found[~capped] == pytest.approx(expected.contributions(X[~capped]), abs=1e-12)
    at_mean = expected.intercept_ + expected.coef_ @ expected.mean_
    assert found.sum(axis=1) == pytest.approx(logit(model.probability(X)) - at_mean, abs=1e-9)
    assert expected.directions_.tolist() == list(schema.directions)
    assert (np.sign(model.weights[0][:, 0]) * schema.directions >= 0).all()


def test_the_kind_is_exact_after_saving_and_has_no_seed():
    schema, X, y = text_rows()
    model = fit_model(X, y, kind="monotone", seed=0, names=schema.names)
    loaded = KINDS["monotone"].from_bytes(model.to_bytes())
    other = fit_model(X, y, kind="monotone", seed=9, names=schema.names)
    for again in (loaded, other):
        assert np.array_equal(again.probability(X), model.probability(X))


def test_a_contrast_bounds_the_score_and_answers_for_what_it_takes():
    schema, X, y = text_rows()
    model = fit_model(X, y, kind="monotone", seed=0, names=schema.names)
    plain = np.where(np.isnan(X[0]), 0.0, np.where(schema.directions, 3.0 * np.array(schema.directions), 0.0))
    negated = plain.copy()
    negated[schema.names.index("contrasts")] = 1.0
    high, low = model.probability(np.stack([plain, negated]))
    assert high > 0.99 and 0.19 < low < 0.2
    medians = np.zeros(len(plain))
    change = model.contributions(negated, medians) - model.contributions(plain, medians)
    assert np.flatnonzero(change).tolist() == [schema.names.index("contrasts")]
    assert change.sum() == pytest.approx(logit(low) - logit(high), abs=1e-6)


@pytest.mark.parametrize("ceiling", [0.0, -1.0, 1.5, np.nan])
def test_a_ceiling_is_a_share(ceiling):
    schema, X, y = text_rows()
    model = fit_model(X, y, kind="monotone", seed=0, names=schema.names)
    model.ceilings[-1] = ceiling
    with pytest.raises(CheckpointError):
        KINDS["monotone"].from_bytes(model.to_bytes())


@pytest.mark.parametrize("names", [(), ("unknown", "log_tokens", "large_kl_pos")])
def test_names_without_a_direction_leave_it_to_the_data(names):
    X, y = sample()
    X[:, 1] *= -1
    found = fit_model(X, y, kind="monotone", seed=0, names=names)
    expected = MonotoneLogisticRegression(prior_weights=0.15).fit(X, y)
    assert found.probability(X) == pytest.approx(expected.predict_proba(X)[:, 1], rel=1e-12)
    assert expected.directions_.tolist() == [1, -1, 1]
