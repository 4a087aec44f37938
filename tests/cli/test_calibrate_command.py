"""``syncheck calibrate``: from held-out labelled answers to a monitor with a guarantee."""

import pytest
from command_runs import LLAMA, read, write

from syncheck import Aggregator
from syncheck.cli import main

MODEL = ["--model", str(LLAMA)]


def labelled(numbers):
    """Every fourth answer has an unfaithful second sentence; its words are not in the passage."""
    for i in numbers:
        good = f"Anna Kovac moved to Lisbon in 18{i:02}."
        other = f"Peter Bell sold {i} boats in Oslo." if i % 4 == 0 else "She opened a school."
        spans = [{"start": len(good) + 1, "end": len(good) + 1 + len(other)}] if i % 4 == 0 else []
        context = [f"{good} She opened a school."]
        yield {
            "id": f"r{i}",
            "question": f"Who moved in 18{i:02}?",
            "context": context,
            "response": f"{good} {other}",
            "spans": spans,
        }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("calibrate")


@pytest.fixture(scope="module")
def trained(folder):
    data = write(folder / "train.jsonl", *labelled(range(20)))
    monitor = str(folder / "monitor")
    assert main(["train", *MODEL, "--data", data, "--aggregator", "lr", "--output", monitor]) == 0
    return ["calibrate", *MODEL, "--monitor", monitor, "--method", "platt"], data


@pytest.fixture(scope="module")
def held_out(folder):
    """The answers, and their features without a monitor, so that their LID has no references."""
    data, features = write(folder / "held-out.jsonl", *labelled(range(30, 50))), str(folder / "features.parquet")
    assert main(["features", *MODEL, "--data", data, "--output", features]) == 0
    return data, features


def test_a_calibrated_monitor(trained, held_out, tmp_path, capsys):
    output, plot = tmp_path / "calibrated", tmp_path / "plot.png"
    options = ["--risk", "0.2", "--confidence", "0.8", "--every-sentence", "--output", str(output), "--plot", str(plot)]
    curve = tmp_path / "curve.png"
    options += ["--good-share", "0.9", "--curve", str(curve)]
    assert main([*trained[0], "--data", held_out[0], *options]) == 0
    shown = capsys.readouterr().out
    table = {line[:20].strip(): line[20:].strip() for line in shown.splitlines()}
    assert table["held-out sentences"] == "40 of 20 questions, 0.125 unfaithful"
    assert {"ECE before", "ECE after", "calibrated threshold", "released", "upper bound"} <= set(table)
    assert plot.read_bytes().startswith(b"\x89PNG") and curve.read_bytes().startswith(b"\x89PNG")
    chosen = Aggregator.load(output).calibrated_threshold
    assert (chosen.risk, chosen.confidence, chosen.sentences, chosen.one_per_question) == (
        0.2,
        0.8,
        40,
        False,
    )
    assert "independent" in table["calibrated threshold"]
    assert float(table["calibrated threshold"].partition(",")[0]) == chosen.threshold
    for data in (trained[1], held_out[0]):
        assert main(["calibrate", *MODEL, "--monitor", str(output), "--data", data]) == 2
        assert "questions" in capsys.readouterr().err
    # scored by the calibrated monitor, as many are released as the table says
    scored = ["score", *MODEL, "--monitor", str(output), "--input", held_out[0], "--output", str(tmp_path / "out")]
    assert main(scored) == 0
    rows = read(tmp_path / "out")
    assert sum(s["score"] >= chosen.threshold for row in rows for s in row["sentences"]) == chosen.released
    # a file of features says the same
    capsys.readouterr()
    assert main([*trained[0], "--data", held_out[1], *options[:5], "--good-share", "0.9"]) == 0
    assert capsys.readouterr().out == shown


def test_what_cannot_be_guaranteed_is_refused_and_nothing_is_saved(trained, held_out, tmp_path, capsys):
    output = tmp_path / "calibrated"
    options = ["--risk", "0.001", "--output", str(output)]
    assert main([*trained[0], "--data", held_out[1], *options]) == 2
    error = capsys.readouterr().err
    assert "guarantee" in error and "--risk" in error
    assert not output.exists()


def test_calibration_alone(trained, held_out, tmp_path, capsys):
    output = tmp_path / "calibrated"
    assert main([*trained[0], "--data", held_out[1], "--risk", "none", "--output", str(output)]) == 0
    assert "asked" in capsys.readouterr().out
    aggregator = Aggregator.load(output)
    assert aggregator.calibration is not None and aggregator.calibrated_threshold is None


@pytest.mark.parametrize("option", [["--confidence", "0.8"], ["--every-sentence"]])
def test_options_of_a_threshold_that_is_not_chosen_are_refused(option, capsys):
    assert main(["calibrate", "--data", "d", "--risk", "none", *option]) == 2
    assert option[0] in capsys.readouterr().err


def test_one_sentence_of_each_question(trained, held_out, tmp_path, capsys):
    options = ["--risk", "0.3", "--confidence", "0.8", "--seed", "3", "--output", str(tmp_path)]
    assert main([*trained[0], "--data", held_out[1], *options]) == 0
    assert "each" in capsys.readouterr().out
    assert Aggregator.load(tmp_path).calibrated_threshold.one_per_question


@pytest.mark.parametrize("change", [{}, {"response": "She left.", "spans": []}], ids=["the same", "other answers"])
def test_training_questions_are_refused_under_another_name(change, trained, tmp_path, capsys):
    records = [{**record, **change} for record in labelled(range(20))]
    for record in records:
        del record["id"]
    assert main([*trained[0], "--data", write(tmp_path / "copy.jsonl", *records)]) == 2
    assert "questions" in capsys.readouterr().err


def test_a_model_without_monitor_is_refused(held_out, capsys):
    assert main(["calibrate", *MODEL, "--aligner", "none", "--data", held_out[1]]) == 2
    assert "--monitor" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--risk", "0"], ["--confidence", "1"], ["--method", "beta"]])
def test_options_out_of_range_are_exit_code_2(options):
    with pytest.raises(SystemExit) as caught:
        main(["calibrate", "--data", "d", *options])
    assert caught.value.code == 2


def test_labels_that_call_nothing_supported_are_answered_with_options_of_this_command(trained, tmp_path, capsys):
    few = write(tmp_path / "few.jsonl", *labelled(range(60, 65)))
    assert main([*trained[0], "--risk", "none", "--thresholds", "chosen", "--data", few]) == 0
    said = capsys.readouterr().err
    assert "no sentence will be called supported" in said
    assert "--thresholds carried" in said and "--precision" not in said
