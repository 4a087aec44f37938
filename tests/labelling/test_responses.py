"""Which labelled responses count, of files of every kind."""

import json
from dataclasses import replace

import numpy as np
import pytest
from made_up_ragtruth import write_ragtruth

from syncheck import SegmenterConfig, feature_schema
from syncheck.base.errors import InputError
from syncheck.labelling import LabelledResponse, Selection, UnfaithfulSpan, load_records
from syncheck.training import MeasuredSentences, select_sentences


def response(name, **values):
    spans = (
        UnfaithfulSpan(0, 1),
        UnfaithfulSpan(1, 2, implicit_true=True),
        UnfaithfulSpan(2, 3, due_to_null=True),
    )
    return LabelledResponse(name, "q?", ("p",), "Yes.", f"g{name}", values.pop("generator", "m"), spans=spans, **values)


RESPONSES = [
    response("a", task="QA", split="train", quality="good"),
    response("b", task="Summary", split="test", quality="truncated", generator="n"),
    response("c", task="QA", split="test"),
]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, "abc"),
        ({"tasks": ["QA"]}, "ac"),
        ({"tasks": ["QA", "Summary"]}, "abc"),
        ({"split": "test"}, "bc"),
        ({"quality": ["good"]}, "a"),
        ({"quality": ["good", "truncated"]}, "ab"),
        ({"quality": ["good", "incorrect_refusal"]}, "a"),
        ({"generators": ["n"]}, "b"),
        ({"tasks": ["QA"], "split": "test"}, "c"),
    ],
)
def test_responses_that_are_asked_for(options, left):
    assert "".join(r.id for r in Selection(**options).of_responses(RESPONSES, source="x")) == left


@pytest.mark.parametrize("options", [{"tasks": ["QA"]}, {"split": "test"}, {"quality": ["good"]}])
def test_what_a_response_does_not_say_is_not_what_is_asked_for(options):
    unsaid = LabelledResponse("a", "q?", ("p",), "Yes.", "g", "m", sentences=())
    said = replace(unsaid, task="QA", split="test", quality="good")
    assert Selection(generators=["m"]).kept([unsaid, said], "x") == [0, 1]
    assert Selection(**options).kept([unsaid, said], "x") == [1]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, [0, 1, 2]),
        ({"implicit_true": False}, [0, 2]),
        ({"due_to_null": False}, [0, 1]),
        ({"implicit_true": False, "due_to_null": False}, [0]),
    ],
)
def test_spans_that_count(options, left):
    (first, *_) = Selection(**options).of_responses(RESPONSES, source="x")
    assert [span.start for span in first.spans] == left


def test_labels_that_were_given_by_sentence_are_left_alone():
    given = LabelledResponse("a", "q?", ("p",), "Yes.", "g", "m", sentences=())
    assert Selection(implicit_true=False).of_responses([given], source="x") == [given]


def test_nothing_left_says_what_there_is():
    with pytest.raises(InputError) as caught:
        Selection(tasks=["Poem"], split="dev").of_responses(RESPONSES, source="x.jsonl")
    for word in ("'Poem'", "'dev'", "'QA'", "'Summary'", "'test'", "'train'", "'good'", "'truncated'", "'m'", "'n'"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("options", "unknown"),
    [
        ({"generators": ["m", "gpt5"]}, "gpt5"),
        ({"tasks": ["QA", "Poem"], "split": "dev", "generators": ["m"]}, "Poem"),
    ],
)
def test_a_name_beside_others_that_are_there_must_be_there_too(options, unknown):
    with pytest.raises(InputError, match=unknown):
        Selection(**options).of_responses(RESPONSES, source="x")


def test_sentences_keep_their_responses():
    schema = feature_schema("paper.v1", (3,))
    measured = MeasuredSentences(
        schema=schema,
        values=np.arange(5)[:, None] * np.ones(len(schema.names)),
        activations={3: np.arange(10, dtype=np.float32).reshape(5, 2)},
        bounds=np.array([[0, 1], [1, 2], [0, 4], [0, 2], [2, 3]]),
        texts=("a0", "a1", "b0", "c0", "c1"),
        owners=np.array([0, 0, 1, 2, 2]),
        records=tuple(RESPONSES),
        left_out={"z": "too long"},
        segmenter=SegmenterConfig(clauses=True),
    )
    found = select_sentences(measured, Selection(tasks=["QA"], due_to_null=False), source="x")
    assert [r.id for r in found.records] == ["a", "c"]
    assert found.texts == ("a0", "a1", "c0", "c1") and found.owners.tolist() == [0, 0, 1, 1]
    assert found.values[:, 0].tolist() == [0, 1, 3, 4]
    assert found.activations[3].tolist() == [[0, 1], [2, 3], [6, 7], [8, 9]]
    assert found.bounds.tolist() == [[0, 1], [1, 2], [0, 2], [2, 3]]
    assert found.labels().tolist() == [0, 0, 0, 1]  # the span 2 to 3 does not count
    assert (found.left_out, found.segmenter) == ({"z": "too long"}, SegmenterConfig(clauses=True))
    with pytest.raises(InputError, match="'Poem'"):
        select_sentences(measured, Selection(tasks=["Poem"]), source="x")


def test_a_ragtruth_folder_is_its_questions_unless_tasks_are_named(tmp_path):
    folder = write_ragtruth(tmp_path, per_split=2)
    assert {r.task for r in load_records(folder)} == {"QA"}
    assert {r.task for r in load_records(folder, Selection(split="test"))} == {"QA"}
    chosen = Selection(tasks=["Summary", "Data2txt"], split="test", generators=["llama-2-7b-chat"])
    found = load_records(folder, chosen)
    assert [r.id for r in found] == [f"{i}-llama-2-7b-chat" for i in (4, 5, 10, 11)]
    assert [r.task for r in found] == ["Summary", "Data2txt"] * 2
    with pytest.raises(InputError, match="'Poem'"):
        load_records(folder, Selection(tasks=["Poem"]))
    for options, wanted in (
        ({"generators": ["llama-2-7b-chat", "gpt"]}, "gpt"),
        ({"quality": ["incorrect_refusal"]}, "incorrect_refusal"),
        ({"tasks": ["Summary"], "split": "test", "quality": ["truncated"]}, "truncated"),
    ):
        with pytest.raises(InputError, match=wanted):
            load_records(folder, Selection(**options))
    with pytest.raises(InputError, match="generators"):
        load_records(folder, Selection(generators="gpt"))


def test_prompts_of_the_task(tmp_path):
    folder = write_ragtruth(tmp_path, per_split=1)
    assert all(r.prompt_with_context is None for r in load_records(folder))
    assert all(r.prompt_with_context.startswith("Briefly answer") for r in load_records(folder, prompts="task"))
    plain = tmp_path / "plain.jsonl"
    plain.write_text(json.dumps({"question": "q?", "context": "c", "response": "r", "spans": [], "quality": "good"}))
    (record,) = load_records(plain, Selection(quality=["good"]))
    assert record.quality == "good"
    with pytest.raises(InputError, match="prompts="):
        load_records(plain, prompts="task")
