import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_doubles import yes_and_no

from syncheck import Monitor, MonitorConfig, Verifier, feature_schema
from syncheck.base.errors import InputError, RecordError, WrongTypeError
from syncheck.cli import main
from syncheck.evaluation import fold_numbers
from syncheck.labelling import (
    LabelledResponse,
    LabelledSentence,
    UnfaithfulSpan,
    carried_line,
    label_sentences,
    labelled_responses,
    load_jsonl,
    load_records,
)
from syncheck.training import measure, measure_to_parquet, read_parquet


def intervals(most=40):
    return st.tuples(st.integers(0, most), st.integers(1, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(
    bounds=st.lists(intervals(), max_size=8),
    spans=st.lists(st.tuples(intervals(), st.booleans()), max_size=6),
    implicit_true=st.booleans(),
)
def test_rules_agree_with_sets_of_characters(bounds, spans, implicit_true):
    marked = [UnfaithfulSpan(*span, implicit_true=implicit) for span, implicit in spans]
    counted = [set(range(*span)) for span, implicit in spans if implicit_true or not implicit]
    sentences = [set(range(*bound)) for bound in bounds]
    overlap = [int(not any(sentence & span for span in counted)) for sentence in sentences]
    paper = [int(not any(s <= span or span <= s for span in counted)) for s in sentences]
    given_back = label_sentences(bounds, marked, implicit_true=implicit_true)
    assert given_back.dtype == np.int64
    assert given_back.tolist() == overlap
    assert label_sentences(bounds, marked, rule="paper", implicit_true=implicit_true).tolist() == paper


@pytest.mark.parametrize(
    ("span", "overlap", "paper"),
    [
        ((0, 5), [0, 1], [0, 1]),
        ((0, 13), [0, 1], [0, 1]),
        ((13, 15), [1, 1], [1, 1]),
        ((9, 17), [0, 0], [1, 1]),
        ((0, 20), [0, 0], [0, 1]),
    ],
)
def test_inside_equal_between_across_and_around(span, overlap, paper):
    bounds = [(0, 13), (15, 45)]
    assert label_sentences(bounds, [UnfaithfulSpan(*span)]).tolist() == overlap
    assert label_sentences(bounds, [UnfaithfulSpan(*span)], rule="paper").tolist() == paper


MODEL = ["--model", str(Path(__file__).parents[1] / "golden" / "signals" / "llama")]
SCHEMA = "paper-no-lid.v1"
WHOLE = {"question": "q?", "context": "Paris is big.", "sentences": ["Paris is big.", "Rome is old."], "labels": [1, 0]}
MERGED = {**WHOLE, "sentences": ["Paris is big", "Rome is old."]}
"""Without its full stop the first sentence does not end."""
SPLIT = {**WHOLE, "sentences": ["Dr. Bell is old.", "Rome is old."]}


def with_bounds(measured):
    return ((record, measured.bounds_of(index)) for index, record in enumerate(measured.records))


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def monitor(llama):
    return Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema=SCHEMA), aligner=None)


@pytest.mark.parametrize(
    ("sentences", "response"),
    [
        (["One.", "Two.", "Three."], "One. Two. Three."),
        (["One. ", "Two.", "\nThree."], "One. Two.\nThree."),
        ([" One.", "Two."], " One. Two."),
    ],
)
def test_sentences_without_a_response_stay_apart(tmp_path, sentences, response):
    record = {**WHOLE, "sentences": sentences, "labels": [1] * len(sentences)}
    (loaded,) = load_jsonl(write(tmp_path / "mine.jsonl", record))
    assert loaded.response == response


def test_every_labelled_sentence_is_measured(monitor, tmp_path):
    """Ninety sentences of thirty responses, one unfaithful each: joined without a space they would be fewer."""
    sentences = ["Paris is big.", "Rome is old.", "Oslo is cold."]
    records = [{**WHOLE, "id": str(i), "sentences": sentences, "labels": [1, 0, 1]} for i in range(30)]
    measured = measure(monitor, load_jsonl(write(tmp_path / "mine.jsonl", *records)))
    assert measured.texts == tuple(sentences) * 30
    assert measured.labels().tolist() == [1, 0, 1] * 30
    assert carried_line(with_bounds(measured)) is None


@pytest.mark.parametrize("kind", ["model", "text"])
def test_labelled_sentences_are_measured_as_they_are_and_said_once(monitor, tmp_path, caplog, kind):
    measuring = monitor if kind == "model" else Verifier(None, config=MonitorConfig(schema="syncheck.v5"))
    listed = {**WHOLE, "response": "- Paris is big\n - Rome is old.\n", "sentences": ["Paris is big", "Rome is old."]}
    records = load_jsonl(write(tmp_path / "mine.jsonl", WHOLE, MERGED, SPLIT, listed))
    measured = measure(measuring, records)
    given = [*WHOLE["sentences"], *MERGED["sentences"], *SPLIT["sentences"], "-", "Paris is big", "-", "Rome is old."]
    assert list(measured.texts) == given
    assert measured.labels()[measured.checkable].tolist() == [1, 0] * 4
    assert carried_line(with_bounds(measured)) is None
    (said,) = [one.getMessage() for one in caplog.records if "labelled" in one.getMessage()]
    assert "3 of 4 responses" in said and "mine:2 first" in said
    written = measure_to_parquet(measuring, records, tmp_path / "x.parquet")
    assert written.texts == measured.texts
    np.testing.assert_array_equal(read_parquet(tmp_path / "x.parquet").values, measured.values)


def test_a_sentence_is_measured_as_score_measures_it_when_it_is_given(monitor, tmp_path):
    (record,) = load_jsonl(write(tmp_path / "mine.jsonl", SPLIT))
    measured = measure(monitor, [record])
    prompt = monitor.prompt(question="q?", context=["Paris is big."])
    report = monitor.score(prompt, sentences=["Dr. Bell is old. ", "Rome is old."])
    scored = np.array([list(sentence.features.values()) for sentence in report.sentences], np.float64)
    np.testing.assert_array_equal(measured.values, scored)


def test_sentences_that_the_monitor_cuts_alike_are_measured_as_its_own(monitor):
    spans = {"question": "q?", "context": "Paris is big.", "response": "Paris is big. Rome is old.", "spans": []}
    own, given = measure(monitor, [spans]), measure(monitor, [WHOLE])
    np.testing.assert_array_equal(own.values, given.values)


def test_text_behind_an_end_that_is_written_in_it_is_not_measured(monitor):
    end = monitor.tokenizer.eos_token
    given = {**WHOLE, "sentences": ["Paris is big", f"Rome is old.{end} Or not.", "Oslo is cold."], "labels": [1, 0, 1]}
    measured = measure(monitor, [given])
    assert measured.texts == ("Paris is big", "Rome is old.")
    assert measured.labels().tolist() == [1, 0]


@pytest.mark.parametrize("places", [[(0, 13), (12, 26)], [(14, 26), (0, 13)], [(0, 13), (14, 27)], [(0, 0), (0, 26)]])
def test_sentences_that_overlap_or_lie_outside_are_refused_with_their_line(monitor, tmp_path, places):
    (record,) = labelled_responses([WHOLE])
    sentences = tuple(LabelledSentence(*place, True) for place in places)
    refused = replace(record, sentences=sentences, source="a.jsonl", line=2)
    for measuring in (measure, lambda *given: measure_to_parquet(*given, tmp_path / "x.parquet")):
        with pytest.raises(RecordError, match="one after the other") as caught:
            measuring(monitor, [record, refused])
        assert (caught.value.source, caught.value.line, caught.value.field) == ("a.jsonl", 2, "sentences")
    assert not list(tmp_path.iterdir())


def test_labels_are_carried_over_where_that_is_accepted(monitor, tmp_path):
    path = write(tmp_path / "mine.jsonl", WHOLE, MERGED, SPLIT)
    measured = measure(monitor, load_records(path, carry_labels=True))
    assert measured.texts[2:] == ("Paris is big Rome is old.", "Dr.", "Bell is old.", "Rome is old.")
    assert measured.labels().tolist() == [1, 0, 0, 1, 1, 0]
    assert "4 sentences became 4" in carried_line(with_bounds(measured))


def test_a_file_of_features_refuses_them_too():
    """One that was measured before such labels were refused."""
    schema = feature_schema(SCHEMA, ())
    measured = yes_and_no(schema, np.zeros((2, len(schema.names))))  # one answer
    record = LabelledResponse(
        "x", "q?", ("p",), "Yes. No.", "g", "m", sentences=(LabelledSentence(0, 8, True),), line=7, source="a.jsonl"
    )
    with pytest.raises(RecordError, match="would") as caught:
        replace(measured, records=(record,)).labels()
    assert caught.value.line == 7
    with pytest.raises(InputError, match="'x'"):
        replace(measured, records=(replace(record, line=None),)).labels()
    accepted = replace(measured, records=(replace(record, carry_labels=True),))
    assert accepted.labels().tolist() == [1, 1]


def test_where_a_record_came_from_is_kept_with_its_features(monitor, tmp_path):
    records = load_jsonl(write(tmp_path / "mine.jsonl", WHOLE))
    measure_to_parquet(monitor, records, tmp_path / "x.parquet")
    (read,) = read_parquet(tmp_path / "x.parquet").records
    assert (read.source, read.line, read) == ("mine.jsonl", 1, records[0])  # without the folder


@pytest.mark.parametrize("sentences", ["strings", "objects"])
def test_features_takes_the_sentences_of_score_and_generate(tmp_path, capsys, sentences):
    """Items of a list and pieces of a text without an end, which other options of segmentation cut otherwise."""
    texts = ["- Paris is big", "- Rome is old", "and so on and on " * 100]
    given = texts if sentences == "strings" else [{"text": text, "score": 0.5} for text in texts]
    path, output = (
        write(tmp_path / "m.jsonl", {**WHOLE, "sentences": given, "labels": [1, 0, 1]}),
        tmp_path / "x.parquet",
    )
    assert main(["features", *MODEL, "--schema", SCHEMA, "--data", str(path), "--output", str(output)]) == 0
    assert capsys.readouterr().err.count("1 of 1 responses have labelled sentences") == 1
    assert read_parquet(output).texts == tuple(text.strip() for text in texts)


def test_the_command_line_accepts_them_and_says_so(tmp_path, capsys):
    path, output = write(tmp_path / "mine.jsonl", WHOLE, MERGED), tmp_path / "x.parquet"
    assert main(["features", *MODEL, "--data", str(path), "--output", str(output), "--carry-labels"]) == 0
    assert "2 sentences became 1" in capsys.readouterr().err


def test_plain_dicts_are_labelled_responses(monitor):
    read, given = labelled_responses([WHOLE, *labelled_responses([{**WHOLE, "context": ("a", "b"), "id": "x"}])])
    assert (read.id, read.response) == ("records:1", "Paris is big. Rome is old.")
    assert (given.id, given.passages) == ("x", ("a", "b"))
    assert measure(monitor, [WHOLE]).labels().tolist() == [1, 0]
    with pytest.raises(RecordError, match="question") as caught:
        labelled_responses([WHOLE, {name: value for name, value in WHOLE.items() if name != "question"}])
    assert (caught.value.line, caught.value.field) == (2, "question")
    for unusable in ({**WHOLE, "question": {1}}, {**WHOLE, "question": "\ud800"}):
        with pytest.raises(RecordError, match="JSON"):
            labelled_responses([unusable])
    with pytest.raises(RecordError, match="id"):
        labelled_responses([{**WHOLE, "id": "x"}] * 2)
    with pytest.raises(WrongTypeError, match="str"):
        labelled_responses("data.jsonl")


@pytest.mark.parametrize(("label", "name"), [(1, "faithful"), (0, "unfaithful")])
def test_labels_of_one_class_are_named(label, name):
    with pytest.raises(InputError, match=rf"\b{name}"):
        fold_numbers([label] * 20, list(range(20)))


def test_references_of_the_own_group_are_found_in_little_time():
    """Less than half of what comparing the names of the groups in pairs takes, as a twentieth of them shows."""
    schema, count = feature_schema("paper.v1", (0,)), 20_000
    measured = yes_and_no(schema, np.zeros((count, len(schema.names))), prefix="What is said of this? " * 20)
    rng = np.random.default_rng(0)
    measured = replace(measured, activations={0: rng.normal(size=(count, 2)).astype(np.float32)}, max_references=2000)
    labels, groups = np.ones(count, np.int64), measured.groups
    started = time.process_time()
    assert (groups[:1000, None] == groups[:2000]).sum() == 1000 * 2
    in_pairs = 20 * (time.process_time() - started)
    started = time.process_time()
    values = measured.features(labels, np.arange(count))
    assert np.isfinite(values[:, schema.names.index("lid_layer_0")]).all()
    assert time.process_time() - started < in_pairs / 2
