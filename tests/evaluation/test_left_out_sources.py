import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from syncheck.errors import InputError
from syncheck.evaluation.left_out import left_out_matrix, left_out_scores
from syncheck.stats import auroc

SOURCES = ["a"] * 40 + ["b"] * 40 + ["c"] * 40


def sample():
    random = np.random.default_rng(0)
    y = np.tile([0, 1], 60)
    return random.normal(size=(120, 2)) + y[:, None], y


def test_a_source_is_scored_by_what_was_trained_without_it():
    X, y = sample()
    scores = left_out_scores(X, y, SOURCES, estimator=LogisticRegression())
    by_hand = LogisticRegression().fit(X[40:], y[40:]).predict_proba(X[:40])[:, 1]
    assert scores[:40] == pytest.approx(by_hand)


def test_labels_of_a_source_do_not_change_its_scores():
    X, y = sample()
    other = np.where(np.array(SOURCES) == "a", 1 - y, y)
    first, second = (left_out_scores(X, labels, SOURCES, estimator=LogisticRegression()) for labels in (y, other))
    assert first[:40].tolist() == second[:40].tolist()
    assert first[40:].tolist() != second[40:].tolist()


def test_the_matrix_has_the_auroc_of_each_source():
    X, y = sample()
    matrix = left_out_matrix({"first": X[:, 0]}, y, np.arange(120), SOURCES, draws=50)
    assert (matrix.rows, matrix.columns) == (("first",), ("a", "b", "c"))
    found = matrix.cell("first", "b")
    assert found.auroc == pytest.approx(auroc(X[40:80, 0], y[40:80]))
    assert found.low < found.auroc < found.high


@pytest.mark.parametrize(("sources", "word"), [(["a"] * 120, "two"), (SOURCES[:5], "source")])
def test_sources_that_cannot_be_left_out_are_refused(sources, word):
    X, y = sample()
    with pytest.raises(InputError, match=word):
        left_out_scores(X, y, sources, estimator=LogisticRegression())


def test_others_with_one_label_alone_are_refused():
    X, _ = sample()
    y = np.array([0, 1] * 20 + [1] * 80)
    with pytest.raises(InputError, match="label"):
        left_out_scores(X, y, SOURCES, estimator=LogisticRegression())


def test_a_score_that_is_missing_is_refused():
    X, y = sample()
    X[3, 0] = np.nan
    with pytest.raises(InputError, match="NaN"):
        left_out_matrix({"first": X[:, 0]}, y, np.arange(120), SOURCES)
