"""Responses that do not count are named, by commands and by ``Monitor.fit``."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up import record, records
from measured_doubles import yes_and_no

from syncheck import Monitor, MonitorConfig, feature_schema
from syncheck.base.errors import LeftOutWarning
from syncheck.cli import main
from syncheck.training import fit_measured, labelled_set, left_out_lines, seen_records, write_parquet

SCHEMA = "paper-no-lid.v1"
MODEL = str(Path(__file__).parents[1] / "golden" / "signals" / "llama")
TOO_LONG = "needs {} tokens, but the model's window is 512"


def sentences(*, prefix="r", responses=24, without_context=(), left_out=None):
    """Two sentences a response, the second unfaithful and of less support."""
    schema = feature_schema(SCHEMA, ())
    values = np.random.default_rng(5).normal(size=(2 * responses, len(schema.names)))
    values[::2, schema.names.index("align_score")] += 2.0
    found = yes_and_no(schema, values, prefix=prefix)
    asked = [replace(r, question=f"{r.id}?") for r in found.records]
    given = [replace(r, passages=(" ",)) if i in without_context else r for i, r in enumerate(asked)]
    return replace(found, records=tuple(given), left_out=left_out or {})


def test_reasons_that_differ_in_numbers_are_given_once():
    left_out = {f"l{i}": TOO_LONG.format(600 + i) for i in range(7)} | {"e": "the prompts are equal"}
    lines = left_out_lines(sentences(without_context=(1, 3), left_out=left_out))
    names = ["r1, r3 (2 responses)", "l0, l1, l2, l3, l4 and 2 more (7 responses)", "e"]
    assert [line.partition(":")[0] for line in lines] == names
    assert left_out_lines(sentences()) == []


@pytest.fixture
def file(tmp_path):
    """A file of features, one of other questions, and what is said of both."""
    paths = []
    for name in ("a", "b"):
        paths.append(str(tmp_path / f"{name}.parquet"))
        found = sentences(prefix=name, without_context=(2,), left_out={f"{name}z": TOO_LONG.format(600)})
        write_parquet(found, paths[-1])
    return paths


def said_of(path):
    """File and response of each line about it."""
    name = Path(path).stem
    return [[path, f"{name}2"], [path, f"{name}z"]]


def named(shown):
    return [line.split(": ")[:2] for line in shown.splitlines()]


@pytest.mark.parametrize("command", ["evaluate", "ablate"])
def test_commands_name_them(file, command, capsys):
    options = ["--data", file[0], "--aggregator", "lr", "--cv", "2", "--repeats", "1", "--set", "strict"]
    assert main([command, *options]) == 0
    assert named(capsys.readouterr().err) == said_of(file[0])


def test_those_of_every_file_are_named(file, capsys):
    assert (
        main(
            [
                "evaluate",
                "--train",
                file[1],
                "--data",
                file[0],
                "--aggregator",
                "lr",
                "--repeats",
                "1",
                "--set",
                "strict",
            ]
        )
        == 0
    )
    said = named(capsys.readouterr().err)
    assert all(line in said for line in said_of(file[0]) + said_of(file[1]))


def test_train_and_calibrate_name_them_and_do_not_count_them(file, tmp_path, capsys):
    monitor = str(tmp_path / "monitor")
    options = ["--aligner", "none", "--schema", SCHEMA, "--aggregator", "lr", "--output", monitor]
    assert main(["train", "--model", MODEL, "--data", file[0], *options]) == 0
    said = capsys.readouterr().err
    assert all(line in named(said) for line in said_of(file[0])) and " 23 " in said
    risk = ["--risk", "0.4", "--confidence", "0.6", "--method", "platt"]
    assert main(["calibrate", "--model", MODEL, "--monitor", monitor, "--data", file[1], *risk]) == 0
    shown = capsys.readouterr()
    assert all(line in named(shown.err) for line in said_of(file[1])) and "held-out sentences   46 of" in shown.out


def test_features_names_them(tmp_path, capsys):
    data, output = tmp_path / "x.jsonl", tmp_path / "x.parquet"
    given = {"question": "Who?", "response": "Anna moved.", "spans": []}
    contexts = {"fits": "Anna moved.", "empty": [" "], "long": "word " * 5000}
    data.write_text("".join(json.dumps(given | {"id": n, "context": c}) + "\n" for n, c in contexts.items()))
    command = ["features", "--model", MODEL, "--data", str(data), "--aligner", "none", "--schema", SCHEMA]
    assert main([*command, "--output", str(output)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2].startswith(f"{data}: empty:")
    assert lines[-1].startswith(f"{data}: long: left out: the prompt with its response needs")


@pytest.mark.parametrize(("name", "counted"), [("strict", 46), ("paper", 46)])
def test_neither_set_has_sentences_without_a_context(name, counted):
    chosen = labelled_set(sentences(without_context=(2,)), name)
    assert len(chosen.used) == counted and not set(chosen.used.tolist()) & {4, 5}


def test_sentences_without_a_context_teach_nothing(llama):
    """Neither the aggregator nor the thresholds depend on them, and the monitor has not seen them."""
    untrained = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema=SCHEMA), aligner=None)
    trained = []
    for noise in (0.0, 9.0):
        measured = sentences(without_context=(2,))
        measured.values[4:6] += noise
        trained.append(fit_measured(untrained, measured, aggregator="lr"))
    assert trained[0].config == trained[1].config
    assert [r.id for r in measured.records if r not in seen_records(trained[0], measured.records)] == ["r2"]
    values = sentences().values
    np.testing.assert_array_equal(*(t.aggregator.score(values) for t in trained))


def test_fit_warns_of_them(llama, monkeypatch):
    monkeypatch.setattr(llama.model.config, "max_position_embeddings", 400)
    given = [*records(6), record(6, passages=("word " * 300,)), record(7, passages=())]
    options = {"model": llama.model, "tokenizer": llama.tokenizer, "config": MonitorConfig(schema=SCHEMA)}
    with pytest.warns(LeftOutWarning, match="responses") as caught:
        monitor = Monitor.fit(given, aligner=None, aggregator="lr", **options)
    (message,) = (str(w.message).splitlines()[1:] for w in caught)
    assert message[0].startswith("r7:")
    assert message[1].startswith("r6: left out: the prompt with its response needs") and len(message) == 2
    assert [r.id for r in seen_records(monitor, given)] == [f"r{i}" for i in range(6)]
