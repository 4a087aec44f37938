import json

import pytest

from syncheck.base.errors import InputError, RecordError
from syncheck.results import SoftSpan, SpanLabels
from syncheck.spans import load_predictions, load_span_items, prediction_record

RECORD = {
    "id": "x-1",
    "lang": "EN",
    "model_input": "Who?",
    "model_output_text": "Nobody 😀 knows",
    "model_output_tokens": ["No", "body"],
    "model_output_logits": [-1, 2.5],
    "retrieved_context": ["a text", " "],
    "soft_labels": [{"start": 0, "prob": 0.6, "end": 6}, {"start": 7, "prob": 0.2, "end": 8}],
    "hard_labels": [[0, 6]],
}


@pytest.fixture
def write(tmp_path):
    def write(*records, name="en.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
        return path

    return write


def without(*names):
    return {key: value for key, value in RECORD.items() if key not in names}


def test_an_item_with_everything(write):
    (item,) = load_span_items(write(RECORD))
    assert (item.id, item.lang, item.question, item.response) == ("x-1", "EN", "Who?", "Nobody 😀 knows")
    assert item.passages == ("a text",)
    assert (item.tokens, item.logits) == (("No", "body"), (-1.0, 2.5))
    assert item.labels == SpanLabels((SoftSpan(0, 6, 0.6), SoftSpan(7, 8, 0.2)), ((0, 6),))


def test_an_item_of_the_test_set_has_no_labels(write):
    (item,) = load_span_items(write(without("soft_labels", "hard_labels", "retrieved_context", "model_output_tokens")))
    assert item.labels is None and item.passages == () and item.tokens is None


def test_one_kind_of_labels_gives_the_other(write):
    (soft,) = load_span_items(write(without("hard_labels")))
    assert soft.labels.hard == ((0, 6),)
    (hard,) = load_span_items(write(without("soft_labels")))
    assert hard.labels.soft == (SoftSpan(0, 6, 1.0),)


def test_lists_written_as_python_are_read(write):
    (item,) = load_span_items(
        write(RECORD | {"model_output_tokens": "['No', 'body']", "model_output_logits": "[1, 2]"})
    )
    assert (item.tokens, item.logits) == (("No", "body"), (1.0, 2.0))


def test_a_folder_is_read_by_file_name(write, tmp_path):
    write(RECORD, name="b.jsonl")
    write(RECORD | {"id": "x-0"}, name="a.jsonl")
    assert [item.id for item in load_span_items(tmp_path)] == ["x-0", "x-1"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model_output_text": 3}, "model_output_text"),
        ({"model_input": None}, "model_input"),
        ({"model_output_tokens": "__import__('os')"}, "model_output_tokens"),
        ({"model_output_logits": ["1"]}, "model_output_logits"),
        ({"soft_labels": [{"start": 0, "prob": 1.5, "end": 6}]}, r"soft_labels\[0\].prob"),
        ({"soft_labels": [{"start": 0, "prob": 0.5, "end": 99}]}, r"soft_labels\[0\]"),
        ({"hard_labels": [[0, 6], [4, 99]]}, r"hard_labels\[1\]"),
        ({"hard_labels": [[0.5, 6]]}, r"hard_labels\[0\]"),
        ({"retrieved_context": [1]}, r"retrieved_context\[0\]"),
    ],
)
def test_a_bad_record_is_named_with_file_line_and_field(write, change, field):
    with pytest.raises(RecordError, match=field):
        load_span_items(write(RECORD, RECORD | {"id": "x-2"} | change))


def test_ids_are_there_once(write):
    with pytest.raises(InputError, match="x-1"):
        load_span_items(write(RECORD, RECORD))


def test_an_empty_file_is_refused(write):
    with pytest.raises(InputError, match="item"):
        load_span_items(write())


def test_predictions_written_are_read_back(write, tmp_path):
    items = load_span_items(write(RECORD))
    labels = {"x-1": SpanLabels((SoftSpan(7, 8, 0.25),), ((7, 8),))}
    record = prediction_record(items[0], labels["x-1"])
    (tmp_path / "out").write_text(json.dumps(record))
    assert load_predictions(tmp_path / "out", items) == labels
    assert record == {
        "id": "x-1",
        "lang": "EN",
        "soft_labels": [{"start": 7, "prob": 0.25, "end": 8}],
        "hard_labels": [[7, 8]],
    }


def test_every_item_needs_a_prediction_and_every_prediction_an_item(write):
    items = load_span_items(write(RECORD, RECORD | {"id": "x-2"}))
    one = {"id": "x-1", "hard_labels": []}
    with pytest.raises(InputError, match="x-2"):
        load_predictions(write(one, name="p"), items)
    with pytest.raises(RecordError, match="other"):
        load_predictions(write({"id": "other", "hard_labels": []}, name="p"), items)
    with pytest.raises(RecordError, match="soft_labels"):
        load_predictions(write({"id": "x-1"}, name="p"), items)
