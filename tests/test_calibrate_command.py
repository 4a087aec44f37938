"""``syncheck calibrate``: from held-out labelled answers to a monitor with a promise."""

import json
from pathlib import Path

import pytest

from syncheck import Aggregator
from syncheck.cli import main

GOLDEN = Path(__file__).parent / "golden" / "signals" / "llama"
MODEL = ["--model", str(GOLDEN)]


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


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrate")
    data = write(folder / "train.jsonl", labelled(range(24)))
    monitor = str(folder / "monitor")
    assert main(["train", *MODEL, "--data", data, "--aggregator", "lr", "--output", monitor]) == 0
    return monitor, data


def test_a_calibrated_monitor(trained, tmp_path, capsys):
    monitor, _ = trained
    data = write(tmp_path / "held-out.jsonl", labelled(range(30, 70)))
    output, plot = tmp_path / "calibrated", tmp_path / "plot.png"
    options = ["--risk", "0.1", "--confidence", "0.8", "--method", "platt", "--output", str(output)]
    capsys.readouterr()
    assert main(["calibrate", *MODEL, "--monitor", monitor, "--data", data, "--plot", str(plot), *options]) == 0
    table = {line[:20].strip(): line[20:].strip() for line in capsys.readouterr().out.splitlines()}
    assert table["held-out sentences"] == "80 of 40 questions, 0.125 unfaithful"
    assert {"ECE before", "ECE after", "release threshold", "released", "upper bound"} <= set(table)
    assert plot.read_bytes().startswith(b"\x89PNG")
    release = Aggregator.load(output).release
    assert (release.risk, release.confidence, release.sentences) == (0.1, 0.8, 80)
    assert f"{release.threshold:.4f}" in table["release threshold"]
    config = json.loads((output / "config.json").read_text())
    assert {"r0", "r30", "r69"} <= set(config["trained_on"])
    # scored by the calibrated monitor, what is below the threshold fails
    target = tmp_path / "out.jsonl"
    assert main(["score", *MODEL, "--monitor", str(output), "--input", data, "--output", str(target)]) == 0
    scores = [s["score"] for line in target.read_text().splitlines() for s in json.loads(line)["sentences"]]
    assert sum(score >= release.threshold for score in scores) == release.released


def test_a_file_of_features_gives_the_same(trained, tmp_path, capsys):
    """The file was written without the monitor, so its LID has no references."""
    monitor, _ = trained
    data = write(tmp_path / "held-out.jsonl", labelled(range(30, 70)))
    features = str(tmp_path / "features.parquet")
    assert main(["features", *MODEL, "--data", data, "--output", features]) == 0
    shown = []
    for source in (data, features):
        capsys.readouterr()
        options = ["--risk", "0.2", "--confidence", "0.8", "--method", "platt"]
        assert main(["calibrate", *MODEL, "--monitor", monitor, "--data", source, *options]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_what_cannot_be_promised_is_refused_and_nothing_is_saved(trained, tmp_path, capsys):
    monitor, _ = trained
    data = write(tmp_path / "held-out.jsonl", labelled(range(30, 50)))
    output = tmp_path / "calibrated"
    options = ["--method", "platt", "--risk", "0.001", "--output", str(output)]
    assert main(["calibrate", *MODEL, "--monitor", monitor, "--data", data, *options]) == 2
    assert "no threshold keeps the promise" in capsys.readouterr().err
    assert not output.exists()


def test_training_records_are_refused(trained, capsys):
    monitor, data = trained
    assert main(["calibrate", *MODEL, "--monitor", monitor, "--data", data]) == 2
    assert "trained or calibrated on 24 of these 24 records" in capsys.readouterr().err


def test_a_model_without_monitor_is_refused(trained, tmp_path, capsys):
    data = write(tmp_path / "d.jsonl", labelled(range(30, 34)))
    assert main(["calibrate", *MODEL, "--aligner", "none", "--data", data]) == 2
    assert "trained --monitor" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--risk", "0"], ["--confidence", "1"], ["--method", "beta"]])
def test_options_out_of_range_are_exit_code_2(options):
    with pytest.raises(SystemExit) as caught:
        main(["calibrate", "--data", "d", *options])
    assert caught.value.code == 2
