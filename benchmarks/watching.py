"""Processor time of watching an answer in 1,000 pieces, compared with scoring it at once.

    python benchmarks/watching.py

The answer is text of the bundled passages, scored with two monitors of the kit's model: ``generic-bundled`` reads text
alone, ``generation`` lets the model read it too. It is fed piece by piece (with a fixed number of sentences scored
together) and as a list of pieces. Each way takes turns with one score; prints the seconds of each round and the median
ratio.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import TypeVar

import torch
from machine import describe_machine

from syncheck import Monitor, RagPrompt, load_aligner, load_kit
from syncheck.kit import demo_questions, kit_language_model
from syncheck.results import Verified

TEXT_ALONE, WITH_SIGNALS = "generic-bundled", "generation"
Result = TypeVar("Result")


def pieces_of(text: str, count: int) -> list[str]:
    """Cut a text into pieces of similar length, anywhere."""
    bounds = [round(i * len(text) / count) for i in range(count + 1)]
    return [text[a:b] for a, b in pairwise(bounds)]


def watched(monitor: Monitor, prompt: RagPrompt, pieces: Sequence[str], at_once: int) -> list[float | None]:
    """Watch an answer that is fed piece by piece; returns the scores."""
    with monitor.watch_text(prompt, at_once=at_once) as watch:
        for piece in pieces:
            watch.feed(piece)
        watch.close()
        return [sentence.score for sentence in watch.sentences]


def listed(monitor: Monitor, prompt: RagPrompt, pieces: Sequence[str]) -> list[float | None]:
    """Watch a list of pieces; returns the scores."""
    return [e.score for e in monitor.watch(pieces, prompt) if isinstance(e, Verified)]


def seconds(run: Callable[[], Result]) -> tuple[float, Result]:
    """Return the processor time of a run, over all threads, and its result."""
    started = time.process_time()
    result = run()
    return time.process_time() - started, result


def compare(name: str, text: str, pieces: Sequence[str], rounds: int, way: int | None) -> None:
    """Let one monitor score and watch in turns, and print; ``way`` is the number scored together, None for a list."""
    first = demo_questions()[0]
    text_alone = name == TEXT_ALONE
    monitor = Monitor(*kit_language_model(), aligner=load_aligner("bundled")) if text_alone else load_kit("generation")
    prompt = monitor.prompt(question=first.question, context=first.passages)
    ratios, name = [], f"{name}, " + ("list" if way is None else f"{way} at once")

    def watch() -> list[float | None]:
        return listed(monitor, prompt, pieces) if way is None else watched(monitor, prompt, pieces, way)

    for _ in range(rounds + 1):
        whole, report = seconds(lambda: monitor.score(prompt, text))
        parts, scores = seconds(watch)
        pairs = zip((sentence.score for sentence in report.sentences), scores, strict=True)
        apart = max(abs(a - b) for a, b in pairs if a is not None and b is not None)
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
        "--at-once", type=int, nargs="+", default=[1, 2, 4], help="sentences scored together (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="counted, after one that is not (%(default)s)")
    args = parser.parse_args(words)
    text = " ".join(passage for question in demo_questions() for passage in question.passages)[: args.characters]
    print("; ".join(describe_machine("cpu", torch.get_num_threads(), "processor").values()))
    for name in (TEXT_ALONE, WITH_SIGNALS):
        for way in (*args.at_once, None):
            compare(name, text, pieces_of(text, args.pieces), args.rounds, way)


if __name__ == "__main__":
    main()
