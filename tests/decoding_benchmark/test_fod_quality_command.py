"""The comparison of decoders end to end: made-up prompts, a judge that counts words."""

import json
import sys
from dataclasses import replace

import fod_quality
import pytest
import quality_bench
from decoding import AnswerLog

from syncheck.base.errors import InputError, MismatchError, PromptError, RecordError
from syncheck.testing import WordAligner

PROMPTS = [
    {
        "id": "river",
        "task": "Nature",
        "question": "Where does the Lorn rise?",
        "context": [
            "The Lorn is a river. It rises in the hills of Arbel and runs for 31 kilometres.",
            "Arbel is hilly.",
        ],
    },
    {
        "question": "Who built the tower of Mirath?",
        "task": "People",
        "context": "The tower of Mirath was built by Ana Velt in 1743. She was born in Mirath.",
    },
]
ROWS = ["Greedy", "CAD", "CAD (passing)", "Abstention", "Abstention (as many)", "Abstention (as branch)"]
ROWS += ["Reranking", "Reranking (Likelihood)", "Reranking (Aligner)"]
ROWS += ["Best of 2", "FOD (BT)", "FOD (Full)", "FOD (branch)"]


class WordJudge(WordAligner):
    """Another name than the monitor's aligner."""

    name = "words"


@pytest.fixture(scope="module", autouse=True)
def command():
    """The double for the judge, and few sizes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quality_bench, "load_aligner", lambda name, device: None if name == "none" else WordJudge())
        patch.setattr(fod_quality, "BEAM_SIZES", (1,))
        patch.setattr(fod_quality, "SAMPLE_SIZES", (2,))
        yield


@pytest.fixture
def run(tmp_path, monkeypatch):
    def started(*options, prompts=PROMPTS, judge="words"):
        source = tmp_path / "mine.jsonl"
        source.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
        fixed = ["--prompts", str(source), "--output", str(tmp_path / "log.jsonl"), "--judge", judge, "--workers", "1"]
        small = ["--max-new-tokens", "16", "--best-of", "2", "--samples-per-step", "2"]
        monkeypatch.setattr(sys, "argv", ["fod_quality.py", *fixed, *small, *options])
        fod_quality.main()

    return started


def _sampled(lines, key):
    return [line["answers"][0]["answer"]["sampled_tokens"] for line in lines if line["key"] == key]


@pytest.mark.slow
def test_a_run_prints_its_tables_and_goes_on_where_it_stood(run, tmp_path, capsys, monkeypatch):
    log = tmp_path / "log.jsonl"
    run()
    shown = capsys.readouterr().out
    assert shown.startswith("2 prompts, the kit; judge words; propositions by rules, not decontextualised")
    table = [line for line in shown.splitlines() if line]
    start = next(i for i, line in enumerate(table) if line.startswith("Method"))
    assert table[start - 1].split() == ["Nature", "People", "Average"]
    assert table[start].split() == ["Method", *["Faith.", "Info."] * 3]
    assert [line[:22].rstrip() for line in table[start + 1 : start + 1 + len(ROWS)]] == ROWS
    assert "faithfulness@5" in shown and "kept" in shown and "decoded" in shown
    assert "min(tau_1, tau_2)" in shown

    settings, *lines = map(json.loads, log.read_text().splitlines())
    assert settings["settings"]["judge"] == "words" and settings["settings"]["propositions"] == "rules"
    keys = {line["key"] for line in lines}
    (reranked,) = keys - {*ROWS}
    assert {line["prompt"] for line in lines} == {"river", "mine:2"} and len(lines) == 2 * len(keys)
    tokens = {key: _sampled(lines, key) for key in keys}
    assert sum(tokens[reranked]) >= sum(tokens["FOD (Full)"]) and min(tokens["Greedy"]) > 0

    whole = log.read_bytes()
    added = []
    add = AnswerLog.add
    monkeypatch.setattr(AnswerLog, "add", lambda self, key, *rest: (added.append(key), add(self, key, *rest))[1])
    run()
    assert (added, log.read_bytes()) == ([], whole) and capsys.readouterr().out == shown
    log.write_bytes(whole[:-30])  # killed while the last answer was written
    run()
    assert added == [lines[-1]["key"]] and capsys.readouterr().out.splitlines()[5:9] == shown.splitlines()[5:9]

    added.clear()
    run("--sweep")
    assert added == ["FOD K=1 S=2"] * 2  # K=2 S=2 is the FOD of the table
    assert "FOD by K:" in (swept := capsys.readouterr().out) and "FOD by S:" in swept
    with pytest.raises(MismatchError, match="decoding"):
        run("--seed", "1")
    align = WordJudge.align
    with monkeypatch.context() as trained_anew:
        trained_anew.setattr(WordJudge, "align", lambda *given: [replace(s, score=0.5) for s in align(*given)])
        with pytest.raises(MismatchError, match="judge_says"):
            run()
    with pytest.raises(MismatchError, match="river"):
        run(prompts=[PROMPTS[0] | {"question": "Where does the Lorn end?"}])


@pytest.mark.slow
def test_a_prompt_that_does_not_fit_is_named(run):
    with pytest.raises(PromptError, match="window"):
        run(prompts=[PROMPTS[0] | {"context": "word " * 5000}])


@pytest.mark.slow
def test_a_judge_that_is_the_monitors_or_none_is_refused(run, monkeypatch):
    with pytest.raises(InputError, match="none"):
        run(judge="none")
    monkeypatch.setattr(WordJudge, "name", "bundled")
    with pytest.raises(InputError, match="bundled"):
        run()


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ([{"context": "x"}], "question"),
        ([{"question": "q"}], "missing"),
        ([{"question": "q", "context": [" "]}], "passage"),
        ([{"question": "q", "context": ["x", 3]}], r"context\[1\]"),
        ([PROMPTS[0], PROMPTS[0]], r"mine\.jsonl:2"),
    ],
)
def test_prompts_that_cannot_be_used_are_named(run, prompts, message):
    with pytest.raises(RecordError, match=message):
        run(prompts=prompts)


def test_a_file_without_prompts_and_options_that_do_not_fit_are_refused(run, capsys):
    with pytest.raises(InputError, match="record"):
        run(prompts=[])
    for options, message in (
        (("--model", "x"), "--monitor"),
        (("--sweep-plot", "x.png"), "both"),
        (("--prompts-count", "0"), "--prompts-count"),
    ):
        with pytest.raises(SystemExit):
            run(*options)
        assert message in capsys.readouterr().err


@pytest.mark.slow
def test_some_decoders_alone(run, tmp_path, capsys):
    run("--decoders", "Greedy", "CAD", "FOD (branch)", "--branch-threshold", "0.9")
    shown = capsys.readouterr().out
    assert "reranking" in shown and "Reranking" not in shown
    settings, *lines = map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines())
    assert {line["key"] for line in lines} == {"Greedy", "CAD", "FOD (branch)"}
    assert "CAD (passing)" in shown and settings["settings"]["decoding"]["branch_threshold"] == 0.9


@pytest.mark.slow
def test_the_curve_over_thresholds_and_another_judge_of_the_same_answers(run, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    log, first = tmp_path / "log.jsonl", tmp_path / "first.jsonl"
    run("--decoders", "Greedy", "CAD", "--curve", str(tmp_path / "curve.svg"), judge="other words")
    assert (tmp_path / "curve.svg").stat().st_size and "FOD (branch) alpha=0.5 tau=0.7" in capsys.readouterr().out
    log.rename(first)
    run("--decoders", "Greedy", "CAD", "--answers", str(first))
    old, new = ([json.loads(line) for line in path.read_text().splitlines()[1:]] for path in (first, log))
    assert {line["key"] for line in new} == {"Greedy", "CAD"}
    for line in new:
        (same,) = (other for other in old if (other["key"], other["prompt"]) == (line["key"], line["prompt"]))
        assert same["answers"][0]["answer"] == line["answers"][0]["answer"]
    with pytest.raises(MismatchError, match="decoding"):
        run("--decoders", "Greedy", "--answers", str(first), "--seed", "1")
