"""Answers of threads that share a model, compared with those of one thread alone to the last bit.

    python benchmarks/reliability/threads.py --threads 4 --count 25 --seed 0

Each thread gives COUNT answers by ``score``, ``generate``, ``stream``, ``attach`` and FOD in an order of its own, so
that different ways meet on one model; each is compared with the answer that one thread gave to the same question
before. Once all threads share one monitor, once each has its own. Exits with 1 if an answer differs or fails.
"""

from __future__ import annotations

import argparse
import copy
import random
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence

from jobs import WAYS, Job, Outcome, demo_jobs, versions

from syncheck import Monitor
from syncheck.kit import KIT_MODEL, load_kit

SWITCH_S = 1e-5
"""Time that a thread may run Python before another gets its turn; Python's own 5 ms would hide most collisions."""

Key = tuple[str, int]


def compare(
    monitors: Sequence[Monitor], jobs: Sequence[Job], expected: dict[Key, Outcome], *, count: int, seed: int
) -> Counter[tuple[str, str]]:
    """Let one thread for each monitor answer ``count`` times; the monitors may be one and the same.

    Returns
    -------
    Counter
        Answers by (way, outcome); an outcome is ``same``, ``differs`` or the name of an exception.
    """
    found: Counter[tuple[str, str]] = Counter()
    start, finding = threading.Barrier(len(monitors)), threading.Lock()

    def work(monitor: Monitor, order: Sequence[Key]) -> None:
        start.wait()
        for way, index in order:
            try:
                same = WAYS[way](monitor, jobs[index]) == expected[way, index]
                outcome = "same" if same else "differs"
            except Exception as error:  # whatever it is, it is what is counted
                traceback.print_exc()
                outcome = type(error).__name__
            with finding:
                found[way, outcome] += 1

    orders = [_order(list(expected), count, seed + number) for number in range(len(monitors))]
    threads = [threading.Thread(target=work, args=pair) for pair in zip(monitors, orders, strict=True)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return found


def serial(monitor: Monitor, jobs: Sequence[Job]) -> dict[Key, Outcome]:
    """Return the answers of one thread to every job by every way."""
    return {(name, i): way(monitor, job) for i, job in enumerate(jobs) for name, way in WAYS.items()}


def _order(keys: Sequence[Key], count: int, seed: int) -> list[Key]:
    rng = random.Random(seed)
    order: list[Key] = []
    while len(order) < count:
        order += rng.sample(list(keys), len(keys))
    return order[:count]


def main() -> int:
    """Run both settings and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--count", type=int, default=25, help="answers of each thread")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--questions", type=int, default=5, help="each is answered by all ways, once by one thread")
    parser.add_argument("--tokens", type=int, default=48, help="most tokens of an answer")
    args = parser.parse_args()
    monitor = load_kit("generation")
    print(versions())
    print(f"{KIT_MODEL}, seed {args.seed}, {args.questions} questions, up to {args.tokens} tokens")
    jobs = demo_jobs(monitor, args.questions, seed=args.seed, tokens=args.tokens)
    began = time.perf_counter()
    expected = serial(monitor, jobs)
    assert serial(monitor, jobs[:1]).items() <= expected.items(), "one thread alone does not repeat itself"
    print(f"one thread: {len(expected)} answers in {time.perf_counter() - began:.0f} s")
    failed = 0
    for name, monitors in {
        "one monitor": [monitor] * args.threads,
        "a monitor for each thread": [copy.copy(monitor) for _ in range(args.threads)],
    }.items():
        began = time.perf_counter()
        found = compare(monitors, jobs, expected, count=args.count, seed=args.seed)
        seconds = time.perf_counter() - began
        same = sum(n for (_, outcome), n in found.items() if outcome == "same")
        total = found.total()
        failed += total - same
        print(f"{args.threads} threads x {args.count} answers, {name}: {same} of {total} the same, {seconds:.0f} s")
        for (way, outcome), n in sorted(found.items()):
            print(f"  {way:9}{outcome:12}{n:5}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
