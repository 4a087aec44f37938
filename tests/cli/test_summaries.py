"""What ``score`` and ``generate`` tell a person: the summary at the end, and ``--format``."""

import io
import re

import pytest
from command_runs import ANSWER, read, record, write

from syncheck.cli import COMMANDS, EXAMPLES, main, parser
from syncheck.cli.record_runs import FORMATS, Summary

PLAIN = io.StringIO()


def row(name, *scores):
    return {
        "id": name,
        "sentences": [
            {
                "text": f" Sentence {i}\nof {name}. ",
                "start": 0,
                "end": 9,
                "score": score,
                "status": "scored" if score is not None else "not_checkable",
                "verdict": None if score is None else "supported" if score >= 0.5 else "unsupported",
                "reason": "no letter or digit" if score is None else None,
                "evidence": {"passage": 0, "text": "A  passage.", "score": 0.5},
            }
            for i, score in enumerate(scores)
        ],
    }


def test_a_summary_counts_and_names_the_worst():
    summary = Summary(0.5)
    for given in (row("a", 0.9, 0.1, None), row("b\x1b[2J", 0.4, 0.3), row(None), {"id": "c", "line": 4, "error": "x"}):
        summary.add(given)
    assert str(summary).splitlines() == [
        "3 answers, 5 sentences, 75.0% of 4 scored below 0.5, 1 without a score, 1 record with an error",
        "lowest scores:",
        "  0.10  a  Sentence 1 of a.",
        "  0.30  b\\u001b[2J  Sentence 1 of b\\u001b[2J.",
        "  0.40  b\\u001b[2J  Sentence 0 of b\\u001b[2J.",
    ]


def test_a_summary_lists_only_what_is_below_the_threshold():
    summary = Summary(0.602487)
    summary.add(row("a", 0.92, 0.61))
    assert str(summary) == "1 answer, 2 sentences, 0.0% of 2 scored below 0.602\n"
    summary.add(row("b", 0.602))
    assert str(summary).endswith("33.3% of 3 scored below 0.602\nlowest scores:\n  0.60  b  Sentence 0 of b.\n")


def test_a_summary_names_the_bundled_monitors():
    summary = Summary(0.5)
    for monitor in ("generic-reader", None, "generic-reader"):
        summary.add(row("a", 0.9) | {"monitor": monitor})
    assert str(summary) == "3 answers, 3 sentences, 0.0% of 3 scored below 0.5, monitor generic-reader\n"
    summary.add(row("a", 0.9) | {"monitor": "generic-bundled"})
    assert str(summary).endswith("monitor generic-reader and generic-bundled\n")


def test_a_threshold_just_below_1_is_not_rounded_to_it():
    summary = Summary(0.9996)
    summary.add(row("a", 0.9998))
    assert "scored below 0.9996" in str(summary)


def test_a_summary_of_nothing():
    assert str(Summary(0.5)) == "0 answers, 0 sentences\n"


def test_an_answer_as_a_block():
    assert FORMATS["human"](row("a", 0.9, 0.1, None), PLAIN).splitlines() == [
        "a",
        "  1  0.90  supported     Sentence 0 of a.",
        "  2  0.10  unsupported   Sentence 1 of a.",
        "                           nearest: “A passage.” (passage 1, support 0.50)",
        "  3    –   no score      Sentence 2 of a.",
        "                         → nothing to check: no letter or digit",
        "                           nearest: “A passage.” (passage 1, support 0.50)",
    ]
    assert FORMATS["human"]({"id": "c", "error": "no context"}, PLAIN) == "c\n  error  no context\n"


def test_a_block_without_an_answer_says_why():
    said = row("a") | {"stop": "abstained"}
    assert FORMATS["human"](said, PLAIN) == "a\n     (no answer: abstained)\n"
    assert "instead: “No.”" in FORMATS["human"](said | {"trace": {"message": "No."}}, PLAIN)
    assert FORMATS["human"](row("b"), PLAIN) == "b\n     (empty answer)\n"


def test_colour_and_escapes_are_for_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    given = row("\x9b2J", 0.9)
    coloured = FORMATS["human"](given, Terminal())
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == FORMATS["human"](given, PLAIN) != coloured
    assert "\x9b" in FORMATS["jsonl"](given, PLAIN) and "\x9b" not in FORMATS["jsonl"](given, Terminal())


@pytest.fixture
def run(tmp_path, monkeypatch, llama, make_monitor):
    monitor = make_monitor(llama, formula=lambda values: 0.25)
    monkeypatch.setattr("syncheck.cli.score.scoring_monitor", lambda args, purpose: monitor)
    source, target = write(tmp_path / "in.jsonl", record(0), record(1)), str(tmp_path / "out.txt")
    return target, lambda *options: main(["score", "--input", source, "--output", target, *options])


def test_score_writes_the_format_asked_for(run, capsys):
    target, score = run
    assert score("--format", "human") == 0
    assert "2 answers, 4 sentences" in capsys.readouterr().err
    with open(target) as file:
        assert ANSWER.partition(".")[0] in file.read()
    assert score() == 0 and len(read(target)) == 2


def test_only_json_lines_can_be_resumed(run, capsys, tmp_path):
    _, score = run
    assert score("--format", "human", "--resume") == 2
    assert "--resume" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_s_help_can_be_read(name, capsys):
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert capsys.readouterr().out.endswith(f"\nexample: syncheck {name} {EXAMPLES[name]}\n")
    assert parser().parse_args([name, *EXAMPLES[name].split()]).command == name


@pytest.mark.parametrize(
    ("name", "default"),
    [
        *((name, "('generic')") for name in ("score", "gateway", "label", "calibrate")),
        *((name, "('generation' for the kit's model, 'generic' for another)") for name in ("generate", "serve")),
        *((name, "(none; --schema says what is measured)") for name in ("features", "ablate")),
        ("evaluate", "(none; --schema says what is measured; with --cv 0, 'generic')"),
    ],
)
def test_the_help_names_the_monitor_that_a_command_takes_without_one(name, default, capsys):
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert default in " ".join(capsys.readouterr().out.split())
