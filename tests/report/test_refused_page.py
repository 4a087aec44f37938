"""Records that were refused stand on the page of a command: how many, which and why."""

import io
import json
from pathlib import Path

from command_runs import LLAMA, write
from test_html import Page

from syncheck.cli import main

SCORE = ["score", "--model", str(LLAMA), "--aligner", "none"]
RESPONSE = {"id": "good", "question": "When?", "context": "In 1342.", "response": "In 1950."}


class Table(Page):
    """The rows of the page's tables, as the texts of their cells."""

    def __init__(self, source):
        self.rows = []
        super().__init__(source)

    def handle_starttag(self, tag, attrs):
        super().handle_starttag(tag, attrs)
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")

    def handle_data(self, data):
        super().handle_data(data)
        if "td" in self.open:
            self.rows[-1][-1] += data


def drawn(path):
    return Table(path.read_text(encoding="utf-8"))


def shown(page):
    return " ".join(page.text("main").split())


def test_the_refused_stand_with_their_lines(tmp_path):
    source = write(tmp_path / "in.jsonl", RESPONSE, "[1", {"id": "<b>bad</b>", "context": "One."})
    page = tmp_path / "page.html"
    assert main([*SCORE, "--input", source, "--output", str(tmp_path / "out"), "--html", str(page)]) == 2
    found = drawn(page)
    assert "2 records" in shown(found)
    broken, bad = [row for row in found.rows if row[:1] in (["2"], ["3"]) and len(row) == 3]
    assert broken == ["2", "–", "not JSON in UTF-8: Expecting ',' delimiter: line 1 column 3 (char 2)"]
    assert bad[:2] == ["3", "<b>bad</b>"] and "missing" in bad[2]
    assert f"{source}: 2" in found.text("caption")
    assert ("a", "href", "#refused") in found.attributes
    assert found.values("id")[-1] == "refused"


def test_a_response_that_could_not_be_scored_stands_on_the_page(tmp_path, monkeypatch, capsys):
    source = write(tmp_path / "in.jsonl", RESPONSE, RESPONSE | {"id": "bad", "context": 3})
    monkeypatch.setattr("sys.stdin", io.StringIO(Path(source).read_text(encoding="utf-8")))
    page = tmp_path / "page.html"
    assert main([*SCORE, "--html", str(page)]) == 2
    found = drawn(page)
    assert "1 record" in shown(found)
    (row,) = [row for row in found.rows if row[:2] == ["2", "bad"]]
    assert row[2] == json.loads(capsys.readouterr().out.splitlines()[1])["error"]
    assert "standard input: 1" in found.text("caption")


def test_a_page_without_refused_records_says_nothing_of_them(tmp_path):
    source, page = write(tmp_path / "in.jsonl", RESPONSE), tmp_path / "page.html"
    assert main([*SCORE, "--input", source, "--output", str(tmp_path / "out"), "--html", str(page)]) == 0
    assert "refused" not in shown(drawn(page))


def test_a_page_of_refused_records_only_says_that_nothing_is_left(tmp_path):
    source, page = write(tmp_path / "in.jsonl", "nonsense"), tmp_path / "page.html"
    assert main([*SCORE, "--input", source, "--output", str(tmp_path / "out"), "--html", str(page)]) == 2
    assert "refused" in shown(drawn(page))
