"""Ray and this process give the same store, also when a worker dies in the middle."""

import json
import os
import signal
import sys
from pathlib import Path

import made_up
import pytest
from command_runs import record, write
from copying import MODEL, MONITOR

from syncheck.base.errors import InputError, MismatchError
from syncheck.cli import main
from syncheck.corpus import RecordScorer, Store, answer_corpus, corpus_lines, run_on_ray
from syncheck.training import SentenceMeasurer, measure_to_parquet

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    # Of Ray's own, about its next versions and sockets that it leaves to the garbage collector.
    pytest.mark.filterwarnings("ignore"),
]
GOLDEN = Path(__file__).parents[1] / "golden" / "signals" / "llama"


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the functions here, which workers cannot import
    yield
    ray.shutdown()


def scorer_of(golden, marker):
    """Build a scorer in another process."""
    return lambda: killed_once(RecordScorer(golden_monitor(golden)), marker)


def killed_once(worker, marker):
    """Kill the process at the record r9 where the marker is not there yet."""

    def answered(lines):
        if marker is not None and not marker.exists() and any(b'"r9"' in line.content for line in lines):
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return worker(lines)

    return answered


def golden_monitor(folder, *, signals=False):
    import torch

    from syncheck import Monitor, MonitorConfig, load_aligner
    from syncheck.base.pretrained import load_model

    torch.set_num_threads(1)
    config = MonitorConfig() if signals else None
    return Monitor(*load_model(str(folder), "cpu"), config=config, aligner=load_aligner("bundled"))


def parts_of(folder):
    return {path.name: path.read_bytes() for path in Path(folder).glob("part-*.parquet")}


def test_a_killed_worker_loses_nothing_and_answers_nothing_twice(cluster, tmp_path):
    records = [record(i) for i in range(24)]
    records[4] = record(4, response=["poisoned"])
    source = write(tmp_path / "in.jsonl", *records)
    marker = tmp_path / "died"

    def answered(folder, make_worker, **options):
        with Store(folder, {"version": "1"}) as store:
            answer_corpus(corpus_lines(source), store, make_worker, part_size=2, show_progress=False, **options)
            return list(store.rows())

    def on_two(parts, make_worker):
        return run_on_ray(parts, make_worker, workers=2)

    whole = answered(tmp_path / "local", scorer_of(GOLDEN, None))
    rows = answered(tmp_path / "ray", scorer_of(GOLDEN, marker), engine=on_two)
    assert marker.exists()
    assert len(rows) == len({key for key, _ in rows}) == 24
    assert [row["id"] for _, row in rows if "error" in row] == ["r4"]
    assert rows == whole
    assert parts_of(tmp_path / "ray") == parts_of(tmp_path / "local")
    for name in sorted(parts_of(tmp_path / "ray"))[3:7]:
        (tmp_path / "ray" / name).unlink()
    assert answered(tmp_path / "ray", scorer_of(GOLDEN, None)) == whole, "begun there, continued here"
    with pytest.raises(MismatchError):
        Store(tmp_path / "ray", {"version": "2"})


def test_features_are_those_of_the_local_engine_though_a_worker_was_killed(cluster, tmp_path):
    too_long = made_up.record(4, passages=("word " * 3000,))
    given = [too_long if i == 4 else made_up.record(i) for i in range(12)]
    monitor, marker = golden_monitor(GOLDEN, signals=True), tmp_path / "died"
    options = {"part_size": 2, "show_progress": False}
    local = measure_to_parquet(monitor, given, tmp_path / "local.parquet", **options)
    assert list(local.left_out) == ["r4"] and len(local.records) == 11
    measure_to_parquet(
        monitor,
        given,
        tmp_path / "ray.parquet",
        engine=lambda parts, make: run_on_ray(parts, make, workers=2),
        make_worker=lambda: killed_once(SentenceMeasurer(golden_monitor(GOLDEN, signals=True)), marker),
        **options,
    )
    assert marker.exists()
    assert (tmp_path / "ray.parquet").read_bytes() == (tmp_path / "local.parquet").read_bytes()


def test_the_command_generates_the_same_answers_as_the_local_engine(cluster, tmp_path):
    asked = [{name: value for name, value in record(i).items() if name != "response"} for i in range(4)]
    source = write(tmp_path / "in.jsonl", *asked)
    command = ["generate", "--input", str(source), "--max-new-tokens", "12", "--part-size", "2"]
    command += ["--model", str(MODEL), "--monitor", str(MONITOR)]  # workers are other processes, without fixtures
    for engine in (["local"], ["ray", "--workers", "2"]):
        assert main([*command, "--output", f"{tmp_path}/{engine[0]}/", "--engine", *engine]) == 0
    assert len(parts_of(tmp_path / "ray")) == 2
    assert parts_of(tmp_path / "ray") == parts_of(tmp_path / "local")


def test_a_record_that_kills_every_worker_stops_its_part_alone(cluster, tmp_path):
    def make():
        def answered(lines):
            if any(b'"r3"' in line.content for line in lines):
                os.kill(os.getpid(), signal.SIGKILL)
            return [{"id": json.loads(line.content)["id"]} for line in lines]

        return answered

    source = write(tmp_path / "in.jsonl", *(record(i) for i in range(6)))
    with Store(tmp_path / "store", {}) as store:
        with pytest.raises(InputError, match=r"in\.jsonl:3"):
            answer_corpus(corpus_lines(source), store, make, engine=run_on_ray, part_size=2, show_progress=False)
        assert sorted(row["id"] for _, row in store.rows()) == ["r0", "r1", "r4", "r5"]
