"""The documented way to the paper's Table 1 runs from a folder in RAGTruth's layout to the table."""

import shlex
from pathlib import Path

import pytest
from made_up_ragtruth import write_ragtruth
from sklearn.metrics import roc_auc_score

from syncheck.training import labelled_set, read_parquet

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "signals" / "llama"
GENERATOR = "mistral-7B-instruct"


@pytest.fixture(scope="module")
def script():
    """The script, imported from its folder as Python does when it runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        import paper_table_1

        yield paper_table_1


@pytest.mark.slow
def test_from_the_corpus_to_the_table(script, tmp_path, capsys):
    corpus, output = tmp_path / "ragtruth", tmp_path / "runs"
    corpus.mkdir()
    write_ragtruth(corpus, per_split=4)
    options = ["--ragtruth", str(corpus), "--model", str(GOLDEN), "--generator", GENERATOR, "--seeds", "2"]
    options += ["--tasks", "QA", "Summary", "--also", "Bundled again=bundled", "--output", str(output)]
    assert script.main(options) == 0
    shown = capsys.readouterr().out
    commands = [line for line in shown.splitlines() if line.startswith("$ syncheck")]
    assert [line.split()[2] for line in commands] == ["features", "features", "evaluate", "features", "evaluate"] * 2
    table = (output / f"{GENERATOR}-table-1.md").read_text()
    assert shown.endswith(table)
    rows = {line.split(" | ")[0].removeprefix("| "): line.split(" | ")[1:] for line in table.splitlines()}
    assert list(rows)[2:] == [
        *("Bundled again", "FLARE", "the aligner", "SynCheck-LR", "SynCheck-XGB", "SynCheck-MLP"),
    ]
    assert rows["Bundled again"] == rows["the aligner"]
    assert all(cell.count("±") == 1 for name in ("SynCheck-LR", "SynCheck-MLP") for cell in rows[name])
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
            assert rows[name][place].removesuffix(" |") == f"{expected:.3f}"


def test_a_run_goes_on_with_what_it_has_measured(script, tmp_path, capsys):
    corpus, output = tmp_path / "ragtruth", tmp_path / "runs"
    corpus.mkdir()
    write_ragtruth(corpus, per_split=3)
    options = ["--ragtruth", str(corpus), "--model", str(GOLDEN), "--generator", GENERATOR, "--seeds", "1"]
    options += ["--tasks", "Data2txt", "--output", str(output), "--aligner", "none"]
    with pytest.raises(SystemExit, match="was not made"):  # nothing says how well a sentence is supported
        script.main(options)
    first = {path.name: path.stat().st_mtime_ns for path in output.glob("*.parquet")}
    assert set(first) == {f"{GENERATOR}-Data2txt-signals-{split}.parquet" for split in ("train", "test")}
    with pytest.raises(SystemExit, match="was not made"):
        script.main(options)
    assert {path.name: path.stat().st_mtime_ns for path in output.glob("*.parquet")} == first
    assert "'aligner, untrained' has no score" in capsys.readouterr().err


def test_the_documented_commands_are_for_both_models_of_the_paper(script):
    text = (ROOT / "docs" / "training.md").read_text().replace("\\\n", " ")
    words = [
        shlex.split(line)[3:] for line in text.splitlines() if line.startswith("$ python benchmarks/paper_table_1")
    ]
    options = [script.parser().parse_args(given) for given in words]
    assert [o.generator for o in options] == ["llama-2-7b-chat", "mistral-7B-instruct"]
    assert {(tuple(o.tasks), o.seeds, o.aligner) for o in options} == {
        (("QA", "Summary", "Data2txt"), 3, "AlignScore-base.ckpt")
    }
