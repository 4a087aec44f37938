"""What monitoring costs relative to plain ``generate``, measured in one run.

    python benchmarks/overhead.py

Both ways generate the same greedy tokens on the bundled model; runs are interleaved and medians compared.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
import transformers

from syncheck import Monitor, RagPrompt
from syncheck.kit import demo_questions, load_kit


def plain(monitor: Monitor, prompt: RagPrompt, tokens: int) -> None:
    """Generate without watching."""
    monitor.model.generate(**prompt.inputs(), do_sample=False, min_new_tokens=tokens, max_new_tokens=tokens)


def watched(monitor: Monitor, prompt: RagPrompt, tokens: int) -> None:
    """Generate and score every sentence."""
    monitor.generate(prompt, do_sample=False, min_new_tokens=tokens, max_new_tokens=tokens)


def attached(monitor: Monitor, prompt: RagPrompt, tokens: int) -> None:
    """Watch transformers' own loop."""
    with monitor.attach(prompt) as watch:
        out = monitor.model.generate(**prompt.inputs(), do_sample=False, min_new_tokens=tokens, max_new_tokens=tokens)
    watch.report(out)


def seconds(way: Callable[[Monitor, RagPrompt, int], None], *args: object) -> float:
    """Time one call."""
    started = time.perf_counter()
    way(*args)  # type: ignore[arg-type]
    return time.perf_counter() - started


def main() -> None:
    """Measure and print ratios with their quartiles."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    full = load_kit("generation")
    signals = Monitor(full.model, full.tokenizer, config=full.config, bank=full.bank)
    ways: dict[str, tuple[Monitor, Callable[[Monitor, RagPrompt, int], None]]] = {
        "plain generate": (full, plain),
        "monitor, signals only": (signals, watched),
        "monitor, with aligner and aggregator": (full, watched),
        "attached to generate, with both": (full, attached),
    }
    prompts = [full.prompt(question=q.question, context=q.passages) for q in demo_questions()]
    for monitor, way in ways.values():
        way(monitor, prompts[0], args.tokens)  # warm-up
    ratios: dict[str, list[float]] = {name: [] for name in ways}
    base = []
    for _ in range(args.repeats):
        for prompt in prompts:
            taken = {name: seconds(way, monitor, prompt, args.tokens) for name, (monitor, way) in ways.items()}
            base.append(taken["plain generate"])
            for name, value in taken.items():
                ratios[name].append(value / taken["plain generate"])
    print(
        f"torch {torch.__version__}, transformers {transformers.__version__}, "
        f"{platform.machine()} CPU, {args.threads} threads"
    )
    print(
        f"bundled model, {len(prompts)} prompts x {args.repeats} repeats, {args.tokens} new tokens, greedy, "
        "prefill included"
    )
    print(
        f"plain generate: median {statistics.median(base):.3f} s, {args.tokens / statistics.median(base):.0f} tokens/s"
    )
    for name, values in ratios.items():
        low, middle, high = np.percentile(values, [25, 50, 75])
        print(f"{name:<40} {middle:.2f} x  (quartiles {low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
