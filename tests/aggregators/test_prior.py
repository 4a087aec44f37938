"""The prior: the share of faithful sentences for which the scores of an aggregator are probabilities."""

from dataclasses import replace

import numpy as np
import pytest

from syncheck import load_kit
from syncheck.aggregators import Aggregator
from syncheck.base.errors import CheckpointError, InputError
from syncheck.features.schemas import feature_schema

SCHEMA = feature_schema("paper-no-lid.v1", ())
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, len(SCHEMA.names)))
Y = (X[:, 0] + RNG.normal(size=200) > -1).astype(int)


def log_odds(p):
    return np.log(p) - np.log1p(-p)


@pytest.mark.parametrize(("kind", "base_rate"), [("lr", Y.mean()), ("monotone", 0.5)])
def test_the_base_rate_is_that_of_the_labels_or_one_half_where_classes_are_balanced(kind, base_rate):
    assert Aggregator.fit(X, Y, schema=SCHEMA, kind=kind).base_rate == pytest.approx(base_rate)


def test_a_prior_shifts_the_log_odds_of_every_score_by_those_of_prior_and_base_rate():
    fitted = Aggregator.fit(X, Y, schema=SCHEMA, kind="lr")
    shifted = replace(fitted, prior=0.2)
    expected = log_odds(fitted.score(X)) + log_odds(0.2) - log_odds(Y.mean())
    np.testing.assert_allclose(log_odds(shifted.score(X)), expected, atol=1e-9)


def test_no_prior_and_that_of_the_labels_leave_scores_as_they_are():
    fitted = Aggregator.fit(X, Y, schema=SCHEMA, kind="lr")
    np.testing.assert_array_equal(replace(fitted, prior=fitted.base_rate).score(X), fitted.score(X))


def test_saved_and_loaded_it_gives_the_same_scores(tmp_path):
    shifted = replace(Aggregator.fit(X, Y, schema=SCHEMA, kind="lr"), prior=0.3)
    shifted.save(tmp_path)
    loaded = Aggregator.load(tmp_path)
    assert (loaded.base_rate, loaded.prior) == (shifted.base_rate, 0.3)
    np.testing.assert_array_equal(loaded.score(X), shifted.score(X))


@pytest.mark.parametrize("prior", [0.0, 1.0, 1.5])
def test_a_prior_lies_between_0_and_1(prior):
    with pytest.raises(InputError, match="prior"):
        replace(Aggregator.fit(X, Y, schema=SCHEMA, kind="lr"), prior=prior)


def test_a_prior_needs_a_base_rate():
    with pytest.raises(InputError, match="prior"):
        replace(Aggregator.from_signal("min_prob", schema=SCHEMA), prior=0.5)


def test_a_file_with_a_base_rate_that_is_none_is_damaged(tmp_path):
    Aggregator.fit(X, Y, schema=SCHEMA, kind="lr").save(tmp_path)
    path = tmp_path / "aggregator.json"
    path.write_text(path.read_text().replace(f'"base_rate": {Y.mean()}', '"base_rate": 1.0'))
    with pytest.raises(CheckpointError, match="base_rate"):
        Aggregator.load(tmp_path)


def test_a_monitor_s_scores_shift_and_its_order_stays():
    monitor = load_kit("generic")
    given = {"question": "How long?", "passages": ["Refunds take 14 days. Shipping is free."]}
    answer = "Refunds take 14 days. The moon is made of cheese. Shipping costs money."
    even = [s.score for s in monitor.check(answer, **given).sentences]
    rare = [s.score for s in monitor.with_prior(0.1).check(answer, **given).sentences]
    np.testing.assert_allclose(log_odds(np.array(rare)), log_odds(np.array(even)) + log_odds(0.1), atol=1e-9)
    assert [s.score for s in monitor.check(answer, **given).sentences] == even
