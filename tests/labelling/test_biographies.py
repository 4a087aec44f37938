"""Biographies: read, labelled by propositions, and labels kept as they are made: on after a kill, none made twice."""

import json
from pathlib import Path

import pytest

from syncheck.base.errors import CheckpointError, InputError, RecordError, TextGeneratorError
from syncheck.cli import main
from syncheck.labelling import (
    LabelledSentence,
    Proposition,
    SupportJudge,
    label_by_propositions,
    load_biographies,
    load_judge,
    load_records,
)
from syncheck.training import read_parquet

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
        (without("ctxs"), "ctxs", "missing"),
        (BIOGRAPHY | {"ctxs": []}, "ctxs", "passage"),
        (BIOGRAPHY | {"ctxs": [{"title": "Ada"}]}, "ctxs[0].text", "missing"),
        (BIOGRAPHY | {"ctxs": [{"text": "a", "title": 3}]}, "ctxs[0].title", "string"),
        (without("output"), "output", "missing"),
        (without("topic"), "topic", "missing"),
        (without("propositions"), "propositions", "--propositioner"),
        (BIOGRAPHY | {"propositions": "Ada."}, "propositions", "list"),
        (BIOGRAPHY | {"propositions": [3]}, "propositions[0]", "object"),
        (BIOGRAPHY | {"propositions": ["Ada."]}, "propositions[0].label", "--judge"),
        (BIOGRAPHY | {"propositions": [{"label": 1}]}, "propositions[0].text", "missing"),
        (BIOGRAPHY | {"propositions": [{"text": " ", "label": 1}]}, "propositions[0].text", "space"),
        (BIOGRAPHY | {"propositions": [{"text": "a", "label": "S"}]}, "propositions[0].label", '"S"'),
        (BIOGRAPHY | {"id": "1"}, "id", "another"),
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
    with pytest.raises(RecordError, match="list") as caught:
        load_biographies(path, propositioner=fails)
    assert (caught.value.line, caught.value.field) == (1, "output")
    with pytest.raises(RecordError, match="list") as caught:
        load_biographies(path, propositioner=lambda text: [text], judge=fails)
    assert (caught.value.line, caught.value.field) == (1, "propositions")


def test_a_judge_that_leaves_one_out_is_an_error(tmp_path):
    path = write(tmp_path / "fs.jsonl", BIOGRAPHY | {"propositions": ["Ada.", "Rome."]})
    with pytest.raises(RecordError, match="verdict"):
        load_biographies(path, judge=lambda passages, propositions: [True])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"prompts": "paper"}, "prompts"), ({"max_passages": 0}, "max_passages")],
)
def test_an_unknown_option(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        load_biographies(write(tmp_path / "fs.jsonl", BIOGRAPHY), **options)


def test_nothing_to_read(tmp_path):
    with pytest.raises(InputError, match="labelled"):
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


GOLDEN = str(Path(__file__).parents[1] / "golden" / "signals" / "llama")
PEOPLE = ("Ada Lovelace", "Malcolm X", "Noël Clay", "Plato")


class KilledError(BaseException):
    """Ends a run as a signal does: nothing of the library catches it."""


def biography(name, **given):
    values = {"id": name, "topic": name, "ctxs": [{"text": f"{name} was born in London."}]}
    return values | {"output": f"{name} was born in London. {name} sold 17 boats in Oslo."} | given


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "x.jsonl", *map(biography, PEOPLE))


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "kept.jsonl"


class Judge:
    """Born is supported, all else is not; before the ``end``-th question it raises ``error``."""

    def __init__(self, end=None, error=None, *, then=lambda: None):
        self.asked, self._end, self._error, self._then = [], end, error, then

    def __call__(self, passages, propositions):
        if len(self.asked) == self._end:
            self._then()
            raise self._error
        self.asked.append(passages[0].removesuffix(" was born in London."))
        return ["born" in each for each in propositions]


def label(data, kept, judge, **options):
    return load_biographies(data, propositioner=lambda text: text.split(". "), judge=judge, kept=kept, **options)


def test_a_run_that_is_killed_goes_on_where_it_was(data, kept):
    lines = []
    first = Judge(2, KilledError(), then=lambda: lines.extend(kept.read_bytes().splitlines(keepends=True)))
    with pytest.raises(KilledError):
        label(data, kept, first)
    assert len(lines) == 2 and all(line.endswith(b"\n") for line in lines)  # there when the kill came
    second, alone = Judge(), Judge()
    assert label(data, kept, second) == load_biographies(data, propositioner=lambda t: t.split(". "), judge=alone)
    assert (first.asked, second.asked, alone.asked) == ([*PEOPLE[:2]], [*PEOPLE[2:]], [*PEOPLE])
    assert [json.loads(line)["id"] for line in kept.read_text().splitlines()] == [*PEOPLE]
    assert label(data, kept, Judge(0, KilledError()))[2].group == "Noël Clay"  # the judge is not asked again


@pytest.mark.parametrize("end", [-2, -40, "ë", "start"])
def test_a_line_that_a_kill_left_half_written_is_dropped(data, kept, end):
    expected = label(data, kept, Judge())
    whole = kept.read_bytes()
    lines = whole.splitlines(keepends=True)
    third = lines[2]
    cut = {"ë": third.index("ë".encode()) + 1, "start": 4}.get(end, end)
    kept.write_bytes(b"".join(lines[:2]) + third[:cut])
    again = Judge()
    assert label(data, kept, again) == expected
    assert again.asked == [*PEOPLE[2:]]
    assert kept.read_bytes() == whole


def test_half_a_character_of_a_model_is_kept(data, kept):
    def cut(text):
        return ["born \ud800"]

    expected = load_biographies(data, propositioner=cut, judge=Judge(), kept=kept)
    assert load_biographies(data, kept=kept) == expected


def test_a_last_line_without_its_end_is_whole(data, kept):
    expected = label(data, kept, Judge())
    whole = kept.read_bytes()
    kept.write_bytes(whole.rstrip())
    assert label(data, kept, Judge(0, KilledError())) == expected
    assert kept.read_bytes() == whole


@pytest.mark.parametrize(
    "line", ['{"record": "sha256:0", "propositions": [{"text": "a"}]}', '{"record": "sha256:0", "pro', "[]", "{}"]
)
def test_a_damaged_line_is_named(data, kept, line):
    label(data, kept, Judge())
    before = kept.read_text().splitlines()
    kept.write_text("\n".join([before[0], line, *before[2:]]) + "\n")
    with pytest.raises(CheckpointError, match=r"kept\.jsonl:2"):
        label(data, kept, Judge())


def test_another_file_is_not_taken_for_kept_labels(data, tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("do not cut this")
    with pytest.raises(CheckpointError, match=r"notes\.txt:1"):
        label(data, other, Judge())
    assert other.read_text() == "do not cut this"
    with pytest.raises(CheckpointError, match=r"x\.jsonl:1"):
        label(data, data, Judge())
    with pytest.raises(InputError, match="folder"):
        label(data, tmp_path / "no" / "kept.jsonl", Judge())


def test_only_changed_records_are_labelled_again(data, kept):
    label(data, kept, Judge())
    changed = [
        biography(PEOPLE[0], group="another", generator="m"),  # what a label does not depend on
        biography(PEOPLE[1], output="Malcolm X was born in London."),
        biography(PEOPLE[2], ctxs=[{"text": "A new passage."}]),
        biography(PEOPLE[3], propositions=["Plato was born in London."]),
        biography("New Name"),
    ]
    judge = Judge()
    found = label(write(data, *reversed(changed)), kept, judge)
    assert judge.asked == ["New Name", "Plato", "A new passage.", "Malcolm X"]
    assert [r.id for r in found] == ["New Name", *PEOPLE[::-1]] and found[-1].group == "another"
    judge = Judge()
    label(data, kept, judge, max_passages=1)
    assert judge.asked == []


def test_what_is_kept_needs_no_models(data, kept):
    expected = label(data, kept, Judge())
    assert load_records(data, kept=kept) == expected
    with pytest.raises(InputError, match="kept="):
        plain = {"question": "q", "context": "c", "response": "r", "spans": []}
        load_records(write(data.with_name("plain.jsonl"), plain), kept=kept)


@pytest.mark.parametrize("error", [TextGeneratorError("no list"), InputError("no list")])
def test_an_answer_of_another_form_is_located_and_what_was_labelled_stays(data, kept, error):
    with pytest.raises(RecordError, match="list") as caught:
        label(data, kept, Judge(3, error))
    assert (caught.value.source, caught.value.line, caught.value.field) == (str(data), 4, "propositions")
    assert caught.value.__cause__ is error
    judge = Judge()
    label(data, kept, judge)
    assert judge.asked == ["Plato"]


def test_a_propositioner_that_answers_in_another_form_is_located(data):
    def fails(text):
        raise TextGeneratorError("no list")

    with pytest.raises(RecordError, match="list") as caught:
        load_biographies(data, propositioner=fails)
    assert (caught.value.source, caught.value.line, caught.value.field) == (str(data), 1, "output")


def test_a_bad_record_is_found_before_the_first_is_labelled(data):
    write(data, *map(biography, PEOPLE), biography("Ada Lovelace"))
    judge = Judge()
    with pytest.raises(RecordError, match="Lovelace"):
        label(data, None, judge)
    assert judge.asked == []


def test_a_bar_shows_how_far_it_is(data, kept, capsys):
    with pytest.raises(KilledError):
        label(data, kept, Judge(1, KilledError()), show_progress=True)
    assert "labelling" in capsys.readouterr().err
    label(data, kept, Judge(), show_progress=True)
    shown = capsys.readouterr().err.split("\r")
    assert "1/4" in shown[1] and "4/4" in shown[-1]
    label(data, kept, Judge(), show_progress=True)  # nothing to wait for
    label(write(data, biography("A", propositions=[])), kept, Judge(), show_progress=True)
    assert "labelling" not in capsys.readouterr().err


@pytest.fixture
def features(data, tmp_path):
    models = ["--model", GOLDEN, "--aligner", "none", "--schema", "paper-no-lid.v1"]
    labels = ["--propositioner", "rules", "--judge", "bundled"]
    return ["features", *models, "--data", str(data), *labels, "--output", str(tmp_path / "x.parquet")]


@pytest.mark.slow
def test_features_go_on_with_the_labels_of_a_run_that_ended(features, tmp_path, monkeypatch, capsys):
    judge, asked = SupportJudge.__call__, []

    def fails_once(self, passages, propositions):
        asked.append(passages[0])
        if len(asked) == 3:
            raise TextGeneratorError("no list")
        return judge(self, passages, propositions)

    monkeypatch.setattr(SupportJudge, "__call__", fails_once)
    assert main(features) == 2
    assert "x.jsonl:3" in capsys.readouterr().err
    assert main(features) == 0
    assert [text.removesuffix(" was born in London.") for text in asked] == [*PEOPLE[:3], *PEOPLE[2:]]
    found = read_parquet(tmp_path / "x.parquet")
    assert [r.id for r in found.records] == [*PEOPLE] and found.labels().tolist() == [1, 0] * 4


@pytest.mark.slow
def test_features_load_no_models_for_what_is_kept(features, monkeypatch):
    loaded = []
    monkeypatch.setattr("syncheck.labelling.load_judge", lambda *a, **k: loaded.append(a) or load_judge(*a, **k))
    assert main(features) == main(features) == 0
    assert len(loaded) == 1
