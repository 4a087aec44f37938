"""Measured sentences on disk: saved = loaded."""

from dataclasses import replace

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from syncheck import MonitorConfig, SegmenterConfig, feature_schema
from syncheck.base.errors import CheckpointError
from syncheck.labelling import LabelledResponse, LabelledSentence, UnfaithfulSpan
from syncheck.training import MeasuredSentences, read_parquet, write_parquet

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
        with pytest.raises(CheckpointError, match="features"):
            read_parquet(tmp_path / f"{name}.parquet")


def test_responses_without_a_sentence_keep_their_places(tmp_path):
    before = made_up()
    first, last = before.records
    empty = [replace(first, id=f"empty {i}", response="", spans=()) for i in range(3)]
    before = replace(
        before, records=(empty[0], first, empty[1], last, empty[2]), owners=np.array([1, 1, 3]), texts=("One.", "", "ü")
    )
    write_parquet(before, tmp_path / "x.parquet")
    after = read_parquet(tmp_path / "x.parquet")
    assert (after.records, after.owners.tolist(), after.texts) == (before.records, [1, 1, 3], before.texts)


def test_texts_are_not_in_the_footer(tmp_path):
    """Parquet's footer has a limit of about 100 MB."""
    sizes = []
    for length in (1, 100_000):
        found = made_up()
        found = replace(found, records=tuple(replace(r, passages=("p" * length,)) for r in found.records))
        write_parquet(found, tmp_path / "x.parquet")
        assert read_parquet(tmp_path / "x.parquet").records == found.records
        sizes.append(parquet.read_metadata(tmp_path / "x.parquet").serialized_size)
    assert sizes[1] - sizes[0] < 1000  # the minima and maxima of columns differ


def test_the_file_is_a_table_of_sentences_to_pandas(tmp_path):
    write_parquet(made_up(), tmp_path / "x.parquet")
    table = pandas.read_parquet(tmp_path / "x.parquet")
    assert table["text"].tolist() == ["One.", "Two.", "Three."]
    assert table["labelled_response"].isna().tolist() == [False, True, False]
    assert np.stack(table["activation_layer_2"]).shape == (3, 5)


def rewritten(path, change):
    table = parquet.read_table(path)
    parquet.write_table(change(table), path)
    return path


def test_a_file_of_the_former_layout_is_to_be_measured_anew(tmp_path):
    write_parquet(made_up(), tmp_path / "x.parquet")
    path = rewritten(tmp_path / "x.parquet", lambda t: t.replace_schema_metadata({"syncheck": '{"records": []}'}))
    with pytest.raises(CheckpointError, match="layout"):
        read_parquet(path)


@pytest.mark.parametrize("rows", [[[1.0, 2.0], [1.0], [1.0, 2.0, 3.0]], [[1.0], None, [2.0]], [[1.0], [None], [2.0]]])
def test_activations_of_several_widths_or_none_are_refused(tmp_path, rows):
    write_parquet(made_up(), tmp_path / "x.parquet")
    states = pa.array(rows, pa.list_(pa.float32()))
    place = "activation_layer_2"
    path = rewritten(tmp_path / "x.parquet", lambda t: t.set_column(t.column_names.index(place), place, states))
    with pytest.raises(CheckpointError, match="sentences"):
        read_parquet(path)


def test_a_damaged_byte_is_noticed(tmp_path):
    """Wherever it is, in the values or in what the file says of them; or it changes nothing."""
    path = tmp_path / "x.parquet"
    before = made_up()
    write_parquet(before, path)
    whole, refused = path.read_bytes(), 0
    for place in range(0, len(whole), 151):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            after = read_parquet(path)
        except CheckpointError:
            refused += 1
            continue
        np.testing.assert_array_equal(after.values, before.values)
        np.testing.assert_array_equal(after.activations[3], before.activations[3])
        for name in ("texts", "records", "left_out", "max_references", "segmenter", "provenance"):
            assert getattr(after, name) == getattr(before, name)
    assert refused > 20


def other_reason(table):
    return table.replace_schema_metadata(
        {k: v.replace(b"too long", b"too lung") for k, v in table.schema.metadata.items()}
    )


def other_column(table):
    renamed = table.rename_columns({"activation_layer_2": "activation_layer_6"})
    return renamed.replace_schema_metadata(table.schema.metadata)


@pytest.mark.parametrize("change", [other_reason, other_column])
def test_metadata_and_columns_that_were_not_written_are_refused(tmp_path, change):
    """They are in the footer, which has no checksum of Parquet's."""
    write_parquet(made_up(), tmp_path / "x.parquet")
    path = rewritten(tmp_path / "x.parquet", change)
    with pytest.raises(CheckpointError, match="written"):
        read_parquet(path)


def test_what_cannot_be_read_replaces_nothing(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    write_parquet(made_up(), path)
    write = parquet.write_table

    def half(table, file, **options):
        write(table, file, **options)
        file.truncate(file.tell() - 100)

    monkeypatch.setattr(parquet, "write_table", half)
    with pytest.raises(CheckpointError, match="disk"):
        write_parquet(replace(made_up(), max_references=8), path)
    assert read_parquet(path).max_references == 7
    assert [found.name for found in tmp_path.iterdir()] == ["x.parquet"]
