"""Aggregators tested on the source that was left out of their training."""

import numpy as np
import pytest
from sources_left_out import left_out_matrix, left_out_scores, single_scores, with_best

from syncheck import feature_schema
from syncheck.aggregators import make_aggregator
from syncheck.base.errors import InputError
from syncheck.evaluation.metrics import auroc

SOURCES = ["a"] * 40 + ["b"] * 40 + ["c"] * 40


def sample():
    random = np.random.default_rng(0)
    y = np.tile([0, 1], 60)
    return random.normal(size=(120, 2)) + y[:, None], y


def test_a_source_is_scored_by_what_was_trained_without_it():
    X, y = sample()
    scores = left_out_scores(X, y, SOURCES, aggregator="lr")
    by_hand = make_aggregator("lr").fit(X[40:], y[40:]).predict_proba(X[:40])[:, 1]
    assert scores[:40] == pytest.approx(by_hand)


def test_labels_of_a_source_do_not_change_its_scores():
    X, y = sample()
    other = np.where(np.array(SOURCES) == "a", 1 - y, y)
    first, second = (left_out_scores(X, labels, SOURCES, aggregator="lr") for labels in (y, other))
    assert first[:40].tolist() == second[:40].tolist()
    assert first[40:].tolist() != second[40:].tolist()


def test_the_matrix_has_the_auroc_of_each_source():
    X, y = sample()
    matrix = left_out_matrix({"first": X[:, 0]}, y, np.arange(120), SOURCES, draws=50)
    assert (matrix.rows, matrix.columns) == (("first",), ("a", "b", "c", "mean of sources"))
    found = matrix.cells["first", "b"]
    assert found.auroc == pytest.approx(auroc(X[40:80, 0], y[40:80]))
    assert found.low < found.auroc < found.high
    mean = matrix.cells["first", "mean of sources"]
    assert mean.auroc == pytest.approx(np.mean([matrix.cells["first", source].auroc for source in "abc"]))
    assert found.high - found.low > mean.high - mean.low > 0 and mean.sentences == 120


def test_the_best_of_some_rows_is_chosen_on_each_source():
    X, y = sample()
    signs = np.where(np.array(SOURCES) == "a", 1, -1)
    systems = {"kept": X[:, 1], "good on a": X[:, 0] * signs, "good elsewhere": -X[:, 0] * signs}
    whole = left_out_matrix(systems, y, np.arange(120), SOURCES, draws=50)
    matrix = with_best(whole, ["good on a", "good elsewhere"], "best")
    assert matrix.rows == ("kept", "best") and matrix.columns == whole.columns
    assert matrix.cells["best", "a"] == whole.cells["good on a", "a"]
    assert matrix.cells["best", "c"] == whole.cells["good elsewhere", "c"]
    assert matrix.cells["best", "mean of sources"].auroc == pytest.approx(
        np.mean([matrix.cells["best", source].auroc for source in "abc"])
    )


def test_a_single_score_rises_with_faithfulness_and_has_a_value_for_what_has_none():
    schema = feature_schema("syncheck.v5", ())
    X = np.full((2, len(schema.names)), np.nan)
    X[0, schema.names.index("pair_overlap")] = 0.4
    X[:, schema.names.index("missing_rarity")] = [1.0, 2.0]
    found = single_scores(X, schema)
    assert {name: values.tolist() for name, values in found.items()} == {
        "pair_overlap": [0.4, 0.8],
        "missing_rarity": [-1.0, -2.0],
    }


@pytest.mark.parametrize(("sources", "word"), [(["a"] * 120, "two"), (SOURCES[:5], "source")])
def test_sources_that_cannot_be_left_out_are_refused(sources, word):
    X, y = sample()
    with pytest.raises(InputError, match=word):
        left_out_scores(X, y, sources, aggregator="lr")


def test_others_with_one_label_alone_are_refused():
    X, _ = sample()
    y = np.array([0, 1] * 20 + [1] * 80)
    with pytest.raises(InputError, match="label"):
        left_out_scores(X, y, SOURCES, aggregator="lr")


def test_a_score_that_is_missing_is_refused():
    X, y = sample()
    X[3, 0] = np.nan
    with pytest.raises(InputError, match="NaN"):
        left_out_matrix({"first": X[:, 0]}, y, np.arange(120), SOURCES)
