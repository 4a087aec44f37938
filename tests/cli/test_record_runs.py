"""``score`` and ``generate`` go on after a kill: the output is that of a run without one."""

import json

import pytest
from command_runs import record, write

from syncheck.cli import main

RECORDS = [record(0), "not JSON", record(1, response="He grew up."), record(2, response=""), record(3)]


@pytest.fixture(params=["score", "generate"])
def run(request, tmp_path, monkeypatch, llama, make_monitor):
    """Run a command over records; returns its exit code, its output and how many records it has worked on."""
    monitor = make_monitor(llama)
    prompts = []
    prompt = type(monitor).prompt

    def counted(self, **given):
        prompts.append(given)
        return prompt(self, **given)

    monkeypatch.setattr(type(monitor), "prompt", counted)
    loader = {"score": "scoring_monitor", "generate": "monitor_with_model"}[request.param]
    monkeypatch.setattr(f"syncheck.cli.{request.param}.{loader}", lambda args, purpose: monitor)

    def command(*options, records=RECORDS, output=None):
        target = tmp_path / "out.jsonl"
        if output is not None:
            target.write_bytes(output)
        prompts.clear()
        more = ["--max-new-tokens", "8"] if request.param == "generate" else []
        source = write(tmp_path / "in.jsonl", *records)
        code = main([request.param, "--input", source, "--output", str(target), *more, *options])
        return code, target.read_bytes(), len(prompts)

    return command


def test_cut_anywhere_it_ends_as_if_it_had_not_been(run):
    code, whole, worked = run()
    assert (code, worked) == (2, 4)
    lines = whole.splitlines(keepends=True)
    for kept in range(len(lines) + 1):
        for torn in (b"", b"{", lines[kept][:-1] if kept < len(lines) else b"{}"):
            code, found, worked = run("--resume", output=b"".join(lines[:kept]) + torn)
            assert code == 2
            assert found == whole
            assert worked == sum(b"error" not in line for line in lines[kept:])


def test_without_an_output_it_begins(run, tmp_path):
    _, whole, _ = run()
    (tmp_path / "out.jsonl").unlink()
    assert run("--resume")[1] == whole


def test_refused_records_of_an_earlier_run_are_in_the_exit_code_and_more_records_are_answered(run):
    _, two, _ = run(records=RECORDS[:2])
    code, whole, worked = run("--resume", output=two)
    assert (code, worked) == (2, 3)
    assert whole.startswith(two)


@pytest.mark.parametrize(
    ("records", "options"),
    [
        ([record(0, response="Another.", question="Another?"), *RECORDS[1:]], []),
        (RECORDS[1:], []),
        (RECORDS[:2], []),
        (RECORDS, ["--device=cpu"]),
    ],
    ids=["another record", "one less before", "fewer records", "other options"],
)
def test_what_is_not_of_this_run_is_refused_and_left_alone(run, records, options, capsys):
    _, whole, _ = run()
    if options:
        whole = b"".join(
            json.dumps(json.loads(line) | {"digest": "0" * 32}).encode() + b"\n" for line in whole.splitlines()
        )
    code, found, worked = run("--resume", records=records, output=whole)
    assert (code, found, worked) == (2, whole, 0)
    assert "cannot" in capsys.readouterr().err


def test_damage_before_the_last_line_is_refused(run, capsys):
    _, whole, _ = run()
    damaged = b"\0" * 9 + b"\n" + whole
    assert run("--resume", output=damaged)[:2] == (2, damaged)


def test_standard_output_cannot_be_gone_on_with(capsys):
    assert main(["score", "--resume"]) == 2
    assert "--output" in capsys.readouterr().err


def test_other_options_models_and_files_are_other_runs(tmp_path, llama, make_monitor):
    from syncheck.cli import parser
    from syncheck.cli.record_runs import facts_of_run

    def facts(*options, monitor):
        return facts_of_run(parser().parse_args(["score", *options]), monitor)

    monitor = make_monitor(llama)
    passages = tmp_path / "p.npz"
    passages.write_bytes(b"1")
    first = facts(monitor=monitor)
    assert first == facts("--input", "x", "--output", "y", "--resume", "--fail-under", "0.5", monitor=monitor)
    assert first != facts("--tokens", monitor=monitor)
    assert first != facts(monitor=make_monitor(llama, aligner=make_monitor(llama).aligner, template="plain"))
    of_file = facts("--lid-reference", str(passages), monitor=monitor)
    (tmp_path / "moved").mkdir()
    moved = passages.rename(tmp_path / "moved" / "p.npz")
    assert of_file == facts("--lid-reference", str(moved), monitor=monitor) != first
    moved.write_bytes(b"2")
    assert of_file != facts("--lid-reference", str(moved), monitor=monitor)
