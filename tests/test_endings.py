"""How commands end: errors of any origin in one line and exit code 2, Ctrl-C 130, a closed pipe without a word."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from command_runs import read, record, write
from test_cli import GOLDEN

from syncheck.cli import main

MODEL = ["--model", str(GOLDEN), "--aligner", "none"]


@pytest.fixture
def run(tmp_path, monkeypatch, llama, make_monitor):
    """Score records with a monitor that can be broken; returns the exit code and the rows."""
    monitor = make_monitor(llama)
    monkeypatch.setattr("syncheck.cli.score.monitor_for", lambda args, purpose: monitor)

    def score(*records):
        source, target = write(tmp_path / "in.jsonl", *records), tmp_path / "out.jsonl"
        return main(["score", "--input", source, "--output", str(target)]), read(target)

    score.monitor = monitor
    return score


def one_line(capsys):
    shown = capsys.readouterr().err.strip()
    assert "Traceback" not in shown
    assert "\n" not in shown, shown
    return shown


@pytest.mark.parametrize(
    "line",
    [
        '{"id": NaN, "question": "q", "context": "c", "response": "r"}',
        '{"id": [1, {"a": -Infinity}], "question": "q", "context": "c", "response": "r"}',
        '{"id": 1e999, "question": "q", "context": "c", "response": "r"}',
        '{"id": ' + "9" * 5000 + ', "question": "q", "context": "c", "response": "r"}',
        '{"id": ' + "[" * 900 + "]" * 900 + ', "question": "q", "context": "c"}',
        '{"id": ' + "[" * 100000 + "]" * 100000 + "}",
        b'{"id": "\xff", "question": "q", "context": "c", "response": "r"}',
        json.dumps(record(0)).encode("utf-16-le"),
    ],
    ids=["NaN", "inside", "1e999", "5000 digits", "900 deep", "100000 deep", "not UTF-8", "UTF-16"],
)
def test_an_id_that_json_cannot_carry_is_that_records_error(run, line):
    code, rows = run(record(0), line, record(1))
    assert code == 2
    assert [row["id"] for row in rows if "error" not in row] == ["r0", "r1"]
    assert [row["line"] for row in rows if "error" in row] == [2]


def test_an_output_that_json_cannot_carry_is_that_records_error(run, monkeypatch):
    from syncheck.report import Report

    whole = Report.to_dict

    def broken(self):
        found = whole(self)
        if self.response == "He grew up.":
            found["sentences"][0]["score"] = float("inf")
        return found

    monkeypatch.setattr(Report, "to_dict", broken)
    code, rows = run(record(0), record(1, response="He grew up."), record(2))
    assert code == 2
    assert ["error" in row for row in rows] == [False, True, False]


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("division by zero"),
        RecursionError("maximum recursion depth exceeded"),
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"),
        TimeoutError("regex timed out"),
        NotImplementedError("Cannot copy out of meta tensor; no data!"),
        BrokenPipeError("of a service"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_fails_on_one_record_is_that_records_error(run, monkeypatch, error, capsys):
    whole = type(run.monitor).prompt

    def breaks(self, *, question, **given):
        if question == "break":
            raise error
        return whole(self, question=question, **given)

    monkeypatch.setattr(type(run.monitor), "prompt", breaks)
    code, rows = run(record(0), record(1, question="break"), record(2))
    assert code == 2
    assert [row["id"] for row in rows if "error" not in row] == ["r0", "r2"]
    assert type(error).__name__ in rows[1]["error"]
    assert ("out of memory" in rows[1]["error"]) == ("memory" in str(error) or isinstance(error, MemoryError))
    assert "in.jsonl:2" in one_line(capsys)


@pytest.mark.parametrize("error", [MemoryError(), ZeroDivisionError("by\nzero"), torch.OutOfMemoryError("CUDA")])
def test_what_fails_before_the_records_is_one_line_and_exit_code_2(monkeypatch, error, capsys):
    def breaks(args, purpose):
        raise error

    monkeypatch.setattr("syncheck.cli.score.monitor_for", breaks)
    assert main(["score"]) == 2
    assert type(error).__name__ in one_line(capsys)


def test_a_device_that_is_not_there(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for command in (["score"], ["generate"], ["train", "--data", "d", "--output", "o"]):
        assert main([*command, "--device", "cuda"]) == 2
        assert "--device cuda" in one_line(capsys)


def test_pickled_weights_are_refused_in_one_line(tmp_path, capsys):
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (tmp_path / name).write_bytes((GOLDEN / name).read_bytes())
    torch.save({"model.embed_tokens.weight": Path("of no use")}, tmp_path / "pytorch_model.bin")
    assert main(["score", "--model", str(tmp_path), "--aligner", "none"]) == 2
    assert "cannot load a causal language model" in one_line(capsys)


def test_ctrl_c_is_one_line_and_leaves_what_was_answered(run, monkeypatch, tmp_path, capsys):
    whole = type(run.monitor).prompt

    def breaks(self, *, question, **given):
        if question == "break":
            raise KeyboardInterrupt
        return whole(self, question=question, **given)

    monkeypatch.setattr(type(run.monitor), "prompt", breaks)
    code, rows = run(record(0), record(1, question="break"), record(2))
    assert code == 130
    assert [row["id"] for row in rows] == ["r0"]
    assert "--resume" in one_line(capsys)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".syncheck-lock"] == []


@pytest.mark.slow
class TestProcesses:
    def start(self, *options, **streams):
        # A job in the background, as a whole test run may be, hands on that it ignores Ctrl-C.
        heeding = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"
        code = f"{heeding}; from syncheck.cli import main; sys.exit(main())"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.Popen([sys.executable, "-c", code, *options], env=environment, **streams)

    def test_a_reader_that_leaves_is_told_nothing(self, tmp_path):
        source = write(tmp_path / "in.jsonl", *(record(i) for i in range(40)))
        reading, writing = os.pipe()
        process = self.start("score", *MODEL, "--tokens", "--input", source, stdout=writing, stderr=subprocess.PIPE)
        os.close(writing)
        with os.fdopen(reading, "rb") as output:
            assert json.loads(output.readline())["id"] == "r0"
        _, shown = process.communicate(timeout=120)
        assert process.returncode == 141
        assert shown == b""

    def test_ctrl_c_in_the_middle(self, tmp_path):
        source, target = write(tmp_path / "in.jsonl", *(record(i) for i in range(2000))), tmp_path / "out.jsonl"
        process = self.start(
            "score", *MODEL, "--input", source, "--output", str(target), stderr=subprocess.PIPE, start_new_session=True
        )
        while not target.exists() or target.stat().st_size < 5000:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=120)
        assert process.returncode == 130
        assert len(shown.strip().splitlines()) == 1
        assert target.read_bytes().endswith(b"\n") and [row["id"] for row in read(target)][:2] == ["r0", "r1"]
