"""Processor time of watching an answer in 1,000 pieces, compared with scoring it at once.

    python benchmarks/watching.py

The answer is text of the bundled passages, scored with the kit's monitors: ``generic`` reads text alone, ``generation``
lets the kit's language model read it too. Both ways take turns; prints the seconds of each round and the median ratio.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median

import torch
from machine import describe_machine

from syncheck import Monitor, RagPrompt, Report, load_kit
from syncheck.kit import KitPurpose, demo_questions


def pieces_of(text: str, count: int) -> list[str]:
    """Cut a text into pieces of similar length, anywhere."""
    bounds = [round(i * len(text) / count) for i in range(count + 1)]
    return [text[a:b] for a, b in pairwise(bounds)]


def watched(monitor: Monitor, prompt: RagPrompt, pieces: Sequence[str], at_once: int) -> Report:
    """Watch an answer in pieces."""
    with monitor.watch_text(prompt, at_once=at_once) as watch:
        for piece in pieces:
            watch.feed(piece)
        watch.close()
        assert watch.report is not None
        return watch.report


def seconds(run: Callable[[], Report]) -> tuple[float, Report]:
    """Return the processor time of a run, over all threads, and its report."""
    started = time.process_time()
    report = run()
    return time.process_time() - started, report


def compare(purpose: KitPurpose, text: str, pieces: Sequence[str], rounds: int, at_once: int) -> None:
    """Let one monitor score and watch in turns, and print."""
    monitor, first = load_kit(purpose), demo_questions()[0]
    prompt = monitor.prompt(question=first.question, context=first.passages)
    ratios, name = [], f"{purpose}, {at_once} at once"
    for _ in range(rounds + 1):
        whole, report = seconds(lambda: monitor.score(prompt, text))
        parts, other = seconds(lambda: watched(monitor, prompt, pieces, at_once))
        apart = max(abs(a.score - b.score) for a, b in zip(report.sentences, other.sentences, strict=True))
        ratios.append(parts / whole)
        print(f"{name}: scored {whole:.3f} s, watched {parts:.3f} s, scores at most {apart:.1e} apart")
    counted = sorted(ratios[1:])
    cost = f"{median(counted):.2f} times one score ({counted[0]:.2f} to {counted[-1]:.2f})"
    print(f"{name}: {len(report.tokens)} tokens, {len(report.sentences)} sentences, {len(pieces)} pieces: {cost}")


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pieces", type=int, default=1000, help="(%(default)s)")
    parser.add_argument("--characters", type=int, default=4000, help="of the answer (%(default)s)")
    parser.add_argument(
        "--at-once", type=int, nargs="+", default=[1, 4], help="sentences scored together (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="counted, after one that is not (%(default)s)")
    args = parser.parse_args(words)
    text = " ".join(passage for question in demo_questions() for passage in question.passages)[: args.characters]
    print("; ".join(describe_machine("cpu", torch.get_num_threads(), "processor").values()))
    for purpose in ("generic", "generation"):
        for at_once in args.at_once:
            compare(purpose, text, pieces_of(text, args.pieces), args.rounds, at_once)


if __name__ == "__main__":
    main()
