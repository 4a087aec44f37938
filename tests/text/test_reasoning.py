"""Reasoning before an answer that is given as text: it has no sentences, and the answer keeps its characters."""

import json

import pytest

from syncheck import Verifier
from syncheck.cli import main
from syncheck.results import Append, Retract, fold
from syncheck.testing import ScriptedAligner
from syncheck.text.markup import answer_start

PASSAGES = ["The mill opened in 1803. It has two wheels."]
ANSWER = "It opened in 1803. It has six wheels."


BEFORE = [
    "<think>It opened in 1903, or not.</think>\n\n",
    "It opened in 1903, or not. Or in 1904.\n</think>\n",
    "<think></think>",
    "</think>\n",
    " \n<Thinking>Hm. It has four wheels.</Thinking> ",
    "[THINK]It opened in 1903.[/THINK]",
    "<think>One.</think>\n<think>Two, or “<think>”.</think>\n",
    "<|begin_of_thought|>It opened in 1903.<|end_of_thought|>",
]


@pytest.mark.parametrize("before", BEFORE)
def test_an_answer_after_reasoning_is_scored_as_it_is_alone(before):
    verifier = Verifier(ScriptedAligner({}))
    alone = verifier.check(ANSWER, passages=PASSAGES).sentences
    report = verifier.check(before + ANSWER, passages=PASSAGES)
    assert [(s.text, s.score, s.verdict) for s in report.sentences] == [(s.text, s.score, s.verdict) for s in alone]
    assert report.response == before + ANSWER
    assert all(report.response[s.start : s.end] == s.text for s in report.sentences)
    assert answer_start(before + ANSWER) == len(before)
    said = f"reasoning of {len(before)} characters before the answer not scored"
    assert said in " ".join(str(report).split()) and said in report.to_html()


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"  {ANSWER}",
        'The tag is called "<think>". It opens reasoning.',
        "It ends with `</think>`. It opened in 1803.",
        "It opened in 1803. <think>It has",
        "<p>It opened in 1803.</p>",
    ],
)
def test_a_text_without_reasoning_begins_at_its_start(text):
    first, *_ = Verifier(ScriptedAligner({})).cut(text)
    assert answer_start(text) == 0 and first.start == len(text) - len(text.lstrip())


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("reveal", ["verified", "immediate"])
@pytest.mark.parametrize(
    "text", [*(before + ANSWER for before in BEFORE), f"It is old. <think>It has four.</think> {ANSWER}", "<think>Hm."]
)
def test_an_answer_that_is_watched_has_the_sentences_that_it_has_as_a_whole(text, reveal, size):
    verifier = Verifier(ScriptedAligner({"It opened in 1903, or not.": 0.1, "It has four.": 0.1}))
    whole = verifier.check(text, passages=PASSAGES)
    pieces = (text[i : i + size] for i in range(0, len(text), size))
    answer = fold(verifier.watch(pieces, passages=PASSAGES, reveal=reveal))
    assert answer.text == answer.report["response"] == text
    told = [(s["text"], s["start"], s["score"]) for s in answer.report["sentences"]]
    assert told == [(s.text, s.start, s.score) for s in whole.sentences]
    assert [(s.start, s.end) for s in answer.sentences] == [(s.start, s.end) for s in whole.sentences]
    assert not any("1903" in sentence.text or "four" in sentence.text for sentence in whole.sentences)


def test_reasoning_stops_no_watch_and_what_only_its_end_shows_is_taken_back():
    verifier = Verifier(ScriptedAligner({"It opened in 1903.": 0.1}))
    pieces = ["<think>", *f"It opened in 1903.</think> {ANSWER}"]
    opened = fold(verifier.watch(pieces, passages=PASSAGES, stop_below=0.5))
    assert opened.report["stop"] is None and len(opened.sentences) == 2
    events = list(verifier.watch(iter(f"It opened in 1903. Or 1904.</think>{ANSWER}"), passages=PASSAGES))
    assert [type(event) for event in events[1:4]] == [Append, Retract, type(events[0])]
    assert (events[2].start, events[2].reason) == (0, "it was reasoning, and no part of the answer")


@pytest.mark.parametrize("text", ["<think>It opened in 1903.", "It opened in 1903.</think>", "<think>Hm.</think>\n"])
def test_reasoning_alone_has_no_sentences(text):
    report = Verifier(ScriptedAligner({})).check(text, passages=PASSAGES)
    assert report.sentences == () and report.faithfulness is None and answer_start(text) == len(text)


def test_it_is_scored_if_it_is_given_as_sentences():
    sentences = ["<think>It opened in 1903.</think> ", "It opened in 1803."]
    report = Verifier(ScriptedAligner({})).check(sentences=sentences, passages=PASSAGES)
    assert len(report.sentences) == 2 and "before the answer" not in report.to_html()


@pytest.fixture
def scored(tmp_path, capsys):
    """Scores responses on the command line; returns the exit code, the rows and what was printed."""

    def score(*responses, options=()):
        records = [{"question": "When?", "context": PASSAGES, "response": text} for text in responses]
        given, rows = tmp_path / "given.jsonl", tmp_path / "rows.jsonl"
        given.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        code = main(["score", "--input", str(given), "--output", str(rows), "--aligner", "bundled", *options])
        return code, [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()], rows

    return score


def test_a_row_and_the_pages_say_that_it_was_not_scored(scored, capsys, tmp_path):
    before = "<think>It has six wheels.</think> "
    code, (row, plain), rows = scored(f"{before}It has two wheels.", "It has two wheels.")
    assert code == 0 and row["reasoning"] == len(before) and "reasoning" not in plain
    assert [s["text"] for s in row["sentences"]] == ["It has two wheels."]
    assert row["sentences"][0]["score"] == plain["sentences"][0]["score"]
    assert "1 answer after reasoning, which was not scored" in capsys.readouterr().err
    assert main(["report", str(rows), "--html", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"reasoning of {len(before)} characters before" in page


def test_a_gate_does_not_let_reasoning_alone_pass(scored, capsys):
    assert scored("<think>It has two wheels.", options=["--fail-under", "0.1"])[0] == 1
    assert "without a sentence to check" in capsys.readouterr().err
