"""No text of a question, a context or an answer steers the terminal that shows it."""

import io
import json
import sys
import unicodedata
import warnings

import numpy as np
import pytest

from syncheck import SentenceScore
from syncheck.base.errors import InputError, LeftOutWarning, MissingExtraError, RecordError
from syncheck.base.printable import printable
from syncheck.cli import main
from syncheck.cli.record_runs import process
from syncheck.evaluation import auroc_table
from syncheck.report import render_text
from syncheck.results import Answer, Case, Report
from syncheck.results.types import Evidence, RagPrompt, TokenSignals

HOSTILE = "a\x1b[2Jb\x1b]0;t\x07c\x9b31md\x9d8;;e\x9cf\u202eg\u2066h\u200fi\x7fj\bk"
"""Clears the screen, sets the window's title, colours, opens a link, reverses what follows, deletes."""
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def is_harmless(text, *, but=""):
    found = {c for c in text if unicodedata.category(c) in {"Cc", "Cs"} or unicodedata.bidirectional(c) in BIDI}
    return found | (set(text) & set("\u061c\u200e\u200f")) <= {"\n", "\t", *but}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def hostile_case():
    evidence = Evidence(0, HOSTILE, 0.5)
    scored = SentenceScore(HOSTILE, 0, 25, 0, 1, 0.2, "scored", {"min_prob": 0.1}, evidence=evidence)
    failed = SentenceScore(HOSTILE, 0, 25, 0, 1, None, "failed", {}, reason=f"aligner said {HOSTILE}")
    prompt = RagPrompt(HOSTILE, (HOSTILE,), "with", "without", (1, 2), (1,))
    tokens = TokenSignals(HOSTILE, np.empty(0, np.int64), np.empty((0, 2), np.int64), *[np.empty(0, np.float32)] * 4)
    report = Report(prompt, HOSTILE, (scored, failed), tokens)
    return Case(HOSTILE, (HOSTILE,), (Answer(HOSTILE, report, dropped=(scored,)),))


def test_all_that_steers_a_terminal_is_written_out():
    assert not is_harmless(HOSTILE)
    assert is_harmless(printable(HOSTILE))
    assert is_harmless(printable("".join(map(chr, range(0x110000)))))
    assert printable("\x1b[0m \ud800\n\tDr. Žižek, 東京, שלום") == "\\u001b[0m \\ud800\n\tDr. Žižek, 東京, שלום"
    assert printable(printable(HOSTILE)) == printable(HOSTILE)
    assert json.loads(printable(json.dumps(HOSTILE, ensure_ascii=False))) == HOSTILE


@pytest.mark.parametrize("colour", [False, True])
def test_the_report_for_a_terminal(colour):
    drawn = render_text([hostile_case()], colour=colour)
    assert "a\\u001b[2Jb" in drawn
    for code in ("0m", "1m", "2m", "38;5;33m", "38;5;74m", "38;5;214m", "38;5;202m"):
        drawn = drawn.replace(f"\x1b[{code}", "")
    assert is_harmless(drawn)
    assert is_harmless(str(hostile_case().answers[0].report)) and is_harmless(repr(hostile_case()))


@pytest.mark.parametrize(
    "error",
    [
        InputError(HOSTILE),
        MissingExtraError(HOSTILE, HOSTILE),
        RecordError(HOSTILE, source=HOSTILE, line=1, field=HOSTILE),
        LeftOutWarning(HOSTILE),
    ],
)
def test_messages(error):
    assert is_harmless(str(error)) and "a\\u001b[2Jb" in str(error)
    assert is_harmless(repr(error))


def test_a_warning():
    assert is_harmless(warnings.formatwarning(LeftOutWarning(HOSTILE), LeftOutWarning, "f.py", 1))


def test_json_is_written_out_on_a_terminal_alone(tmp_path, monkeypatch, capsys):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps({"id": HOSTILE}) + "\n" + json.dumps({"id": HOSTILE, "bad": 1}) + "\n")

    def work(record):
        if "bad" in record:
            raise InputError(HOSTILE)
        return {"text": HOSTILE}

    monkeypatch.setattr(sys, "stdout", Terminal())
    process(str(source), "-", work)
    shown = sys.stdout.getvalue()
    process(str(source), str(target), work)
    assert is_harmless(shown) and is_harmless(capsys.readouterr().err)
    assert [json.loads(line) for line in shown.splitlines()] == [
        json.loads(line) for line in target.read_text().split("\n") if line
    ]
    assert "\x9b31m" in target.read_text()  # a file gets the text as it is


def test_tables():
    table = auroc_table({HOSTILE: np.array([[0.1, 0.9]])}, [0, 1], ["a", "b"], by={"task": [HOSTILE, HOSTILE]}, draws=2)
    assert is_harmless(table.to_text())


def test_a_question_on_the_command_line(tmp_path, capsys):
    passages = tmp_path / "passages.txt"
    passages.write_text(f"Anna moved to Lisbon. {HOSTILE}")
    given = ["--question", f"Who moved? {HOSTILE}", "--context", str(passages), "--report", str(tmp_path / "r.html")]
    assert main(["demo", *given, "--max-new-tokens", "8"]) == 0
    shown = capsys.readouterr()
    assert "Who moved?" in shown.out
    assert is_harmless(shown.out) and is_harmless(shown.err, but="\r")  # a progress bar goes back to its line's start
