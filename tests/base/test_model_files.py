"""Files of models: whole or refused, and made once, whoever is killed and whatever the disk has room for."""

import hashlib
import multiprocessing
import os
import resource
import signal
import time

import pytest

from syncheck.base.errors import CheckpointError
from syncheck.base.model_files import ModelFile

CONTENT = bytes(range(256)) * 4096
FILE = ModelFile(hashlib.sha256(CONTENT).hexdigest(), "get it again")
FORK = multiprocessing.get_context("fork")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def write(file):
    file.write(CONTENT)


def not_needed(file):
    raise AssertionError("it is there")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def place(tmp_path):
    return tmp_path / "cache" / "model"


def test_the_first_call_leaves_it_for_the_others(place):
    for make in (write, not_needed):
        with FILE.made_once(place, make) as path:
            assert path == place and path.read_bytes() == CONTENT
    assert names(place.parent) == ["model", "model.lock"]


def test_what_was_made_wrongly_is_refused_and_not_left(place):
    with pytest.raises(CheckpointError, match="get it again"), FILE.made_once(place, lambda file: file.write(b"x")):
        pass
    assert names(place.parent) == ["model.lock"]


@pytest.mark.parametrize("damage", ["gone", "a folder", "a pipe", "a link to nothing"])
def test_what_is_no_file_is_refused(tmp_path, damage):
    path = tmp_path / "model"
    if damage == "a folder":
        path.mkdir()
    elif damage == "a pipe":
        os.mkfifo(path)
    elif damage == "a link to nothing":
        path.symlink_to("nowhere")
    with pytest.raises(CheckpointError, match="model"):
        FILE.check(path)


def test_what_is_in_the_way_is_said_and_the_file_has_no_name(place, caplog):
    place.mkdir(parents=True)
    with FILE.made_once(place, write) as path:
        assert path.read_bytes() == CONTENT
    assert not path.exists() or path.read_bytes() != CONTENT
    assert str(place) in caplog.text and names(place.parent) == ["model", "model.lock"]


def _with_little_room(place, bytes_of_file, results):
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_of_file, bytes_of_file))
    try:
        with FILE.made_once(place, write):
            results.put("made")
    except CheckpointError as error:
        results.put(str(error))


def test_a_full_disk_is_said_and_nothing_is_left(place):
    results = FORK.SimpleQueue()
    process = FORK.Process(target=_with_little_room, args=(place, len(CONTENT) // 2, results))
    process.start()
    process.join()
    assert "no room" in results.get()
    assert names(place.parent) == ["model.lock"]


def _slowly(file):
    file.write(CONTENT[:1000])
    file.flush()
    time.sleep(0.3)
    file.write(CONTENT[1000:])


def _made(place, started, made):
    def make(file):
        made.put(os.getpid())
        _slowly(file)

    started.wait()
    with FILE.made_once(place, make) as path:
        assert path.read_bytes() == CONTENT


def test_of_processes_that_start_together_one_makes_it_and_all_have_it(place):
    started, made = FORK.Barrier(4), FORK.SimpleQueue()
    processes = [FORK.Process(target=_made, args=(place, started, made)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    made.get()
    assert made.empty()


def test_what_a_killed_process_left_is_removed_by_the_next(place):
    for _ in range(3):
        started = FORK.SimpleQueue()

        def make(file, started=started):
            file.write(CONTENT[:1000])
            file.flush()
            started.put(True)
            time.sleep(60)

        process = FORK.Process(target=lambda make=make: FILE.made_once(place, make).__enter__())
        process.start()
        started.get()
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert len([name for name in names(place.parent) if "unfinished" in name]) == 1
    with FILE.made_once(place, write) as path:
        assert path == place
    assert names(place.parent) == ["model", "model.lock"]
