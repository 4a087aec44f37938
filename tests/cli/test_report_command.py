"""``syncheck report`` reads what ``score`` and ``generate`` write, and what they were given."""

import numpy as np
import pytest
from command_runs import write
from pytest import approx

from syncheck.cli import main
from syncheck.cli.report import label_curves
from syncheck.corpus.records import Line
from syncheck.corpus.store import Store, table_of


def row(identity, *scores):
    sentences = [
        {"text": f"S{i}.", "start": 4 * i, "end": 4 * i + 3, "score": s, "status": "scored", "verdict": "doubtful"}
        for i, s in enumerate(scores)
    ]
    return {"id": identity, "sentences": sentences}


@pytest.fixture
def report(tmp_path):
    def draw(source, *options):
        page = tmp_path / "page.html"
        return main(["report", source, "--html", str(page), *options]), page.read_text(encoding="utf-8")

    return draw


def test_json_lines_and_a_store_give_the_same_page(report, tmp_path, capsys):
    rows = [row("a", 0.75, 0.8), row("b", 0.7)]
    lines = [Line("in.jsonl", i, b"{}") for i in (1, 2)]
    Store(tmp_path / "store", {"run": "x"}).add(0, table_of(lines, rows, ["k1", "k2"]))
    code, page = report(write(tmp_path / "scores.jsonl", *rows))
    assert code == 0
    assert "2 answers, 3 sentences" in capsys.readouterr().out
    assert report(str(tmp_path / "store")) == (0, page)


def test_one_answer_of_one_sentence_is_counted_in_the_singular(report, tmp_path, capsys):
    _, page = report(write(tmp_path / "scores.jsonl", row("a", 0.75)))
    assert "1 answer, 1 sentence:" in capsys.readouterr().out
    assert "<p>1 answer, 1 sentence." in page


def test_records_give_questions_and_labels(report, tmp_path):
    scores = write(tmp_path / "scores.jsonl", row("a", 0.75, 0.8), row("b", 0.7), row("c", 0.9), row("d", 0.9))
    fields = {"question": "Why so?", "context": "c"}
    records = [
        {"id": "a", **fields, "sentences": ["S0.", "S1."], "labels": [0, 1]},
        {"id": "b", **fields, "response": "S0.", "spans": []},
        {"id": "c", **fields, "response": "Another.", "spans": []},  # no label for what it does not say
        {"id": "d", **fields, "response": "S0."},  # nor for what nobody labelled
    ]
    code, page = report(scores, "--records", write(tmp_path / "records.jsonl", *records))
    assert code == 0
    assert "Why so?" in page
    assert "3 scored sentences have a label" in page
    assert page.count("<polyline") == 3


def test_records_without_labels_give_questions_alone(report, tmp_path, capsys):
    scores = write(tmp_path / "scores.jsonl", row("a", 0.75), row("b", 0.75))
    records = write(tmp_path / "records.jsonl", {"id": "a", "question": "Why so?", "context": "c"})
    code, page = report(scores, "--records", records)
    assert (code, "Why so?" in page, "<polyline" in page) == (0, True, False)
    assert "'b'" in capsys.readouterr().err


def test_records_that_cannot_be_used_are_listed_and_the_others_shown(report, tmp_path, capsys):
    scores = write(
        tmp_path / "s.jsonl",
        row("a", 0.75),
        row("b", 0.5),
        row(7, 0.6),
        {"id": "d", "line": 4, "error": "no context"},
        {"id": None, "line": 5, "error": "not JSON"},
    )
    fields = {"question": "Why so?", "context": "c", "response": "S0."}
    records = write(
        tmp_path / "r.jsonl",
        {"id": "a", **fields, "spans": [{"start": 0, "end": 900}]},
        {"id": "b", **fields},
        {"id": 7, **fields, "question": "Seven?"},
        {"id": "d", "question": "No context?", "response": "S0."},
        "nonsense",
        {"id": "b", **fields, "question": "A second b?"},
    )
    code, page = report(scores, "--records", records)
    told = capsys.readouterr()
    assert code == 2 and "3 answers" in told.out and "not in --records" not in told.err
    assert "Why so?" in page and "Seven?" in page and "A second b?" not in page
    assert "4 records were refused" in page  # the two without an answer count once
    assert page.count("shown without question and labels") == 2 and "900" in page


def test_lines_without_an_answer_are_on_the_page_and_bad_input(report, tmp_path, capsys):
    code, page = report(
        write(tmp_path / "s.jsonl", row("a", 0.5), {"id": "b", "line": 7, "error": "no <b>"}, "nonsense")
    )
    assert code == 2
    assert "no &lt;b&gt;" in page
    assert "2 records were refused" in page
    assert capsys.readouterr().err.count("s.jsonl:3") == 1


def test_more_errors_than_are_printed_are_counted(report, tmp_path, capsys):
    code, _ = report(write(tmp_path / "s.jsonl", row("a", 0.5), *["nonsense"] * 5))
    told = capsys.readouterr().err
    assert code == 2 and told.count("s.jsonl:") == 3 and "2 more errors" in told


def test_a_page_is_not_written_to_standard_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["report", write(tmp_path / "s.jsonl", row("a", 0.5)), "--html", "-"]) == 2
    assert "name a file" in capsys.readouterr().err and not (tmp_path / "-").exists()


def test_standard_input_is_read_once(capsys, tmp_path):
    assert main(["report", "-", "--records", "-", "--html", str(tmp_path / "page.html")]) == 2
    assert "standard input" in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert main(["report", str(tmp_path / "none.jsonl"), "--html", str(tmp_path / "page.html")]) == 2
    assert "none.jsonl" in capsys.readouterr().err


def test_curves_by_hand():
    found = label_curves(np.array([0.95, 0.85, 0.85, 0.15]), np.array([1, 1, 0, 0]))
    assert (found.sentences, found.auroc) == (4, 0.875)
    assert found.roc == [(0, 0), (0, 0.5), (0.5, 1), (1, 1)]
    assert found.risk == [(0.25, 0), (0.75, approx(1 / 3)), (1, 0.5)]
    assert found.reliability == [(approx(0.15), 0), (approx(0.85), 0.5), (approx(0.95), 1)]
