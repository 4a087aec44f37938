"""What each signal is worth: dropped, permuted; and which aggregator is best."""

import numpy as np
import pytest

from syncheck.base.errors import InputError
from syncheck.evaluation import (
    ablation_systems,
    aggregator_systems,
    auroc_table,
    best_system,
    cross_validate,
    fold_numbers,
    out_of_fold_scores,
    permuted_scores,
)

NAMES = ("strong", "weak", "noise")
SIGNALS = {"likelihood": ("strong", "weak"), "entropy": ("noise",)}


def benchmark(size=200, groups=25):
    rng = np.random.default_rng(0)
    y = (rng.random(size) < 0.6).astype(int)
    X = rng.normal(size=(size, 3)) + y[:, None] * np.array([2.0, 0.7, 0.0])
    return X, y, rng.integers(0, groups, size).astype(str)


def test_ablation_drops_one_signal_at_a_time():
    systems = ablation_systems(NAMES, SIGNALS)
    assert [(s.name, s.columns) for s in systems] == [
        ("all features", NAMES),
        ("without likelihood", ("noise",)),
        ("without entropy", ("strong", "weak")),
    ]


def test_ablation_trains_anew():
    X, y, groups = benchmark()
    scores = out_of_fold_scores(
        X, y, groups, names=NAMES, systems=ablation_systems(NAMES, SIGNALS), aggregator="lr", repeats=2
    )
    np.testing.assert_array_equal(
        scores["without entropy"], cross_validate(X[:, :2], y, groups, aggregator="lr", repeats=2)
    )
    rows = {row.system: row.auroc for row in auroc_table(scores, y, groups).rows}
    assert rows["all features"] > 0.9 and rows["without likelihood"] < 0.6


def test_ablation_of_one_signal_is_refused():
    with pytest.raises(InputError, match="likelihood"):
        ablation_systems(("strong",), {"likelihood": ("strong",)})


def test_permuted_signals_are_those_of_other_sentences_of_the_fold():
    """One column, and a model that is monotone in it: permuted scores are the same scores in another order."""
    X, y, groups = benchmark()
    scores = permuted_scores(
        X, y, groups, names=NAMES, signals={"all": NAMES}, aggregator="lr", folds=4, repeats=2, seed=1
    )
    assert list(scores) == ["all features", "all permuted"]
    np.testing.assert_array_equal(
        scores["all features"], cross_validate(X, y, groups, aggregator="lr", folds=4, repeats=2, seed=1)
    )
    for straight, permuted in zip(*scores.values(), strict=True):
        np.testing.assert_allclose(np.sort(straight), np.sort(permuted), atol=1e-12)
        assert not np.allclose(straight, permuted)


def test_the_signal_that_matters_costs_most_when_permuted():
    X, y, groups = benchmark()
    scores = permuted_scores(X, y, groups, names=NAMES, signals=SIGNALS, aggregator="lr", repeats=3)
    rows = {row.system: row for row in auroc_table(scores, y, groups).rows}
    assert rows["likelihood permuted"].auroc == pytest.approx(0.5, abs=0.1)
    assert rows["likelihood permuted"].gain_high < -0.2
    assert abs(rows["entropy permuted"].gain) < 0.02


def test_permuting_is_repeatable_and_its_columns_must_be_there():
    X, y, groups = benchmark()
    options = {"names": NAMES, "signals": SIGNALS, "aggregator": "lr", "repeats": 1, "folds": 3}
    first, second = permuted_scores(X, y, groups, **options), permuted_scores(X, y, groups, **options)
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name])
    with pytest.raises(InputError, match="other"):
        permuted_scores(X, y, groups, names=NAMES, signals={"a": ("other",)})


@pytest.mark.slow
def test_the_best_aggregator_is_found_by_cross_validation():
    """Faithful where a value is near 0: no line parts them, trees do."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    y = (abs(X[:, 0]) < 0.7).astype(int)
    groups = np.arange(240) % 40
    systems, folds = aggregator_systems(("a", "b")), {"folds": 3, "repeats": 1}
    scores = out_of_fold_scores(X, y, groups, names=("a", "b"), systems=systems, **folds)
    table = auroc_table(scores, y, groups, folds=fold_numbers(y, groups, **folds))
    kind = best_system(table)
    aurocs = {row.system: row.auroc for row in table.rows}
    assert list(aurocs) == ["lr", "xgb", "mlp", "ensemble"]
    assert kind == max(aurocs, key=aurocs.get) != "lr"
    assert aurocs["lr"] < 0.65 and aurocs["xgb"] > 0.9
    assert not np.isnan([row.balanced_accuracy for row in table.rows]).any()
    np.testing.assert_array_equal(scores[kind], cross_validate(X, y, groups, aggregator=kind, **folds))


def test_directions_of_the_names_count_in_every_evaluation():
    """By its name ``stem_overlap`` is for faithful and ``novel_words`` against, whatever these sentences say."""
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.6).astype(int)
    X = np.stack([rng.normal(size=200) - y, rng.normal(size=200) + y], axis=1)  # the wrong way round
    options = {"names": ("stem_overlap", "novel_words"), "aggregator": "monotone", "repeats": 1}
    groups = (np.arange(200) % 25).astype(str)
    scores = permuted_scores(X, y, groups, signals={"lexical": ("stem_overlap",)}, **options)["all features"]
    expected = cross_validate(X, y, groups, **options)
    np.testing.assert_array_equal(scores, expected)
    free = cross_validate(X, y, groups, aggregator="monotone", repeats=1)
    assert np.ptp(expected) < 0.5 * np.ptp(free)
