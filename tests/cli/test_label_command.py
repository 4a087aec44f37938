"""``syncheck label``: the page, two readers, and what calibrate makes of the labels."""

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


def label(source, output, given, *options):
    """Label the sentences that the page asks about, and save the records as the page does.

    ``given`` are labels in order; None skips, and words are those that are not supported.
    """
    html = output.with_suffix(".html")
    assert main(["label", str(source), "--html", str(html), *options]) == 0
    held = held_by(html)
    records = held["records"]
    for asked, one in zip(held["open"], given, strict=False):
        record = records[asked["response"]]
        if one is not None:
            record["labels"][asked["sentence"]] = 0 if isinstance(one, str) and one != "no claim" else one
        if isinstance(one, str) and one != "no claim":
            start = len(asked["before"]) + asked["text"].index(one)
            record.setdefault("spans", []).append({"start": start, "end": start + len(one), "text": one})
    kept = [r for r in records if held["whole"] or any(one is not None for one in r["labels"])]
    write(output, *kept)
    return held


def labels(path):
    return [one for record in read(path) for one in record["labels"] if one is not None]


def held_by(page):
    """The data of a page."""
    text = page.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.S)
    return json.loads(data)


def test_it_goes_on_from_earlier_labels(source, tmp_path, capsys):
    output, more = tmp_path / "labels.jsonl", tmp_path / "more.jsonl"
    held = label(source, output, [1, None, 1])
    assert len(held["open"]) == 12
    assert (
        "The bridge was opened in" in json.dumps(held["records"]) and "12 sentences to label" in capsys.readouterr().err
    )
    assert sorted(labels(output)) == [1, 1] and len(read(output)) == 6
    held = label(source, more, [0, "no claim"], "--labels", str(output), "--count", "2")
    assert len(held["open"]) == 2 and "2 sentences to label" in capsys.readouterr().err
    assert sorted(labels(more), key=str) == [0, 1, 1, "no claim"]
    assert len(label(source, output, [], "--labels", str(more))["open"]) == 8


def test_the_page_has_a_name_of_its_own(source, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["label", source]) == 0
    assert "label.html: 12 sentences to label" in capsys.readouterr().err
    assert len(held_by(tmp_path / "label.html")["open"]) == 12


def test_words_that_are_not_supported_are_kept(source, tmp_path):
    output, more = tmp_path / "labels.jsonl", tmp_path / "more.jsonl"
    label(source, output, ["it"])
    assert [span["text"] for record in read(output) for span in record.get("spans", ())] == ["it"]
    label(source, more, [0], "--labels", str(output))
    assert [record["spans"] for record in read(more) if "spans" in record] == [
        record["spans"] for record in read(output) if "spans" in record
    ]


def test_two_readers(source, tmp_path, capsys):
    """The second labels what the first did, without seeing it, and their labels are joined."""
    first, second, both = (tmp_path / f"{name}.jsonl" for name in ("first", "second", "both"))
    label(source, first, [1, 0, "no claim", 1, 0])
    held = label(first, second, [])
    assert {one for record in held["records"] for one in record["labels"]} == {None} and len(held["open"]) == 12
    assert not re.search(r"score|0\.\d|first", json.dumps(held))
    label(first, second, [1, "Kovac", "no claim", 0, None, 1])
    capsys.readouterr()
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
    assert main(["label", str(first), "--second", str(second)]) == 2
    shown = capsys.readouterr().err
    assert "would be lost" in shown and "--html would have no effect" in shown and "needs --output" in shown


def test_whole_answers_alone_are_written_in_random_order(source, tmp_path):
    output = tmp_path / "labels.jsonl"
    label(source, output, [1, 0, 1, 0], "--order", "random", "--count", "4")
    assert [record["labels"] for record in read(output)] == [[1, 0], [1, 0]]


def test_labels_shift_prior_and_thresholds(source, tmp_path, capsys):
    output, shifted = tmp_path / "labels.jsonl", tmp_path / "shifted"
    label(source, output, [1, 1, *[0] * 8], "--count", "10")
    words = ["calibrate", "--monitor", "generic", "--data", str(output), "--method", "shift"]
    assert main([*words, "--output", str(shifted)]) == 2
    assert "without. Sentences that were chosen" in capsys.readouterr().err
    assert main([*words, "--risk", "none", "--thresholds", "chosen", "--output", str(shifted)]) == 0
    assert "expected faithful" in capsys.readouterr().out
    found = Aggregator.load(shifted)
    assert found.calibration.slope == 1.0 and found.calibration.intercept < 0 and found.base_rate < 0.5


def test_the_page_asks_offline(source, tmp_path):
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
def test_the_page_saves_what_the_command_reads(source, tmp_path):
    page, browser, output = tmp_path / "label.html", tmp_path / "browser.js", tmp_path / "labels.jsonl"
    assert main(["label", source, "--html", str(page)]) == 0
    browser.write_text(BROWSER, encoding="utf-8")
    run = subprocess.run(["node", browser, page, "snuksxnc"], capture_output=True, text=True, check=True)
    output.write_text(run.stdout, encoding="utf-8")
    assert sorted(labels(output), key=str) == [0, 1, 1, "no claim"] and len(read(output)) == 6
    held = label(source, tmp_path / "more.jsonl", [1], "--labels", str(output))
    assert len(held["open"]) == 8 and sorted(labels(tmp_path / "more.jsonl"), key=str) == [0, 1, 1, 1, "no claim"]


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
    assert main(["label", source, "--output", str(tmp_path / "a")]) == 2
    assert "--output would have no effect" in capsys.readouterr().err and not (tmp_path / "a").exists()


@pytest.mark.parametrize("said", [{}, {"question": "How wide?"}], ids=["no question", "question"])
def test_answers_of_generate_take_question_and_passages_from_the_records(tmp_path, capsys, said):
    answer = {"id": 7, "response": "The bridge has two lanes.", "sentences": [{"text": "It."}], "stop": "end_of_text"}
    source = write(tmp_path / "answers.jsonl", answer | said, {"id": 8, "line": 2, "error": "no context"})
    records = write(tmp_path / "questions.jsonl", {"id": 7, "question": "How wide?", "context": "It has two lanes."})
    (response,) = load_unlabelled(source, asked=records)
    assert (response.id, response.question, response.passages) == ("7", "How wide?", ("It has two lanes.",))
    assert response.response == "The bridge has two lanes."
    page = tmp_path / "label.html"
    assert main(["label", source, "--html", str(page)]) == 2
    assert "were answered (--records" in capsys.readouterr().err
    assert main(["label", source, "--records", records, "--html", str(page)]) == 0
    assert "How wide?" in page.read_text(encoding="utf-8")
