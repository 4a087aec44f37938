"""A corpus into a store: killed = not killed, changed = refused, bad rows are rows."""

import hashlib
import json
import os
from pathlib import Path

import pandas
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from command_runs import LLAMA, record, run_until_killed, write

from syncheck import load_kit
from syncheck.base.errors import CheckpointError, InputError, MismatchError
from syncheck.cli import main
from syncheck.corpus import RecordScorer, Store, answer_corpus, corpus_lines, count_lines
from syncheck.corpus.store import stored_rows

FACTS = {"--decoder": "greedy", "version": "1"}


def worker(lines):
    return [{"id": json.loads(line.content)["id"], "sentences": [], "said": len(line.content)} for line in lines]


def answered(folder, source, *, worker=worker, facts=FACTS, **options):
    store = Store(folder, facts)
    answer_corpus(corpus_lines(str(source)), store, worker, show_progress=False, **{"part_size": 2} | options)
    return dict(store.rows())


def parts(folder):
    return sorted(path.name for path in Path(folder).glob("part-*.parquet"))


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    write(folder / "a.jsonl", record(0), record(1), record(2))
    table = pa.Table.from_pylist([record(3), record(4)])
    parquet.write_table(table, folder / "b.parquet")
    (folder / "notes.txt").write_text("no records")
    return folder


def test_json_lines_and_parquet_are_read_alike(corpus):
    lines = list(corpus_lines(str(corpus)))
    assert [json.loads(line.content) for line in lines] == [record(i) for i in range(5)]
    assert [(Path(line.source).name, line.number) for line in lines] == [
        *(("a.jsonl", 1), ("a.jsonl", 2), ("a.jsonl", 3), ("b.parquet", 1), ("b.parquet", 2))
    ]
    assert count_lines(str(corpus)) == 5


def test_what_is_no_corpus_is_refused(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="Parquet"):
        list(corpus_lines(str(tmp_path / "bad.parquet")))
    (tmp_path / "bad.parquet").unlink()
    with pytest.raises(InputError, match="folder"):
        list(corpus_lines(str(tmp_path)))


def test_a_store_is_read_as_one_table(corpus, tmp_path):
    rows = answered(tmp_path / "store", corpus)
    table = pandas.read_parquet(tmp_path / "store")
    assert sorted(table["id"]) == [f"r{i}" for i in range(5)]
    assert {key: json.loads(row) for key, row in zip(table["key"], table["row"], strict=True)} == rows
    assert len(parts(tmp_path / "store")) == 3


@pytest.mark.parametrize("stop_after", [0, 1, 2])
def test_stopped_and_started_again_is_never_stopped(corpus, tmp_path, stop_after):
    whole = answered(tmp_path / "whole", corpus)
    asked = []

    def breaks(lines):
        if len(asked) == stop_after:
            raise KeyboardInterrupt
        asked.append(lines)
        return worker(lines)

    with pytest.raises(KeyboardInterrupt):
        answered(tmp_path / "store", corpus, worker=breaks)
    assert len(parts(tmp_path / "store")) == stop_after
    assert answered(tmp_path / "store", corpus) == whole
    assert parts(tmp_path / "store") == parts(tmp_path / "whole")
    for name in parts(tmp_path / "store"):
        assert (tmp_path / "store" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def never(lines):
    raise AssertionError("nothing is missing")


def test_a_part_that_was_deleted_is_answered_again(corpus, tmp_path):
    store = tmp_path / "store"
    whole = answered(store, corpus)
    last = parts(store)[-1]
    (store / last).unlink()
    assert answered(store, corpus) == whole
    assert parts(store)[-1] == last


def truncated(content):
    return content[:-9]


def of_another_key(content):
    key = parquet.read_table(pa.BufferReader(content))["key"][0].as_py()
    return content.replace(key[:8].encode(), b"0" * 8, 1)


def flipped(content):
    middle = len(content) // 3
    return content[:middle] + bytes([content[middle] ^ 0x40]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [truncated, of_another_key, flipped, lambda content: b""])
def test_a_part_that_rotted_is_refused_by_name_and_made_again_once_deleted(corpus, tmp_path, damage):
    store = tmp_path / "store"
    whole = answered(store, corpus)
    part = store / parts(store)[1]
    content, times = part.read_bytes(), part.stat()
    part.write_bytes(damage(content))
    os.utime(part, ns=(times.st_atime_ns, times.st_mtime_ns))
    (store / "part-9.unfinished-0").write_bytes(b"PAR1")
    for read in (lambda: list(stored_rows(store)), lambda: answered(store, corpus)):
        with pytest.raises(CheckpointError, match=f"(?s){part.name}.*delete it and run the command"):
            read()
    assert part.read_bytes() == damage(content)
    part.unlink()
    assert answered(store, corpus) == whole and part.read_bytes() == content
    assert not list(store.glob("*unfinished*"))
    assert len(pandas.read_parquet(store)) == 5


@pytest.mark.parametrize(
    "kind", ["a pipe", "a link to nothing", "a folder", "a copy", "of another run", "another table"]
)
def test_what_is_no_part_is_refused_by_name(corpus, tmp_path, kind):
    store = tmp_path / "store"
    whole = answered(store, corpus)
    checksum = parts(store)[0][-len("0123456789abcdef.parquet") :]
    path = store / f"part-000077-{checksum}"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a link to nothing":
        path.symlink_to("nowhere")
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a copy":
        path.write_bytes((store / parts(store)[0]).read_bytes())
    elif kind == "of another run":
        answered(tmp_path / "other", corpus, facts=FACTS | {"--decoder": "fod"})
        for part in (tmp_path / "other").glob("part-*"):
            part.rename(path)
    else:
        parquet.write_table(pa.table({"key": [1]}), path)
        run = hashlib.sha256(json.dumps(json.loads((store / "_run.json").read_text()), sort_keys=True).encode())
        digest = hashlib.sha256(run.hexdigest().encode() + path.read_bytes()).hexdigest()
        path = path.rename(store / f"part-000077-{digest[:16]}.parquet")
    for read in (lambda: list(stored_rows(store)), lambda: answered(store, corpus)):
        with pytest.raises(CheckpointError, match=f"(?s){path.name}.*delete it and run the command"):
            read()
    path.rmdir() if path.is_dir() else path.unlink()
    assert answered(store, corpus, worker=never) == whole
    assert len(pandas.read_parquet(store)) == 5


def test_rows_that_rot_while_the_store_is_open_are_refused(corpus, tmp_path):
    answered(tmp_path / "store", corpus)
    store = Store(tmp_path / "store", FACTS)
    part = tmp_path / "store" / parts(tmp_path / "store")[0]
    part.write_bytes(flipped(part.read_bytes()))
    with pytest.raises(CheckpointError, match="damaged"):
        list(store.rows())


@pytest.mark.parametrize("note", [b"", b"[" * 10**5, b'"text"', b"\xff", None])
def test_a_damaged_note_is_refused(corpus, tmp_path, note):
    store = tmp_path / "store"
    answered(store, corpus)
    (store / "_run.json").unlink()
    if note is None:
        os.mkfifo(store / "_run.json")
    else:
        (store / "_run.json").write_bytes(note)
    with pytest.raises(CheckpointError, match=r"_run\.json"):
        answered(store, corpus)


def test_a_store_of_another_version_is_refused(corpus, tmp_path):
    store = tmp_path / "store"
    answered(store, corpus)
    note = json.loads((store / "_run.json").read_text())
    (store / "_run.json").write_text(json.dumps(note | {"format": "syncheck.store.v1"}))
    with pytest.raises(MismatchError, match="format"):
        answered(store, corpus)
    with pytest.raises(CheckpointError, match="format"):
        list(stored_rows(store))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that even root cannot write")
def test_a_folder_that_cannot_be_written_is_refused(corpus):
    with pytest.raises(InputError, match="cannot"):
        answered(Path("/proc/self"), corpus)
    with pytest.raises(InputError, match="cannot"):
        answered(Path("/proc/self/store"), corpus)


@pytest.mark.parametrize("kind", ["a pipe", "a link to nothing"])
def test_a_corpus_with_what_is_no_file_is_refused(corpus, kind):
    (os.mkfifo if kind == "a pipe" else lambda path: path.symlink_to("nowhere"))(corpus / "c.jsonl")
    for read in (lambda: list(corpus_lines(str(corpus))), lambda: count_lines(str(corpus))):
        with pytest.raises(InputError, match=r"c\.jsonl"):
            read()


def test_more_records_are_added_and_equal_ones_are_answered_once(corpus, tmp_path):
    store = tmp_path / "store"
    first = answered(store, corpus)
    write(corpus / "c.jsonl", record(5), record(0), record(5))
    asked = []

    def counted(lines):
        asked.extend(json.loads(line.content)["id"] for line in lines)
        return worker(lines)

    more = answered(store, corpus, worker=counted)
    assert asked == ["r5"]
    assert len(more) == 6 and first.items() <= more.items()


def test_changed_options_are_refused_by_name(corpus, tmp_path):
    answered(tmp_path / "store", corpus)
    with pytest.raises(MismatchError, match="--decoder"):
        answered(tmp_path / "store", corpus, facts=FACTS | {"--decoder": "sample"})
    (tmp_path / "store" / "_run.json").unlink()
    with pytest.raises(MismatchError):
        answered(tmp_path / "store", corpus)


def test_an_end_of_text_token_ends_no_text_that_no_model_reads_one_by_one_or_together(tmp_path):
    monitor = load_kit("generic")
    response = "Angus Scott is a player.</s> He grew up on a farm."
    lines = list(corpus_lines(write(tmp_path / "in.jsonl", record(0, response=response))))
    alone, together = RecordScorer(monitor)(lines), RecordScorer(monitor, batch_tokens=4000)(lines)
    assert alone == together and alone[0]["sentences"][-1]["text"].endswith("He grew up on a farm.")


class TestCommands:
    @pytest.fixture
    def run(self, tmp_path, monkeypatch, llama, make_monitor):
        monitor = make_monitor(llama)
        for loader in ("score.scoring_monitor", "generate.monitor_with_model"):
            monkeypatch.setattr(f"syncheck.cli.{loader}", lambda args, purpose: monitor)

        def command(name, source, *options):
            return main([name, "--input", str(source), "--part-size", "2", "--output", f"{tmp_path}/store/", *options])

        return command

    @pytest.fixture
    def source(self, tmp_path):
        return write(tmp_path / "in.jsonl", record(0), "not JSON", record(1, response=3), record(2))

    @pytest.mark.parametrize("name", ["score", "generate"])
    def test_rows_are_the_lines_of_a_file(self, run, source, tmp_path, name):
        more = ["--max-new-tokens", "8"] if name == "generate" else []
        assert run(name, source, *more) == 2
        assert main([name, "--input", source, "--output", str(tmp_path / "out.jsonl"), *more]) == 2
        lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        table = pandas.read_parquet(tmp_path / "store")
        assert [json.loads(row) for row in table["row"]] == [
            {name: value for name, value in line.items() if name != "digest"} for line in lines
        ]
        assert table["error"].notna().tolist() == ["error" in line for line in lines]

    def test_scored_together_agrees_with_one_by_one(self, run, source, tmp_path):
        assert run("score", source) == 2
        alone = pandas.read_parquet(tmp_path / "store")
        (tmp_path / "store").rename(tmp_path / "alone")
        assert run("score", source, "--batch-tokens", "4000") == 2
        together = pandas.read_parquet(tmp_path / "store")
        assert together["lowest_score"].tolist() == pytest.approx(alone["lowest_score"].tolist(), abs=1e-4, nan_ok=True)
        assert together["error"].dropna().tolist() == alone["error"].dropna().tolist()

    def test_a_gate_counts_what_an_earlier_run_answered(self, run, source):
        assert run("score", write(Path(source), record(0))) == 0
        assert run("score", source, "--fail-under", "1") == 1

    @pytest.mark.parametrize("options", [("--resume",), ("--html", "x.html")], ids=["resume", "html"])
    def test_options_without_effect_are_refused(self, run, source, options):
        assert run("score", source, *options) == 2

    def test_options_of_a_store_need_one(self, source, run, tmp_path, capsys):
        assert main(["score", "--input", source, "--part-size", "2", "--output", str(tmp_path / "x.jsonl")]) == 2
        assert "--part-size" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_goes_on_after_a_kill(tmp_path):
    source = write(tmp_path / "in.jsonl", *(record(i) for i in range(6)), "not JSON")
    command = ["score", "--model", str(LLAMA), "--aligner", "none", "--input", source, "--part-size", "2", "--output"]
    run_until_killed(*command, f"{tmp_path}/store/")
    assert len(parts(tmp_path / "store")) == 2
    assert main([*command, f"{tmp_path}/store/"]) == 2
    assert main([*command, f"{tmp_path}/whole/"]) == 2
    assert parts(tmp_path / "store") == parts(tmp_path / "whole")
    for name in parts(tmp_path / "whole"):
        assert (tmp_path / "store" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
