"""Arrays in the cache: made once, by one process at a time, and never served altered or out of date."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from syncheck.base import model_files as module
from syncheck.base.errors import CheckpointError
from syncheck.base.files import DIGESTS, UNFINISHED
from syncheck.base.model_files import kept_arrays


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

    monkeypatch.setattr("syncheck.base.model_files._make_at", refused)
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
