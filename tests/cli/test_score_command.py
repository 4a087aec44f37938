"""``score --fail-under`` is a gate that fails closed: what could not be checked misses the threshold."""

import pytest
from command_runs import read, record, write
from doubles import BrokenAligner

from syncheck.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch, llama, make_monitor):
    """Score records with a monitor whose scores are all 0.8; returns the exit code."""

    def score(*records, threshold="0.5", options=(), aligner=None):
        monitor = make_monitor(llama, formula=lambda values: 0.8, aligner=aligner)
        monkeypatch.setattr("syncheck.cli.score.scoring_monitor", lambda args, purpose: monitor)
        source, target = write(tmp_path / "in.jsonl", *records), str(tmp_path / "out.jsonl")
        return main(["score", "--input", source, "--output", target, "--fail-under", threshold, *options])

    return score


def test_scores_decide_where_all_is_scored(run, capsys):
    assert run(record(0)) == 0
    assert capsys.readouterr().err.startswith("syncheck score: 1 answer, 2 sentences, 0.0% of 2 scored below 0.5")
    assert run(record(0), threshold="0.9") == 1
    assert "missed: 2 sentences below 0.9\n" in capsys.readouterr().err
    assert run(record(0, response="Angus Scott is a rugby player."), threshold="0.9") == 1
    assert "missed: 1 sentence below 0.9\n" in capsys.readouterr().err


def test_an_aligner_that_is_down_misses(run, capsys):
    assert run(record(0), aligner=BrokenAligner()) == 1
    shown = capsys.readouterr().err
    assert "failed" in shown
    assert "Traceback" not in shown
    assert run(record(0), aligner=BrokenAligner(), options=["--allow-unscored"]) == 0


@pytest.mark.parametrize(
    ("fields", "counted"),
    [
        ({"context": ""}, "no_context"),
        ({"context": []}, "no_context"),
        ({"response": ""}, "without"),
        ({"response": " \n"}, "without"),
        ({"response": "***"}, "without"),
    ],
    ids=str,
)
def test_what_has_no_score_misses(run, capsys, fields, counted):
    assert run(record(0), record(1, **fields)) == 1
    assert counted in capsys.readouterr().err
    assert run(record(0), record(1, **fields), options=["--allow-unscored"]) == 0


def test_a_sentence_that_says_nothing_does_not_count(run):
    assert run(record(0, response="Angus Scott is a rugby player. ***")) == 0


def test_a_phrase_of_conversation_does_not_count(tmp_path, capsys):
    bridge = {"question": "How wide is it?", "context": "The Avon bridge has two lanes."}
    greeting = {"id": 1, "response": "I hope this helps!"} | bridge
    answer = {"id": 2, "response": "The Avon bridge has two lanes. I hope this helps!"} | bridge
    command = ["score", "--output", str(tmp_path / "out.jsonl"), "--fail-under", "0.5", "--input"]
    assert main([*command, write(tmp_path / "answer.jsonl", answer)]) == 0
    assert main([*command, write(tmp_path / "greeting.jsonl", greeting)]) == 1
    assert "1 record without a sentence to check" in capsys.readouterr().err


def test_a_claim_in_bold_misses_and_labels_are_counted(tmp_path, capsys):
    """With the bundled monitor, which reads text alone."""
    sure = "The Avon bridge has two lanes."
    bridge = {"id": 1, "question": "How wide is it?", "context": "The Avon bridge has two lanes."}

    def scored(*blocks):
        response = "\n\n".join(blocks)
        source = write(tmp_path / "in.jsonl", bridge | {"response": response})
        code = main(["score", "--output", str(tmp_path / "out.jsonl"), "--fail-under", "0.5", "--input", source])
        return code, capsys.readouterr().err

    code, said = scored(sure, "**Summary**", "## Side effects")
    assert code == 0 and "--fail-under 0.5 did not check" in said and "2 with status not_a_claim" in said
    for claim in ("**Albert Einstein**", "**Take forty tablets daily**", "## Ibuprofen cures cancer"):
        code, said = scored(sure, claim)
        assert code == 1 and "missed: 1 sentence below 0.5" in said
    code, said = scored("**Summary**", "## Side effects")
    assert code == 1 and "1 record without a sentence to check" in said


@pytest.mark.parametrize("options", [[], ["--allow-unscored"]])
@pytest.mark.parametrize("looping", ["phone phone phone phone", "the " * 40, "It has two lanes. It has two lanes."])
def test_text_that_repeats_itself_misses_whatever_may_be_unscored(tmp_path, capsys, options, looping):
    bridge = {"id": 1, "question": "How wide is it?", "context": "The Avon bridge has two lanes."}
    source = write(tmp_path / "in.jsonl", bridge | {"response": f"The Avon bridge has two lanes. {looping}"})
    code = main(["score", "--output", str(tmp_path / "out.jsonl"), "--fail-under", "0.1", *options, "--input", source])
    assert code == 1 and "missed: 1 sentence repeated" in capsys.readouterr().err


def test_a_record_with_an_error_misses_and_is_bad_input(run, capsys):
    assert run(record(0), "nonsense") == 2
    assert "missed: 1 record with an error;" in capsys.readouterr().err
    assert run(record(0), "nonsense", options=["--allow-unscored"]) == 2


def test_text_after_an_end_of_text_token_is_told_and_misses(run, tmp_path, capsys):
    assert run(record(0), record(1, response="He is a player.</s> He is on the moon.")) == 1
    whole, cut = read(tmp_path / "out.jsonl")
    assert "after_end" not in whole and cut["after_end"] == "He is on the moon."
    told = capsys.readouterr().err
    assert "1 answer with text after an end-of-text token, which was not read" in told
    assert "missed: 1 record with text after an end-of-text token;" in told
    assert run(record(0, response="He is a player.</s>"), options=["--format", "human"]) == 0
    assert run(record(0, response="He is a player.</s> No."), options=["--allow-unscored"]) == 0


def test_no_record_at_all_misses(run, capsys):
    assert run() == 1
    assert "nothing to score" in capsys.readouterr().err
    assert run(options=["--allow-unscored"]) == 0


def test_what_is_allowed_does_not_hide_a_low_score(run):
    assert run(record(0), record(1, response=""), threshold="0.9", options=["--allow-unscored"]) == 1


@pytest.mark.parametrize("threshold", ["nan", "-0.1", "1.5", "inf", "half"])
@pytest.mark.parametrize("command", ["score", "spans-score --reference r --predictions p"])
def test_a_threshold_that_is_none_is_refused(threshold, command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*command.split(), f"--fail-under={threshold}"])
    assert stopped.value.code == 2
    assert "--fail-under" in capsys.readouterr().err


def test_allowing_without_a_gate_is_refused(capsys):
    assert main(["score", "--allow-unscored"]) == 2
    assert "--fail-under" in capsys.readouterr().err


def test_records_of_an_earlier_run_count(run, tmp_path, capsys):
    assert run(record(0, response=""), record(1)) == 1
    lines = (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "out.jsonl").write_bytes(lines[0])
    capsys.readouterr()
    assert run(record(0, response=""), record(1), options=["--resume"]) == 1
    assert "without" in capsys.readouterr().err


def test_relevance_is_written_beside_scores(tmp_path):
    text = "The bridge is 40 m long. It has two lanes."
    asked = record(0, question="How long is the bridge?", context=text, response=text)
    source = write(tmp_path / "in.jsonl", asked)
    plain, rated = (tmp_path / name for name in ("plain.jsonl", "rated.jsonl"))
    assert main(["score", "--input", source, "--output", str(plain)]) == 0
    assert main(["score", "--relevance", "--input", source, "--output", str(rated)]) == 0
    (before,), (after,) = read(plain), read(rated)
    first, second = (sentence.pop("relevance") for sentence in after["sentences"])
    assert first > second and after["sentences"] == before["sentences"]
