import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from syncheck.aggregators import make_aggregator
from syncheck.base.errors import InputError
from syncheck.evaluation import (
    System,
    auroc_table,
    benchmark_systems,
    cross_validate,
    expected_calibration_error,
    fold_numbers,
    out_of_fold_scores,
)
from syncheck.features.schemas import feature_schema
from syncheck.training import choose_thresholds


def benchmark(size=160, groups=20, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(size) < 0.7).astype(int)
    X = rng.normal(size=(size, 3)) + y[:, None] * np.array([1.5, 0.5, 0.0])
    return X, y, rng.integers(0, groups, size).astype(str)


def test_auroc_by_hand():
    # pairs: (.9 > .5) 1, (.9 > .2) 1, (.5 = .5) half, (.5 > .2) 1
    scores = {"one": np.array([[0.9, 0.5, 0.5, 0.2]])}
    (row,) = auroc_table(scores, [1, 1, 0, 0], ["a", "b", "c", "d"]).rows
    assert (row.system, row.subset, row.sentences, row.unfaithful) == ("one", "all", 4, 2)
    assert row.auroc == 3.5 / 4


def test_auroc_is_averaged_over_repeats_not_taken_of_averaged_scores():
    scores = {"two": np.array([[0.9, 0.1], [0.0, 0.5]])}
    (row,) = auroc_table(scores, [1, 0], ["a", "b"]).rows
    assert row.auroc == 0.5
    assert roc_auc_score([1, 0], scores["two"].mean(axis=0)) == 1.0


def test_auroc_of_parts_is_that_of_scikit_learn():
    X, y, groups = benchmark()
    generator = np.where(np.arange(len(y)) % 2, "odd", "even")
    table = auroc_table({"x": X[:, :1].T}, y, groups, by={"generator": generator.tolist()})
    assert [row.subset for row in table.rows] == ["all", "even", "odd"]
    for row in table.rows[1:]:
        chosen = generator == row.subset
        assert row.auroc == pytest.approx(roc_auc_score(y[chosen], X[chosen, 0]), abs=1e-12)
        assert (row.sentences, row.unfaithful) == (chosen.sum(), (y[chosen] == 0).sum())


@pytest.mark.slow
def test_intervals_are_those_of_a_plain_bootstrap():
    X, y, groups = benchmark(size=80, groups=8)
    X = np.round(X, 1)  # makes ties
    scores = {"first": X[:, :1].T, "second": np.stack([X[:, 1], X[:, 2]])}
    names = np.unique(groups)
    counts = np.random.default_rng(7).multinomial(8, np.full(8, 1 / 8), size=60)
    values = []
    for count in counts:
        rows = np.concatenate([np.repeat(np.flatnonzero(groups == n), c) for n, c in zip(names, count, strict=True)])
        values.append([np.mean([roc_auc_score(y[rows], s[rows]) for s in several]) for several in scores.values()])
    first, second = np.array(values).T
    one, two = auroc_table(scores, y, groups, draws=60, seed=7).rows
    assert (one.low, one.high) == pytest.approx(tuple(np.percentile(first, [2.5, 97.5])), abs=1e-12)
    assert (two.low, two.high) == pytest.approx(tuple(np.percentile(second, [2.5, 97.5])), abs=1e-12)
    expected = tuple(np.percentile(second - first, [2.5, 97.5]))
    assert (two.gain_low, two.gain_high) == pytest.approx(expected, abs=1e-12)
    assert two.gain == two.auroc - one.auroc
    assert (one.gain, one.gain_low, one.gain_high) == (0, 0, 0)


def test_a_part_without_a_label_has_no_auroc():
    part = ["good", "good", "mixed", "mixed"]
    table = auroc_table({"x": np.array([[0.9, 0.8, 0.7, 0.1]])}, [1, 1, 1, 0], list("abcd"), by={"part": part})
    good = table.rows[1]
    assert np.isnan([good.auroc, good.low, good.high]).all()
    assert table.to_dict()["rows"][1]["auroc"] is None
    json.dumps(table.to_dict(), allow_nan=False)


def test_a_label_in_one_group_only_has_no_interval():
    table = auroc_table({"x": np.array([[0.9, 0.8, 0.7, 0.1]])}, [1, 1, 1, 0], list("abcd"))
    assert table.rows[0].auroc == 1.0
    assert np.isnan(table.rows[0].low)
    assert "1.000 [no interval]" in table.to_text()
    assert table.to_dict()["rows"][0]["low"] is None


def test_text():
    scores = {"overlap": np.array([[0.9, 0.5, 0.5, 0.2]]), "all": np.array([[0.9, 0.8, 0.5, 0.2]])}
    text = auroc_table(scores, [1, 1, 0, 0], ["a", "b", "a", "b"], draws=50).to_text().splitlines()
    assert text[0].endswith("gain: in AUROC over overlap; AUPRC: of finding the unfaithful")
    assert text[1].split("  ")[1] == "system" and "balanced accuracy" in text[1]
    assert text[3] == "all: 4 sentences, 2 unfaithful"
    assert text[4].startswith("  overlap  0.875 [")
    assert text[5].startswith("  all      1.000 [") and "  +0.125 [" in text[5]
    assert text[5].index("+0.125") == text[1].index("gain")


def test_deviation_is_over_the_repeats():
    scores = {"x": np.array([[0.9, 0.8, 0.1], [0.9, 0.1, 0.8], [0.9, 0.8, 0.1]])}
    (row,) = auroc_table(scores, [1, 1, 0], list("abc")).rows
    assert row.auroc == pytest.approx((1 + 0.5 + 1) / 3)
    assert row.deviation == pytest.approx(np.std([1, 0.5, 1], ddof=1))
    assert "0.289" in auroc_table(scores, [1, 1, 0], list("abc")).to_text()


def test_balanced_accuracy_is_at_thresholds_of_the_other_folds():
    scores = {"x": np.array([[0.1, 0.4, 0.6, 0.9, 0.2, 0.3, 0.5, 0.7]])}
    y, folds = [0, 0, 1, 1, 0, 1, 1, 1], np.array([[0, 0, 0, 0, 1, 1, 1, 1]])
    # 0.3 for the first four calls 0.4 faithful; 0.6 for the others calls 0.3 and 0.5 unfaithful
    (row,) = auroc_table(scores, y, list("abcdefgh"), folds=folds).rows
    assert row.balanced_accuracy == pytest.approx((3 / 5 + 2 / 3) / 2)
    (fixed,) = auroc_table(scores, y, list("abcdefgh"), folds=folds, thresholds={"x": 0.5}).rows
    assert fixed.balanced_accuracy == pytest.approx((4 / 5 + 1) / 2)
    twice = {"x": np.repeat(scores["x"], 2, axis=0)}
    (each,) = auroc_table(twice, y, list("abcdefgh"), thresholds={"x": np.array([0.5, 0.0])}).rows
    assert each.balanced_accuracy == pytest.approx(((4 / 5 + 1) / 2 + 1 / 2) / 2)
    with pytest.raises(InputError, match="threshold"):
        auroc_table(twice, y, list("abcdefgh"), thresholds={"x": np.zeros(3)})
    (none,) = auroc_table(scores, y, list("abcdefgh")).rows
    assert np.isnan(none.balanced_accuracy)


def test_calibration_error_is_that_of_the_public_function():
    X, y, groups = benchmark()
    scores = cross_validate(X, y, groups, aggregator="lr", repeats=2)
    (row,) = auroc_table({"x": scores}, y, groups).rows
    assert row.ece == pytest.approx(np.mean([expected_calibration_error(each, y) for each in scores]), abs=1e-12)


def test_scores_must_fit():
    with pytest.raises(InputError, match=r"\(R, 2\)"):
        auroc_table({"x": np.zeros((1, 3))}, [1, 0], ["a", "b"])
    with pytest.raises(InputError, match="NaN"):
        auroc_table({"x": np.array([[0.1, np.nan]])}, [1, 0], ["a", "b"])
    with pytest.raises(InputError, match="task"):
        auroc_table({"x": np.zeros((1, 2))}, [1, 0], ["a", "b"], by={"task": ["qa"]})


def test_folds_must_fit():
    scores = {"x": np.zeros((2, 3))}
    with pytest.raises(InputError, match="folds"):
        auroc_table(scores, [1, 0, 1], list("abc"), folds=np.zeros((3, 3), int))


def test_no_group_is_ever_on_both_sides():
    """Each group has a column of its own. Held out it was 0 throughout training, so its sentences can only
    score as every other sentence of their fold; seen in training it would stand out."""
    groups = np.repeat(np.arange(30), 4)
    y = np.where(np.arange(120) % 3, groups % 2, 1)
    for row in cross_validate(np.eye(30)[groups], y, groups, aggregator="lr", folds=3, repeats=2):
        assert len(np.unique(row)) <= 3


def test_scores_are_those_of_a_refit_on_the_other_folds():
    from sklearn.model_selection import StratifiedGroupKFold

    X, y, groups = benchmark()
    X[::7, 1] = np.nan
    scores = cross_validate(X, y, groups, aggregator="lr", folds=4, repeats=2, seed=5)
    for repeat in range(2):
        expected = np.empty(len(y))
        splits = StratifiedGroupKFold(4, shuffle=True, random_state=5 + repeat).split(X, y, groups)
        for train, test in splits:
            assert not set(groups[train]) & set(groups[test])
            expected[test] = make_aggregator("lr").fit(X[train], y[train]).predict_proba(X[test])[:, 1]
        np.testing.assert_allclose(scores[repeat], expected, atol=1e-12)
    assert not np.array_equal(scores[0], scores[1])


@pytest.mark.slow
def test_seeds_on_the_same_folds():
    X, y, groups = benchmark()
    numbers = fold_numbers(y, groups, folds=3, repeats=3, seed=4, same_folds=True)
    assert (numbers == fold_numbers(y, groups, folds=3, repeats=1, seed=4)[0]).all()
    assert not (fold_numbers(y, groups, folds=3, repeats=2, seed=4) == numbers[:2]).all()
    scores = cross_validate(X, y, groups, aggregator="mlp", folds=3, repeats=2, seed=4, same_folds=True)
    assert not np.array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(
        scores[0], cross_validate(X, y, groups, aggregator="mlp", folds=3, repeats=1, seed=4)[0]
    )


def test_permuting_the_rows_permutes_the_scores():
    X, y, groups = benchmark()
    order = np.random.default_rng(1).permutation(len(y))
    straight = cross_validate(X, y, groups, aggregator="lr", repeats=2)
    permuted = cross_validate(X[order], y[order], groups[order], aggregator="lr", repeats=2)
    # the solver sums rows in another order
    np.testing.assert_allclose(permuted, straight[:, order], atol=1e-4)


def test_too_little_data_for_the_folds():
    X, y, _ = benchmark(size=20)
    with pytest.raises(InputError, match="groups"):
        cross_validate(X, y, np.arange(20) % 4, aggregator="lr")
    with pytest.raises(InputError, match="folds"):
        cross_validate(X, y, np.arange(20), aggregator="lr", folds=1)


def test_systems_share_the_folds():
    X, y, groups = benchmark()
    X[0, 0] = np.nan
    systems = [System("raw", ("a",), trained=False), System("one", ("b",)), System("both", ("c", "b"))]
    scores = out_of_fold_scores(X, y, groups, names=("a", "b", "c"), systems=systems, aggregator="lr", repeats=2)
    assert list(scores) == ["raw", "one", "both"]
    np.testing.assert_array_equal(scores["raw"][0, 1:], X[1:, 0])
    assert scores["raw"][0, 0] == np.median(X[1:, 0])
    np.testing.assert_array_equal(scores["one"], cross_validate(X[:, [1]], y, groups, aggregator="lr", repeats=2))
    np.testing.assert_array_equal(scores["both"], cross_validate(X[:, [2, 1]], y, groups, aggregator="lr", repeats=2))


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (System("s", ("a", "z")), "columns"),
        (System("s", ("a", "b"), trained=False), "column,"),
        (System("s", ("c",), trained=False), "measured"),
    ],
)
def test_impossible_systems_are_refused(system, message):
    X, y, groups = benchmark()
    X[:, 2] = np.nan
    with pytest.raises(InputError, match=message):
        out_of_fold_scores(X, y, groups, names=("a", "b", "c"), systems=[system])


def test_benchmark_systems_are_parts_of_the_columns():
    names = (
        "min_prob",
        "lid_layer_2",
        "align_score",
        "content_overlap",
        "bigram_overlap",
        "number_overlap",
        "log_tokens",
    )
    systems = {system.name: system.columns for system in benchmark_systems(names)}
    assert systems == {
        "content-word overlap, untrained": ("content_overlap",),
        "overlap and length, MLP": ("content_overlap", "bigram_overlap", "number_overlap", "log_tokens"),
        "least likely token (FLARE), untrained": ("min_prob",),
        "aligner, untrained": ("align_score",),
        "the paper's features": ("min_prob", "lid_layer_2", "align_score"),
        "all features": names,
    }


def test_the_first_version_stands_beside_the_second():
    names = feature_schema("syncheck.v3", (2,)).names
    systems = {system.name: system.columns for system in benchmark_systems(names)}
    assert systems["features of syncheck.v1"] == feature_schema("syncheck.v1", (2,)).names
    assert systems["all features"] == names
    assert "features of syncheck.v1" not in [s.name for s in benchmark_systems(systems["features of syncheck.v1"])]


def test_text_alone_stands_beside_text_and_signals():
    text = feature_schema("syncheck.v5", ()).names
    systems = {s.name: s.columns for s in benchmark_systems(feature_schema("syncheck.v6", (2,)).names)}
    assert systems["text alone"] == text and len(systems["all features"]) > len(text)
    assert {s.name: s.columns for s in benchmark_systems(text)}["all features"] == text


def test_benchmark_systems_of_the_paper_alone():
    systems = benchmark_systems(("min_prob", "align_score"))
    assert [system.name for system in systems] == [
        "least likely token (FLARE), untrained",
        "aligner, untrained",
        "the paper's features",
    ]


def test_thresholds_cost_at_most_their_share_of_the_faithful():
    faithful = np.arange(20) / 20
    thresholds = choose_thresholds([*faithful, 0.0, 0.09, 0.1, 0.2, 0.9], [1] * 20 + [0] * 5)
    assert (thresholds.backtrack, thresholds.prune) == (0.1, 0.25)
    assert (faithful < thresholds.backtrack).mean() == 0.1
    assert (faithful < thresholds.prune).mean() == 0.25


def test_a_probability_in_place_of_a_label_counts_by_halves():
    scores = [0.1, 0.2, 0.3, 0.4, 0.5]
    thresholds = choose_thresholds(scores, [0, 0.5, 0.5, 1, 1])  # 3 faithful; at most 0.3 and 0.75 of them below
    assert (thresholds.backtrack, thresholds.prune) == (0.2, 0.3)
    with pytest.raises(InputError, match="labels"):
        choose_thresholds(scores, [0, 1, 2, 1, 1])


def test_thresholds_need_both_labels():
    with pytest.raises(InputError, match=r"\bfaithful"):
        choose_thresholds([0.1, 0.2], [1, 1])
