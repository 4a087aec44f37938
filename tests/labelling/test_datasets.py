import json

import pytest

from syncheck.base.checks import names_of
from syncheck.base.errors import InputError, RecordError
from syncheck.corpus.scoring import prompt_for
from syncheck.labelling import (
    LabelledSentence,
    UnfaithfulSpan,
    labelled_responses,
    load_jsonl,
    load_records,
    load_unlabelled,
)
from syncheck.labelling.datasets import labelled_record
from syncheck.labelling.responses import prompt_of, response_from_json, response_to_json
from syncheck.testing import scripted_monitor

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


def test_jsonl_with_spans(tmp_path):
    (record,) = load_records(write(tmp_path / "mine.jsonl", SPANS))
    assert (record.id, record.generator) == ("mine:1", "unknown")
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
    record = SENTENCES | {"response": "** Paris is big.\n\nSo is Rome. --"}
    (loaded,) = load_jsonl(write(tmp_path / "mine.jsonl", record))
    assert loaded.sentences == (LabelledSentence(3, 16, True), LabelledSentence(18, 29, False))


@pytest.mark.parametrize(
    ("sentences", "labels", "unlabelled"),
    [
        (["It is blue."], [0], "It is red, and 3 of 4 people who were asked have said so ..."),
        (["It is red"], [0], "It is blue."),
        ([], [], "It is blue. It is red, and 3 of 4 people who were asked h..."),
    ],
)
def test_text_without_a_label_is_refused(tmp_path, sentences, labels, unlabelled):
    response = "It is blue. It is red, and 3 of 4 people who were asked have said so twice."
    given = {"question": "q", "context": "a", "response": response, "sentences": sentences, "labels": labels}
    with pytest.raises(RecordError, match="sentence") as caught:
        load_jsonl(write(tmp_path / "mine.jsonl", given))
    assert (caught.value.source, caught.value.line) == (str(tmp_path / "mine.jsonl"), 1)
    assert caught.value.field == "sentences" and repr(unlabelled) in str(caught.value)


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


def groups_of(*asked):
    """The number, from 0, of the group of each question with its passages and perhaps a group."""
    fields = [dict(zip(("question", "context", "group"), given, strict=False)) for given in asked]
    groups = [response.group for response in labelled_responses([SPANS | given for given in fields])]
    return [list(dict.fromkeys(groups)).index(group) for group in groups]


def test_records_without_a_group_are_grouped_by_question_and_passages():
    one, two, ten = ["It rains."], ["It snows."], [f"Passage {i}." for i in range(10)]
    assert groups_of(("Why?", one), ("Why?", two), ("Who?", one), ("Why?", one), (" Why?", ["It  rains. "])) == [
        *(0, 1, 2, 0, 0)
    ]
    # One passage in common suffices, also through a third answer; an empty one is none.
    assert groups_of(("Why?", ten[:3]), ("Why?", ten[5:]), ("Why?", ten[2:6]), ("Who?", ten)) == [0, 0, 0, 1]
    assert groups_of(("Why?", [*one, ""]), ("Why?", ["", *two])) == [0, 1]
    # A given group is kept, and joins no other.
    assert groups_of(("Why?", one, "g"), ("Why?", one), ("Who?", two, "g"), ("Why?", one, "")) == [0, 1, 0, 1]


def test_a_group_has_the_same_name_in_every_file(tmp_path):
    other = SPANS | {"context": ["c"]}
    first = load_jsonl(write(tmp_path / "first.jsonl", SPANS, other))
    second = load_unlabelled(write(tmp_path / "second.jsonl", other, SPANS))
    assert [r.group for r in first] == [r.group for r in reversed(second)]
    assert len({"q", *(r.group for r in first)}) == 3  # nor is it that of a question alone


@pytest.mark.parametrize(
    ("record", "field", "message"),
    [
        ('{"question": "q", "cont', None, "JSON"),
        ("[1]\n", None, "object"),
        ('{"question": ' + "[" * 100_000 + "]" * 100_000 + "}", None, "recursion"),
        ({**SPANS, "response": "Paris \ud800 is big."}, "response", "surrogates"),
        ({**SPANS, "spans": [{"start": 0, "end": 1, "label_type": "\udfff"}]}, "spans", "surrogates"),
        ({**SPANS, "question": 3}, "question", "string"),
        ({k: v for k, v in SPANS.items() if k != "question"}, "question", "missing"),
        ({**SPANS, "context": ["a", 1]}, "context[1]", "string"),
        ({**SPANS, "context": 1}, "context", "strings"),
        ({**SPANS, "context": None}, "context", "null"),
        ({k: v for k, v in SPANS.items() if k != "context"}, "context", "missing"),
        ({**SPANS, "sentences": ["Paris"]}, "spans", "either"),
        ({"question": "q", "context": "a", "response": "r"}, "spans", "either"),
        ({**SPANS, "spans": [{"start": 3, "end": 3}]}, "spans[0]", "lie"),
        ({**SPANS, "spans": [{"start": True, "end": 3}]}, "spans[0].start", "true"),
        ({**SENTENCES, "labels": [1]}, "labels", "label"),
        ({**SENTENCES, "labels": [1, 2]}, "labels[1]", "unfaithful"),
        ({**SENTENCES, "labels": [1, [0, 0]]}, "labels[1]", "disagree"),
        ({**SENTENCES, "labels": [1, [0, None]]}, "labels[1]", "disagree"),
        ({**SENTENCES, "spans": [{"start": 0, "end": 5}]}, "spans[0]", "'Paris' in one with the label 1; label the"),
        ({**SENTENCES, "spans": [{"start": 6, "end": 16}]}, "spans[0]", "words of one sentence, found 'is big. So'"),
        ({**SENTENCES, "spans": [{"start": 20, "end": 30}]}, "spans[0]", "response of 25"),
        ({**SENTENCES, "spans": [{"start": 20, "end": 24, "text": "Oslo"}]}, "spans[0].text", "'Rome', found 'Oslo'"),
        ({**SENTENCES, "response": "Paris is big."}, "sentences[1]", "response"),
        ({**SENTENCES, "sentences": ["Paris is big.", " "]}, "sentences[1]", "response"),
        ({**SPANS, "prompt_with_context": "with"}, "prompt_without_context", "both"),
        ({**SPANS, "prompt_without_context": "without"}, "prompt_with_context", "both"),
    ],
)
def test_a_bad_line_is_located(tmp_path, record, field, message):
    path = write(tmp_path / "mine.jsonl", SPANS | {"id": "1"}, record)
    with pytest.raises(RecordError, match=message) as caught:
        load_jsonl(path)
    assert (caught.value.source, caught.value.line, caught.value.field) == (str(path), 2, field)


def test_files_of_one_name_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "mine.jsonl", {**SPANS, "question": 3})
        with pytest.raises(RecordError, match=f"{folder}/mine.jsonl:1"):
            load_records(f"{folder}/mine.jsonl")


def test_a_line_that_is_not_utf8_is_located(tmp_path):
    (tmp_path / "mine.jsonl").write_bytes(b'{"question": "\xff"}\n')
    with pytest.raises(RecordError, match="UTF-8") as caught:
        load_jsonl(tmp_path / "mine.jsonl")
    assert caught.value.line == 1


def test_nothing_to_read(tmp_path):
    with pytest.raises(InputError, match="exist"):
        load_records(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="labelled"):
        load_records(write(tmp_path / "empty.jsonl", "\n"))


def test_a_sentence_may_have_no_label(tmp_path):
    path = tmp_path / "labels.jsonl"
    sentences = ["One.", "Two.", "Three.", "Four."]
    record = {"question": "q?", "context": "c", "sentences": sentences, "labels": [1, None, 0, "no claim"]}
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    (found,) = load_jsonl(path)
    assert [sentence.faithful for sentence in found.sentences] == [True, None, False, None]
    assert [sentence.label for sentence in found.sentences] == [True, None, False, "no claim"]
    assert labelled_record(found)["labels"] == record["labels"]
    assert response_from_json(response_to_json(found)).sentences == found.sentences


def test_words_of_unfaithful_sentences_may_be_marked(tmp_path):
    """Offsets are in code points, and the text is there to be read and checked."""
    given = SENTENCES | {"sentences": ["Paris is \U0001f5fc.", "So is Rome."], "labels": [1, 0]}
    spans = [{"start": 18, "end": 22, "text": "Rome", "label_type": "Evident Conflict"}]
    (found,) = load_jsonl(write(tmp_path / "mine.jsonl", given | {"spans": spans}))
    assert found.spans is None
    marked = (UnfaithfulSpan(18, 22, label_type="Evident Conflict"),)
    assert [sentence.spans for sentence in found.sentences] == [(), marked]
    written = labelled_record(found)
    assert (written["labels"], written["spans"]) == ([1, 0], spans)
    assert labelled_responses([written])[0] == found == response_from_json(response_to_json(found))


def test_a_disagreement_of_two_readers_is_no_label(tmp_path):
    given = SENTENCES | {"labels": [[1, "no claim"], [1, 0]], "spans": [{"start": 20, "end": 24}]}
    (found,) = load_jsonl(write(tmp_path / "mine.jsonl", given))
    assert [(s.label, s.readings) for s in found.sentences] == [(None, (True, "no claim")), (None, (True, False))]
    written = labelled_record(found)
    assert (written["labels"], written["spans"][0]["text"]) == (given["labels"], "Rome")
    assert labelled_responses([written])[0] == found == response_from_json(response_to_json(found))


def test_the_digest_of_sentences_without_spans_and_readings_stays():
    (record,) = labelled_responses([SENTENCES])
    places = [sentence.keys() for sentence in json.loads(response_to_json(record))["sentences"]]
    assert places == [{"start", "end", "faithful", "no_claim"}] * 2


def test_sentences_may_be_those_that_the_monitor_wrote(tmp_path):
    found = [{"text": "It is old.", "start": 0, "score": 0.9}, {"text": "It burned.", "start": 11, "score": None}]
    record = {"question": "How old?", "context": "It is old.", "sentences": found, "labels": [1, 0]}
    path = tmp_path / "labelled.jsonl"
    path.write_text(json.dumps(record), encoding="utf-8")
    (response,) = load_jsonl(path)
    assert (response.response, [s.faithful for s in response.sentences]) == ("It is old. It burned.", [True, False])


CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Paris is big.\n\nQuestion: How big?"},
]


def test_a_chat_is_kept_and_has_the_question(tmp_path):
    asked = {"messages": CHAT, "context": ["Paris is big."]}
    (record,) = load_jsonl(write(tmp_path / "mine.jsonl", asked | {"sentences": ["Paris is big."], "labels": [1]}))
    assert record.question == "How big?" and record.messages == tuple(CHAT)
    (own,) = labelled_responses([asked | {"question": "Big?", "response": "Yes.", "spans": []}])
    assert own.question == "Big?"


@pytest.mark.parametrize(
    "prompts",
    [
        {"messages": CHAT},
        {"messages": CHAT, "messages_without_context": CHAT[:1] + [{"role": "user", "content": "Big?"}]},
        {"system": "Be brief."},
    ],
    ids=["messages", "both chats", "system"],
)
def test_what_says_the_prompts_is_the_same_after_writing_and_in_every_command(tmp_path, prompts):
    passage = {"text": "Paris is big.", "id": "p1", "title": "Paris"}
    given = {"id": "a", "question": "How big?", "context": [passage], **prompts}
    labelled = given | {"response": "Big.", "sentences": ["Big."], "labels": [1]}
    (record,) = load_jsonl(write(tmp_path / "mine.jsonl", labelled))
    again = load_jsonl(write(tmp_path / "again.jsonl", labelled_record(record)))[0]
    for read in (again, response_from_json(response_to_json(record))):
        assert read == record and list(map(names_of, read.passages)) == [("p1", "Paris", None)]
    monitor = scripted_monitor("Big.")
    monitor.tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
    assert (
        prompt_of(monitor, record)
        == prompt_for(monitor, given)
        != monitor.prompt(question="How big?", context=["Paris is big."])
    )


def test_only_one_thing_says_the_prompts():
    both = SPANS | {"messages": CHAT, "system": "Be brief."}
    with pytest.raises(RecordError, match="leave one out"):
        labelled_responses([both])


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"messages": "Hello!"}, "messages"),
        ({"messages": [{"role": "user", "content": ["Hello!"]}]}, "messages[0].content"),
        ({"messages": [], "question": None}, "messages"),
        ({"context": [{"title": "no text"}]}, "context"),
    ],
)
def test_a_chat_or_a_passage_that_cannot_be_read_is_refused_with_its_place(wrong, field):
    with pytest.raises(RecordError) as refused:
        labelled_responses([SPANS | wrong])
    assert refused.value.field == field


def test_the_digest_of_records_without_a_chat_stays():
    (record,) = labelled_responses([SPANS])
    assert not {"messages", "messages_without_context", "system"} & json.loads(response_to_json(record)).keys()


def test_what_a_decoder_gave_in_place_of_more_is_not_labelled(tmp_path):
    quoted = " Passage 1 says: \u201cIt opened in 1967.\u201d"
    record = {"id": "a", "question": "When?", "context": ["It opened in 1967."], "response": f"In 1967.{quoted}"}
    (one,) = load_unlabelled(write(tmp_path / "fod.jsonl", record | {"trace": {"message": quoted.strip()}}))
    (same,) = load_unlabelled(write(tmp_path / "greedy.jsonl", record | {"trace": {"sampled_tokens": 4}}))
    assert (one.response, same.response) == ("In 1967.", record["response"])
