"""The documented way to the paper's Table 1 runs from a folder in RAGTruth's layout to the table."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import paper_table_1
import pytest
import torch
from made_up_ragtruth import write_ragtruth
from sklearn.metrics import roc_auc_score
from transformers import AutoConfig, AutoTokenizer, RobertaForSequenceClassification

from syncheck.training import labelled_set, read_parquet

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "signals" / "llama"
ALIGNSCORE = ROOT / "tests" / "golden" / "alignscore"
GENERATOR = "mistral-7B-instruct"


@pytest.mark.slow
def test_from_the_corpus_to_the_table(tmp_path, capsys):
    corpus, output = tmp_path / "ragtruth", tmp_path / "runs"
    corpus.mkdir()
    write_ragtruth(corpus, per_split=4)
    options = ["--ragtruth", str(corpus), "--model", str(GOLDEN), "--generator", GENERATOR, "--seeds", "2"]
    options += ["--tasks", "QA", "Summary", "--also", "Bundled again=bundled", "--output", str(output)]
    assert paper_table_1.main(options) == 0
    shown = capsys.readouterr().out
    commands = [line for line in shown.splitlines() if line.startswith("$ syncheck")]
    assert [line.split()[2] for line in commands] == [
        *("features", "features", *["evaluate"] * 4, "features", "evaluate") * 2
    ]
    table = (output / f"{GENERATOR}-table-1.md").read_text()
    assert shown.endswith(table)
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
    rows = {line[0]: line[1:] for line in lines}
    assert lines[0][1:] == ["QA", "Summary", "Average"]
    assert list(rows)[2:] == [
        *("Bundled again", "FLARE", "the aligner", "SynCheck-LR", "SynCheck-XGB", "SynCheck-MLP", "LR and XGB"),
    ]
    assert rows["Bundled again"] == rows["the aligner"]
    assert all(cell.count("±") == 1 for name in ("SynCheck-LR", "SynCheck-MLP") for cell in rows[name][:2])
    for place, (task, schema) in enumerate((("QA", "paper.v1"), ("Summary", "paper-no-lid.v1"))):
        train, test = (
            read_parquet(output / f"{GENERATOR}-{task}-signals-{split}.parquet") for split in ("train", "test")
        )
        for measured, split in ((train, "train"), (test, "test")):
            assert {(r.task, r.split, r.generator) for r in measured.records} == {(task, split, GENERATOR)}
            assert measured.schema.version == schema and len(measured.records) == 4
            assert all(r.prompt_with_context.endswith("output:") for r in measured.records)
        y = labelled_set(test, "paper").y
        for name, column in (("FLARE", "min_prob"), ("the aligner", "align_score")):
            expected = roc_auc_score(y, test.values[:, test.schema.names.index(column)])
            assert rows[name][place] == f"{expected:.3f}"


def test_a_run_goes_on_with_what_it_has_measured(tmp_path, capsys):
    corpus, output = tmp_path / "ragtruth", tmp_path / "runs"
    corpus.mkdir()
    write_ragtruth(corpus, per_split=3)
    records = [json.loads(line) for line in (corpus / "response.jsonl").read_text().splitlines()]
    (corpus / "response.jsonl").write_text("".join(json.dumps(record | {"labels": []}) + "\n" for record in records))
    options = ["--ragtruth", str(corpus), "--model", str(GOLDEN), "--generator", GENERATOR, "--seeds", "1"]
    options += ["--tasks", "Data2txt", "--output", str(output), "--aligner", "none"]
    with pytest.raises(SystemExit, match="made"):  # nothing is trained without an unfaithful sentence
        paper_table_1.main(options)
    first = {path.name: path.stat().st_mtime_ns for path in output.glob("*.parquet")}
    assert set(first) == {f"{GENERATOR}-Data2txt-signals-{split}.parquet" for split in ("train", "test")}
    stale = output / f"{GENERATOR}-Data2txt-signals-test.json"
    stale.write_text('{"paper": {"rows": []}}')
    with pytest.raises(SystemExit, match="made"):
        paper_table_1.main(options)
    assert not stale.exists()
    assert {path.name: path.stat().st_mtime_ns for path in output.glob("*.parquet")} == first
    assert "syncheck evaluate" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the paper stops at 300 iterations
def test_a_table_without_an_aligner_has_no_row_of_it(tmp_path):
    write_ragtruth(make(tmp_path / "ragtruth"), per_split=3)
    options = ["--ragtruth", str(tmp_path / "ragtruth"), "--model", str(GOLDEN), "--generator", GENERATOR]
    options += ["--tasks", "Data2txt", "--seeds", "1", "--aligner", "none", "--output", str(tmp_path / "runs")]
    assert paper_table_1.main(options) == 0
    table = (tmp_path / "runs" / f"{GENERATOR}-table-1.md").read_text()
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == [
        *("| FLARE", "| SynCheck-LR", "| SynCheck-XGB", "| SynCheck-MLP", "| LR and XGB"),
    ]


def test_no_aligner_has_no_row_beside_the_others(capsys):
    options = ["--ragtruth", "r", "--model", "m", "--generator", "g", "--output", "o", "--also", "NLI=x", "X=none"]
    with pytest.raises(SystemExit):
        paper_table_1.read_options(options)
    assert "--also" in capsys.readouterr().err


def test_failed_features_are_not_taken_from_an_earlier_run(tmp_path, capsys):
    earlier = tmp_path / "features.parquet"
    earlier.write_bytes(b"of an earlier run")
    with pytest.raises(SystemExit, match=str(earlier)):
        paper_table_1.run(
            ["features", "--model", str(tmp_path / "nothing"), "--data", "data", "--output", str(earlier)]
        )
    assert "exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "said", "stops"),
    [
        ("features", "a: left out: too long\n", False),
        ("features", "a: left out: too long\nsyncheck features: the disk is full\n", True),
        ("features", "", True),
        ("evaluate", "a: left out: too long\n", True),
    ],
)
def test_only_responses_that_features_leaves_out_are_tolerated(monkeypatch, capsys, command, said, stops):
    monkeypatch.setattr(paper_table_1, "syncheck", lambda words: sys.stderr.write(said) * 0 + 2)
    if stops:
        with pytest.raises(SystemExit, match="made"):
            paper_table_1.run([command, "--output", "x"])
    else:
        paper_table_1.run([command, "--output", "x"])
    assert capsys.readouterr().err == said


def documented():
    text = (ROOT / "docs" / "training.md").read_text().replace("\\\n", " ")
    return [shlex.split(line)[3:] for line in text.splitlines() if line.startswith("$ python benchmarks/paper_table_1")]


@pytest.mark.slow
def test_the_documented_command_runs_with_alignscore(tmp_path, monkeypatch):
    """As it stands, but for the large files: a small model and checkpoint by the same names, and MiniCheck's."""
    monkeypatch.chdir(tmp_path)
    write_ragtruth(make(tmp_path / "ragtruth"), per_split=4)
    make(tmp_path / "meta-llama")
    shutil.copytree(GOLDEN, tmp_path / "meta-llama" / "Llama-2-7b-chat-hf")
    shutil.copyfile(ALIGNSCORE / "AlignScore-tiny.ckpt", tmp_path / "AlignScore-base.ckpt")
    shutil.copytree(ALIGNSCORE / "tiny-roberta", tmp_path / "roberta-base")
    make(tmp_path / "lytang")
    torch.manual_seed(0)
    config = AutoConfig.from_pretrained(ALIGNSCORE / "tiny-roberta", num_labels=2)
    RobertaForSequenceClassification(config).save_pretrained(tmp_path / "lytang" / "MiniCheck-RoBERTa-Large")
    AutoTokenizer.from_pretrained(ALIGNSCORE / "tiny-roberta").save_pretrained("lytang/MiniCheck-RoBERTa-Large")
    words = documented()[0]
    words = ["cpu" if word == "cuda" else word for word in words]
    make(tmp_path / "runs")
    assert paper_table_1.main([*words, "--tasks", "QA", "--seeds", "1"]) == 0
    table = (tmp_path / "runs" / "table-1" / "llama-2-7b-chat-table-1.md").read_text()
    assert table.startswith("| sentence AUROC | QA |\n")
    assert [line.split(" | ")[0] for line in table.splitlines()[2:5]] == ["| MiniCheck", "| FLARE", "| the aligner"]
    assert not re.search(r"\| - ", table)
    noted = read_parquet("runs/table-1/llama-2-7b-chat-QA-signals-test.parquet").provenance["aligner"]
    assert noted == "AlignScore-base.ckpt --aligner-backbone roberta-base --aligner-mode nli_sp --aligner-overflow cut"


def make(folder):
    folder.mkdir(parents=True)
    return folder


def test_the_documented_commands_are_for_both_models_of_the_paper():
    options = [paper_table_1.read_options(given) for given in documented()]
    assert [o.generator for o in options] == ["llama-2-7b-chat", "mistral-7B-instruct"]
    assert {(o.tasks, o.seeds, o.aligner, o.aligner_overflow) for o in options} == {
        (None, 3, "AlignScore-base.ckpt", "cut")  # every task, three seeds
    }
