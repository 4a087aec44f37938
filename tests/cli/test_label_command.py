"""``syncheck label``: keys, a file that loses nothing, the page, and what calibrate makes of it."""

import io
import json
import re
import shutil
import subprocess

import pytest
from browser import needs_chromium, page
from command_runs import read, write

from syncheck import Aggregator
from syncheck.cli import main
from syncheck.labelling import load_jsonl, load_unlabelled

ANSWERS = [
    {
        "id": f"r{i}",
        "question": f"Who opened the bridge of {1900 + i}?",
        "context": [f"The bridge was opened in {1900 + i} by Anna Kovac. It carries {i + 3} trams."],
        "response": f"Anna Kovac opened it in {1900 + i}. It carries {i + 3 + 5 * (i % 2)} trams.",
    }
    for i in range(6)
]


@pytest.fixture
def source(tmp_path):
    return write(tmp_path / "answers.jsonl", *ANSWERS)


def label(source, output, keys, monkeypatch, *options):
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(keys)))
    return main(["label", source, "--output", str(output), *options])


def labels(path):
    return [one for record in read(path) for one in record["labels"] if one is not None]


def held_by(page):
    """The data of a page."""
    text = page.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.S)
    return json.loads(data)


def test_keys(source, tmp_path, monkeypatch, capsys):
    output = tmp_path / "labels.jsonl"
    assert label(source, output, ["s", "k", "what", "n", "u", "p", "s", "q"], monkeypatch) == 0
    assert labels(output) == [1, 1] and len(read(output)) == 6
    shown = capsys.readouterr()
    assert "The bridge was opened in" in shown.out and ">> " in shown.out
    assert "-- 1 of 12 --" in shown.out
    assert "2 new labels, 2 in all" in shown.err
    assert label(source, output, ["n", "n"], monkeypatch) == 0
    assert sorted(labels(output)) == [0, 0, 1, 1]
    assert label(source, output, ["n"] * 20, monkeypatch, "--count", "1") == 0
    assert len(labels(output)) == 5


def test_a_sentence_that_claims_nothing_is_labelled_so_and_asked_once(source, tmp_path, monkeypatch, capsys):
    output = tmp_path / "labels.jsonl"
    assert label(source, output, ["c", "u", "c", "s"], monkeypatch, "--count", "2") == 0
    assert sorted(labels(output), key=str) == [1, "no claim"]
    assert label(source, output, ["q"], monkeypatch) == 0
    assert "-- 1 of 10 --" in capsys.readouterr().out


def test_words_that_are_not_supported_are_marked_and_kept(source, tmp_path, monkeypatch, capsys):
    output = tmp_path / "labels.jsonl"
    keys = ["m", "Bela", "m", "Kovac  opened", "m", "it", "n", "m", "Anna", "s", "q"]
    assert label(source, output, keys, monkeypatch) == 0
    shown = capsys.readouterr().out
    assert "expected words of the sentence 'Anna Kovac opened it in" in shown and "found 'Bela'; write them" in shown
    assert "marked, for [n]ot: 'Kovac  opened', 'it'" in shown
    assert sorted(labels(output)) == [0, 1]
    (spans,) = [record["spans"] for record in read(output) if "spans" in record]
    assert [span["text"] for span in spans] == ["Kovac opened", "it"]
    assert label(source, output, ["n"], monkeypatch, "--count", "1") == 0
    assert [record["spans"] for record in read(output) if "spans" in record] == [spans]


def test_two_readers(source, tmp_path, monkeypatch, capsys):
    """The second labels what the first did, without seeing it, and their labels are joined."""
    first, second, both = (tmp_path / f"{name}.jsonl" for name in ("first", "second", "both"))
    assert label(source, first, ["s", "n", "c", "s", "n"], monkeypatch) == 0
    html = tmp_path / "label.html"
    assert main(["label", str(first), "--html", str(html)]) == 0
    assert {one for record in held_by(html)["records"] for one in record["labels"]} == {None}
    capsys.readouterr()
    assert label(str(first), second, ["s", "m", "Kovac", "n", "c", "n", "k", "s"], monkeypatch) == 0
    shown = capsys.readouterr().out
    assert "-- 1 of 12 --" in shown and not re.search(r"score|0\.\d|first", shown)
    assert main(["label", str(first), "--second", str(second), "--output", str(both)]) == 0
    shown = capsys.readouterr()
    table = [line.split() for line in shown.out.splitlines()]
    assert table[0] == ["label", "first", "second", "both", "agreement", "kappa"]
    assert ["unfaithful", "1", "2", "1", "0.67", "0.50"] in table and table[-1] == [
        "all",
        "4",
        "4",
        "3",
        "0.75",
        "0.64",
    ]
    assert "4 sentences read twice, 1 disagreement, which no training uses" in shown.err
    assert "2 sentences labelled by one reader alone: without a label" in shown.err
    assert sorted(labels(both), key=str) == [0, 1, [1, 0], "no claim"]
    assert [span["text"] for record in read(both) for span in record.get("spans", ())] == ["Kovac"]
    assert main(["label", str(first), "--second", str(second), "--output", str(both)]) == 2
    assert main(["label", str(first), "--second", str(second), "--html", str(tmp_path / "x.html")]) == 2
    shown = capsys.readouterr().err
    assert "would be lost" in shown and "--html would have no effect" in shown


def test_whole_answers_alone_are_written_in_random_order(source, tmp_path, monkeypatch):
    output = tmp_path / "labels.jsonl"
    assert label(source, output, ["s", "n", "s", "n"], monkeypatch, "--order", "random", "--count", "4") == 0
    assert [record["labels"] for record in read(output)] == [[1, 0], [1, 0]]


def test_labels_shift_prior_and_thresholds(source, tmp_path, monkeypatch, capsys):
    output, shifted = tmp_path / "labels.jsonl", tmp_path / "shifted"
    assert label(source, output, ["s", "s", *"nnnnnnnn"], monkeypatch, "--count", "10") == 0
    words = ["calibrate", "--monitor", "generic", "--data", str(output), "--method", "shift"]
    assert main([*words, "--output", str(shifted)]) == 2
    assert "without. Sentences that were chosen" in capsys.readouterr().err
    assert main([*words, "--risk", "none", "--thresholds", "chosen", "--output", str(shifted)]) == 0
    assert "expected faithful" in capsys.readouterr().out
    found = Aggregator.load(shifted)
    assert found.calibration.slope == 1.0 and found.calibration.intercept < 0 and found.base_rate < 0.5


def test_the_page_asks_offline(source, tmp_path, monkeypatch):
    page = tmp_path / "label.html"
    hostile = {**ANSWERS[0], "id": "h", "response": "</script><script>alert(1)</script> is in it. So is this."}
    assert main(["label", write(tmp_path / "h.jsonl", *ANSWERS, hostile), "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in text and "http" not in re.sub("http-equiv", "", text)
    assert "alert(1)</script>" not in text
    held = held_by(page)
    assert len(held["records"]) == 7 and len(held["open"]) <= 50
    first = held["open"][0]
    sentences = held["records"][first["response"]]["sentences"]
    assert sentences[first["sentence"]] == first["text"]
    # Nothing in it says how the monitor judges a sentence.
    assert held["open"][0].keys() == {"response", "sentence", "before", "text", "after", "evidence"}
    assert held["records"][0].keys() == {*ANSWERS[0], "sentences", "labels", "group", "generator"}


BROWSER = """
const store = new Map(), elements = new Map(), saved = [];
function element() {
  const held = {textContent: "", acts: {}, addEventListener(name, act) { this.acts[name] = act; }, click() {},
    replaceChildren(...children) { this.textContent = children.map((c) => c.textContent ?? c).join(""); }};
  return held;
}
globalThis.document = {
  getElementById(id) { if (!elements.has(id)) elements.set(id, element()); return elements.get(id); },
  createElement: element,
};
globalThis.localStorage = {getItem: (key) => store.get(key) ?? null, setItem: (key, text) => store.set(key, text)};
globalThis.getSelection = () => ({rangeCount: 0});
globalThis.Blob = class { constructor(lines) { saved.push(lines.join("")); } };
URL.createObjectURL = () => "blob:x"; URL.revokeObjectURL = () => {};
let pressed;
globalThis.addEventListener = (name, act) => { pressed = (key) => act({key}); };
const fs = require("fs");
const page = fs.readFileSync(process.argv[2], "utf8");
const [data, script] = [...page.matchAll(/<script[^>]*>([\\s\\S]*?)<\\/script>/g)].map((m) => m[1]);
document.getElementById("data").textContent = data;
new Function(script)();
for (const key of process.argv[3]) pressed(key);
new Function(script)();  // loaded again: the labels are kept
pressed("w");
process.stdout.write(saved.join(""));
process.exit(0);
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_page_saves_what_the_command_reads(source, tmp_path, monkeypatch):
    page, browser, output = tmp_path / "label.html", tmp_path / "browser.js", tmp_path / "labels.jsonl"
    assert main(["label", source, "--html", str(page)]) == 0
    browser.write_text(BROWSER, encoding="utf-8")
    run = subprocess.run(["node", browser, page, "snuksxnc"], capture_output=True, text=True, check=True)
    output.write_text(run.stdout, encoding="utf-8")
    assert sorted(labels(output), key=str) == [0, 1, 1, "no claim"] and len(read(output)) == 6
    assert label(source, output, ["s"], monkeypatch, "--count", "1") == 0
    assert sorted(labels(output), key=str) == [0, 1, 1, 1, "no claim"]


SELECT = """
const walk = document.createTreeWalker(document.querySelector('#answer'), NodeFilter.SHOW_TEXT);
const range = document.createRange();
for (let at = 0, node; (node = walk.nextNode()); at += node.length) {
  if (at <= START) range.setStart(node, Math.min(START - at, node.length));
  if (at + node.length >= END) { range.setEnd(node, END - at); break; }
}
getSelection().removeAllRanges();
getSelection().addRange(range);
"""
SAVED = "Blob = class { constructor(lines) { globalThis.saved = lines.join(''); } }; URL.createObjectURL = () => '#';"


@pytest.mark.slow
@needs_chromium
def test_words_selected_on_the_page_are_marked(tmp_path):
    html = tmp_path / "label.html"
    answer = {**ANSWERS[0], "response": "\U0001f5fc Anna Kovac opened it in 1900. It carries 3 trams."}
    assert main(["label", write(tmp_path / "a.jsonl", answer), "--order", "random", "--html", str(html)]) == 0
    press = "dispatchEvent(new KeyboardEvent('keydown', {key: 'KEY'}));"
    with page() as shown:
        shown.open(html.as_uri())
        text = shown.run("document.querySelector('#answer').textContent")
        assert text == answer["response"]
        for words, key in (("Anna ", "m"), ("1900. It carries", "n")):
            before = text.split(words)[0]
            start, end = (len(part.encode("utf-16-le")) // 2 for part in (before, before + words))
            shown.run(f"{{{SELECT.replace('START', str(start)).replace('END', str(end))}}} {press.replace('KEY', key)}")
        record = json.loads(shown.run(f"{{{SAVED}}} {press.replace('KEY', 'w')} saved"))
        assert not shown.errors
    assert record["labels"] == [0, None] and [span["text"] for span in record["spans"]] == ["Anna", "1900."]
    (response,) = load_jsonl(write(tmp_path / "labels.jsonl", record))
    assert [span.start for span in response.sentences[0].spans] == [2, 26]


def test_options_that_do_not_go_together(source, tmp_path, capsys):
    assert main(["label", source]) == 2
    assert main(["label", source, "--output", str(tmp_path / "a"), "--labels", str(tmp_path / "b")]) == 2
    assert "--labels needs --html" in capsys.readouterr().err


def test_answers_of_generate_take_their_questions_from_the_records(tmp_path, capsys):
    answer = {"id": 7, "response": "The bridge has two lanes.", "sentences": [{"text": "It."}], "stop": "end_of_text"}
    source = write(tmp_path / "answers.jsonl", answer, {"id": 8, "line": 2, "error": "no context"})
    records = write(tmp_path / "questions.jsonl", {"id": 7, "question": "How wide?", "context": "It has two lanes."})
    (response,) = load_unlabelled(source, asked=records)
    assert (response.id, response.question, response.passages) == ("7", "How wide?", ("It has two lanes.",))
    assert response.response == "The bridge has two lanes."
    page = tmp_path / "label.html"
    assert main(["label", source, "--html", str(page)]) == 2
    assert "were answered (--records" in capsys.readouterr().err
    assert main(["label", source, "--records", records, "--html", str(page)]) == 0
    assert "How wide?" in page.read_text(encoding="utf-8")
