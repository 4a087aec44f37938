"""The commands of docs/training.md run one after the other, on the bundled kit and a made-up corpus."""

import json
import shlex
from pathlib import Path

import pytest
from command_runs import LLAMA, write
from made_up_ragtruth import write_ragtruth

from syncheck import Verifier, checkpoint, load_aligner
from syncheck.cli import main

DOCUMENT = Path(__file__).parents[2] / "docs" / "training.md"


def documented_commands(start="## Measure, train, evaluate", end="### Files of features"):
    """Words of each ``syncheck`` command between two texts, those of the section about measuring unless named."""
    section = DOCUMENT.read_text().split(start)[1].split(end)[0]
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


def test_the_first_monitor_cuts_sentences_as_they_were_labelled(tmp_path, monkeypatch, capsys):
    label, train = documented_commands("No monitor yet?", "`--records questions.jsonl`")
    monkeypatch.chdir(tmp_path)
    answers = (
        {
            "question": f"What is number {number}?",
            "context": [f"Dr. Ray has number {number}, a mill."],
            "response": f"There are three things:\n- Dr. Ray has number {number}\n- It is a mill\n- Mr. Kay painted it",
        }
        for number in range(6)
    )
    write(Path("answers.jsonl"), *answers)
    assert main([*label, "--aligner", "bundled"]) == 0
    page = Path("label.html").read_text(encoding="utf-8")
    held = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    for asked in held["open"]:
        held["records"][asked["response"]]["labels"][asked["sentence"]] = int("Ray" in asked["text"])
    write(Path("labels.jsonl"), *held["records"])
    model = ["--model", str(LLAMA), "--aligner", "bundled", "--aggregator", "lr"]
    assert main([*train[:1], *model, *train[3:]]) == 0 and train[1:3] == ["--model", "my-model"]
    assert "cut" not in capsys.readouterr().err
    bundled = Verifier(load_aligner("bundled"))
    assert checkpoint.read(Path("my-monitor")).config.segmenter == bundled.config.segmenter
