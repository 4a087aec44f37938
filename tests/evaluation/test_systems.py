"""What each signal is worth, and which aggregator is best."""

import numpy as np
import pytest

from syncheck.base.errors import InputError
from syncheck.evaluation import (
    System,
    ablation_systems,
    aggregator_systems,
    auroc_table,
    cross_validate,
    fold_numbers,
    out_of_fold_scores,
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


@pytest.mark.slow
def test_aggregators_are_compared_by_cross_validation():
    """Faithful where a value is near 0: no line parts them, trees do."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    y = (abs(X[:, 0]) < 0.7).astype(int)
    groups = np.arange(240) % 40
    systems, folds = aggregator_systems(("a", "b")), {"folds": 3, "repeats": 1}
    scores = out_of_fold_scores(X, y, groups, names=("a", "b"), systems=systems, **folds)
    table = auroc_table(scores, y, groups, folds=fold_numbers(y, groups, **folds))
    aurocs = {row.system: row.auroc for row in table.rows}
    assert list(aurocs) == ["lr", "xgb", "mlp", "ensemble"]
    kind = max(aurocs, key=aurocs.get)
    assert kind != "lr"
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
    systems = [System("all features", options["names"])]
    scores = out_of_fold_scores(X, y, groups, systems=systems, **options)["all features"]
    expected = cross_validate(X, y, groups, **options)
    np.testing.assert_array_equal(scores, expected)
    free = cross_validate(X, y, groups, aggregator="monotone", repeats=1)
    assert np.ptp(expected) < 0.5 * np.ptp(free)
