"""``evaluate``, ``ablate``, ``features`` and ``train --aggregator best`` on the command line."""

import json
from dataclasses import replace

import numpy as np
import pytest
from command_runs import LLAMA, write
from measured_doubles import yes_and_no
from sklearn.metrics import balanced_accuracy_score

from syncheck import SegmenterConfig, feature_schema
from syncheck.cli import main
from syncheck.evaluation import auroc_table, benchmark_systems, held_out_scores, out_of_fold_scores
from syncheck.text.sentences import ENGLISH_ABBREVIATIONS
from syncheck.training import joined, labelled_set, read_parquet, write_parquet

KINDS = {"lr", "xgb", "mlp", "ensemble"}
COMPARED = KINDS | {"generic", "shrunk"}
FOLDS = ["--cv", "3", "--aggregator", "lr"]


def sentences(seed=0, *, responses=24, task="QA", prefix="r", shift=4.0):
    """Two sentences a response, the second unfaithful, by two generators; no LID."""
    rng = np.random.default_rng(seed)
    schema = feature_schema("syncheck.v1", ())
    values = rng.normal(size=(2 * responses, len(schema.names)))
    values[::2, schema.names.index("align_score")] += shift
    values[:, schema.names.index("content_overlap")] = rng.random(2 * responses)
    return yes_and_no(schema, values, prefix=prefix, answers_per_question=2, task=task)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "qa.parquet"
    write_parquet(sentences(), path)
    return str(path)


@pytest.fixture
def summaries(tmp_path):
    path = tmp_path / "summaries.parquet"
    write_parquet(sentences(1, task="Summary", prefix="s"), path)
    return str(path)


def labelled(count):
    for i in range(count):
        good, bad = f"Anna Kovac moved to Lisbon in 18{i:02}.", f"Peter Bell sold {i} boats in Oslo."
        spans = [{"start": len(good) + 1, "end": len(good) + 1 + len(bad)}]
        context = [good + " She opened a school."]
        question = f"Who moved in 18{i:02}?"
        record = {"id": f"r{i}", "question": question, "context": context, "response": f"{good} {bad}", "spans": spans}
        yield record | {"task": ["QA", "Summary"][i % 2]}


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "data.jsonl", *labelled(12))


def row_of_all_features(chosen, groups, **folding):
    names = chosen.measured.schema.names
    systems = [system for system in benchmark_systems(names) if system.name == "all features"]
    scores = out_of_fold_scores(
        chosen.features, chosen.y, groups, names=names, systems=systems, aggregator="lr", **folding
    )
    return auroc_table(scores, chosen.y, groups).rows[0]


def test_ablate(table, tmp_path, capsys):
    output, plot = tmp_path / "x.json", tmp_path / "x.png"
    assert main(["ablate", "--data", table, *FOLDS, "--output", str(output), "--plot", str(plot)]) == 0
    shown = capsys.readouterr().out
    found = json.loads(output.read_text())
    chosen = labelled_set(sentences(), "strict")
    expected = row_of_all_features(chosen, chosen.groups, folds=3, repeats=3, same_folds=True)
    first, *dropped = [row for row in found["strict"]["rows"] if row["subset"] == "all"]
    assert (first["system"], first["auroc"]) == ("all features", pytest.approx(expected.auroc))
    assert first["deviation"] == 0.0
    by_name = {row["system"]: row for row in dropped}
    assert set(by_name) == {
        *("without likelihood", "without entropy", "without context influence", "without aligner"),
        *("without lexical", "without question and length"),
    }
    assert min(by_name.values(), key=lambda row: row["auroc"])["system"] == "without aligner"
    assert "without aligner" in shown and f"{first['auroc']:.3f}" in shown
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_file_measured_by_another_monitor_is_refused(tmp_path, capsys):
    cut = SegmenterConfig(abbreviations=ENGLISH_ABBREVIATIONS, line_breaks="lists")
    path = tmp_path / "x.parquet"
    write_parquet(replace(sentences(), segmenter=cut), path)
    command = ["evaluate", "--model", str(LLAMA), "--data", str(path), "--set", "strict", "--cv", "3", "--repeats", "1"]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "expected abbreviations=() and line_breaks='none', found abbreviations=('Mr.', 'Mrs.'," in said
    assert "max_tokens" not in said and "Esq." not in said
    assert "Pass the --monitor, or the --schema and options for sentences, of its `syncheck features`" in said
    options = "--schema syncheck.v1 --abbreviations english --line-breaks lists"
    main([*command, *options.split()])
    assert "abbreviations=" not in capsys.readouterr().err
    assert main(["evaluate", "--data", str(path), "--set", "strict", *FOLDS, "--repeats", "1"]) == 0
    capsys.readouterr()
    train = ["train", "--model", str(LLAMA), "--data", str(path), "--output", str(tmp_path / "m")]
    assert main([*train, "--line-breaks", "none"]) == 2
    said = capsys.readouterr().err
    assert "line_breaks='lists'; found line_breaks='none'. Leave these options out" in said and "--monitor" not in said


def test_another_schema_is_named_by_its_version(table, capsys):
    assert main(["evaluate", "--model", str(LLAMA), "--data", table, "--schema", "paper-no-lid.v1"]) == 2
    said = capsys.readouterr().err
    assert "expected 'paper-no-lid.v1', found 'syncheck.v1'" in said and "Pass the --monitor, or the --schema" in said


def test_evaluate_reports_everything(data, tmp_path, capsys):
    output, plot = tmp_path / "x.json", tmp_path / "x.png"
    model = ["--model", str(LLAMA), "--data", data, "--set", "strict"]
    more = ["--seeds", "2", "--output", str(output), "--plot", str(plot)]
    assert main(["evaluate", *model, *FOLDS, *more]) == 0
    shown = capsys.readouterr().out
    found = json.loads(output.read_text())["strict"]
    everything = next(row for row in found["rows"] if row["system"] == "all features" and row["subset"] == "all")
    assert everything["auroc"] > 0.9 and everything["auprc"] > 0.9 and everything["balanced_accuracy"] > 0.8
    assert 0 <= everything["ece"] < 0.3 and everything["deviation"] == 0.0
    assert list(dict.fromkeys(row["subset"] for row in found["rows"])) == ["all", "QA", "Summary"]
    assert "balanced accuracy" in shown and plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_thresholds_of_another_file_are_chosen_without_its_labels(table, summaries, tmp_path):
    """By each system the one that is best on the training file's sentences, which trained systems score out of fold."""
    output = tmp_path / "x.json"
    files = ["--train", table, "--data", summaries, "--set", "strict"]
    assert main(["evaluate", *files, "--aggregator", "lr", "--seeds", "2", "--output", str(output)]) == 0
    rows = [row for row in json.loads(output.read_text())["strict"]["rows"] if row["subset"] == "all"]
    first, second = (labelled_set(read_parquet(path), "strict") for path in (table, summaries))
    names = first.measured.schema.names
    how = {"names": names, "systems": benchmark_systems(names), "aggregator": "lr", "repeats": 2}
    chosen_on = out_of_fold_scores(first.features, first.y, first.groups, same_folds=True, **how)
    values, labels = (
        np.concatenate(pair) for pair in ((first.measured.values, second.measured.values), (first.y,) * 2)
    )
    scores = held_out_scores(values, labels, np.arange(96) < 48, **how)
    assert [row["system"] for row in rows] == list(scores)
    for row in rows:
        found = []
        for known, tested in zip(chosen_on[row["system"]], scores[row["system"]], strict=True):
            best = max(np.unique(known), key=lambda cut: balanced_accuracy_score(first.y, known >= cut))  # noqa: B023
            found.append(balanced_accuracy_score(second.y, tested >= best))
        assert row["balanced_accuracy"] == pytest.approx(np.mean(found), abs=1e-12)
        assert row["balanced_accuracy_low"] <= row["balanced_accuracy"] <= row["balanced_accuracy_high"]


def test_a_training_file_without_enough_questions_for_thresholds(summaries, tmp_path, capsys):
    train, output = tmp_path / "few.parquet", tmp_path / "x.json"
    write_parquet(sentences(responses=8), train)
    files = ["--train", str(train), "--data", summaries, "--aggregator", "lr", "--repeats", "1", "--set", "strict"]
    assert main(["evaluate", *files, "--output", str(output)]) == 0
    rows = json.loads(output.read_text())["strict"]["rows"]
    assert {row["balanced_accuracy"] for row in rows} == {None}
    assert "--train" in capsys.readouterr().err


@pytest.mark.parametrize("elsewhere", [False, True], ids=["folds", "train"])
def test_a_signal_that_was_not_measured_is_left_out(elsewhere, tmp_path, capsys):
    files = []
    for prefix in "rs":
        measured = sentences(prefix=prefix)
        measured.values[:, measured.schema.names.index("align_score")] = np.nan
        write_parquet(measured, tmp_path / f"{prefix}.parquet")
        files.append(str(tmp_path / f"{prefix}.parquet"))
    options = ["--train", files[1]] if elsewhere else ["--cv", "3"]
    output = tmp_path / "x.json"
    command = ["evaluate", "--data", files[0], *options, "--aggregator", "lr", "--repeats", "1", "--set", "strict"]
    assert main([*command, "--output", str(output)]) == 0
    systems = dict.fromkeys(row["system"] for row in json.loads(output.read_text())["strict"]["rows"])
    everything = [system.name for system in benchmark_systems(sentences().schema.names)]
    assert list(systems) == [name for name in everything if name != "aligner, untrained"]
    assert "align_score" in capsys.readouterr().err


def test_a_file_of_several_tasks_is_divided_by_task(table, summaries, tmp_path):
    both, output = tmp_path / "both.parquet", tmp_path / "x.json"
    write_parquet(joined([read_parquet(table), read_parquet(summaries)]), both)
    assert main(["ablate", "--data", str(both), *FOLDS, "--repeats", "1", "--output", str(output)]) == 0
    rows = json.loads(output.read_text())["strict"]["rows"]
    assert list(dict.fromkeys(row["subset"] for row in rows)) == ["all", "QA", "Summary", "m", "n"]


@pytest.mark.parametrize(
    ("generators", "subsets"),
    [(("unknown",), ["all"]), (("m",), ["all", "m"]), (("m", "unknown"), ["all", "m", "unknown"])],
)
def test_sentences_of_no_known_generator_are_shown_once(table, generators, subsets, tmp_path, capsys):
    measured, path, output = read_parquet(table), tmp_path / "made.parquet", tmp_path / "x.json"
    records = [replace(r, generator=generators[i % len(generators)]) for i, r in enumerate(measured.records)]
    write_parquet(replace(measured, records=tuple(records)), path)
    assert main(["evaluate", "--data", str(path), "--set", "strict", *FOLDS, "--output", str(output)]) == 0
    rows = json.loads(output.read_text())["strict"]["rows"]
    assert list(dict.fromkeys(row["subset"] for row in rows)) == subsets
    assert capsys.readouterr().out.count("sentences, ") == len(subsets)


def test_a_trained_monitor_is_evaluated_on_a_file_of_another_run(data, tmp_path, capsys):
    """The file has no LID, having been measured without references; the monitor's own are taken."""
    features, monitor = str(tmp_path / "x.parquet"), str(tmp_path / "monitor")
    model = ["--model", str(LLAMA)]
    assert main(["features", *model, "--data", data, "--output", features]) == 0
    plot = tmp_path / "x.svg"
    command = ["train", *model, "--data", features, "--aggregator", "best", "--plot", str(plot), "--output", monitor]
    assert main(command) == 0
    shown = capsys.readouterr().out
    best = shown.rpartition("best by grouped cross-validation: ")[2].strip()
    lines = [line.split() for line in shown.splitlines()]
    found = {words[0]: float(words[1]) for words in lines if words and words[0] in COMPARED}
    assert set(found) == COMPARED and best == "generic" and found[best] == max(found.values())
    assert plot.read_text().startswith("<?xml")
    shown = []
    for source in (data, features):
        options = ["--cv", "0", "--allow-train", "--set", "strict", "--data", source]
        assert main(["evaluate", *model, "--monitor", monitor, *options]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--cv", "0", "--aggregator", "lr", "--seeds", "2"], "--aggregator, --seeds"),
        (["--allow-train"], "--allow-train"),
        (["--train", "x.parquet", "--cv", "0"], "--cv"),
        (["--train", "x.parquet", "--cv", "5", "--group", "task"], "--cv, --group"),
        (["--train", "x.parquet", "--group", "task"], "--group"),
    ],
)
def test_evaluate_refuses_options_without_effect(options, named, capsys):
    assert main(["evaluate", "--data", "x.parquet", *options]) == 2
    assert named in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--model", "nowhere", "--monitor", "nowhere", "--aligner", "x"], "--model, --monitor, --aligner"),
        (["--schema", "paper.v1"], "--schema"),
        (["--device", "cuda"], "--device"),
        (["--clauses", "--sentences-together", "2"], "--clauses, --sentences-together"),
    ],
)
def test_options_of_measuring_are_refused_where_nothing_is_measured(options, named, table, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert main(["ablate", "--data", table, *FOLDS, *options]) == 2
    assert named in capsys.readouterr().err


def test_evaluate_without_a_model_takes_none_of_its_options(table, capsys):
    assert main(["evaluate", "--data", table, *FOLDS, "--monitor", "nowhere"]) == 2
    assert "--monitor" in capsys.readouterr().err


def test_groups_are_what_is_asked_for(tmp_path):
    """Intervals are drawn over groups: over the two generators they differ from those over the questions."""
    found, output = [], tmp_path / "x.json"
    path = tmp_path / "x.parquet"
    write_parquet(sentences(shift=1.0), path)
    for group in ("source_id", "group", "generator"):
        command = ["evaluate", "--data", str(path), "--aggregator", "lr", "--cv", "2", "--repeats", "1"]
        assert main([*command, "--set", "strict", "--group", group, "--output", str(output)]) == 0
        found.append(json.loads(output.read_text())["strict"]["rows"])
    assert found[0] == found[1]
    chosen = labelled_set(sentences(shift=1.0), "strict")
    expected = row_of_all_features(chosen, chosen.measured.generators[chosen.used], folds=2, repeats=1)
    by_generator = next(r for r in found[2] if (r["system"], r["subset"]) == ("all features", "all"))
    assert by_generator["auroc"] == pytest.approx(expected.auroc)
    assert [by_generator["low"], by_generator["high"]] == pytest.approx([expected.low, expected.high])


def test_features_are_named_as_other_commands_know_them(data, tmp_path, capsys):
    assert main(["features", "--model", str(LLAMA), "--data", data, "--output", str(tmp_path / "x.txt")]) == 2
    assert ".parquet" in capsys.readouterr().err


class TestFeaturesOfAnotherModel:
    @pytest.fixture
    def measured(self, data, tmp_path):
        files = []
        for name in ("llama", "mistral"):
            files.append(str(tmp_path / f"{name}.parquet"))
            options = ["--schema", "paper-no-lid.v1", "--aligner", "none", "--output", files[-1]]
            assert main(["features", "--model", str(LLAMA.with_name(name)), "--data", data, *options]) == 0
        return files

    def test_train_no_monitor(self, measured, tmp_path, capsys):
        options = ["--schema", "paper-no-lid.v1", "--aligner", "none", "--aggregator", "lr"]
        command = ["train", "--model", str(LLAMA.with_name("mistral")), *options, "--output", str(tmp_path / "m")]
        assert main([*command, "--data", measured[0]]) == 2
        shown = capsys.readouterr().err
        assert "llama.parquet" in shown
        assert "LlamaForCausalLM" in shown and not (tmp_path / "m").exists()
        assert main([*command, "--data", measured[1]]) == 0

    def test_are_not_evaluated_as_those_of_this_model(self, measured, capsys):
        options = ["--model", str(LLAMA.with_name("mistral")), "--aligner", "none", "--schema", "paper-no-lid.v1"]
        assert main(["evaluate", "--data", measured[0], *options, *FOLDS]) == 2
        assert "another" in capsys.readouterr().err

    def test_are_not_put_together(self, measured, capsys):
        assert main(["evaluate", "--train", measured[0], "--data", measured[1], "--aggregator", "lr"]) == 2
        assert "another" in capsys.readouterr().err
