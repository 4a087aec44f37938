import json

import pytest

from syncheck.errors import InputError, RecordError
from syncheck.training import LabelledSentence, UnfaithfulSpan, load_jsonl, load_ragtruth, load_records

SOURCE = {
    "source_id": "7",
    "task_type": "QA",
    "source": "MARCO",
    "source_info": {
        "question": "how big is paris",
        "passages": "passage 1:Paris is big.\nVery passage 2: big.\n\npassage 2: So is Rome.\n\n",
    },
    "prompt": "Briefly answer the following question: ...",
}
LABEL = {
    "start": 0,
    "end": 5,
    "text": "Paris",
    "meta": "",
    "label_type": "Evident Conflict",
    "implicit_true": True,
    "due_to_null": False,
}
RESPONSE = {
    "id": "70",
    "source_id": "7",
    "model": "llama",
    "temperature": 0.7,
    "labels": [LABEL],
    "split": "test",
    "quality": "good",
    "response": "Paris is big.",
}
SPANS = {"question": "q", "context": ["a", "b"], "response": "Paris is big.", "spans": [{"start": 0, "end": 5}]}
SENTENCES = {
    "question": "q",
    "context": "a",
    "sentences": ["Paris is big. ", "So is Rome."],
    "labels": [1, 0],
}


def write(path, *records):
    path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in records))
    return path


def ragtruth(folder, responses, sources=(SOURCE,)):
    write(folder / "source_info.jsonl", *sources)
    write(folder / "response.jsonl", *responses)
    return folder


def test_ragtruth(tmp_path):
    (record,) = load_records(ragtruth(tmp_path, [RESPONSE]))
    assert (record.id, record.group, record.generator, record.task) == ("70", "7", "llama", "QA")
    assert (record.quality, record.split) == ("good", "test")
    assert record.question == "how big is paris"
    assert record.passages == ("Paris is big.\nVery passage 2: big.", "So is Rome.")
    assert record.spans == (UnfaithfulSpan(0, 5, implicit_true=True, label_type="Evident Conflict"),)
    assert record.sentences is None


def test_ragtruth_ids_and_temperatures_may_be_missing(tmp_path):
    without = {key: value for key, value in RESPONSE.items() if key != "id"} | {"temperature": None}
    (record,) = load_ragtruth(ragtruth(tmp_path, [without]))
    assert record.id == "7/llama"


def test_ragtruth_passes_over_other_tasks(tmp_path):
    article = {"source_id": "8", "task_type": "Summary", "source_info": "An article."}
    summary = RESPONSE | {"id": "80", "source_id": "8"}
    (record,) = load_ragtruth(ragtruth(tmp_path, [summary, RESPONSE], [SOURCE, article]))
    assert record.id == "70"
    with pytest.raises(InputError, match="no labelled response"):
        load_ragtruth(ragtruth(tmp_path, [summary], [SOURCE, article]))


def test_ragtruth_without_one_of_its_files(tmp_path):
    write(tmp_path / "source_info.jsonl", SOURCE)
    with pytest.raises(InputError, match=r"response\.jsonl does not exist"):
        load_ragtruth(tmp_path)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"source_id": "9"}, "source_id"),
        ({"response": None}, "response"),
        ({"labels": [LABEL, LABEL | {"end": "5"}]}, "labels[1].end"),
        ({"labels": [LABEL | {"end": 14}]}, "labels[0]"),
        ({"labels": [LABEL | {"implicit_true": "no"}]}, "labels[0].implicit_true"),
        ({"labels": ["Paris"]}, "labels[0]"),
        ({"id": "70"}, "id"),
    ],
)
def test_a_bad_ragtruth_response_is_located(tmp_path, change, field):
    ragtruth(tmp_path, [RESPONSE, "\n", RESPONSE | {"id": "71"} | change])
    with pytest.raises(RecordError) as caught:
        load_ragtruth(tmp_path)
    assert (caught.value.source, caught.value.line, caught.value.field) == ("response.jsonl", 3, field)


@pytest.mark.parametrize(
    ("info", "field"),
    [
        ("text", "source_info"),
        ({"passages": "passage 1:a"}, "source_info.question"),
        ({"question": "q", "passages": "no numbers"}, "source_info.passages"),
    ],
)
def test_a_bad_ragtruth_source_is_located(tmp_path, info, field):
    ragtruth(tmp_path, [RESPONSE], [SOURCE | {"source_info": info}])
    with pytest.raises(RecordError) as caught:
        load_ragtruth(tmp_path)
    assert (caught.value.source, caught.value.line, caught.value.field) == ("source_info.jsonl", 1, field)


def test_jsonl_with_spans(tmp_path):
    (record,) = load_records(write(tmp_path / "mine.jsonl", SPANS))
    assert (record.id, record.group, record.generator) == ("mine:1", "q", "unknown")
    assert record.passages == ("a", "b")
    assert record.spans == (UnfaithfulSpan(0, 5),)
    assert record.sentences is None


def test_jsonl_with_sentences(tmp_path):
    (record,) = load_jsonl(write(tmp_path / "mine.jsonl", SENTENCES))
    assert record.response == "Paris is big. So is Rome."
    assert record.passages == ("a",)
    assert record.spans is None
    assert record.sentences == (LabelledSentence(0, 13, True), LabelledSentence(14, 25, False))


def test_jsonl_sentences_are_found_in_the_response(tmp_path):
    record = SENTENCES | {"response": "So it is: Paris is big.\n\nSo is Rome."}
    (loaded,) = load_jsonl(write(tmp_path / "mine.jsonl", record))
    assert loaded.sentences == (LabelledSentence(10, 23, True), LabelledSentence(25, 36, False))


def test_jsonl_optional_fields(tmp_path):
    given = {
        "id": "x",
        "group": "g",
        "generator": "m",
        "task": "t",
        "split": "train",
        "prompt_with_context": "with",
        "prompt_without_context": "without",
    }
    (record,) = load_jsonl(write(tmp_path / "mine.jsonl", SPANS | given))
    assert {name: getattr(record, name) for name in given} == given


@pytest.mark.parametrize(
    ("record", "field", "message"),
    [
        ('{"question": "q", "cont', None, "not JSON"),
        ("[1]\n", None, "expected an object, found \\[1\\]"),
        ({**SPANS, "question": 3}, "question", "expected a string, found 3"),
        ({k: v for k, v in SPANS.items() if k != "question"}, "question", "missing; expected a string"),
        ({**SPANS, "context": ["a", 1]}, "context[1]", "expected a string, found 1"),
        ({**SPANS, "context": 1}, "context", "expected a list, found 1"),
        ({**SPANS, "labels": [1], "sentences": ["Paris"]}, "spans", "either as 'spans' or as 'sentences'"),
        ({"question": "q", "context": "a", "response": "r"}, "spans", "either as"),
        ({**SPANS, "spans": [{"start": 3, "end": 3}]}, "spans[0]", "do not lie in a response of 13"),
        ({**SPANS, "spans": [{"start": True, "end": 3}]}, "spans[0].start", "whole number, found true"),
        ({**SENTENCES, "labels": [1]}, "labels", "one label for each of 2 sentences, found 1"),
        ({**SENTENCES, "labels": [1, 2]}, "labels[1]", "found 2"),
        ({**SENTENCES, "response": "Paris is big."}, "sentences[1]", "not found in the response"),
        ({**SENTENCES, "sentences": ["Paris is big.", " "]}, "sentences[1]", "not found"),
    ],
)
def test_a_bad_line_is_located(tmp_path, record, field, message):
    path = write(tmp_path / "mine.jsonl", SPANS | {"id": "1"}, record)
    with pytest.raises(RecordError, match=message) as caught:
        load_jsonl(path)
    assert (caught.value.source, caught.value.line, caught.value.field) == ("mine.jsonl", 2, field)


def test_a_line_that_is_not_utf8_is_located(tmp_path):
    (tmp_path / "mine.jsonl").write_bytes(b'{"question": "\xff"}\n')
    with pytest.raises(RecordError, match="UTF-8") as caught:
        load_jsonl(tmp_path / "mine.jsonl")
    assert caught.value.line == 1


def test_nothing_to_read(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        load_records(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="no labelled response"):
        load_records(write(tmp_path / "empty.jsonl", "\n"))
