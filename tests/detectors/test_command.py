"""``syncheck spans`` and ``syncheck spans-score`` from the command line."""

import json
from pathlib import Path

import pytest

from syncheck.cli import main

RECORD = {
    "id": "x-1",
    "lang": "EN",
    "model_input": "When was the castle built?",
    "model_output_text": "The castle was built in 1950.",
    "retrieved_context": ["The castle was built in 1342 by the king."],
    "hard_labels": [[24, 28]],
}


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for lang in ("EN", "FI"):
        record = RECORD | {"id": f"x-{lang}", "lang": lang}
        (folder / f"{lang.lower()}.jsonl").write_text(json.dumps(record) + "\n")
    return folder


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_folder_becomes_a_folder_and_is_scored(data, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["spans", "--input", str(data), "--output", str(out)]) == 0
    assert [p.name for p in sorted(out.iterdir())] == ["en.jsonl", "fi.jsonl"]
    (found,) = lines(out / "fi.jsonl")
    assert (found["id"], found["lang"], found["hard_labels"]) == ("x-FI", "FI", [[24, 28]])

    table = tmp_path / "table.json"
    command = ["spans-score", "--reference", str(data), "--predictions", str(out), "--output", str(table)]
    assert main([*command, "--fail-under", "0.99"]) == 0
    assert "FI        1      1.000" in capsys.readouterr().out
    assert json.loads(table.read_text())["mean"]["iou"] == 1.0


def test_mark_none_misses_a_threshold(data, tmp_path):
    out = tmp_path / "out"
    assert main(["spans", "--method", "mark-none", "--input", str(data), "--output", str(out)]) == 0
    command = ["spans-score", "--reference", str(data), "--predictions", str(out)]
    assert main([*command, "--fail-under", "0.5"]) == 1


def test_a_bad_record_is_written_as_an_error_and_the_others_go_on(data, tmp_path, capsys):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text("\n".join(["", json.dumps({"id": "bad", "lang": "EN"}), json.dumps(RECORD)]) + "\n")
    assert main(["spans", "--method", "mark-all", "--input", str(path), "--output", str(out)]) == 2
    bad, good = lines(out)
    assert (bad["id"], bad["line"]) == ("bad", 2)
    assert bad["error"] == "field 'model_output_text': missing; expected a string"
    assert good["hard_labels"] == [[0, 29]]
    assert "in.jsonl:2" in capsys.readouterr().err


def test_a_folder_needs_a_folder_for_its_output(data, capsys):
    assert main(["spans", "--method", "mark-all", "--input", str(data)]) == 2
    assert "pass a folder as --output" in capsys.readouterr().err


def test_predictions_of_other_items_are_refused(data, tmp_path, capsys):
    other = tmp_path / "p.jsonl"
    other.write_text(json.dumps({"id": "x-EN", "hard_labels": []}) + "\n")
    assert main(["spans-score", "--reference", str(data), "--predictions", str(other)]) == 2
    assert "no prediction for 1 items" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["refind", "hallurag"])
def test_methods_that_replay_take_any_causal_language_model(method, data, tmp_path):
    model = Path(__file__).parents[1] / "golden" / "signals" / "llama"
    out = tmp_path / "out.jsonl"
    command = ["spans", "--method", method, "--model", str(model), "--input", str(data / "en.jsonl")]
    extra = ["--fit-thresholds", str(data)] if method == "refind" else []
    assert main([*command, *extra, "--output", str(out)]) == 0
    (found,) = lines(out)
    assert found["soft_labels"][0]["start"] == 0
    assert 0 < found["soft_labels"][0]["prob"] < 1 or method == "hallurag"


def test_methods_of_a_checkpoint_ask_for_it(data, tmp_path, capsys):
    command = ["spans", "--input", str(data / "en.jsonl"), "--output", str(tmp_path / "out")]
    assert main([*command, "--method", "classifier"]) == 2
    assert "--model DIR_OR_ID" in capsys.readouterr().err
    assert main([*command, "--method", "refind", "--threshold", "1", "--fit-thresholds", str(data)]) == 2
    assert "pass one of them" in capsys.readouterr().err
