"""The commands of docs/training.md run one after the other, on the bundled kit and a made-up corpus."""

import json
import shlex
from pathlib import Path

import pytest
from made_up_ragtruth import write_ragtruth

from syncheck.cli import main

DOCUMENT = Path(__file__).parents[2] / "docs" / "training.md"


def documented_commands():
    """Words of each ``syncheck`` command of the section about measuring."""
    section = DOCUMENT.read_text().split("## Measure, train, evaluate")[1].split("### Files of features")[0]
    return [shlex.split(line, comments=True)[2:] for line in section.splitlines() if line.startswith("$ syncheck")]


def run_once(words):
    """Return a command with its runs cut to one, few folds, and the aggregator that is quickest to train."""
    runs = next((i for i, word in enumerate(words) if word in ("--repeats", "--seeds")), None)
    if runs is not None:
        words = [*words[: runs + 1], "1", *words[runs + 2 :]]
    elif words[0] == "ablate":
        words = [*words, "--repeats", "1", "--cv", "3"]
    return words if words[0] in ("features", "score") or "--aggregator" in words else [*words, "--aggregator", "lr"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the paper stops at 300 iterations
def test_the_documented_chain_runs(tmp_path, monkeypatch, capsys):
    commands = documented_commands()
    assert [command[0] for command in commands] == [
        *("features", "train", "score", "evaluate", "evaluate", "evaluate", "ablate")
    ]
    monkeypatch.chdir(tmp_path)
    answer = {"id": 1, "question": "Who?", "context": ["Anna moved to Lisbon."], "response": "Anna moved to Lisbon."}
    Path("answers.jsonl").write_text(json.dumps(answer), encoding="utf-8")
    Path("ragtruth").mkdir()
    write_ragtruth(Path("ragtruth"), per_split=3)
    for split in ("train", "test"):
        assert main(["features", "--data", "ragtruth", "--split", split, "--output", f"{split}.parquet"]) == 0
    for command in commands:
        words = run_once(command)
        assert main(words) == 0, words
    shown = capsys.readouterr().out
    assert "deviation" in shown
    assert {path.name for path in tmp_path.glob("*.png")} == {"auroc.png", "ablation.png"}
    assert Path("my-monitor", "config.json").is_file()
