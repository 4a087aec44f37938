"""Answers become support pairs, and these labelled records that the library's own loader reads."""

import json
import lzma
import sys

import pytest
import support_records
from support_pairs import claims_of

from syncheck.labelling import LabelledSentence, UnfaithfulSpan, load_records


def test_claims_are_the_sentences_with_a_letter():
    response = "Paris is big.  It has 1. Two rivers cross it. ***"
    found = list(claims_of(response, [UnfaithfulSpan(22, 23)]))
    assert found == [("Paris is big.", 1), ("It has 1.", 0), ("Two rivers cross it.", 1)]
    assert list(claims_of("1. Big.", [])) == [("Big.", 1)] and list(claims_of("", [])) == []


@pytest.fixture
def pairs(tmp_path):
    for source in ("first", "second"):
        lines = [
            {
                "group": f"g{i // 2}",
                "context": f"{i} boats were sold in Oslo.",
                "claim": f"{i} were sold.",
                "label": i % 2,
            }
            for i in range(40)
        ]
        lines.append({"group": "g", "context": "0 boats were sold in Oslo.", "claim": "One. Two.", "label": 0})
        with lzma.open(tmp_path / f"{source}.jsonl.xz", "wt", encoding="utf-8") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


EVERY_PART = ("train", "calibrate", "test")


def test_records(pairs, tmp_path):
    found = list(support_records.support_records(pairs, per_source=3, sources=("first", "second"), parts=EVERY_PART))
    assert [r["generator"] for r in found] == ["first"] * 3 + ["second"] * 3
    output = tmp_path / "x.jsonl"
    output.write_text("".join(json.dumps(record) + "\n" for record in found))
    for given, record in zip(found, load_records(output), strict=True):
        number = int(record.id.split("-")[1])
        assert record.id == given["id"] and record.group == f"{record.generator}-g{number // 2}"
        assert record.passages == (f"{number} boats were sold in Oslo.",)
        assert record.response == f"{number} were sold."
        assert record.sentences == (LabelledSentence(0, len(record.response), bool(number % 2)),)
        assert (record.question, record.task) == ("What does the text say?", "Support")


def test_a_draw_is_the_same_whatever_the_other_sources_are(pairs):
    both = list(support_records.support_records(pairs, per_source=5, sources=("first", "second"), parts=EVERY_PART))
    alone = list(support_records.support_records(pairs, per_source=5, sources=("second",), parts=EVERY_PART))
    assert [r for r in both if r["generator"] == "second"] == alone
    other = list(support_records.support_records(pairs, per_source=5, sources=("second",), parts=EVERY_PART, seed=1))
    assert [r["id"] for r in other] != [r["id"] for r in alone]


def test_claims_of_several_sentences_and_contexts_the_aligner_knows_are_left_out(pairs):
    every = list(support_records.support_records(pairs, per_source=99, sources=("first",), parts=EVERY_PART))
    assert [r["id"] for r in every] == [f"first-{i}" for i in range(40)]
    parts = [
        list(support_records.support_records(pairs, per_source=99, sources=("first",), parts=(p,))) for p in EVERY_PART
    ]
    assert sorted(r["id"] for part in parts for r in part) == sorted(r["id"] for r in every)
    default = {r["id"] for r in support_records.support_records(pairs, per_source=99, sources=("first",))}
    assert default == {r["id"] for part in parts[1:] for r in part} != {r["id"] for r in every}


def test_the_command(pairs, tmp_path, monkeypatch, capsys):
    output = tmp_path / "x.jsonl"
    options = ["--pairs", str(pairs), "--sources", "first", "--per-source", "4", "--parts", *EVERY_PART]
    monkeypatch.setattr(sys, "argv", ["support_records.py", *options, "--output", str(output)])
    assert support_records.main() == 0
    labels = [json.loads(line)["labels"][0] for line in output.read_text().splitlines()]
    assert f" {labels.count(0)} not" in capsys.readouterr().out
