"""Biographies that are cut and judged on the way, from Python and from the command line."""

import json
import shutil
from pathlib import Path

import pytest

from syncheck.base.errors import CheckpointError, InputError
from syncheck.cli import main
from syncheck.kit import ASSETS
from syncheck.labelling import SupportJudge, load_judge, load_propositioner, load_records
from syncheck.results.types import Evidence, Support
from syncheck.training import read_parquet

GOLDEN = str(Path(__file__).parents[1] / "golden" / "signals" / "llama")
BIOGRAPHY = {
    "id": "a",
    "topic": "Ada Lovelace",
    "ctxs": [{"title": "Ada Lovelace", "text": "Ada Lovelace was born in London. She wrote a program."}],
    "output": "Ada Lovelace was born in London. Peter Bell sold 17 boats in Oslo.",
}
PLAIN = {"id": "a", "question": "q", "context": "c", "response": "r", "spans": []}
FEATURES = ["features", "--model", GOLDEN, "--aligner", "none", "--schema", "paper-no-lid.v1"]


class LengthAligner:
    """Support is a tenth for each word of the claim."""

    name = "length"

    def align(self, passages, claims):
        scores = [len(claim.split()) / 10 for claim in claims]
        return [Support(score, Evidence(0, passages[0], score)) for score in scores]


def write(path, record):
    path.write_text(json.dumps(record) + "\n")
    return str(path)


def test_an_aligner_judges_from_its_threshold_on():
    claims = ["one two three four", "one two three four five"]
    assert SupportJudge(LengthAligner())(("p",), claims) == [False, True]
    assert SupportJudge(LengthAligner(), threshold=0.4)(("p",), claims) == [True, True]
    assert SupportJudge(LengthAligner())(("p",), []) == []


@pytest.mark.parametrize("threshold", [0.0, 1.5])
def test_thresholds_out_of_range(threshold):
    with pytest.raises(InputError, match="threshold"):
        SupportJudge(LengthAligner(), threshold=threshold)


def test_judges_that_are_none(tmp_path):
    with pytest.raises(InputError, match="'none'"):
        load_judge("none")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="AutoAIS"):
        load_judge(f"autoais:{tmp_path}")


def test_only_biographies_are_cut_and_judged(tmp_path):
    with pytest.raises(InputError, match="labels"):
        load_records(write(tmp_path / "x.jsonl", PLAIN), judge=SupportJudge(LengthAligner()))


def test_features_of_biographies_without_propositions(tmp_path):
    """The bundled aligner finds the first sentence in the passage, and the second nowhere."""
    data, output = write(tmp_path / "x.jsonl", BIOGRAPHY), str(tmp_path / "x.parquet")
    assert main([*FEATURES, "--data", data, "--propositioner", "rules", "--judge", "bundled", "--output", output]) == 0
    assert read_parquet(output).labels().tolist() == [1, 0]


@pytest.fixture
def judged(monkeypatch):
    """How many propositions each call of a judge was asked about."""
    found, judge = [], SupportJudge.__call__

    def counted(self, passages, propositions):
        found.append(len(propositions))
        return judge(self, passages, propositions)

    monkeypatch.setattr(SupportJudge, "__call__", counted)
    return found


@pytest.fixture
def labelling(tmp_path):
    """Makes features of a biography that is cut by rules and judged by the bundled aligner."""
    data = write(tmp_path / "x.jsonl", BIOGRAPHY)
    options = ["--data", data, "--propositioner", "rules", "--judge", "bundled"]
    return [*FEATURES, *options, "--output", str(tmp_path / "x.parquet")]


def test_labels_are_made_once(judged, labelling, tmp_path):
    assert main([*labelling, "--shard", "2/2"]) == 0
    assert len(judged) == 1
    assert main([*labelling, "--shard", "1/2"]) == 0
    assert len(judged) == 1
    (record,) = read_parquet(tmp_path / "x.parquet").records
    models = {"propositioner": load_propositioner("rules"), "judge": load_judge("bundled")}
    assert [record] == load_records(tmp_path / "x.jsonl", **models)


@pytest.mark.parametrize("other", ["data", "prompts"])
def test_labels_of_other_data_and_options_are_made_anew(other, judged, labelling, tmp_path):
    assert main(labelling) == 0
    if other == "data":
        write(tmp_path / "x.jsonl", BIOGRAPHY | {"output": "Ada Lovelace wrote a program."})
    assert main([*labelling, *(["--prompts", "task"] if other == "prompts" else [])]) == 0
    assert len(judged) == 2
    (record,) = read_parquet(tmp_path / "x.parquet").records
    assert (record.response == BIOGRAPHY["output"], record.prompt_with_context is None) == (
        other != "data",
        other != "prompts",
    )


def test_damaged_labels_are_refused(labelling, tmp_path, capsys):
    assert main(labelling) == 0
    (kept,) = tmp_path.glob("x.parquet.labelled-*.jsonl")
    kept.write_text("{}\n")
    assert main(labelling) == 2
    assert f"{kept}:1" in capsys.readouterr().err


def test_kept_labels_do_not_let_the_judge_be_measured(labelling, capsys):
    assert main(labelling) == 0
    assert main([option for option in labelling if option not in ("--aligner", "none")]) == 2
    assert "--judge" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["features", "train"])
@pytest.mark.parametrize("name", ["bundled", "another folder"])
def test_the_aligner_that_is_measured_does_not_judge(command, name, tmp_path, capsys):
    copy = shutil.copytree(ASSETS / "aligner", tmp_path / "another folder")
    judge = name if name == "bundled" else str(copy)
    data, output = write(tmp_path / "x.jsonl", BIOGRAPHY), str(tmp_path / "x.parquet")
    models = ["--model", GOLDEN, "--schema", "paper-no-lid.v1", "--propositioner", "rules", "--judge", judge]
    assert main([command, *models, "--data", data, "--output", output]) == 2
    assert repr(judge) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--propositioner"),
        (["--propositioner", "rules"], "--judge"),
        (["--judge", "none"], "'none'"),
        (["--propositioner", str(Path(GOLDEN).parent)], "load"),
    ],
)
def test_what_biographies_lack_is_asked_for(options, message, tmp_path, capsys):
    data, output = write(tmp_path / "x.jsonl", BIOGRAPHY), str(tmp_path / "x.parquet")
    assert main([*FEATURES, "--data", data, *options, "--output", output]) == 2
    assert message in capsys.readouterr().err
