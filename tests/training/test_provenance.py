"""What a monitor was trained on: told by the questions, whatever file, line or name they come under."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from made_up import record, records

from syncheck.base.errors import InputError
from syncheck.labelling import load_jsonl
from syncheck.training import question_digests, refuse_seen, seen_records


def trained_on(given):
    return SimpleNamespace(trained_on=frozenset(question_digests(given)))


def write(path, names):
    path.parent.mkdir(exist_ok=True)
    lines = [
        {"question": f"Who is {name}?", "context": f"{name} is a player.", "response": "A player.", "spans": []}
        for name in names
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_copy_under_another_name_is_found(tmp_path):
    trained = load_jsonl(write(tmp_path / "train.jsonl", ["Ann", "Bo"]))
    copy = load_jsonl(write(tmp_path / "held-out.jsonl", ["Ann", "Bo"]))
    assert not {r.id for r in trained} & {r.id for r in copy}
    assert seen_records(trained_on(trained), copy) == copy


def test_new_questions_under_the_same_ids_are_not(tmp_path):
    trained = load_jsonl(write(tmp_path / "train" / "data.jsonl", ["Ann", "Bo"]))
    new = load_jsonl(write(tmp_path / "held" / "data.jsonl", ["Cy", "Di"]))
    assert [r.id for r in trained] == [r.id for r in new]
    refuse_seen(trained_on(trained), new)


def test_the_same_question_about_other_texts_is_new(tmp_path):
    def load(name, *texts):
        lines = [{"question": "Sum up.", "context": text, "response": text, "spans": []} for text in texts]
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return load_jsonl(tmp_path / name)

    trained = trained_on(load("train.jsonl", "It rains.", "It snows."))
    assert not seen_records(trained, load("new.jsonl", "It hails."))
    assert len(seen_records(trained, load("mixed.jsonl", "It hails.", "It snows."))) == 1


@pytest.mark.parametrize(
    ("change", "known"),
    [
        ({"id": "x", "response": "He is another.", "spans": (), "generator": "m"}, True),
        ({"passages": ("Another passage.",)}, True),
        ({"group": "another"}, True),
        ({"passages": ("Another passage.",), "group": "another"}, False),
        ({"question": "When was he born?"}, False),
    ],
    ids=["another answer", "other passages", "another group", "both", "another question"],
)
def test_a_question_is_known_by_its_passages_or_its_group(change, known):
    given = replace(record(1), **change)
    assert bool(seen_records(trained_on(records(3)), [given])) == known


def test_white_space_makes_no_difference():
    given = record(1)
    spaced = replace(given, question=f" {given.question}\n", passages=tuple(f"{p}\n" for p in given.passages))
    assert question_digests([spaced]) == question_digests([given])


def test_where_one_passage_ends_makes_one():
    one, two = (replace(record(1), group=str(i), passages=p) for i, p in enumerate([("a", "b c"), ("a b", "c")]))
    assert not question_digests([one]) & question_digests([two])


def test_what_was_seen_is_refused_by_name():
    with pytest.raises(InputError, match="r4"):
        refuse_seen(trained_on(records(6)), [record(i) for i in (2, 3, 4, 5, 6, 7)])
