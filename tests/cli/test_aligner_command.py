"""Aligners from the command line: an AlignScore checkpoint, its options in what is stored, its conversion."""

import json
import shutil
from pathlib import Path

import pytest
from command_runs import LLAMA
from doubles import ANSWER, PASSAGES, QUESTION, rewrite

from syncheck import Monitor, MonitorConfig, load_aligner
from syncheck.base.errors import CheckpointError, MismatchError
from syncheck.cli import main
from syncheck.training import read_parquet

GOLDEN = LLAMA.parents[1]
ROBERTA = GOLDEN / "alignscore" / "tiny-roberta"
MODEL = ["--model", str(LLAMA)]
RECORDS = [
    {
        "id": f"{number}",
        "question": QUESTION,
        "context": list(PASSAGES),
        "sentences": ["Angus Scott plays rugby.", f" He was born in {1900 + number}."],
        "labels": [1, number % 2],
        "group": f"{number}",
    }
    for number in range(10)
]


@pytest.fixture
def checkpoint(tmp_path):
    shutil.copyfile(GOLDEN / "alignscore" / "AlignScore-tiny.ckpt", tmp_path / "AlignScore-tiny.ckpt")
    return str(tmp_path / "AlignScore-tiny.ckpt")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return str(path)


def scored(tmp_path, *options):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps({"question": QUESTION, "context": list(PASSAGES), "response": ANSWER}) + "\n")
    assert main(["score", *MODEL, *options, "--input", str(source), "--output", str(target)]) == 0
    sentences = json.loads(target.read_text())["sentences"]
    assert len(sentences) == 5
    return {s["text"].strip(): s["features"]["align_score"] for s in sentences}


def support(aligner, claims=("Angus Scott is a rugby player.", "He grew up on a farm in 1982.")):
    return {claim: s.score for claim, s in zip(claims, aligner.align(PASSAGES, claims), strict=True)}


@pytest.mark.slow
def test_checkpoint_with_its_options_from_features_to_a_score(checkpoint, data, tmp_path, capsys):
    table, monitor = str(tmp_path / "features.parquet"), str(tmp_path / "monitor")
    aligner = ["--aligner", checkpoint, "--aligner-backbone", str(ROBERTA), "--aligner-mode", "bin"]
    assert main(["features", *MODEL, *aligner, "--data", data, "--output", table]) == 0
    identity = f"{checkpoint} --aligner-backbone {ROBERTA} --aligner-mode bin --aligner-overflow split"
    assert read_parquet(table).provenance["aligner"] == identity
    train = ["train", *MODEL, "--data", table, "--aggregator", "lr", "--output", monitor]
    capsys.readouterr()
    assert main([*train, *aligner, "--aligner-overflow", "cut"]) == 2
    assert identity in capsys.readouterr().err
    assert main([*train, "--aligner", *identity.split()]) == 0
    config = json.loads((Path(monitor) / "config.json").read_text())
    options = {"mode": "bin", "overflow": "split", "backbone": str(ROBERTA)}
    assert (config["aligner"], config["aligner_options"]) == (checkpoint, options)
    found = scored(tmp_path, "--monitor", monitor)
    expected = support(load_aligner(checkpoint, backbone=ROBERTA, mode="bin"), list(found))
    assert found == pytest.approx(expected, abs=1e-6)


def test_options_of_aligners_are_refused_where_they_have_no_effect(tmp_path, capsys):
    assert main(["score", *MODEL, "--aligner-overflow", "cut", "--input", str(tmp_path)]) == 2
    assert "overflow" in capsys.readouterr().err
    assert main(["score", "--aligner-mode", "bin", "--input", str(tmp_path)]) == 2
    assert "mode" in capsys.readouterr().err


@pytest.mark.parametrize("model", [[], MODEL], ids=["the kit's model", "a model"])
def test_the_bundled_aligner_by_name_has_the_monitor_that_was_trained_with_it(model, tmp_path):
    record = {"question": "When?", "context": ["Dr. Ray opened it in 1967."], "response": "- Dr. Ray\n- In 1976."}
    (tmp_path / "answers.jsonl").write_text(json.dumps(record))
    written = []
    for number, aligner in enumerate(([], ["--aligner", "bundled"])):
        target = tmp_path / f"scores-{number}.jsonl"
        files = ["--input", str(tmp_path / "answers.jsonl"), "--output", str(target)]
        assert main(["score", *model, *aligner, *files]) == 0
        written.append([(s["text"], s["score"]) for s in json.loads(target.read_text())["sentences"]])
    assert written[0] == written[1]
    assert [text for text, _ in written[0]] == ["- Dr. Ray", "- In 1976."]


def test_the_command_says_which_aligner_auto_is(tmp_path, capsys):
    source = tmp_path / "answers.jsonl"
    source.write_text(json.dumps({"question": "When?", "context": ["It opened in 1967."], "response": "In 1976."}))
    assert main(["score", "--aligner", "auto", "--input", str(source), "--output", str(tmp_path / "scores.jsonl")]) == 0
    found = load_aligner("auto")
    assert f"aligner 'auto' is {found.name!r}" in capsys.readouterr().err


def test_options_for_sentences_change_those_of_the_generic_monitor_alone(tmp_path, capsys):
    record = {"question": "When?", "context": ["Dr. Ray opened it."], "response": "- Dr. Ray\n- In 1976."}
    source = tmp_path / "answers.jsonl"
    source.write_text(json.dumps(record))
    for number, (options, expected) in enumerate(
        [
            (["--line-breaks", "none"], ["- Dr. Ray\n- In 1976."]),
            (["--abbreviations", "none", "--monitor", "generic"], ["- Dr.", "Ray", "- In 1976."]),
        ]
    ):
        target = tmp_path / f"scores-{number}.jsonl"
        assert main(["score", *options, "--input", str(source), "--output", str(target)]) == 0
        assert [s["text"] for s in json.loads(target.read_text())["sentences"]] == expected
    assert main(["generate", "--line-breaks", "lines", "--input", str(source)]) == 2
    assert "'generation' keeps" in capsys.readouterr().err


class TestMonitor:
    @pytest.fixture
    def folder(self, llama, checkpoint, tmp_path):
        aligner = load_aligner(checkpoint, backbone=ROBERTA, mode="nli_sp", overflow="split")
        monitor = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"), aligner=aligner)
        monitor.save_pretrained(tmp_path / "monitor")
        return tmp_path / "monitor"

    def load(self, folder, llama, **options):
        return Monitor.from_pretrained(folder, model=llama.model, tokenizer=llama.tokenizer, **options)

    def test_is_loaded_with_its_checkpoint_and_backbone(self, folder, llama, checkpoint):
        loaded = self.load(folder, llama).aligner
        assert (loaded.name, loaded.options["overflow"]) == (checkpoint, "split")
        assert support(loaded) == support(load_aligner(checkpoint, backbone=ROBERTA))

    @pytest.mark.parametrize("change", [{"mode": "bin"}, {"overflow": "cut"}], ids=str)
    def test_refuses_the_same_checkpoint_with_other_options(self, folder, llama, checkpoint, change):
        other = load_aligner(checkpoint, backbone=ROBERTA, **change)
        with pytest.raises(MismatchError, match=str(next(iter(change.values())))):
            self.load(folder, llama, aligner=other)
        same = load_aligner(checkpoint, backbone=ROBERTA)
        assert self.load(folder, llama, aligner=same).aligner is same

    def test_of_a_file_without_options_is_not_guessed(self, folder, llama):
        rewrite(folder / "config.json", {}, without=["aligner_options"])
        with pytest.raises(CheckpointError, match="aligner_options"):
            self.load(folder, llama)


@pytest.mark.parametrize("command", ["score", "train"])
def test_the_help_lists_the_kinds(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out
    assert all(kind in shown for kind in ("'bundled'", "'none'", ".ckpt", "minicheck:"))
