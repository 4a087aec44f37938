"""Files and ends of commands: nothing read is overwritten, each output has one run, errors are one line, Ctrl-C 130."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from command_runs import LLAMA, read, record, write
from doubles import QUESTION

from syncheck.base.files import replaced
from syncheck.cli import main

MODEL = ["--model", str(LLAMA), "--aligner", "none"]


@pytest.mark.parametrize(
    "options",
    [
        ["score", "--input", "in.jsonl", "--output", "out.jsonl", "--html", "in.jsonl"],
        ["score", "--input", "in.jsonl", "--output", "out.jsonl", "--html", "./out.jsonl"],
        ["score", "--input", "in.jsonl", "--output", "out.jsonl", "--html", "link.html"],
        ["score", "--input", "in.jsonl", "--output", "link.html"],
        ["spans-score", "--reference", "in.jsonl", "--predictions", "p", "--output", "in.jsonl"],
        ["spans-score", "--reference", "p", "--predictions", "in.jsonl", "--output", "in.jsonl"],
        ["evaluate", "--data", "in.jsonl", "--output", "in.jsonl"],
        ["evaluate", "--data", "in.jsonl", "--output", "t.svg", "--plot", "t.svg"],
        ["train", "--model", "folder", "--data", "in.jsonl", "--output", "folder"],
        ["demo", "--question", "q", "--context", "in.jsonl", "--report", "in.jsonl"],
    ],
    ids=" ".join,
)
def test_an_output_that_is_read_or_written_twice_is_refused_before_the_work(tmp_path, monkeypatch, options, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("in.jsonl", "folder/a.jsonl"):
        write(tmp_path / name, record(0))
    (tmp_path / "link.html").symlink_to("in.jsonl")
    before = (tmp_path / "in.jsonl").read_bytes()
    assert main(options) == 2
    assert "overwrite" in capsys.readouterr().err
    assert (tmp_path / "in.jsonl").read_bytes() == before == (tmp_path / "folder" / "a.jsonl").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} <= {"in.jsonl", "folder", "link.html", "there"}


def test_a_device_is_neither_locked_nor_in_the_way(tmp_path):
    source = write(tmp_path / "in.jsonl", record(0))
    assert main(["score", *MODEL, "--input", source, "--output", os.devnull]) == 0


HOLD = """
import sys
from pathlib import Path
from argparse import Namespace
from syncheck.cli import locked_outputs
with locked_outputs(Namespace(output=sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder():
    """Hold an output in another process."""
    started = []

    def hold(target):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment}
        process = subprocess.Popen([sys.executable, "-c", HOLD, str(target)], **streams)
        started.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield hold
    for process in started:
        process.communicate(timeout=60)


def test_a_second_run_on_an_output_is_refused_with_who_holds_it(tmp_path, holder, capsys):
    source, target = write(tmp_path / "in.jsonl", record(0)), tmp_path / "out.jsonl"
    target.write_text("of the first run\n")
    (tmp_path / "link.jsonl").symlink_to(target)
    process = holder(target)
    for name in (target, tmp_path / "link.jsonl"):
        assert main(["score", *MODEL, "--input", source, "--output", str(name)]) == 2
        shown = capsys.readouterr().err
        assert "another" in shown and str(process.pid) in shown
    assert target.read_text() == "of the first run\n"
    assert main(["score", *MODEL, "--input", source, "--output", str(tmp_path / "other.jsonl")]) == 0


def test_what_a_killed_run_held_is_free(tmp_path, holder):
    source, target = write(tmp_path / "in.jsonl", record(0)), tmp_path / "out.jsonl"
    process = holder(target)
    process.kill()
    process.wait(60)
    assert (tmp_path / "out.jsonl.syncheck-lock").exists()
    assert main(["score", *MODEL, "--input", source, "--output", str(target)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


RUN = "import sys; from syncheck.cli import main; sys.exit(main())"


def run(*arguments, stdout):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", RUN, "score", *MODEL, *arguments]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment, timeout=120)


@pytest.mark.slow
def test_a_pipe_may_be_named_as_the_output(tmp_path):
    source = write(tmp_path / "in.jsonl", record(0))
    done = run("--input", source, "--output", "/dev/stdout", stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sentences"]


@pytest.mark.slow
def test_standard_output_that_goes_on_in_the_input_is_refused(tmp_path):
    source = write(tmp_path / "in.jsonl", record(0))
    before = Path(source).read_bytes()
    with open(source, "a", encoding="utf-8") as appended:
        done = run("--input", source, stdout=appended)
    assert done.returncode == 2 and "standard output" in done.stderr
    assert Path(source).read_bytes() == before


def test_a_lock_of_another_program_is_left_alone(tmp_path):
    source, other = write(tmp_path / "in.jsonl", record(0)), tmp_path / "out.jsonl.lock"
    other.write_text("not ours")
    assert main(["score", *MODEL, "--input", source, "--output", str(tmp_path / "out.jsonl")]) == 0
    assert other.read_text() == "not ours"


def test_a_link_in_the_lock_s_place_is_not_followed(tmp_path, capsys):
    source, target = write(tmp_path / "in.jsonl", record(0)), tmp_path / "out.jsonl"
    (tmp_path / "out.jsonl.syncheck-lock").symlink_to(tmp_path / "victim")
    assert main(["score", *MODEL, "--input", source, "--output", str(target)]) == 2
    assert not (tmp_path / "victim").exists()


def test_an_unfinished_file_is_new_and_goes_when_it_fails(tmp_path):
    place = tmp_path / "x"
    place.write_bytes(b"old")
    names = set()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), replaced(place) as (file, path):
            names.add(path.name)
            file.write(b"half")
            raise ZeroDivisionError
    assert len(names) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["x"] and place.read_bytes() == b"old"
    with replaced(place) as (file, path):
        file.write(b"new")
    assert place.read_bytes() == b"new"


def test_unfinished_files_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with replaced(tmp_path / "x") as (file, _):
            file.write(b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


MARK = b"\xef\xbb\xbf"


def test_a_byte_order_mark_before_records(tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write(source, record(0))
    source.write_bytes(MARK + source.read_bytes())
    assert main(["score", *MODEL, "--input", str(source), "--output", str(target)]) == 0
    assert [row["id"] for row in read(target)] == ["r0"]


def test_a_byte_order_mark_before_labelled_records_predictions_and_passages(tmp_path):
    from syncheck.cli.monitors import read_passages
    from syncheck.labelling import load_records
    from syncheck.spans import load_span_items

    labelled, items, text = tmp_path / "l.jsonl", tmp_path / "i.jsonl", tmp_path / "t.txt"
    write(labelled, record(0, spans=[]))
    write(items, {"id": "a", "lang": "EN", "model_input": QUESTION, "model_output_text": "Yes."})
    text.write_text("Anna moved.")
    for file in (labelled, items, text):
        file.write_bytes(MARK + file.read_bytes())
    assert [r.id for r in load_records(labelled)] == ["r0"]
    assert [item.id for item in load_span_items(items)] == ["a"]
    assert read_passages(str(text), option="--passages") == ["Anna moved."]


@pytest.fixture
def score(tmp_path, monkeypatch, llama, make_monitor):
    """Score records with a monitor that can be broken; returns the exit code and the rows."""
    monitor = make_monitor(llama)
    monkeypatch.setattr("syncheck.cli.score.scoring_monitor", lambda args, purpose: monitor)

    def run(*records):
        source, target = write(tmp_path / "in.jsonl", *records), tmp_path / "out.jsonl"
        return main(["score", "--input", source, "--output", str(target)]), read(target)

    run.monitor = monitor
    return run


def one_line(capsys):
    shown = re.split(r"\nsyncheck score: \d+ answer", capsys.readouterr().err)[0].strip()  # without the run's summary
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
def test_an_id_that_json_cannot_carry_is_that_records_error(score, line):
    code, rows = score(record(0), line, record(1))
    assert code == 2
    assert [row["id"] for row in rows if "error" not in row] == ["r0", "r1"]
    assert [row["line"] for row in rows if "error" in row] == [2]


def test_an_output_that_json_cannot_carry_is_that_records_error(score, monkeypatch):
    from syncheck.results import Report

    whole = Report.to_dict

    def broken(self):
        found = whole(self)
        if self.response == "He grew up.":
            found["sentences"][0]["score"] = float("inf")
        return found

    monkeypatch.setattr(Report, "to_dict", broken)
    code, rows = score(record(0), record(1, response="He grew up."), record(2))
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
def test_what_fails_on_one_record_is_that_records_error(score, monkeypatch, error, capsys):
    whole = type(score.monitor).prompt

    def breaks(self, *, question, **given):
        if question == "break":
            raise error
        return whole(self, question=question, **given)

    monkeypatch.setattr(type(score.monitor), "prompt", breaks)
    code, rows = score(record(0), record(1, question="break"), record(2))
    assert code == 2
    assert [row["id"] for row in rows if "error" not in row] == ["r0", "r2"]
    assert type(error).__name__ in rows[1]["error"]
    assert ("out of memory" in rows[1]["error"]) == ("memory" in str(error) or isinstance(error, MemoryError))
    assert "in.jsonl:2" in one_line(capsys)


@pytest.mark.parametrize("error", [MemoryError(), ZeroDivisionError("by\nzero"), torch.OutOfMemoryError("CUDA")])
def test_what_fails_before_the_records_is_one_line_and_exit_code_2(monkeypatch, error, capsys):
    def breaks(args, purpose, **options):
        raise error

    monkeypatch.setattr("syncheck.cli.score.scoring_monitor", breaks)
    assert main(["score"]) == 2
    assert type(error).__name__ in one_line(capsys)


def test_a_device_that_is_not_there(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for command in (["score"], ["generate"], ["train", "--data", "d", "--output", "o"]):
        assert main([*command, "--device", "cuda"]) == 2
        assert "--device" in one_line(capsys)


def test_pickled_weights_are_refused_in_one_line(tmp_path, capsys):
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (tmp_path / name).write_bytes((LLAMA / name).read_bytes())
    torch.save({"model.embed_tokens.weight": Path("of no use")}, tmp_path / "pytorch_model.bin")
    assert main(["score", "--model", str(tmp_path), "--aligner", "none"]) == 2
    assert "causal" in one_line(capsys)


def test_ctrl_c_is_one_line_and_leaves_what_was_answered(score, monkeypatch, tmp_path, capsys):
    whole = type(score.monitor).prompt

    def breaks(self, *, question, **given):
        if question == "break":
            raise KeyboardInterrupt
        return whole(self, question=question, **given)

    monkeypatch.setattr(type(score.monitor), "prompt", breaks)
    code, rows = score(record(0), record(1, question="break"), record(2))
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


def test_a_page_needs_a_folder_to_go_to(tmp_path, capsys):
    source = write(tmp_path / "in.jsonl", record(0))
    page = tmp_path / "none" / "page.html"
    assert main(["score", "--input", source, "--output", str(tmp_path / "out"), "--html", str(page)]) == 2
    assert "--html" in capsys.readouterr().err
