"""The command line's contract: JSON Lines in and out, exit codes, a bad record never stops the others."""

import io
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_runs import LLAMA, read, write
from copying import copying_monitor

from syncheck.cli import main
from syncheck.config import DEFAULT_SCHEMA

PASSAGE = "Anna Kovac moved to Lisbon in 1842. She opened a school there and taught music until 1850."


def expected():
    return json.loads((LLAMA / "expected.json").read_text())


def golden_record(record):
    return {
        "id": record["id"],
        "question": "q",
        "context": "c",
        "prompt_with_context": record["prompt_with_context"],
        "prompt_without_context": record["prompt_without_context"],
        "response": record["response"],
        "sentences": [s["text"] for s in record["sentences"]],
    }


def labelled(count):
    for i in range(count):
        good = f"Anna Kovac moved to Lisbon in 18{i:02}."
        bad = f"Peter Bell sold {i} boats in Oslo."
        yield {
            "id": f"r{i}",
            "question": f"Who moved in 18{i:02}?",
            "context": [good + " She opened a school."],
            "response": f"{good} {bad}",
            "spans": [{"start": len(good) + 1, "end": len(good) + 1 + len(bad)}],
        }


def test_score_writes_the_golden_values(tmp_path):
    source = write(tmp_path / "in.jsonl", *map(golden_record, expected()))
    target = tmp_path / "out.jsonl"
    options = ["--sentences", "given", "--tokens", "--aligner", "none"]
    lid = ["--lid-reference", str(LLAMA / "lid_reference.npz")]
    code = main(["score", "--model", str(LLAMA), "--input", source, "--output", str(target), *options, *lid])
    assert code == 0
    for found, record in zip(read(target), expected(), strict=True):
        assert found["id"] == record["id"]
        for name in ("log_prob", "log_prob_without_context", "entropy", "kl"):
            np.testing.assert_allclose([t[name] for t in found["tokens"]], record[name], atol=1e-3)
        for sentence, reference in zip(found["sentences"], record["sentences"], strict=True):
            assert sentence["status"] == "no_aggregator"
            assert sentence["score"] is None
            assert sentence["features"]["align_score"] is None
            for name, value in reference["features"].items():
                assert math.isclose(sentence["features"][name], value, rel_tol=1e-3)


def test_a_bad_record_is_reported_and_the_others_go_on(tmp_path, capsys):
    good = {"id": "good", "question": "q", "context": PASSAGE, "response": "Anna moved."}
    same = {**good, "id": "same", "prompt_with_context": "a", "prompt_without_context": "a"}
    long = {**good, "id": "long", "response": "word " * 5000}
    source = write(
        tmp_path / "in.jsonl",
        "nonsense",
        {"id": "no context", "question": "q", "response": "x"},
        {**good, "id": "wrong type", "question": 3},
        same,
        long,
        "[1]",
        good,
    )
    target = tmp_path / "out.jsonl"
    code = main(["score", "--model", str(LLAMA), "--aligner", "none", "--input", source, "--output", str(target)])
    rows = read(target)
    assert code == 2
    assert [(r["id"], r.get("line")) for r in rows] == [
        (None, 1),
        ("no context", 2),
        ("wrong type", 3),
        ("same", 4),
        ("long", 5),
        (None, 6),
        ("good", None),
    ]
    messages = ["not JSON", "'context': missing", "expected a string, found", "are equal", "window", "an object"]
    for row, message in zip(rows, messages, strict=False):
        assert message in row["error"]
    assert rows[-1]["sentences"][0]["text"] == "Anna moved."
    shown = capsys.readouterr().err
    assert f"{source}:3" in shown
    assert shown.count(f"{source}:1") == 1


@pytest.mark.parametrize("name", ["question", "context", "response"])
def test_a_field_that_is_null_is_said_to_be(name, tmp_path):
    given = {"id": "a", "question": "q", "context": PASSAGE, "response": "Anna moved."}
    lacking = {field: value for field, value in given.items() if field != name}
    source, target = write(tmp_path / "in.jsonl", given | {name: None}, lacking), tmp_path / "out.jsonl"
    assert main(["score", "--model", str(LLAMA), "--aligner", "none", "--input", source, "--output", str(target)]) == 2
    null, missing = (row["error"] for row in read(target))
    assert f"field '{name}': " in null and "null" in null and f"field '{name}': missing;" in missing


def test_half_a_character_and_bytes_that_are_not_utf_8_are_bad_records(tmp_path, monkeypatch, capsys):
    good = json.dumps({"id": "good", "question": "q", "context": PASSAGE, "response": "Anna moved."})
    lines = [good.replace("good", r"\ud800"), good.replace("Anna", r"\udfff"), good.replace("moved", "\xff"), good]
    source = io.TextIOWrapper(io.BytesIO("\n".join(lines).encode("latin-1")), encoding="ascii")
    monkeypatch.setattr("sys.stdin", source)
    assert main(["score", "--model", str(LLAMA), "--aligner", "none"]) == 2
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["id"], r.get("line"), "UTF-8" in r.get("error", "")) for r in rows] == [
        (None, 1, True),
        (None, 2, True),
        (None, 3, True),
        ("good", None, False),
    ]


def test_the_input_is_never_overwritten(tmp_path, capsys):
    source = write(tmp_path / "in.jsonl", {"id": 1, "question": "q", "context": PASSAGE, "response": "Anna moved."})
    before = Path(source).read_bytes()
    assert main(["score", "--model", str(LLAMA), "--aligner", "none", "--input", source, "--output", source]) == 2
    assert "overwrite" in capsys.readouterr().err
    assert Path(source).read_bytes() == before


def test_statuses_of_what_cannot_be_scored(tmp_path):
    source = write(
        tmp_path / "in.jsonl",
        {"id": 1, "question": "q", "context": "", "response": "Anna moved."},
        {"id": 2, "question": "q", "context": PASSAGE, "response": ""},
        {"id": 3, "question": "q", "context": PASSAGE, "response": "***"},
    )
    target = tmp_path / "out.jsonl"
    assert main(["score", "--input", source, "--output", str(target)]) == 0
    empty_context, empty_response, stars = read(target)
    assert [s["status"] for s in empty_context["sentences"]] == ["no_context"]
    assert empty_response["sentences"] == []
    assert [(s["status"], s["score"]) for s in stars["sentences"]] == [("not_checkable", None)]


def test_the_kit_scores_from_standard_input(tmp_path, monkeypatch, capsys):
    supported, invented = "Anna Kovac moved to Lisbon in 1842.", "Peter Bell bought nine ships in Oslo."
    record = {"id": "x", "question": "What did Anna do?", "context": PASSAGE, "response": f"{supported} {invented}"}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(record) + "\n"))
    assert main(["score"]) == 0
    sentences = json.loads(capsys.readouterr().out)["sentences"]
    assert [s["text"] for s in sentences] == [supported, invented]
    assert sentences[0]["score"] > sentences[1]["score"]
    assert sentences[0]["evidence"]["text"].startswith("Anna Kovac moved")


@pytest.mark.parametrize(("limit", "code"), [("0.0", 0), ("1.0", 1)])
def test_fail_under(tmp_path, limit, code):
    record = {"id": "x", "question": "What?", "context": PASSAGE, "response": "Peter Bell bought nine ships."}
    source = write(tmp_path / "in.jsonl", record)
    assert main(["score", "--input", source, "--output", str(tmp_path / "o"), "--fail-under", limit]) == code


def test_fail_under_needs_scores(tmp_path, capsys):
    source = write(tmp_path / "in.jsonl", {"id": "x", "question": "q", "context": PASSAGE, "response": "Anna moved."})
    options = ["--model", str(LLAMA), "--aligner", "none", "--fail-under", "0.5"]
    assert main(["score", *options, "--input", source]) == 2
    assert "--monitor" in capsys.readouterr().err


@pytest.mark.parametrize("decoder", ["greedy", "sample", "fod"])
def test_generate(tmp_path, decoder):
    record = {"id": 7, "question": "What happened in 1842?", "context": [PASSAGE, "Bern lies on a river."]}
    source = write(tmp_path / "in.jsonl", record, {"id": 8, "question": "no context"})
    outputs = []
    for name in ("a", "b"):
        target = tmp_path / name
        options = ["--decoder", decoder, "--max-new-tokens", "40", "--seed", "3"]
        assert main(["generate", "--input", source, "--output", str(target), *options]) == 2
        outputs.append(read(target))
    (answer, error), again = outputs
    assert (answer, error) == tuple(again)
    assert answer["id"] == 7
    assert answer["stop"]
    assert (
        "".join(s["text"] for s in answer["sentences"]).replace(" ", "") == answer["response"].replace(" ", "").strip()
    )
    assert ("trace" in answer) == (decoder == "fod")
    assert error["line"] == 2


def test_train_then_evaluate_and_score(tmp_path, capsys):
    data = write(tmp_path / "data.jsonl", *labelled(12))
    monitor = str(tmp_path / "monitor")
    model = ["--model", str(LLAMA)]
    assert main(["train", *model, "--data", data, "--aggregator", "lr", "--output", monitor]) == 0
    assert main(["evaluate", *model, "--data", data, "--cv", "3", "--repeats", "2", "--aggregator", "lr"]) == 0
    table = capsys.readouterr().out
    assert "strict set" in table
    assert "paper set" in table
    assert "all features" in table
    assert main(["score", "--monitor", monitor, "--input", data]) == 2
    assert "Without --model, the kit's model was loaded" in capsys.readouterr().err
    trained = [*model, "--monitor", monitor]
    assert main(["evaluate", *trained, "--data", data, "--cv", "0"]) == 2
    assert "12 records" in capsys.readouterr().err
    assert main(["evaluate", *trained, "--data", data, "--cv", "0", "--allow-train", "--set", "strict"]) == 0
    target = tmp_path / "out.jsonl"
    assert main(["score", *trained, "--input", data, "--output", str(target)]) == 0
    scores = [[s["score"] for s in row["sentences"]] for row in read(target)]
    assert all(good > bad for good, bad in scores)


def test_a_monitor_of_the_bundled_model_needs_no_model(tmp_path):
    monitor, target = tmp_path / "monitor", tmp_path / "out.jsonl"
    bundled = copying_monitor()
    bundled.save_pretrained(monitor)
    record = {"id": 1, "question": "Who moved?", "context": PASSAGE, "response": "Anna Kovac moved to Lisbon in 1842."}
    source = write(tmp_path / "in.jsonl", record)
    assert main(["score", "--monitor", str(monitor), "--input", source, "--output", str(target)]) == 0
    report = bundled.score(bundled.prompt(question="Who moved?", context=PASSAGE), record["response"])
    assert [s["score"] for s in read(target)[0]["sentences"]] == [s.score for s in report.sentences]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"id": 1}]', "expected an object, found list; write its items one a line (JSON Lines)"),
        ("id,question\n1,Who?", "each line must be one JSON object (JSON Lines)"),
        ('{\n"id": 1\n}', "each line must be one JSON object (JSON Lines)"),
    ],
    ids=["an array", "CSV", "several lines"],
)
def test_a_file_of_another_form_is_told_the_form(tmp_path, capsys, text, said):
    source = tmp_path / "in.json"
    source.write_text(text)
    assert main(["score", "--input", str(source), "--output", str(tmp_path / "out.jsonl")]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option", "value"), [("score", "--prior", "90"), ("generate", "--flare-threshold", "2")]
)
def test_a_share_out_of_bounds_is_refused_by_its_name(capsys, command, option, value):
    with pytest.raises(SystemExit):
        main([command, option, value])
    assert f"argument {option}: must be a number" in capsys.readouterr().err


def test_features_are_measured_once(tmp_path, capsys):
    data = write(tmp_path / "data.jsonl", *labelled(10))
    table = str(tmp_path / "features.parquet")
    model = ["--model", str(LLAMA)]
    assert main(["features", *model, "--data", data, "--output", table]) == 0
    shown, scores = [], []
    options = ["--cv", "3", "--repeats", "1", "--aggregator", "lr"]
    for source in (data, table):
        capsys.readouterr()
        assert main(["evaluate", *model, "--data", source, *options]) == 0
        shown.append(capsys.readouterr().out)
        monitor, target = str(tmp_path / Path(source).suffix), tmp_path / "out.jsonl"
        assert main(["train", *model, "--data", source, "--aggregator", "lr", "--output", monitor]) == 0
        assert main(["score", *model, "--monitor", monitor, "--input", data, "--output", str(target)]) == 0
        scores.append([[s["score"] for s in row["sentences"]] for row in read(target)])
    assert shown[0] == shown[1]
    assert scores[0] == scores[1]
    assert main(["evaluate", *model, "--data", table, "--schema", "paper.v1", *options]) == 2
    assert f"expected 'paper.v1', found '{DEFAULT_SCHEMA}'" in capsys.readouterr().err


class TestSentencesAreCutAsAsked:
    RECORD = {
        "id": "a",
        "question": "Who?",
        "context": PASSAGE,
        "response": "Dr. Kovac taught, she said\n- music\n- art",
    }

    @pytest.mark.parametrize(
        ("options", "texts"),
        [
            ([], ["Dr.", "Kovac taught, she said\n- music\n- art"]),
            (["--abbreviations", "english"], ["Dr. Kovac taught, she said\n- music\n- art"]),
            (["--line-breaks", "lists"], ["Dr.", "Kovac taught, she said", "- music", "- art"]),
            (["--clauses"], ["Dr.", "Kovac taught,", "she said\n- music\n- art"]),
            (["--line-breaks", "lines", "--sentences-together", "2"], ["Dr. Kovac taught, she said", "- music\n- art"]),
        ],
        ids=" ".join,
    )
    def test_score(self, tmp_path, options, texts):
        source, target = write(tmp_path / "in.jsonl", self.RECORD), tmp_path / "out.jsonl"
        model = ["--model", str(LLAMA), "--aligner", "none"]
        assert main(["score", *model, *options, "--input", source, "--output", str(target)]) == 0
        assert [s["text"] for s in read(target)[0]["sentences"]] == texts

    def test_chinese(self, tmp_path):
        record = self.RECORD | {"response": "她搬到里斯本。她教音乐。"}
        source, target = write(tmp_path / "in.jsonl", record), tmp_path / "out.jsonl"
        options = ["--model", str(LLAMA), "--aligner", "none", "--cjk-stops"]
        assert main(["score", *options, "--input", source, "--output", str(target)]) == 0
        assert [s["text"] for s in read(target)[0]["sentences"]] == ["她搬到里斯本。", "她教音乐。"]

    def test_a_trained_monitor_cuts_as_its_training_data_were_cut(self, tmp_path, capsys):
        data, table = write(tmp_path / "data.jsonl", *labelled(10)), str(tmp_path / "features.parquet")
        monitor, target = str(tmp_path / "monitor"), tmp_path / "out.jsonl"
        model, options = ["--model", str(LLAMA)], ["--line-breaks", "lines"]
        assert main(["features", *model, *options, "--data", data, "--output", table]) == 0
        train = ["train", *model, "--data", table, "--aggregator", "lr", "--output", monitor]
        assert main([*train, "--line-breaks", "none"]) == 2
        assert "line_breaks='lines'; found line_breaks='none'" in capsys.readouterr().err
        assert main([*train, *options]) == 0
        assert main([*train, "--overwrite"]) == 0
        source = write(tmp_path / "in.jsonl", self.RECORD)
        trained = [*model, "--monitor", monitor]
        assert main(["score", *trained, "--input", source, "--output", str(target)]) == 0
        assert [s["text"] for s in read(target)[0]["sentences"]][1:] == ["Kovac taught, she said", "- music", "- art"]
        assert main(["score", *trained, *options, "--input", source]) == 2
        assert "options for sentences are for --monitor generic alone" in capsys.readouterr().err


def test_a_monitor_gets_the_aligner_that_its_features_were_measured_with(tmp_path, capsys):
    data, table = write(tmp_path / "data.jsonl", *labelled(10)), str(tmp_path / "features.parquet")
    model, monitor = ["--model", str(LLAMA)], str(tmp_path / "monitor")
    assert main(["features", *model, "--aligner", "none", "--data", data, "--output", table]) == 0
    train = ["train", *model, "--data", table, "--aggregator", "lr", "--output", monitor]
    assert main([*train, "--aligner", "bundled"]) == 2
    assert "bundled" in capsys.readouterr().err
    assert main(train) == 0
    target = tmp_path / "out.jsonl"
    source = write(tmp_path / "in.jsonl", {"question": "Who?", "context": PASSAGE, "response": "Anna taught."})
    assert main(["score", *model, "--monitor", monitor, "--input", source, "--output", str(target)]) == 0
    (sentence,) = read(target)[0]["sentences"]
    assert sentence["status"] == "scored" and sentence["features"]["align_score"] is None


def test_a_system_prompt_of_a_record(tmp_path, capsys):
    record = {"id": "a", "question": "Who?", "context": PASSAGE, "response": "Anna.", "system": "Be brief."}
    own = {"prompt_with_context": "One.", "prompt_without_context": "Two."}
    source, target = write(tmp_path / "in.jsonl", record, record | own), tmp_path / "out.jsonl"
    assert main(["score", "--model", str(LLAMA), "--aligner", "none", "--input", source, "--output", str(target)]) == 2
    first, second = read(target)
    assert len(first["sentences"]) == 1 and "'system'" in second["error"]


def test_errors_of_usage_are_exit_code_2(tmp_path, capsys):
    assert main(["score", "--monitor", str(tmp_path)]) == 2
    assert "config.json" in capsys.readouterr().err
    assert main(["score", "--model", str(tmp_path / "nothing")]) == 2
    assert "load" in capsys.readouterr().err
    assert main(["score", "--model", str(LLAMA), "--monitor", str(tmp_path)]) == 2
    assert "config.json" in capsys.readouterr().err
    assert main(["score", "--aligner", "none"]) == 2
    assert "--aligner" in capsys.readouterr().err
    assert main(["demo", "--report", str(tmp_path / "nowhere" / "r.html")]) == 2
    assert "exist" in capsys.readouterr().err
    (tmp_path / "file").touch()
    data = write(tmp_path / "data.jsonl", *labelled(12))
    train = ["train", "--model", str(LLAMA), "--data", data, "--aggregator", "lr", "--schema", "paper-no-lid.v1"]
    assert main([*train, "--output", str(tmp_path / "file" / "monitor")]) == 2
    assert "file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["score", "--no-such-option"],
        ["generate", "--max-new-tokens", "0"],
        ["generate", "--temperature", "0"],
        ["generate", "--top-p", "1.5"],
        ["evaluate", "--data", "d", "--repeats", "0"],
        ["features", "--data", "d", "--output", "o", "--batch-size", "0"],
        ["ablate", "--data", "d", "--cv", "1"],
        ["ablate", "--data", "d", "--seeds", "3", "--repeats", "2"],
    ],
    ids=" ".join,
)
def test_options_out_of_range_are_exit_code_2(options):
    with pytest.raises(SystemExit) as stopped:
        main(options)
    assert stopped.value.code == 2


def test_demo_answers_a_question_of_ones_own(tmp_path, capsys):
    context = tmp_path / "context.txt"
    context.write_text(f"{PASSAGE}\n\nBern lies on a river.\n")
    page = tmp_path / "page.html"
    options = ["--question", "What did Anna open?", "--context", str(context), "--report", str(page)]
    assert main(["demo", *options, "--max-new-tokens", "40"]) == 0
    shown = capsys.readouterr().out
    assert "greedy" in shown
    assert "FOD" in shown
    assert str(page) in shown
    assert "Anna" in page.read_text()
    assert main(["demo", "--question", "What?"]) == 2


def test_an_unknown_option_is_answered_with_the_command_s_usage_and_the_nearest(capsys):
    for arguments in (["score", "--inptu", "x"], ["train", "--dta=x"]):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        said = capsys.readouterr().err
        assert stopped.value.code == 2 and said.startswith(f"usage: syncheck {arguments[0]} ")
        assert "did you mean --input?" in said or "did you mean --data?" in said
    with pytest.raises(SystemExit):
        main(["report", "one", "two"])
    assert capsys.readouterr().err.startswith("usage: syncheck report ")


def test_a_page_needs_no_library_of_models(tmp_path):
    source = write(tmp_path / "scores.jsonl", {"id": 1, "response": "", "sentences": []})
    check = (
        "import sys\nfrom syncheck.cli import main\n"
        f"assert main(['report', {source!r}, '--html', {str(tmp_path / 'p.html')!r}]) == 0\n"
        "assert not {'torch', 'transformers', 'nltk'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
