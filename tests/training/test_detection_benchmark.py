"""The benchmark of detection prints what ``syncheck evaluate`` finds."""

import detection
import numpy as np
import pytest
from measured_doubles import yes_and_no
from sklearn.metrics import roc_auc_score

from syncheck import feature_schema
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


def test_generators_that_are_not_in_the_data_are_named():
    row = {"system": "a", "subset": "m", "auroc": 0.5, "low": None, "high": None}
    with pytest.raises(SystemExit, match="--generators"):
        list(detection.systems_table({"strict": {"rows": [row, row | {"subset": "all"}]}}, ("m", "x")))


def test_a_failure_ends_it(tmp_path, capsys):
    with pytest.raises(SystemExit, match="features"):
        detection.main(["--data", str(tmp_path / "nothing"), "--output", str(tmp_path)])
    assert "exist" in capsys.readouterr().err
