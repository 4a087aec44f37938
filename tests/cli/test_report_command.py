"""``syncheck report`` reads what ``score`` and ``generate`` write."""

import pytest
from command_runs import write

from syncheck.cli import main
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


def test_questions_stand_above_the_answers(report, tmp_path):
    scores = write(tmp_path / "scores.jsonl", row("a", 0.75) | {"question": "Why so?"}, row("b", 0.75))
    code, page = report(scores)
    assert code == 0 and '["a","Why so?",' in page and '["b","",' in page


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


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert main(["report", str(tmp_path / "none.jsonl"), "--html", str(tmp_path / "page.html")]) == 2
    assert "none.jsonl" in capsys.readouterr().err
