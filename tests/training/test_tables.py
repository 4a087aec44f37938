"""Measured sentences on disk: saved = loaded."""

import numpy as np
import pandas
import pytest

from syncheck import CheckpointError, MonitorConfig, SegmenterConfig, feature_schema
from syncheck.training import (
    LabelledResponse,
    LabelledSentence,
    MeasuredSentences,
    UnfaithfulSpan,
    read_parquet,
    write_parquet,
)

LAYERS = (2, 3)


def made_up() -> MeasuredSentences:
    rng = np.random.default_rng(0)
    schema = feature_schema(MonitorConfig().schema, LAYERS)
    values = rng.normal(size=(3, len(schema.names)))
    values[1, 2] = np.nan
    spans = LabelledResponse("a", "q?", ("p",), "One. Two.", "g", "m", spans=(UnfaithfulSpan(5, 9, label_type="x"),))
    given = LabelledResponse("b", "ü?", ("p", "r"), "Three.", "h", "n", sentences=(LabelledSentence(0, 6, True),))
    return MeasuredSentences(
        schema=schema,
        values=values,
        activations={k: rng.normal(size=(3, 5)).astype(np.float32) for k in LAYERS},
        bounds=np.array([[0, 4], [5, 9], [0, 6]]),
        texts=("One.", "Two.", "Three."),
        owners=np.array([0, 0, 1]),
        records=(spans, given),
        left_out={"c": "too long"},
        max_references=7,
        segmenter=SegmenterConfig(abbreviations=("Dr.",), line_breaks="lists", sentences=2),
        provenance={"model": "llama", "aligner": "none"},
    )


def test_saved_is_loaded(tmp_path):
    before = made_up()
    write_parquet(before, tmp_path / "x.parquet")
    after = read_parquet(tmp_path / "x.parquet")
    np.testing.assert_array_equal(after.values, before.values)
    for layer in LAYERS:
        np.testing.assert_array_equal(after.activations[layer], before.activations[layer])
    for name in ("schema", "texts", "records", "left_out", "max_references", "segmenter", "provenance"):
        assert getattr(after, name) == getattr(before, name)
    for name in ("bounds", "owners", "groups", "generators", "with_letter", "checkable"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    assert after.labels().tolist() == before.labels().tolist() == [1, 0, 1]


def test_other_files_are_refused(tmp_path):
    pandas.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 not really")
    for name in ("other", "damaged", "missing"):
        with pytest.raises(CheckpointError, match="syncheck features"):
            read_parquet(tmp_path / f"{name}.parquet")
