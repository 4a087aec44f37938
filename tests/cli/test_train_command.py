"""``train`` fits each fold once: the scores that its table shows are those that its thresholds are chosen on."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_runs import LLAMA, write
from measured_doubles import yes_and_no
from sklearn.linear_model import LogisticRegression

from syncheck import Monitor, MonitorConfig, Verifier, feature_schema
from syncheck.cli import main
from syncheck.training import fit_measured, write_parquet

SCHEMA = "paper-no-lid.v1"
FOLDS = 5


def sentences(responses=24):
    """Two sentences a response, the second unfaithful and mostly of less support."""
    rng = np.random.default_rng(4)
    schema = feature_schema(SCHEMA, ())
    values = rng.normal(size=(2 * responses, len(schema.names)))
    values[::2, schema.names.index("align_score")] += 2.0
    return yes_and_no(schema, values)


@pytest.fixture
def fits(monkeypatch):
    """Sentences that each logistic regression was fitted on."""
    found = []

    def counted(self, X, y, *args):
        found.append(len(y))
        return fit(self, X, y, *args)

    fit = LogisticRegression.fit
    monkeypatch.setattr(LogisticRegression, "fit", counted)
    return found


def test_each_fold_is_fitted_once(llama, fits, tmp_path):
    data, output = tmp_path / "x.parquet", tmp_path / "monitor"
    measured = sentences()
    measured = replace(measured, texts=("2.", *measured.texts[1:]))  # it gets a score, so it is trained on
    write_parquet(measured, data)
    options = ["--schema", SCHEMA, "--aligner", "none", "--aggregator", "lr", "--seed", "2", "--output", str(output)]
    assert main(["train", "--model", str(LLAMA), "--data", str(data), *options]) == 0
    *folds, whole = fits
    assert (len(folds), whole) == (FOLDS, 48)
    assert sum(folds) == (FOLDS - 1) * 48  # each sentence is left out of one

    untrained = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema=SCHEMA), aligner=None)
    alone = fit_measured(untrained, measured, aggregator="lr", seed=2)
    trained = Monitor.from_pretrained(output, model=llama.model, tokenizer=llama.tokenizer)
    assert trained.config == alone.config
    rows = sentences().values
    assert trained.aggregator.score(rows).tolist() == alone.aggregator.score(rows).tolist()


def labelled(path, count=12):
    """Answers of two sentences, which are labelled; the first is supported."""
    return write(
        path,
        *(
            {
                "question": f"What is number {number}?",
                "context": [f"Number {number} is a mill."],
                "sentences": [f"Number {number} is a mill.", "It is blue;\nnobody has seen it."],
                "labels": [1, 0],
            }
            for number in range(count)
        ),
    )


CUT = ["--line-breaks", "lines", "--clauses"]


def test_a_file_of_features_of_another_model_needs_no_options(llama, tmp_path, capsys):
    """Neither the model nor schema, aligner and segmentation are named again, and the saved monitor is the same."""
    data, features = labelled(tmp_path / "a.jsonl"), str(tmp_path / "x.parquet")
    measuring = ["--model", str(LLAMA), "--schema", "syncheck.v3", "--aligner", "none", *CUT, "--carry-labels"]
    assert main(["features", *measuring, "--data", data, "--output", features]) == 0
    train = ["train", "--data", features, "--aggregator", "lr", "--output"]
    folders = [tmp_path / name for name in ("without", "with")]
    for folder, model in zip(folders, ([], ["--model", str(LLAMA)]), strict=True):
        assert main([*train, str(folder), *model]) == 0, capsys.readouterr().err
    without, given = (json.loads((folder / "config.json").read_bytes()) for folder in folders)
    assert without == given
    trained = Monitor.from_pretrained(folders[0], model=llama.model, tokenizer=llama.tokenizer)
    assert trained.config.segmenter.clauses and trained.config.segmenter.line_breaks == "lines"
    assert trained.lid_references is not None and trained.aligner is None
    assert main([*train, str(tmp_path / "same"), *CUT, "--schema", "syncheck.v3"]) == 0
    for other in (["--clauses", "--cjk-stops"], ["--schema", "syncheck.v5"]):
        assert main([*train, str(tmp_path / "other"), *other]) == 2
        assert "measured with" in capsys.readouterr().err
    assert main([*train, str(tmp_path / "other"), "--aligner", "bundled"]) == 2
    assert "another aligner: expected bundled, found none" in capsys.readouterr().err


def test_a_file_of_features_of_text_trains_a_verifier(tmp_path):
    data, features = labelled(tmp_path / "a.jsonl"), str(tmp_path / "x.parquet")
    measuring = ["--schema", "syncheck.v5", "--aligner", "bundled", "--clauses", "--carry-labels"]
    assert main(["features", *measuring, "--data", data, "--output", features]) == 0
    assert main(["train", "--data", features, "--aggregator", "monotone", "--output", str(tmp_path / "m")]) == 0
    assert Verifier.from_pretrained(tmp_path / "m").config.segmenter.clauses


def test_a_file_of_another_model_is_refused_in_words(tmp_path, capsys):
    data, features = labelled(tmp_path / "a.jsonl"), str(tmp_path / "x.parquet")
    assert main(["features", "--model", str(LLAMA), "--aligner", "none", "--data", data, "--output", features]) == 0
    other = str(LLAMA.parent / "mistral")
    assert main(["train", "--model", other, "--data", features, "--output", str(tmp_path / "m")]) == 2
    said = capsys.readouterr().err
    assert "LlamaForCausalLM of" in said and "MistralForCausalLM of" in said and "sha256" not in said


def test_a_file_that_does_not_name_its_model_asks_for_it(tmp_path, capsys):
    write_parquet(sentences(), tmp_path / "x.parquet")
    train = ["train", "--data", str(tmp_path / "x.parquet"), "--aligner", "none", "--output", str(tmp_path / "m")]
    assert main([*train, "--aggregator", "lr"]) == 2
    assert "pass that model (--model)" in capsys.readouterr().err


def test_the_number_of_a_list_item_is_trained_on_and_a_row_of_dashes_is_not(llama, fits):
    """Whatever gets a score is trained on."""
    untrained = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema=SCHEMA), aligner=None)
    measured = sentences(10)
    measured = replace(measured, texts=("2.", "***", *measured.texts[2:]))
    fit_measured(untrained, measured, aggregator="lr")
    assert fits[-1] == 19


def test_a_monitor_is_not_overwritten_unless_told(tmp_path, capsys):
    data, output = labelled(tmp_path / "a.jsonl"), tmp_path / "m"
    train = ["train", "--schema", "syncheck.v5", "--aligner", "bundled", "--aggregator", "lr", "--data", data]
    assert main([*train, "--output", str(output)]) == 0
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    capsys.readouterr()
    assert main([*train, "--seed", "1", "--output", str(output)]) == 2
    assert "holds a monitor, which would be lost; pass another --output, or --overwrite" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before
    assert main([*train, "--labels", "paper", "--overwrite", "--output", str(output)]) == 0
    Verifier.from_pretrained(output)


@pytest.mark.parametrize("mixed", [False, True])
def test_generators_with_one_label_each_are_warned_of(mixed, tmp_path, capsys):
    """Model m wrote all faithful answers, and model n all others; labels of both kinds by one of them are enough."""
    data = write(
        tmp_path / "a.jsonl",
        *(
            {
                "question": f"What is number {number}?",
                "context": [f"Number {number} is a mill."],
                "sentences": [f"Number {number} is a mill.", "It is blue."][number % 2 :][:1],
                "labels": [1 - number % 2 if not mixed or number else 0],
                "generator": "mn"[number % 2],
            }
            for number in range(24)
        ),
    )
    train = ["train", "--schema", "syncheck.v5", "--aligner", "bundled", "--aggregator", "lr", "--data", data]
    assert main([*train, "--output", str(tmp_path / "m")]) == 0
    assert ("have one label only (m faithful, n unfaithful)" in capsys.readouterr().err) != mixed


@pytest.mark.slow
def test_unless_told_the_kind_is_the_best_on_held_out_folds(llama):
    """Faithful where a value is far from 0, on either side: no line parts them, trees do."""
    untrained = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema=SCHEMA), aligner=None)
    measured = sentences(60)
    column = measured.schema.names.index("align_score")
    measured.values[:, column] = np.tile([-2.0, 0.0, 2.0, 0.0], 30) + measured.values[:, 0] / 10
    chosen = fit_measured(untrained, measured)
    named, linear = (fit_measured(untrained, measured, aggregator=kind) for kind in (chosen.aggregator.kind, "lr"))
    assert chosen.aggregator.kind != "lr"
    assert chosen.config == named.config != linear.config


@pytest.mark.parametrize("command", ["train", "calibrate"])
@pytest.mark.parametrize("below", ["", "monitor", "new/monitor"])
def test_an_output_that_cannot_be_a_folder_is_refused_before_the_work(command, below, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("kept")
    output = str(file / below)
    assert main([command, "--model", "nowhere", "--data", "nothing.jsonl", "--output", output]) == 2
    assert repr(str(file)) in capsys.readouterr().err
    assert file.read_text() == "kept"


@pytest.mark.parametrize("command", ["train", "calibrate"])
def test_an_output_where_nothing_can_be_written_is_refused_before_the_work(command, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path)  # root may write everywhere
    output = str(tmp_path / "new" / "monitor")
    assert main([command, "--model", "nowhere", "--data", "nothing.jsonl", "--output", output]) == 2
    assert repr(str(tmp_path)) in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
