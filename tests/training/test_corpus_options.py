"""What the commands take of labelled data, and ``evaluate --train``."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up_ragtruth import write_ragtruth
from measured_doubles import yes_and_no
from sklearn.metrics import roc_auc_score

from syncheck import Aggregator, feature_schema
from syncheck.aggregators import make_aggregator
from syncheck.cli import main
from syncheck.labelling import UnfaithfulSpan
from syncheck.training import read_parquet, write_parquet

GOLDEN = str(Path(__file__).parents[1] / "golden" / "signals" / "llama")


def sentences(seed, *, prefix, responses=30, shift=1.5, **values):
    """Two sentences a response, the second unfaithful by a span that is marked as true of the world in every third."""
    rng = np.random.default_rng(seed)
    schema = feature_schema("paper-no-lid.v1", ())
    rows = rng.random((2 * responses, len(schema.names)))
    rows[::2, schema.names.index("align_score")] += shift
    given = {"task": "QA", "split": "test"} | values
    return yes_and_no(schema, rows, prefix=prefix, implicit_true=range(0, responses, 3), **given)


@pytest.fixture
def files(tmp_path):
    training = sentences(0, prefix="a", responses=70, split="train")
    tested = sentences(1, prefix="b", shift=0.6)
    write_parquet(training, tmp_path / "train.parquet")
    write_parquet(tested, tmp_path / "test.parquet")
    return training, tested, str(tmp_path / "train.parquet"), str(tmp_path / "test.parquet")


def rows_of(path, name="strict"):
    return {row["system"]: row for row in json.loads(path.read_text())[name]["rows"] if row["subset"] == "all"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the paper stops at 300 iterations
def test_evaluate_trained_on_another_file(files, tmp_path, capsys):
    training, tested, train, test = files
    output = tmp_path / "x.json"
    options = ["--train", train, "--seeds", "3", "--set", "strict", "--output", str(output)]
    assert main(["evaluate", "--data", test, *options, "--aggregator", "mlp"]) == 0
    rows, y, known = rows_of(output), np.tile([1, 0], 30), np.tile([1, 0], 70)
    each = [
        roc_auc_score(y, make_aggregator("mlp", seed=s).fit(training.values, known).predict_proba(tested.values)[:, 1])
        for s in range(3)
    ]
    everything = rows["the paper's features"]
    assert everything["auroc"] == pytest.approx(np.mean(each), abs=1e-12)
    assert everything["deviation"] == pytest.approx(np.std(each, ddof=1), abs=1e-12) and everything["deviation"] > 0
    assert everything["sentences"] == 60
    for system, column in (
        ("least likely token (FLARE), untrained", "min_prob"),
        ("aligner, untrained", "align_score"),
    ):
        values = tested.values[:, tested.schema.names.index(column)]
        assert rows[system]["auroc"] == pytest.approx(roc_auc_score(y, values), abs=1e-12)
        assert rows[system]["deviation"] is None
    assert f"{np.std(each, ddof=1):.3f}" in capsys.readouterr().out
    assert main(["evaluate", "--data", test, *options, "--aggregator", "lr"]) == 0
    everything = rows_of(output)["the paper's features"]
    fitted = make_aggregator("lr").fit(training.values, known)
    assert everything["auroc"] == pytest.approx(roc_auc_score(y, fitted.predict_proba(tested.values)[:, 1]), abs=1e-12)
    assert everything["deviation"] == 0.0


def test_files_that_share_questions_are_refused(files, tmp_path, capsys):
    _, _, train, _ = files
    options = ["--data", train, "--train", train, "--aggregator", "lr"]
    assert main(["evaluate", *options]) == 2
    assert "ag10" in capsys.readouterr().err


def test_questions_are_told_by_what_was_asked_and_not_by_their_groups(files, tmp_path, capsys):
    """As between a file whose records have a group and one whose records have none."""
    training, tested, train, _ = files
    shared = tuple(replace(r, group=f"other {i}") for i, r in enumerate(training.records[:2]))
    data = str(tmp_path / "x.parquet")
    write_parquet(replace(tested, records=(*shared, *tested.records[2:])), data)
    options = ["--train", train, "--aggregator", "lr", "--repeats", "1", "--set", "strict"]
    assert main(["evaluate", "--data", data, *options]) == 2
    assert "--train" in capsys.readouterr().err
    numbered = tuple(replace(r, group=training.records[i].group) for i, r in enumerate(tested.records))
    write_parquet(replace(tested, records=numbered), data)
    assert main(["evaluate", "--data", data, *options]) == 0


def test_a_question_that_does_not_count_in_both_files_may_be_in_both(files, tmp_path):
    """Answers without a context get no score, so that nothing is trained or tested on them."""
    data, train = str(tmp_path / "x.parquet"), str(tmp_path / "y.parquet")
    for found, path in zip(files, (train, data), strict=False):
        records = (replace(found.records[0], question="q?", passages=("",)), *found.records[1:])
        write_parquet(replace(found, records=records), path)
    options = ["--train", train, "--aggregator", "lr", "--repeats", "1", "--set", "strict"]
    assert main(["evaluate", "--data", data, *options]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("command", ["evaluate", "ablate"])
def test_spans_and_responses_of_a_file_of_features_are_chosen(command, files, tmp_path):
    _, _, _, test = files
    output = tmp_path / "x.json"
    shared = [
        command,
        "--data",
        test,
        "--aggregator",
        "lr",
        "--repeats",
        "1",
        "--output",
        str(output),
        "--set",
        "strict",
    ]
    counts = {}
    for options in ([], ["--generator", "m"], ["--no-implicit-true"], ["--generator", "n", "--no-implicit-true"]):
        assert main([*shared, *options]) == 0
        (found, *_) = rows_of(output).values()
        counts[" ".join(options)] = (found["sentences"], found["unfaithful"])
    assert counts == {
        "": (60, 30),
        "--generator m": (30, 15),
        "--no-implicit-true": (60, 20),
        "--generator n --no-implicit-true": (30, 10),
    }


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return str(write_ragtruth(tmp_path_factory.mktemp("ragtruth"), per_split=2))


def test_features_of_the_tasks_that_are_asked_for(corpus, tmp_path):
    output = tmp_path / "x.parquet"
    options = ["--task", "Summary", "Data2txt", "--split", "test", "--generator", "llama-2-7b-chat", "--no-due-to-null"]
    options += ["--quality", "good", "--aligner", "none", "--schema", "paper-no-lid.v1"]
    command = ["features", "--model", GOLDEN, "--data", corpus, *options, "--output", str(output)]
    assert main(command) == 0
    found = read_parquet(output)
    assert [r.id for r in found.records] == [f"{i}-llama-2-7b-chat" for i in (4, 5, 10, 11)]
    assert [len(r.spans) for r in found.records] == [1, 0, 1, 0]
    assert found.labels(rule="paper").tolist() == [1, 0, 1, 1] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--task", "Poem"], "'Poem'"),
        (["--split", "dev"], "'dev'"),
        (["--quality", "good", "best"], "'best'"),
        (["--generator", "gpt"], "'gpt'"),
        (["--generator", "llama-2-7b-chat", "gpt"], "'mistral-7B-instruct'"),
        (["--data", "x.parquet"], "RAGTruth"),
    ],
)
def test_what_features_cannot_take(corpus, options, message, capsys, tmp_path):
    data = [] if "--data" in options else ["--data", corpus]
    assert main(["features", "--model", GOLDEN, *data, *options, "--output", str(tmp_path / "x.parquet")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--task", "Poem"], "'Poem'"),
        (["--prompts", "task"], "--prompts"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "ablate"])
def test_what_a_file_of_features_cannot_give(files, command, options, message, capsys):
    assert main([command, "--data", files[3], "--aggregator", "lr", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("command", "output"), [("train", ["--output", "m"]), ("calibrate", [])])
def test_labels_are_by_overlap_or_as_in_the_paper(command, output, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--data", "d", *output, "--labels", "strict"])
    assert stopped.value.code == 2
    assert "'strict'" in capsys.readouterr().err


@pytest.mark.parametrize("rule", ["overlap", "paper"])
def test_a_monitor_is_trained_by_the_rule_that_is_asked_for(rule, tmp_path):
    """Every other span crosses the end of a sentence: by the paper's rule it makes none unfaithful."""
    found = sentences(6, prefix="a")
    crossing = tuple(
        replace(record, spans=(UnfaithfulSpan(2, 7),)) if i % 2 else record for i, record in enumerate(found.records)
    )
    found = replace(found, records=crossing)
    data, output = str(tmp_path / "x.parquet"), str(tmp_path / "monitor")
    write_parquet(found, data)
    options = ["--aggregator", "lr", "--labels", rule, "--schema", "paper-no-lid.v1", "--output", output]
    assert main(["train", "--model", GOLDEN, "--data", data, *options]) == 0
    unfaithful = np.arange(60) % 4 == 1 if rule == "paper" else np.isin(np.arange(60) % 4, [1, 2, 3])
    expected = Aggregator.fit(found.values, (~unfaithful).astype(np.int64), schema=found.schema, kind="lr")
    np.testing.assert_array_equal(Aggregator.load(output).score(found.values), expected.score(found.values))
