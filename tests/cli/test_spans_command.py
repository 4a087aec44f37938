"""``syncheck spans`` and ``syncheck spans-score`` from the command line."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
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

LLAMA = Path(__file__).parents[1] / "golden" / "signals" / "llama"


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


def test_labelled_sentences_with_marked_words_are_items(tmp_path, capsys):
    """One without marks or with a sentence without a label is no reference."""
    texts = ["The castle was built in 1950.", "It is old."]
    asked = {"question": RECORD["model_input"], "context": RECORD["retrieved_context"], "sentences": texts}
    marked = asked | {"id": "a", "lang": "EN", "labels": [0, 1], "spans": [{"start": 24, "end": 28, "text": "1950"}]}
    reference, out = tmp_path / "labels.jsonl", tmp_path / "out.jsonl"
    reference.write_text(json.dumps(marked), encoding="utf-8")
    written(out, {"id": "a", "hard_labels": [[0, 40]]})
    assert main(["spans-score", "--reference", str(reference), "--predictions", str(out)]) == 0
    assert "EN        1      0.100" in capsys.readouterr().out  # 4 of 40 characters
    for labels in ([0, 1], [1, None]):
        reference.write_text(json.dumps(asked | {"id": "a", "labels": labels}), encoding="utf-8")
        assert main(["spans-score", "--reference", str(reference), "--predictions", str(out)]) == 2
        assert "'a' has no labels to score against" in capsys.readouterr().err


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


def test_predictions_of_nothing_miss_a_threshold(data, tmp_path):
    out = written(tmp_path / "out.jsonl", *({"id": f"x-{lang}", "hard_labels": []} for lang in ("EN", "FI")))
    command = ["spans-score", "--reference", str(data), "--predictions", str(out)]
    assert main([*command, "--fail-under", "0.5"]) == 1


def test_a_bad_record_is_written_as_an_error_and_the_others_go_on(data, tmp_path, capsys):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text("\n".join(["", json.dumps({"id": "bad", "lang": "EN"}), json.dumps(RECORD)]) + "\n")
    assert main(["spans", "--input", str(path), "--output", str(out)]) == 2
    bad, good = lines(out)
    assert (bad["id"], bad["line"]) == ("bad", 2)
    assert "'model_output_text'" in bad["error"]
    assert good["hard_labels"] == [[24, 28]]
    assert "in.jsonl:2" in capsys.readouterr().err


def test_a_folder_needs_a_folder_for_its_output(data, capsys):
    assert main(["spans", "--input", str(data)]) == 2
    assert "--output" in capsys.readouterr().err


def test_a_refused_item_counts_only_as_one_in_which_nothing_was_found(data, tmp_path, capsys):
    nothing = RECORD | {"id": "x-FI", "lang": "FI", "hard_labels": []}
    written(data / "fi.jsonl", nothing, RECORD | {"id": "y-FI", "lang": "FI"})
    predictions = written(
        tmp_path / "p.jsonl",
        {"id": "x-EN", "hard_labels": [[24, 28]]},
        {"id": "x-FI", "line": 1, "error": "too long"},
        {"id": "y-FI", "line": 2, "error": "too long"},
    )
    table = tmp_path / "table.json"
    command = ["spans-score", "--reference", str(data), "--predictions", str(predictions), "--output", str(table)]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "p.jsonl:2" in error and "x-FI" in error and "--refused" in error
    assert main([*command, "--refused", "nothing"]) == 0
    assert "2 items" in capsys.readouterr().err
    scores = json.loads(table.read_text())
    # Nothing found is right where annotators marked nothing, and wrong where they marked 1950.
    assert [scores[key]["iou"] for key in ("EN", "FI", "mean")] == [1.0, 0.5, 0.75]


def test_without_refused_items_nothing_is_said_of_them(data, tmp_path, capsys):
    command = ["spans-score", "--reference", str(data), "--predictions", str(data), "--refused", "nothing"]
    assert main(command) == 0
    assert "refused" not in capsys.readouterr().err


def test_predictions_of_other_items_are_refused(data, tmp_path, capsys):
    other = tmp_path / "p.jsonl"
    other.write_text(json.dumps({"id": "x-EN", "hard_labels": []}) + "\n")
    assert main(["spans-score", "--reference", str(data), "--predictions", str(other)]) == 2
    assert "prediction" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["refind", "hallurag"])
def test_methods_that_replay_take_any_causal_language_model(method, data, tmp_path):
    out = tmp_path / "out.jsonl"
    command = ["spans", "--method", method, "--model", str(LLAMA), "--input", str(data / "en.jsonl")]
    extra = ["--threshold", "0.1"] if method == "refind" else []
    assert main([*command, *extra, "--output", str(out)]) == 0
    (found,) = lines(out)
    assert found["soft_labels"][0]["start"] == 0
    assert 0 < found["soft_labels"][0]["prob"] < 1 or method == "hallurag"


def written(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture
def endpoint():
    """A chat model that calls 1950 wrong; its requests."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.headers["Authorization"], json.loads(body)))
            answer = json.dumps({"choices": [{"message": {"content": '["1950"]'}}]}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_hallurag_asks_a_model_behind_an_endpoint(endpoint, data, tmp_path, monkeypatch, capsys):
    url, asked = endpoint
    monkeypatch.setenv("SOME_KEY", "hidden")
    out = tmp_path / "out.jsonl"
    command = ["spans", "--method", "hallurag", "--model", str(LLAMA), "--input", str(data / "en.jsonl")]
    options = ["--endpoint", url, "--endpoint-model", "large", "--api-key-variable", "SOME_KEY"]
    assert main([*command, "--output", str(out), *options]) == 0
    ((authorization, body),) = asked
    assert (authorization, body["model"]) == ("Bearer hidden", "large")
    assert "The castle was built in 1342 by the king." in body["messages"][-1]["content"]
    assert [24, 28] in [[max(a, 24), min(b, 28)] for a, b in lines(out)[0]["hard_labels"]]
    assert "hidden" not in "".join(capsys.readouterr()) + out.read_text()


@pytest.mark.parametrize(
    ("method", "options", "word"),
    [
        ("refind", ["--llm", "x"], "--llm"),
        ("hallurag", ["--llm", "x", "--endpoint", "http://x"], "--endpoint"),
        ("hallurag", ["--endpoint", "http://x"], "--endpoint-model"),
        ("hallurag", ["--api-key-variable", "KEY"], "--endpoint"),
        ("hallurag", ["--llm", "/nowhere"], "/nowhere"),
        (
            "hallurag",
            ["--endpoint", "http://x", "--endpoint-model", "m", "--api-key-variable", "NOT_SET_KEY"],
            "NOT_SET_KEY",
        ),
    ],
)
def test_a_model_to_ask_is_named_once_and_whole(method, options, word, data, tmp_path, capsys):
    command = ["spans", "--method", method, "--input", str(data / "en.jsonl"), "--output", str(tmp_path / "out")]
    assert main([*command, *options]) == 2
    assert word in capsys.readouterr().err


def test_texts_that_a_model_has_no_room_for_are_said_in_the_record(data, tmp_path, capsys):
    window = json.loads((LLAMA / "config.json").read_text())["max_position_embeddings"]
    long = " ".join(["castle"] * window)
    records = (
        RECORD | {"id": "fits"},
        RECORD | {"id": "one", "retrieved_context": [long, *RECORD["retrieved_context"]]},
        RECORD | {"id": "none", "retrieved_context": [long]},
    )
    source, out = written(tmp_path / "in.jsonl", *records), tmp_path / "out.jsonl"
    command = ["spans", "--method", "refind", "--model", str(LLAMA), "--input", str(source), "--output", str(out)]
    assert main(command) == 2
    fits, one, none = lines(out)
    assert "left_out" not in fits
    assert one["left_out"] == [0]
    assert one["soft_labels"] == fits["soft_labels"]
    assert (none["id"], none["line"]) == ("none", 3)
    assert "fits" in none["error"]


def test_hallurag_goes_on_without_the_model_that_has_no_room(data, tmp_path):
    window = json.loads((LLAMA / "config.json").read_text())["max_position_embeddings"]
    far = {"model_output_text": "Zyx wvu tsr qpo 9876.", "retrieved_context": [" ".join(["castle"] * window)]}
    source = written(tmp_path / "in.jsonl", RECORD, RECORD | far | {"id": "long", "hard_labels": None})
    out = tmp_path / "out.jsonl"
    command = ["spans", "--method", "hallurag", "--model", str(LLAMA), "--input", str(source), "--output", str(out)]
    assert main(command) == 0
    fits, long = lines(out)
    assert "signals" not in fits
    assert long["signals"] == "not measured: the item does not fit the model's window"
    # One system has spoken, and it marks the sentence: the share is 1, not 1 of 2.
    assert long["soft_labels"] == [{"start": 0, "end": 21, "prob": 1.0}]


def test_score_opens_its_sentences_and_draws_them(tmp_path):
    record = {"id": "a", "question": "When was the castle built?", "context": RECORD["retrieved_context"]}
    source = written(tmp_path / "in.jsonl", record | {"response": RECORD["model_output_text"]})
    out, page = tmp_path / "out.jsonl", tmp_path / "page.html"
    command = ["score", "--model", str(LLAMA), "--aligner", "none", "--input", str(source), "--output", str(out)]
    assert main([*command, "--spans", "--html", str(page)]) == 0
    (found,) = lines(out)
    assert found["hard_labels"] == [[24, 28]]
    assert {(s["start"], s["end"]) for s in found["soft_labels"]} >= {(24, 28)}
    assert 'called wrong">1950</span>' in page.read_text(encoding="utf-8")
    assert main([*command, "--html", str(page)]) == 0
    assert "hard_labels" not in lines(out)[0]
    assert ", called wrong" not in page.read_text(encoding="utf-8")
