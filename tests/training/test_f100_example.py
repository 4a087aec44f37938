"""The documented way from a user's passages to labelled biographies."""

import json
import runpy
from pathlib import Path

import pytest
from f100 import F100_ENTITIES

from syncheck.base.errors import RecordError
from syncheck.labelling import load_biographies

NAMES = ("Ada Lovelace", "Malcolm X", "Anne Frank")


@pytest.fixture
def build(tmp_path, monkeypatch):
    main = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "f100.py"))["main"]
    monkeypatch.chdir(tmp_path)
    passages = [{"title": name, "text": f"{name} lived in a house."} for name in F100_ENTITIES]
    Path("passages.jsonl").write_text("".join(json.dumps(passage) + "\n" for passage in passages))
    Path("names.txt").write_text("\n".join(NAMES) + "\n")

    def run(*options):
        main(["--passages", "passages.jsonl", *options, "--output", "out.jsonl"])
        return [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]

    return run


def test_the_papers_hundred_over_ten_passages(build):
    requests = build()
    assert [request["topic"] for request in requests] == list(F100_ENTITIES)
    assert requests[0]["question"] == "Tell me a bio of Nikita Khrushchev."
    assert requests[0]["context"][0] == "Nikita Khrushchev\nNikita Khrushchev lived in a house."
    assert {len(request["ctxs"]) for request in requests} == {10}


def test_answers_make_biographies(build):
    answers = [{"id": name, "response": f"{name} lived in a boat."} for name in reversed(NAMES)]
    Path("answers.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    anti = build("--entities", "names.txt", "--anti", "--answers", "answers.jsonl", "--generator", "m")
    assert sorted(request["lent_by"] for request in anti) == sorted(NAMES)
    assert all(request["lent_by"] != request["topic"] for request in anti)
    found = load_biographies("out.jsonl", propositioner=lambda text: [text], judge=lambda passages, texts: [False])
    assert [(r.id, r.response, r.generator) for r in found] == [(n, f"{n} lived in a boat.", "m") for n in NAMES]
    assert [s.faithful for r in found for s in r.sentences] == [False] * 3


@pytest.mark.parametrize(
    ("half", "field", "message"),
    [
        ('{"id": "Malcolm X", "resp', None, "JSON"),
        ('{"response": "He lived."}', "id", "missing"),
        ('{"id": "Malcolm X", "response": ["He lived."]}', "response", "string"),
    ],
)
def test_answers_that_cannot_be_read_are_located(build, half, field, message):
    Path("answers.jsonl").write_text('{"id": "Ada Lovelace", "response": "She lived."}\n' + half)
    with pytest.raises(RecordError, match=message) as caught:
        build("--entities", "names.txt", "--answers", "answers.jsonl")
    assert (caught.value.source, caught.value.line, caught.value.field) == ("answers.jsonl", 2, field)


def test_an_answer_that_failed_is_named(build):
    Path("answers.jsonl").write_text(json.dumps({"id": "Ada Lovelace", "line": 1, "error": "window"}) + "\n")
    with pytest.raises(SystemExit, match="Lovelace"):
        build("--entities", "names.txt", "--answers", "answers.jsonl")


@pytest.mark.parametrize("options", [("--entities", "nobody.txt"), ("--output", "no/such/out.jsonl")])
def test_files_that_cannot_be_opened_are_named(build, options, monkeypatch):
    path = Path(__file__).parents[2] / "examples" / "f100.py"
    monkeypatch.setattr("sys.argv", [str(path), "--passages", "passages.jsonl", "--output", "out.jsonl", *options])
    with pytest.raises(SystemExit, match=options[1]):
        runpy.run_path(str(path), run_name="__main__")
