"""Arrays in the cache: made once, by one process at a time, and never served altered or out of date."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from syncheck.base import pretrained as module
from syncheck.base.errors import CheckpointError
from syncheck.base.files import DIGESTS, UNFINISHED
from syncheck.base.pretrained import kept_arrays

FORK = multiprocessing.get_context("fork")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


class Maker:
    """Makes small arrays, and counts how often."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return {"weight": torch.arange(6, dtype=torch.int8), "bias": torch.ones(2)}


@pytest.fixture
def make():
    return Maker()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setattr(module.constants, "HF_ASSETS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def content_of(arrays):
    return {name: array.tolist() for name, array in arrays.items()}


def the_file(cache):
    (place,) = cache.rglob("arrays.safetensors")
    return place


def test_it_is_made_once_and_lies_alone_in_its_folder(cache, make):
    first, second = kept_arrays("small", ["a"], make), kept_arrays("small", ["a"], make)
    assert content_of(first) == content_of(second) == content_of(make()) and make.times == 2
    left = {path.name for path in the_file(cache).parent.iterdir() if path.stat().st_size}
    assert left == {"arrays.safetensors", DIGESTS}


@pytest.mark.parametrize(
    "damage",
    [lambda whole: whole[:-1], lambda whole: b"", lambda whole: whole[:-1] + bytes([whole[-1] ^ 1])],
    ids=["cut off", "empty", "one bit"],
)
def test_an_altered_file_is_replaced_and_the_log_says_so(cache, make, damage, caplog):
    kept_arrays("small", ["a"], make)
    place = the_file(cache)
    place.write_bytes(damage(place.read_bytes()))
    assert content_of(kept_arrays("small", ["a"], make)) == content_of(Maker()())
    assert make.times == 2
    assert f"{place} was cut off or altered" in caplog.text


@pytest.mark.parametrize("digests", [None, "{", '{"format": "syncheck.digests.v1", "sha256": {}}'])
def test_a_file_without_its_digest_is_replaced(cache, make, digests):
    kept_arrays("small", ["a"], make)
    noted = the_file(cache).with_name(DIGESTS)
    noted.unlink() if digests is None else noted.write_text(digests)
    assert content_of(kept_arrays("small", ["a"], make)) == content_of(Maker()())
    assert make.times == 2
    kept_arrays("small", ["a"], make)
    assert make.times == 2


def test_nothing_made_of_other_sources_or_by_another_version_is_taken(cache, make, monkeypatch):
    kept_arrays("small", ["a", "b"], make)
    kept_arrays("small", ["a", "c"], make)
    monkeypatch.setattr(module, "version", lambda package: "0.0.1")
    kept_arrays("small", ["a", "b"], make)
    kept_arrays("other", ["a", "b"], make)
    assert make.times == 4


def test_where_the_cache_cannot_be_written_it_is_made_for_the_process_alone_and_the_log_says_so(cache, make, caplog):
    cache.write_text("no folder")
    assert content_of(kept_arrays("small", ["a"], make)) == content_of(Maker()())
    assert str(cache) in caplog.text and "made again by each process" in caplog.text
    kept_arrays("small", ["a"], make)
    assert make.times == 2


def test_a_cache_that_can_only_be_read_serves_what_is_in_it(cache, make, monkeypatch):
    kept_arrays("small", ["a"], make)

    def refused(*_):
        raise AssertionError("nothing is to be written")

    monkeypatch.setattr("syncheck.base.pretrained._locked", refused)
    kept_arrays("small", ["a"], make)
    assert make.times == 1


def test_of_several_at_once_one_makes_it_and_what_a_killed_one_left_is_removed(cache, make):
    kept_arrays("small", ["a"], make)
    place = the_file(cache)
    left = place.with_name(f"{place.name}{UNFINISHED}0")
    left.write_bytes(place.read_bytes()[:10])
    place.unlink()

    def slowly():
        time.sleep(0.2)
        return make()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: content_of(kept_arrays("small", ["a"], slowly)), range(4)))
    assert found == [content_of(Maker()())] * 4 and make.times == 2
    assert not left.exists()


def test_an_error_in_the_making_is_not_hidden_and_leaves_nothing(cache):
    def fails():
        raise CheckpointError("the encoder was altered")

    with pytest.raises(CheckpointError, match="altered"):
        kept_arrays("small", ["a"], fails)
    assert not list(cache.rglob("*.safetensors*[!k]"))


def names(cache):
    return sorted(path.name for path in cache.rglob("*") if path.is_file())


def test_of_processes_that_start_together_one_makes_it_and_all_have_it(cache, make):
    started, made = FORK.Barrier(4), FORK.SimpleQueue()

    def slowly():
        made.put(os.getpid())
        time.sleep(0.3)
        return make()

    def run():
        started.wait()
        assert content_of(kept_arrays("small", ["a"], slowly)) == content_of(Maker()())

    processes = [FORK.Process(target=run) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    made.get()
    assert made.empty()


def test_what_a_killed_process_left_is_removed_by_the_next(cache, make):
    for _ in range(2):
        started = FORK.SimpleQueue()

        def never(started=started):
            started.put(True)
            time.sleep(60)

        process = FORK.Process(target=kept_arrays, args=("small", ["a"], never))
        process.start()
        started.get()
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert len([name for name in names(cache) if UNFINISHED in name]) == 1
    kept_arrays("small", ["a"], make)
    assert names(cache) == ["arrays.safetensors", "arrays.safetensors.lock", DIGESTS]


def test_a_full_disk_leaves_no_half_of_it_and_the_arrays_are_made_for_the_process(cache, make):
    results = FORK.SimpleQueue()

    def run():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
        results.put(content_of(kept_arrays("small", ["a"], make)) == content_of(Maker()()))

    process = FORK.Process(target=run)
    process.start()
    process.join()
    assert results.get()
    assert {*names(cache)} <= {"arrays.safetensors.lock", DIGESTS}
