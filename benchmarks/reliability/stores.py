"""Alterations of the files of a store, one to three at once; then the run goes on, without the parts that it refuses.

``python benchmarks/reliability/stores.py --count 200 --seed 0``

A part that the error names is deleted, as it says. Every record must then be answered exactly once, as in a run that
nobody disturbed, both by the store and for a reader of the folder, or the run must be refused with an error of this
package. Reading the altered store must give the rows that were written, each at most once, or such an error. Times of
change are put back in every other alteration, as if a disk rots.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas
import pyarrow as pa

from syncheck import __version__
from syncheck.base.errors import CheckpointError, SyncheckError
from syncheck.base.records import JsonDict
from syncheck.corpus import Line, Store, answer_corpus
from syncheck.corpus.store import stored_rows

RECORDS, PART_SIZE = 24, 4
SECONDS = 20
"""Time limit of a trial, after which it is killed by a signal."""
FACTS = {"--decoder": "greedy", "version": "1"}
LINES = [Line("corpus.jsonl", i, json.dumps({"id": f"r{i}"}).encode()) for i in range(1, RECORDS + 1)]

Alter = Callable[[Path, random.Random], None]


def answer(lines: Sequence[Line]) -> list[JsonDict]:
    """Return a row for each record, which depends on nothing else."""
    return [
        {"id": f"r{line.number}", "sentences": [{"score": line.number / 100, "text": f"Line {line.number}. " * 20}]}
        for line in lines
    ]


def run(folder: Path, facts: dict[str, str] = FACTS) -> dict[str, JsonDict]:
    """Answer what a store lacks, and return its rows."""
    store = Store(folder, facts)
    answer_corpus(LINES, store, answer, part_size=PART_SIZE, show_progress=False)
    keys_and_rows = list(store.rows())
    found = dict(keys_and_rows)
    if len(found) < len(keys_and_rows):
        raise AssertionError("a key has two rows")
    return found


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.parquet"))


def _in_bytes(change: Callable[[bytearray, random.Random], None]) -> Alter:
    """Return an alteration of a random part or note."""

    def alter(folder: Path, rng: random.Random) -> None:
        path = rng.choice([path for path in sorted(folder.iterdir()) if path.is_file() and path.stat().st_size])
        content, times = bytearray(path.read_bytes()), path.stat()
        change(content, rng)
        path.write_bytes(content)
        if rng.random() < 0.5:
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    return alter


def _flip(content: bytearray, rng: random.Random) -> None:
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def _zero(content: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(content))
    content[start : start + 512] = bytes(len(content[start : start + 512]))


def _truncate(content: bytearray, rng: random.Random) -> None:
    del content[rng.randrange(len(content)) :]


def _insert(content: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(content))
    content[start:start] = rng.randbytes(rng.randint(1, 40))


def _exchange(folder: Path, rng: random.Random) -> None:
    parts = _parts(folder)
    if len(parts) > 1:
        first, second = rng.sample(parts, 2)
        first.rename(folder / "_between")
        second.rename(first)
        (folder / "_between").rename(second)


def _copy(folder: Path, rng: random.Random) -> None:
    if parts := [path for path in _parts(folder) if path.is_file()]:
        part = rng.choice(parts)
        number, checksum = rng.randrange(100), part.stem.rpartition("-")[2]
        shutil.copy2(part, folder / f"part-{number:06d}-{checksum}.parquet")


def _delete(folder: Path, rng: random.Random) -> None:
    rng.choice(sorted(path for path in folder.iterdir() if not path.is_dir())).unlink()


def _irregular(folder: Path, rng: random.Random) -> None:
    path = rng.choice(sorted(path for path in folder.iterdir() if not path.is_dir()))
    path.unlink()
    make = rng.choice((os.mkfifo, Path.mkdir, lambda path: path.symlink_to("nowhere")))
    make(path)


def _foreign(folder: Path, rng: random.Random) -> None:
    """Put rows of the same records, answered with another option, in the place of a part."""
    with tempfile.TemporaryDirectory() as other:
        run(Path(other) / "store", FACTS | {"--decoder": "fod"})
        part = _parts(Path(other) / "store")[0]
        shutil.copy2(part, folder / part.name)


def _note(folder: Path, rng: random.Random) -> None:
    note = folder / "_run.json"
    if note.is_dir():
        note.rmdir()
    note.unlink(missing_ok=True)
    note.write_text(rng.choice(("", "{", "[]", "3", '"x"', "[" * 9999, json.dumps(FACTS | {"--decoder": "fod"}))))


ALTERATIONS: dict[str, Alter] = {
    "a bit flipped": _in_bytes(_flip),
    "512 bytes zeroed": _in_bytes(_zero),
    "cut off": _in_bytes(_truncate),
    "bytes inserted": _in_bytes(_insert),
    "emptied": _in_bytes(lambda content, rng: content.clear()),
    "two parts exchanged": _exchange,
    "a part copied": _copy,
    "a file deleted": _delete,
    "a pipe, folder or dangling link": _irregular,
    "a part of another run": _foreign,
    "the note replaced": _note,
}


def _run_on(folder: Path) -> tuple[dict[str, JsonDict], int]:
    """Run again, after each error without the part that it names; return the rows and the number of these parts."""
    deleted = 0
    while True:
        try:
            return run(folder), deleted
        except CheckpointError as error:
            named = re.search(r"part-\S+\.parquet", str(error))
            if named is None:
                raise
            part = folder / named[0]
            (part.rmdir if part.is_dir() else part.unlink)()
            deleted += 1


def trial(
    whole: Path, expected: dict[str, JsonDict], kinds: Sequence[str], rng: random.Random
) -> tuple[str, list[str]]:
    """Alter a copy of a store and run again; return the outcome and what is broken."""
    signal.alarm(SECONDS)
    with tempfile.TemporaryDirectory() as name:
        folder, broken = Path(name) / "store", []
        shutil.copytree(whole, folder)
        for kind in kinds:
            ALTERATIONS[kind](folder, rng)
        try:
            read = [json.dumps(row, sort_keys=True) for row in stored_rows(folder)]
            known = Counter(json.dumps(row, sort_keys=True) for row in expected.values())
            if Counter(read) - known:
                broken.append("a reader is given rows that were not written, or one twice")
        except SyncheckError:
            pass
        parts = len(_parts(folder))
        try:
            found, deleted = _run_on(folder)
        except SyncheckError:
            return "refused", broken
        if found != expected:
            broken.append(f"{len(found)} rows, not those of an undisturbed run")
        keys = pandas.read_parquet(folder)["key"].tolist()
        if sorted(keys) != sorted(expected):
            broken.append("the folder does not have each key once")
        lost = deleted or parts < RECORDS // PART_SIZE
        return "answered again" if lost else "nothing lost", broken


def trials(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Return how often each outcome came about, and what is broken."""
    rng, outcomes, broken = random.Random(seed), Counter[str](), []
    with tempfile.TemporaryDirectory() as name:
        whole = Path(name) / "store"
        expected = run(whole)
        for number in range(count):
            first = list(ALTERATIONS)[number % len(ALTERATIONS)]
            kinds = [first, *rng.choices(list(ALTERATIONS), k=rng.choice((0, 0, 1, 2)))]
            try:
                outcome, faults = trial(whole, expected, kinds, rng)
            except Exception as error:
                outcome, faults = "broken", [f"{type(error).__name__}: {error}"]
            outcomes[outcome] += 1
            broken += [f"{number} ({', '.join(kinds)}): {fault}" for fault in faults]
    signal.alarm(0)
    return outcomes, broken


def main(argv: list[str] | None = None) -> int:
    """Print the outcomes; return 1 if something broke."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, metavar="N", help="altered stores (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    outcomes, broken = trials(args.count, args.seed)
    print(f"syncheck {__version__}, pyarrow {pa.__version__}, Python {platform.python_version()}")
    for outcome, count in outcomes.most_common():
        print(f"{outcome:<16} {count:>6}")
    print(f"broken {len(broken)}")
    for fault in broken:
        print(f"  {fault}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
