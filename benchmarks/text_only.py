"""Time and memory of the first score of a process, and time to score answers compared with replaying them.

    python benchmarks/text_only.py
    python benchmarks/text_only.py --ragtruth ragtruth-qa --answers 60 --monitor generic-bundled

The first command measures fresh processes that score one sentence by ``Verifier`` and by ``syncheck score``: seconds,
seconds of processor time and peak memory, each the median over the rounds, after a process that is not counted. With
--empty-cache, it measures the first process on a machine instead, which makes what the others find in the cache.

The second command compares scores by the text alone with those of a monitor that replays the answers through the
kit's model, with the same aligner. The two take turns on the same answers of RAGTruth; it prints seconds
by round, and the median ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch
from machine import describe_machine

from syncheck import LabelledResponse, Monitor, MonitorConfig, Verifier, load_kit
from syncheck.labelling import load_ragtruth

RECORD = {"question": "When did it open?", "context": ["The mill opened in 1803."], "response": "It opened in 1903."}
VERIFIER = """
from syncheck import Verifier
report = Verifier().check("It opened in 1903.", question="When did it open?", passages=["The mill opened in 1803."])
assert report.lowest is not None
"""
COMMAND = "import sys; from syncheck.cli import main; sys.exit(main(sys.argv[1:]))"


class Cost(NamedTuple):
    """What a process took: seconds, seconds of processor time, and the most memory that it held, in bytes."""

    wall: float
    processor: float
    memory: int


def cost(code: str, *words: str, environment: dict[str, str]) -> Cost:
    """Run Python code with these arguments in a process of its own."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the process ended with {process.returncode}: {code}")
    return Cost(time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def first_scores(rounds: int, *, empty_cache: bool) -> None:
    """Measure and print the first score of a process, by the class and by the command."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "one.jsonl"
        record.write_text(json.dumps(RECORD) + "\n")
        named = {"Verifier": (VERIFIER,), "syncheck score": (COMMAND, "score", "--input", str(record))}
        for name, command in named.items():
            found = []
            for number in range(1 if empty_cache else rounds + 1):
                own = {"HF_ASSETS_CACHE": str(Path(folder) / f"{name}-{number}")} if empty_cache else {}
                found.append(cost(*command, environment=own))
            counted = found if empty_cache else found[1:]
            wall, processor, memory = (median(each) for each in zip(*counted, strict=True))
            print(f"{name}: {wall:.1f} s, {processor:.1f} s of processor time, {memory / 1e9:.2f} GB")


def text_seconds(verifier: Verifier, answers: Sequence[LabelledResponse]) -> float:
    """Score each answer by itself, by its text."""
    started = time.perf_counter()
    for answer in answers:
        verifier.check(answer.response, question=answer.question, passages=answer.passages)
    return time.perf_counter() - started


def replay_seconds(monitor: Monitor, answers: Sequence[LabelledResponse]) -> float:
    """Replay each answer by itself."""
    started = time.perf_counter()
    for answer in answers:
        monitor.score(monitor.prompt(question=answer.question, context=answer.passages), answer.response)
    return time.perf_counter() - started


def compare(verifier: Verifier, answers: Sequence[LabelledResponse], rounds: int) -> None:
    """Measure and print scores by the text alone, and by replaying."""
    kit = load_kit("generation")
    replayed = Monitor(kit.model, kit.tokenizer, config=MonitorConfig(), aligner=verifier.aligner)
    replay_seconds(replayed, answers[:3])
    text_seconds(verifier, answers[:3])
    ratios = []
    for _ in range(rounds):
        slow, fast = replay_seconds(replayed, answers), text_seconds(verifier, answers)
        ratios.append(slow / fast)
        print(f"replayed {slow:.2f} s, text alone {fast:.2f} s")
    print(f"text alone is {median(ratios):.1f} times as fast ({min(ratios):.1f} to {max(ratios):.1f})")


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ragtruth", type=Path, metavar="DIR", help="compare with replaying answers of this folder")
    parser.add_argument("--answers", type=int, default=60, help="drawn with --seed (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="counted, after one that is not (%(default)s)")
    parser.add_argument("--monitor", default="generic", choices=("generic-bundled", "generic-reader", "generic"))
    parser.add_argument("--empty-cache", action="store_true", help="measure the first process on a machine, once")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    args = parser.parse_args(words)
    print("; ".join(describe_machine("cpu", torch.get_num_threads(), "wall-clock").values()))
    if args.ragtruth is None:
        first_scores(args.rounds, empty_cache=args.empty_cache)
    else:
        answers = random.Random(args.seed).sample(load_ragtruth(args.ragtruth), args.answers)
        compare(load_kit(args.monitor), answers, args.rounds)


if __name__ == "__main__":
    main()
