"""Records that were refused stand on the page of a command: how many, which and why."""

import io
import json
from pathlib import Path

from command_runs import LLAMA, write
from test_html import Page

from syncheck.cli import main

ITEM = {"id": "good", "lang": "EN", "model_input": "When?", "model_output_text": "In 1950."}
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


def test_the_refused_of_a_folder_stand_under_their_files(tmp_path):
    folder, page = tmp_path / "in", tmp_path / "page.html"
    folder.mkdir()
    write(folder / "en.jsonl", ITEM, "[1", {"id": "<b>bad</b>", "lang": "EN"})
    write(folder / "fi.jsonl", "", ITEM | {"id": 7}, ITEM | {"id": "other"})
    command = ["spans", "--method", "mark-all", "--input", str(folder), "--output", str(tmp_path / "out")]
    assert main([*command, "--html", str(page)]) == 2
    found = drawn(page)
    assert "3 records" in shown(found)
    assert [row for row in found.rows if row] == [
        ["2", "–", "not JSON in UTF-8: Expecting ',' delimiter: line 1 column 3 (char 2)"],
        ["3", "<b>bad</b>", "field 'model_output_text': missing; expected a string; found 'id', 'lang'"],
        ["2", "7", "field 'id': expected a string, found 7"],
    ]
    assert f"{folder / 'en.jsonl'}: 2" in found.text("caption")
    assert f"{folder / 'fi.jsonl'}: 1" in found.text("caption")
    assert ("a", "href", "#refused") in found.attributes
    assert found.values("id")[-1] == "refused"
    assert "script" not in found.tags


def test_a_response_that_could_not_be_scored_stands_on_the_page(tmp_path, monkeypatch, capsys):
    source = write(tmp_path / "in.jsonl", RESPONSE, RESPONSE | {"id": "bad", "context": 3})
    monkeypatch.setattr("sys.stdin", io.StringIO(Path(source).read_text(encoding="utf-8")))
    page = tmp_path / "page.html"
    assert main(["score", "--model", str(LLAMA), "--aligner", "none", "--html", str(page)]) == 2
    found = drawn(page)
    assert "1 record" in shown(found)
    (row,) = [row for row in found.rows if row[:2] == ["2", "bad"]]
    assert row[2] == json.loads(capsys.readouterr().out.splitlines()[1])["error"]
    assert "standard input: 1" in found.text("caption")


def test_a_page_without_refused_records_says_nothing_of_them(tmp_path):
    source, page = write(tmp_path / "in.jsonl", ITEM), tmp_path / "page.html"
    command = ["spans", "--method", "mark-all", "--input", source, "--output", str(tmp_path / "out")]
    assert main([*command, "--html", str(page)]) == 0
    assert "refused" not in shown(drawn(page))


def test_a_page_of_refused_records_only_says_that_nothing_is_left(tmp_path):
    source, page = write(tmp_path / "in.jsonl", "nonsense"), tmp_path / "page.html"
    tails = {"spans": ["--method", "mark-all"], "score": ["--model", str(LLAMA), "--aligner", "none"]}
    for command, options in tails.items():
        files = ["--input", source, "--output", str(tmp_path / "out"), "--html", str(page)]
        assert main([command, *options, *files]) == 2
        assert "refused" in shown(drawn(page))
