"""Time to score given answers from their text alone, compared with replaying them through the kit's language model.

    python benchmarks/text_only.py --ragtruth ragtruth-qa --answers 60 --monitor generic-bundled

The two monitors take turns on the same answers of RAGTruth; prints seconds by round, and the median ratio. Both have
the same aligner.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import torch
from machine import describe_machine

from syncheck import LabelledResponse, Monitor, MonitorConfig, load_kit
from syncheck.labelling import load_ragtruth


def seconds(monitor: Monitor, answers: Sequence[LabelledResponse]) -> float:
    """Score each answer by itself."""
    started = time.perf_counter()
    for answer in answers:
        monitor.score(monitor.prompt(question=answer.question, context=answer.passages), answer.response)
    return time.perf_counter() - started


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ragtruth", type=Path, required=True, metavar="DIR")
    parser.add_argument("--answers", type=int, default=60, help="drawn with --seed (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="counted, after one of a few answers (%(default)s)")
    parser.add_argument("--monitor", default="generic", choices=("generic-bundled", "generic-reader", "generic"))
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    args = parser.parse_args(words)
    answers = random.Random(args.seed).sample(load_ragtruth(args.ragtruth), args.answers)
    text_only = load_kit(args.monitor)
    replayed = Monitor(text_only.model, text_only.tokenizer, config=MonitorConfig(), aligner=text_only.aligner)
    for monitor in (replayed, text_only):
        seconds(monitor, answers[:3])
    ratios = []
    print("; ".join(describe_machine("cpu", torch.get_num_threads(), "wall-clock").values()))
    for _ in range(args.rounds):
        slow, fast = seconds(replayed, answers), seconds(text_only, answers)
        ratios.append(slow / fast)
        print(f"replayed {slow:.2f} s, text alone {fast:.2f} s")
    print(f"text alone is {median(ratios):.1f} times as fast ({min(ratios):.1f} to {max(ratios):.1f})")


if __name__ == "__main__":
    main()
