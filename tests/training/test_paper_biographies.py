"""The columns of biographies of the paper's Table 1: who trains whom, labels that are made once, what is refused."""

import json
import re
import runpy
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import paper_table_1
import pytest
from made_up_biographies import write_biographies
from sklearn.metrics import roc_auc_score

from syncheck.cli import main
from syncheck.labelling import load_biographies, load_records
from syncheck.training import labelled_set, read_parquet

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "signals" / "llama"
GENERATOR = "llama-2-7b-chat"
UNKNOWN_PEOPLE = ("Angus Scott", "Amna Bell", "Denis Wood", "Ines Hart", "Noël Clay")
FAMOUS_PEOPLE = ("Ada Lovelace", "Malcolm X", "Anne Frank", "Plato")


@pytest.fixture
def files(tmp_path):
    """``NAME=FILE`` of each column."""
    people = {"FS": UNKNOWN_PEOPLE, "F-100": FAMOUS_PEOPLE, "F-100-anti": FAMOUS_PEOPLE[::-1]}
    return {name: f"{name}={write_biographies(tmp_path / f'{name}.jsonl', them)}" for name, them in people.items()}


@pytest.fixture
def options(tmp_path):
    return ["--model", str(GOLDEN), "--generator", GENERATOR, "--seeds", "1", "--output", str(tmp_path / "runs")]


def commands(shown):
    return [shlex.split(line)[2:] for line in shown.splitlines() if line.startswith("$ syncheck")]


def value(words, option):
    return words[words.index(option) + 1]


@pytest.mark.slow
def test_each_column_is_trained_on_the_file_that_the_paper_says(files, options, tmp_path, capsys):
    options = [*options, "--biographies", *files.values(), "--also", "Bundled again=bundled"]
    assert paper_table_1.main(options) == 0
    shown = capsys.readouterr().out
    own = {name: str(tmp_path / "runs" / f"{GENERATOR}-{name}-signals.parquet") for name in files}
    trained = {
        value(words, "--data"): value(words, "--train")
        for words in commands(shown)
        if words[0] == "evaluate" and "--train" in words
    }
    assert trained == {own["FS"]: own["F-100"], own["F-100"]: own["FS"], own["F-100-anti"]: own["FS"]}
    made = [value(words, "--output") for words in commands(shown) if words[0] == "features"]
    assert len(set(made)) == len(made) == 6  # each file once with each of two aligners
    lines = [line.strip("| ").split(" | ") for line in shown[shown.index("| sentence AUROC") :].splitlines()]
    assert lines[0][1:] == ["FS", "F-100", "F-100-anti", "Average"]
    rows = {line[0]: line[1:] for line in lines[2:]}
    trained = ["SynCheck-LR", "SynCheck-XGB", "SynCheck-MLP", "LR and XGB"]
    assert list(rows) == ["Bundled again", "FLARE", "the aligner", *trained]
    assert rows["Bundled again"] == rows["the aligner"]
    for system, column in (("FLARE", "min_prob"), ("the aligner", "align_score")):
        expected = []
        for path in own.values():
            measured = read_parquet(path)
            values = measured.values[:, measured.schema.names.index(column)]
            expected.append(roc_auc_score(labelled_set(measured, "paper").y, values))
        assert rows[system] == [f"{auroc:.3f}" for auroc in (*expected, fmean(expected))]


def test_what_is_measured(files, options, tmp_path, monkeypatch):
    """With the published prompts and LID, labelled by propositions; nothing of RAGTruth is asked for."""
    monkeypatch.setattr(paper_table_1, "evaluate", lambda test, how: {"FLARE": (0.5, None)})
    assert paper_table_1.main([*options, "--biographies", files["FS"], files["F-100"]]) == 0
    measured = read_parquet(tmp_path / "runs" / f"{GENERATOR}-F-100-signals.parquet")
    assert measured.schema.version == "paper.v1" and {r.task for r in measured.records} == {"F-100"}
    assert {r.generator for r in measured.records} == {GENERATOR}
    assert [r.group for r in measured.records] == list(FAMOUS_PEOPLE)
    assert measured.records[0].prompt_with_context.endswith("Tell me a bio of Ada Lovelace.\n\n### Response:")
    assert labelled_set(measured, "paper").y.tolist() == [1, 0] * len(FAMOUS_PEOPLE)


def labels_of(options):
    return paper_table_1.biographies.labelled_files(paper_table_1.read_options(options))


def test_labels_are_made_once_and_anew_for_another_file_or_judge(files, options, tmp_path, monkeypatch):
    judged = []

    def models(args, aligner):
        def judge(passages, propositions):
            judged.append(passages[0].partition("\n")[0])
            return ["born" in proposition for proposition in propositions]

        return lambda text: text.split(". "), judge

    monkeypatch.setattr(paper_table_1.biographies, "proposition_models", models)
    (tmp_path / "runs").mkdir()
    for name, people in (("FS", UNKNOWN_PEOPLE), ("F-100", FAMOUS_PEOPLE)):
        write_biographies(tmp_path / f"{name}.jsonl", people, propositions=None)
    options = [*options, "--biographies", files["FS"], files["F-100"], "--propositioner", "rules", "--judge"]
    first = labels_of([*options, "autoais:a"])
    assert judged == [*UNKNOWN_PEOPLE, *FAMOUS_PEOPLE]
    assert labels_of([*options, "autoais:a"]) == first and len(judged) == 9
    write_biographies(tmp_path / "F-100.jsonl", ("Ada Lovelace", "Marie Curie"), propositions=None)
    again = labels_of([*options, "autoais:a"])
    assert again["FS"] == first["FS"] and again["F-100"] != first["F-100"]
    assert judged[9:] == ["Marie Curie"]
    labels_of([*options, "autoais:b"])
    assert judged[10:] == [*UNKNOWN_PEOPLE, "Ada Lovelace", "Marie Curie"]
    assert not list((tmp_path / "runs").glob("*.unfinished"))


def test_kept_labels_are_those_of_the_biographies(files, options, tmp_path):
    (tmp_path / "runs").mkdir()
    kept = labels_of([*options, "--biographies", files["FS"], files["F-100"]])
    expected = load_biographies(tmp_path / "FS.jsonl", prompts="task")
    assert load_records(kept["FS"], carry_labels=True) == [replace(r, generator=GENERATOR, task="FS") for r in expected]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "expected --ragtruth, --biographies or both; found neither"),
        (["--biographies", "FS=a"], "what is tested on FS is trained on F-100; give its file too"),
        (["--biographies", "FS=a", "F-100-anti=b"], "what is tested on FS is trained on F-100"),
        (["--biographies", "FS=a", "F-100=b", "FS=c"], "expected each name once, found FS, F-100, FS"),
        (["--biographies", "F100=a"], "expected NAME=FILE with a NAME of FS, F-100, F-100-anti; found 'F100=a'"),
        (["--biographies", "FS"], "found 'FS'"),
        (["--biographies", "FS=a", "F-100=b", "--tasks", "QA"], "--tasks are of RAGTruth"),
        (["--ragtruth", "d", "--judge", "j"], "biographies"),
        (["--ragtruth", "d", "--propositioner", "rules"], "biographies"),
        (
            [
                "--biographies",
                "FS=a",
                "F-100=b",
                "--judge",
                "minicheck:m",
                "--also",
                "M=minicheck:m --aligner-mode bin",
            ],
            "minicheck:m",
        ),
        (["--biographies", "FS=a", "F-100=b", "--judge", "bundled"], "bundled"),
    ],
)
def test_options_that_do_not_go_together(options, capsys, given, said):
    with pytest.raises(SystemExit) as caught:
        paper_table_1.read_options([*options, *given])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("people", "more", "said"),
    [
        (("Ada Lovelace", "Angus Scott"), {}, "Lovelace"),
        (("Angus Scott",), {"generator": "gpt-4"}, "gpt-4"),
        (("Angus Scott",), {"propositions": None}, "--propositioner"),
        (("Angus Scott",), {"ctxs": []}, "ctxs"),
    ],
)
def test_unusable_files_stop_it_before_anything_is_measured(files, options, tmp_path, people, more, said):
    write_biographies(tmp_path / "FS.jsonl", people, **more)
    with pytest.raises(SystemExit, match=said):
        paper_table_1.main([*options, "--biographies", *files.values()])
    assert not list((tmp_path / "runs").glob("*.parquet"))


def test_people_of_the_two_files_may_be_the_same_where_neither_trains_for_the_other(files, options, tmp_path):
    (tmp_path / "runs").mkdir()
    kept = labels_of([*options, "--biographies", *files.values()])
    assert list(kept) == ["FS", "F-100", "F-100-anti"]
    assert {r.group for r in load_records(kept["F-100"])} == {r.group for r in load_records(kept["F-100-anti"])}


def documented():
    """Words of the commands that make the biographies, in the section about Table 1."""
    text = (ROOT / "docs" / "training.md").read_text().split("The biographies are the model's own")[1]
    return [shlex.split(line)[1:] for line in text.split("```")[1].splitlines() if re.match(r"\$ [^#]", line)]


@pytest.mark.slow
def test_the_documented_way_to_a_models_biographies(tmp_path, monkeypatch):
    """As it stands, but for the model, of the same name, and fewer people and tokens."""
    monkeypatch.chdir(tmp_path)
    Path("meta-llama").mkdir()
    shutil.copytree(GOLDEN, "meta-llama/Llama-2-7b-chat-hf")
    passages = [{"title": name, "text": f"{name} was a player."} for name in FAMOUS_PEOPLE]
    Path("passages.jsonl").write_text("".join(json.dumps(passage) + "\n" for passage in passages))
    Path("names.txt").write_text("\n".join(FAMOUS_PEOPLE))
    build = runpy.run_path(str(ROOT / "examples" / "f100.py"))["main"]
    requests, generate, biographies = documented()
    build([*requests[2:], "--entities", "names.txt"])
    words = ["cpu" if word == "cuda" else word for word in generate[1:]]
    assert main([*words, "--max-new-tokens", "4"]) == 0
    build([*biographies[2:], "--entities", "names.txt"])
    answers = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
    found = load_biographies("llama-f100.jsonl", propositioner=lambda text: (), prompts="task")
    assert [(r.group, r.response, r.generator) for r in found] == [
        (name, answer["response"], GENERATOR) for name, answer in zip(FAMOUS_PEOPLE, answers, strict=True)
    ]
    asked = [json.loads(line)["prompt_with_context"] for line in Path("f100.jsonl").read_text().splitlines()]
    assert [r.prompt_with_context for r in found] == asked
