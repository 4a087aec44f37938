"""The benchmark of detection prints what ``syncheck evaluate`` finds, and what each signal is worth."""

import detection
import numpy as np
import pytest
from measured_doubles import yes_and_no
from sklearn.metrics import roc_auc_score

from syncheck import feature_schema
from syncheck.evaluation import auroc_table, cross_validate
from syncheck.training import read_parquet, write_parquet


def cells(lines):
    return {line.split("|")[1].strip(): [c.strip() for c in line.split("|")[2:-1]] for line in lines if "|" in line}


@pytest.mark.slow
def test_the_tables_are_those_of_the_measured_sentences(tmp_path, capsys):
    schema = feature_schema("syncheck.v1", ())
    values = np.random.default_rng(0).random((60, len(schema.names)))
    values[::2, schema.names.index("align_score")] += 0.5
    write_parquet(yes_and_no(schema, values), tmp_path / "features.parquet")
    detection.main(
        [
            "--data",
            "none",
            "--output",
            str(tmp_path),
            "--generators",
            "m",
            "--cv",
            "2",
            "--repeats",
            "1",
            "--seeds",
            "1",
        ]
        + ["--aggregator", "lr"]
    )
    printed = capsys.readouterr().out
    systems, signals, kinds = (cells(part.splitlines()) for part in printed.split("\n\n")[-3:])
    measured = read_parquet(tmp_path / "features.parquet")
    support = values[:, schema.names.index("align_score")]
    of_m = measured.generators == "m"
    expected = roc_auc_score(measured.labels()[of_m], support[of_m])
    assert systems["sentence AUROC"] == ["strict set, pooled", "strict set, m", "paper set, pooled", "paper set, m"]
    assert systems["aligner, untrained"][1] == f"{expected:.3f}"
    pooled = f"{roc_auc_score(measured.labels(), support):.3f}"
    assert systems["aligner, untrained"][0].startswith(f"{pooled} [")
    assert float(signals["aligner permuted"][0]) > 0.1 > abs(float(signals["entropy permuted"][0]))
    assert list(kinds)[2:] == ["lr", "xgb", "mlp", "ensemble"]
    assert kinds["strict set, pooled"] == ["the paper's features", "all features"]
    assert kinds["lr"][1].split()[0] == systems["all features"][0].split()[0]


NAMES = ("strong", "weak", "noise")
SIGNALS = {"likelihood": ("strong", "weak"), "entropy": ("noise",)}


def sentences(size=200, groups=25):
    rng = np.random.default_rng(0)
    y = (rng.random(size) < 0.6).astype(int)
    X = rng.normal(size=(size, 3)) + y[:, None] * np.array([2.0, 0.7, 0.0])
    return X, y, rng.integers(0, groups, size).astype(str)


def test_permuted_signals_are_those_of_other_sentences_of_the_fold():
    """One column, and a model that is monotone in it: permuted scores are the same scores in another order."""
    X, y, groups = sentences()
    scores = detection.permuted_scores(
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
    X, y, groups = sentences()
    scores = detection.permuted_scores(X, y, groups, names=NAMES, signals=SIGNALS, aggregator="lr", repeats=3)
    rows = {row.system: row for row in auroc_table(scores, y, groups).rows}
    assert rows["likelihood permuted"].auroc == pytest.approx(0.5, abs=0.1)
    assert rows["likelihood permuted"].gain_high < -0.2
    assert abs(rows["entropy permuted"].gain) < 0.02


def test_permuting_is_repeatable():
    X, y, groups = sentences()
    options = {"names": NAMES, "signals": SIGNALS, "aggregator": "lr", "repeats": 1, "folds": 3}
    first, second = (
        detection.permuted_scores(X, y, groups, **options),
        detection.permuted_scores(X, y, groups, **options),
    )
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name])


def test_directions_of_the_names_count_in_what_is_permuted():
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.6).astype(int)
    X = np.stack([rng.normal(size=200) - y, rng.normal(size=200) + y], axis=1)  # the wrong way round
    options = {"names": ("stem_overlap", "novel_words"), "aggregator": "monotone", "repeats": 1}
    groups = (np.arange(200) % 25).astype(str)
    scores = detection.permuted_scores(X, y, groups, signals={"lexical": ("stem_overlap",)}, **options)
    np.testing.assert_array_equal(scores["all features"], cross_validate(X, y, groups, **options))


def test_generators_that_are_not_in_the_data_are_named():
    row = {"system": "a", "subset": "m", "auroc": 0.5, "low": None, "high": None}
    with pytest.raises(SystemExit, match="--generators"):
        list(detection.systems_table({"strict": {"rows": [row, row | {"subset": "all"}]}}, ("m", "x")))


def test_a_failure_ends_it(tmp_path, capsys):
    with pytest.raises(SystemExit, match="features"):
        detection.main(["--data", str(tmp_path / "nothing"), "--output", str(tmp_path)])
    assert "exist" in capsys.readouterr().err
