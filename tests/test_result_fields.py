"""docs/results.md lists the fields that are written: their names, types, and which may be null."""

import dataclasses
import json
import re
from typing import get_args

import pytest
from boundaries import ROOT
from copying import MODEL

from fod.search import StopReason as SearchStopReason
from syncheck import Event, load_kit
from syncheck.cli import main
from syncheck.decoding import StopReason

PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.M | re.S))
PASSAGE = "The Avon bridge opened in 1967. It has two lanes."
RECORD = {"id": "1", "question": "When did the bridge open?", "context": PASSAGE, "response": PASSAGE + " It has six."}
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "list": list, "object": dict}
IN_REPORTS = ("attribution", "latency_ms", "relevance", "truncated")


def rows(section):
    """Return the cells of each row of a section's table, by the name in its first cell."""
    found = re.findall(r"^\| `(\w+)` \| (.*) \|$", SECTIONS[section], flags=re.M)
    return {name: [cell.strip() for cell in cells.split(" | ")] for name, cells in found}


def check(values, section, *, without=()):
    table = {name: cells for name, cells in rows(section).items() if name not in without}
    assert set(values) == set(table)
    for name, value in values.items():
        kind = table[name][0].replace("[", "").split(" ")[0].rstrip(":s")
        if value is None:
            assert table[name][-1] not in ("never", ""), name
        elif kind in TYPES:
            assert isinstance(value, TYPES[kind]) and (kind == "boolean") == isinstance(value, bool), name
        for inner in value if isinstance(value, list) else [value]:
            named = re.search(r"objects?(?: with|:) ([`\w, ]+)", table[name][0])
            if isinstance(inner, dict) and named:
                assert set(inner) == set(re.findall(r"\w+", named[1])), name


def lines_of(tmp_path, *words):
    (tmp_path / "records.jsonl").write_text(json.dumps(RECORD), encoding="utf-8")
    output = tmp_path / "output.jsonl"
    assert main([words[0], "--input", str(tmp_path / "records.jsonl"), "--output", str(output), *words[1:]]) == 0
    (line,) = map(json.loads, output.read_text(encoding="utf-8").splitlines())
    return line


def test_a_line_of_score(tmp_path):
    line = lines_of(tmp_path, "score", "--model", str(MODEL), "--tokens", "--spans")
    check(line, "A line of `syncheck score`", without=("after_end", "reasoning"))
    check(line["sentences"][-1], "A sentence", without=IN_REPORTS)
    check(line["tokens"][0], "A token")


def test_a_report():
    monitor = load_kit("generic")
    given = {"question": RECORD["question"], "passages": PASSAGE}
    report = monitor.check(**given, answer=RECORD["response"]).to_dict()
    check(report, "A report")
    check(report["sentences"][-1], "A sentence")


@pytest.mark.slow
@pytest.mark.parametrize("decoder", ["greedy", "fod", "fod-backtrack", "abstain", "best-of-n", "rerank", "cad"])
def test_a_line_of_generate(tmp_path, decoder):
    line = lines_of(tmp_path, "generate", "--decoder", decoder, "--max-new-tokens", "20")
    check(line, "A line of `syncheck generate`", without=("trace",) * (decoder == "greedy"))
    told = rows("A trace")
    for name, value in line.get("trace", {}).items():
        kind = told[name][0].split(" ")[0].rstrip(":")
        assert isinstance(value, TYPES[kind.rstrip(",")]), name
        assert told[name][1] in ("all", "those that abstain", "those with thresholds") or decoder in told[name][1]


def test_each_reason_to_stop_is_listed():
    reasons = {
        *get_args(StopReason),
        *get_args(SearchStopReason),
        "below_threshold",
        "abstained",
        "quoted",
    }
    assert set(rows("Why an answer ended")) == reasons


@pytest.mark.parametrize("event", get_args(Event), ids=lambda event: event.__name__)
def test_each_event_is_listed_with_its_fields(event):
    kind, told = rows("Events")[event.__name__]
    *others, last = dataclasses.fields(event)
    assert kind == f"`{last.default}`"
    names = [field.name for field in others]
    assert [name for name in re.findall(r"`(\w+)`", told) if name in names] == names
