import json

import pytest

from syncheck.errors import InputError, RecordError
from syncheck.labelling import LabelledSentence, Proposition, label_by_propositions, load_biographies

OUTPUT = "Ada was a poet. Ada Lovelace wrote a program in 1843. She died in Rome."
CTXS = [
    {"id": 5, "title": "Ada", "text": "Ada Lovelace wrote."},
    {"text": "She died."},
    {"title": "Byron", "text": "B."},
]
BIOGRAPHY = {
    "topic": "Ada Lovelace",
    "ctxs": CTXS,
    "output": OUTPUT,
    "propositions": [{"text": "Ada wrote a program.", "label": 1}, {"text": "Lovelace died in Rome.", "label": 0}],
}
BOUNDS = [(0, 15), (16, 53), (54, 71)]
PROMPT = """\
Below is an instruction that describes a task. Write a response that appropriately completes the request.

### Paragraph:
[1] Ada
Ada Lovelace wrote.
[2] She died.

### Instruction:
Tell me a bio of Ada Lovelace.

### Response:"""


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def without(field):
    return {key: value for key, value in BIOGRAPHY.items() if key != field}


def labels(*faithful):
    return tuple(LabelledSentence(*bounds, label) for bounds, label in zip(BOUNDS, faithful, strict=True))


def test_given_propositions_label_the_sentences(tmp_path):
    (record,) = load_biographies(write(tmp_path / "fs.jsonl", BIOGRAPHY))
    assert (record.id, record.group, record.generator, record.task) == ("fs:1", "Ada Lovelace", "unknown", "Biography")
    assert record.question == "Tell me a bio of Ada Lovelace."
    assert record.passages == ("Ada\nAda Lovelace wrote.", "She died.", "Byron\nB.")
    assert record.response == OUTPUT
    assert record.spans is None
    assert record.sentences == labels(True, True, False)
    assert (record.prompt_with_context, record.prompt_without_context) == (None, None)


def test_the_published_prompts(tmp_path):
    (record,) = load_biographies(write(tmp_path / "fs.jsonl", BIOGRAPHY), prompts="task", max_passages=2)
    assert record.passages == ("Ada\nAda Lovelace wrote.", "She died.")
    assert record.prompt_with_context == PROMPT
    assert record.prompt_without_context == "### Instruction:\nTell me a bio of Ada Lovelace.\n\n### Response:\n"
    assert not record.user_turns


def test_ten_passages_are_taken(tmp_path):
    ctxs = [{"text": str(i)} for i in range(12)]
    (record,) = load_biographies(write(tmp_path / "fs.jsonl", BIOGRAPHY | {"ctxs": ctxs}))
    assert record.passages == tuple("0123456789")


@pytest.mark.parametrize(
    ("given", "question"),
    [
        ({"question": "Who was Ada?"}, "Who was Ada?"),
        ({"input": "Question: Tell me a bio of Ada."}, "Tell me a bio of Ada."),
        ({"input": "Ada?", "question": "Who?"}, "Who?"),
        ({}, "Tell me a bio of Ada Lovelace."),
    ],
)
def test_the_question(tmp_path, given, question):
    (record,) = load_biographies(write(tmp_path / "fs.jsonl", BIOGRAPHY | given))
    assert (record.question, record.group) == (question, "Ada Lovelace")


def test_a_record_without_topic_is_grouped_by_its_question(tmp_path):
    (record,) = load_biographies(write(tmp_path / "fs.jsonl", without("topic") | {"question": "Who?"}))
    assert record.group == "Who?"


def test_optional_fields(tmp_path):
    given = {"id": "x", "group": "g", "generator": "m", "task": "F-100", "split": "test"}
    (record,) = load_biographies(write(tmp_path / "fs.jsonl", BIOGRAPHY | given))
    assert {name: getattr(record, name) for name in given} == given


def test_outputs_are_cut_and_judged(tmp_path):
    asked = []

    def propositioner(text):
        assert text == OUTPUT
        return ["Ada was a poet.", "Ada died in Rome."]

    def judge(passages, propositions):
        asked.append((passages, propositions))
        return [False, True]

    path = write(tmp_path / "fs.jsonl", without("propositions"))
    (record,) = load_biographies(path, propositioner=propositioner, judge=judge, max_passages=1)
    assert asked == [(("Ada\nAda Lovelace wrote.",), ["Ada was a poet.", "Ada died in Rome."])]
    assert record.sentences == labels(False, True, True)


def test_only_propositions_without_a_label_are_judged(tmp_path):
    given = ["Ada was a poet.", {"text": "She wrote a program in 1843.", "label": 0}, {"text": "Rome.", "label": None}]

    def judge(passages, propositions):
        assert propositions == ["Ada was a poet.", "Rome."]
        return [True, False]

    (record,) = load_biographies(write(tmp_path / "fs.jsonl", BIOGRAPHY | {"propositions": given}), judge=judge)
    assert record.sentences == labels(True, False, False)


@pytest.mark.parametrize(
    ("record", "field", "message"),
    [
        (without("ctxs"), "ctxs", "missing; expected a list"),
        (BIOGRAPHY | {"ctxs": []}, "ctxs", "at least one passage with text"),
        (BIOGRAPHY | {"ctxs": [{"title": "Ada"}]}, "ctxs[0].text", "missing; expected a string"),
        (BIOGRAPHY | {"ctxs": [{"text": "a", "title": 3}]}, "ctxs[0].title", "expected a string, found 3"),
        (without("output"), "output", "missing; expected a string"),
        (without("topic"), "topic", "missing; expected a string"),
        (without("propositions"), "propositions", "pass propositioner= .--propositioner."),
        (BIOGRAPHY | {"propositions": "Ada."}, "propositions", "expected a list"),
        (BIOGRAPHY | {"propositions": [3]}, "propositions[0]", "a string or an object, found 3"),
        (BIOGRAPHY | {"propositions": ["Ada."]}, "propositions[0].label", "pass judge= .--judge."),
        (BIOGRAPHY | {"propositions": [{"label": 1}]}, "propositions[0].text", "missing"),
        (BIOGRAPHY | {"propositions": [{"text": " ", "label": 1}]}, "propositions[0].text", "white space"),
        (BIOGRAPHY | {"propositions": [{"text": "a", "label": "S"}]}, "propositions[0].label", 'found "S"'),
        (BIOGRAPHY | {"id": "1"}, "id", "another response has the id '1'"),
    ],
)
def test_a_bad_record_is_located(tmp_path, record, field, message):
    path = write(tmp_path / "fs.jsonl", BIOGRAPHY | {"id": "1"}, record)
    with pytest.raises(RecordError, match=message) as caught:
        load_biographies(path)
    assert (caught.value.source, caught.value.line, caught.value.field) == (str(path), 2, field)


def test_what_a_model_cannot_do_is_located(tmp_path):
    def fails(*_):
        raise InputError("no list")

    path = write(tmp_path / "fs.jsonl", without("propositions"))
    with pytest.raises(RecordError, match="no list") as caught:
        load_biographies(path, propositioner=fails)
    assert (caught.value.line, caught.value.field) == (1, "output")
    with pytest.raises(RecordError, match="no list") as caught:
        load_biographies(path, propositioner=lambda text: [text], judge=fails)
    assert (caught.value.line, caught.value.field) == (1, "propositions")


def test_a_judge_that_leaves_one_out_is_an_error(tmp_path):
    path = write(tmp_path / "fs.jsonl", BIOGRAPHY | {"propositions": ["Ada.", "Rome."]})
    with pytest.raises(RecordError, match="a verdict for each of 2 propositions, found 1"):
        load_biographies(path, judge=lambda passages, propositions: [True])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"prompts": "paper"}, "prompts must be one of .*; found 'paper'"), ({"max_passages": 0}, "must be 1 or more")],
)
def test_an_unknown_option(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        load_biographies(write(tmp_path / "fs.jsonl", BIOGRAPHY), **options)


def test_nothing_to_read(tmp_path):
    with pytest.raises(InputError, match="no labelled response"):
        load_biographies(write(tmp_path / "fs.jsonl"))


class TestTokenRecall:
    @pytest.mark.parametrize(
        ("text", "marked"),
        [
            ("ADA was, a poet!", 0),
            ("Ada died.", 0),  # one word of two in each: the first of equals
            ("She died, and Lovelace wrote in Rome", 2),  # 3 of 7 words in the second, 4 in the third
            ("Ada Lovelace, Ada Lovelace wrote", 1),
            ("Lord Byron", None),
        ],
    )
    def test_the_sentence_that_holds_most_of_it(self, text, marked):
        sentences = label_by_propositions(OUTPUT, [Proposition(text, faithful=False)])
        assert [i for i, s in enumerate(sentences) if not s.faithful] == ([] if marked is None else [marked])
        assert [(s.start, s.end) for s in sentences] == BOUNDS

    def test_a_repeated_word_counts_as_often_as_the_sentence_has_it(self):
        response = "Bora Bora lies far away. Bora is a wind of the sea."
        # 2 of 3 words in both; as sets, 1 of 2 words in the first sentence and 2 of 2 in the second
        first, second = label_by_propositions(response, [Proposition("Bora Bora wind", faithful=False)])
        assert (first.faithful, second.faithful) == (False, True)

    def test_faithful_propositions_and_those_not_judged_mark_nothing(self):
        given = [Proposition("Ada was a poet", faithful=True), Proposition("She died in Rome")]
        assert all(s.faithful for s in label_by_propositions(OUTPUT, given))

    def test_an_empty_response_has_no_sentence(self):
        assert label_by_propositions("", [Proposition("Ada", faithful=False)]) == ()
