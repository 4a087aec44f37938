"""Files of commands: nothing that is read is written over, and each output has one run at a time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_runs import read, record, write
from doubles import QUESTION
from test_cli import GOLDEN

from syncheck.cli import main
from syncheck.files import replaced

MODEL = ["--model", str(GOLDEN), "--aligner", "none"]


@pytest.mark.parametrize(
    "options",
    [
        ["score", "--input", "in.jsonl", "--output", "out.jsonl", "--html", "in.jsonl"],
        ["score", "--input", "in.jsonl", "--output", "out.jsonl", "--html", "./out.jsonl"],
        ["score", "--input", "in.jsonl", "--output", "out.jsonl", "--html", "link.html"],
        ["score", "--input", "in.jsonl", "--output", "link.html"],
        ["spans", "--input", "in.jsonl", "--output", "out.jsonl", "--html", "in.jsonl", "--method", "mark-all"],
        ["spans", "--input", "folder", "--output", "there", "--html", "folder/a.jsonl", "--method", "mark-all"],
        ["spans", "--input", "folder", "--output", "there", "--html", "there/a.jsonl", "--method", "mark-all"],
        ["spans-score", "--reference", "in.jsonl", "--predictions", "p", "--output", "in.jsonl"],
        ["spans-score", "--reference", "in.jsonl", "--predictions", "in.jsonl", "--html", "in.jsonl"],
        ["evaluate", "--data", "in.jsonl", "--output", "in.jsonl"],
        ["evaluate", "--data", "in.jsonl", "--output", "t.svg", "--plot", "t.svg"],
        ["transfer", "--data", "a.parquet", "in.jsonl", "--output", "in.jsonl"],
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
from syncheck.cli.outputs import held
with held(Namespace(output=sys.argv[1])):
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
        assert "another run" in shown and str(process.pid) in shown
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
