"""SIGKILL at random moments of ``score --resume``, ``score`` to a store and ``features``, run again until they finish.

``python benchmarks/reliability/kills.py --count 50 --seed 0 --command score``

The output must be, byte by byte, that of a run that nobody killed: nothing lost, nothing twice, nothing left over.
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
from pathlib import Path

import torch
import transformers

from syncheck import __version__

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "tests" / "golden" / "signals" / "llama"
ENDINGS = {"score": ".jsonl", "store": "", "features": ".parquet"}
"""Of what each command writes; a store is a folder."""
RECORDS = 30
"""Of each run: it works on them for about as long as it takes to start."""

sys.path.insert(0, str(Path(__file__).parent))

from records import answered, labelled, line_of  # noqa: E402


def command_of(command: str, source: Path, target: Path) -> list[str]:
    """Return the whole command line of a run."""
    code = "import sys; from syncheck.cli import main; sys.exit(main())"
    output = f"{target}/" if command == "store" else str(target)
    options = ["--model", str(MODEL), "--aligner", "none", "--output", output]
    own = {
        "score": ["--resume", "--tokens", "--input", str(source)],
        "store": ["--part-size", "2", "--tokens", "--input", str(source)],
        "features": ["--part-size", "2", "--data", str(source)],
    }[command]
    return [sys.executable, "-c", code, "score" if command == "store" else command, *options, *own]


def content(target: Path) -> dict[str, bytes]:
    """Return what an output holds."""
    if target.is_file():
        return {"": target.read_bytes()}
    return {path.name: path.read_bytes() for path in target.iterdir()}


def run(line: list[str], *, seconds: float | None) -> tuple[bool, int]:
    """Run to the end, or kill after a time; return whether it was killed, and the exit code."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    process = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _, shown = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True, process.returncode
    if b"Traceback" in shown:
        raise SystemExit(f"traceback: {shown.decode()}")
    return False, process.returncode


def trial(command: str, count: int, seed: int, records: int = RECORDS) -> tuple[int, int, list[str]]:
    """Kill ``count`` times; return how often a run had something to go on with, how many outputs were made, faults."""
    rng = random.Random(seed)
    broken: list[str] = []
    kills = midway = outputs = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ending = ENDINGS[command]
        source, whole = folder / "in.jsonl", folder / f"whole{ending}"
        lines = [line_of((labelled if command == "features" else answered)(i, rng)) for i in range(records)]
        if command != "features":
            lines[records // 2] = b"nonsense"
        source.write_bytes(b"".join(line + b"\n" for line in lines))
        started = time.perf_counter()
        _, expected = run(command_of(command, source, whole), seconds=None)
        lasts = time.perf_counter() - started
        while kills < count:
            target = folder / f"out{outputs}{ending}"
            outputs += 1
            code = None
            while code is None:
                # Only so often: a run that goes on may have little left to do, and be done before it is killed.
                wait = rng.uniform(0.2 * lasts, lasts) if kills < count else None
                begun = time.perf_counter()
                killed, found = run(command_of(command, source, target), seconds=wait)
                if not killed:
                    lasts = min(lasts, time.perf_counter() - begun)  # the machine may have been busier before
                kills += killed
                midway += killed and any(path.name.startswith(target.name) for path in folder.iterdir())
                code = None if killed else found
            if code != expected:
                broken.append(f"output {outputs}: exit code {code}, {expected} without kills")
            if content(target) != content(whole):
                broken.append(f"output {outputs} differs from that of a run without kills")
            beside = sorted(path.name for path in folder.iterdir() if path.name.startswith(f"{target.name}."))
            broken += [f"output {outputs}: {name} is left over" for name in beside]
    return midway, outputs, broken


def main(argv: list[str] | None = None) -> int:
    """Print the runs and their outcomes; return 1 if something broke."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", choices=tuple(ENDINGS), default="score")
    parser.add_argument("--count", type=int, default=50, metavar="N", help="kills (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    started = time.perf_counter()
    midway, outputs, broken = trial(args.command, args.count, args.seed)
    seconds = time.perf_counter() - started
    versions = f"syncheck {__version__}, torch {torch.__version__}, transformers {transformers.__version__}"
    print(
        f"kills: {args.command}, count {args.count}, seed {args.seed}; {versions}, Python {platform.python_version()}"
    )
    print(f"{midway} kills with something written, {outputs} outputs of {RECORDS} records made")
    print(f"broken {len(broken)}; {seconds:.1f} s")
    for fault in broken:
        print(f"  {fault}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
