"""Measurements that need a GPU, in one command and about ten minutes: a 7B shape in bfloat16.

    python benchmarks/gpu.py --output runs/gpu
    python benchmarks/gpu.py --dry-run          # tiny shapes on the CPU, only to see that it runs

Runs the cost benchmarks one after the other: watching against plain ``generate`` with contexts of 1,024 and 3,840
tokens and batches of 1 and 16 (goal: 1.08 times), FOD against greedy decoding (goal: 1.6 times), tokenwise signals and
LID (goal: 2 ms a sentence). Then the kit's monitor scores the same answers on both devices: their log-probabilities,
entropies and KL are to agree within ``--tolerance``. Ends with status 1 if they do not, or if a benchmark fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from syncheck.kit import demo_questions, load_kit

FOLDER = Path(__file__).parent
MODEL = ("--models", "random", "--shape", "7b", "--device", "cuda", "--dtype", "bfloat16")
OVERHEAD = ("--contexts", "1024", "3840", "--batches", "1", "16", "--tokens", "128", "64", "--rounds", "1", "1")
FOD = ("--contexts", "1024", "--sentences", "4", "--answers", "1", "--without-published")
QUICK = ("--models", "random", "--quick", "--threads", "1")
SIGNALS = ("token_ids", "log_prob", "log_prob_without_context", "entropy", "kl")


def runs(output: Path | None, *, dry: bool) -> dict[str, list[str]]:
    """Return the command line of each benchmark, by script."""
    found = {
        "overhead.py": [*(QUICK if dry else (*MODEL, *OVERHEAD)), "--parts", "ways", "memory"],
        "fod_cost.py": [*(QUICK if dry else (*MODEL, *FOD))],
        "signals.py": ["--repeats", "1"] if dry else ["--device", "cuda"],
    }
    for name in ("overhead.py", "fod_cost.py") if output is not None else ():
        found[name] += ["--output", str(output / name.replace(".py", ".json"))]
    return found


def disagreement(device: str) -> float:
    """Return the largest difference, in nats, of the kit's signals on a device from those on the CPU."""
    here, there = load_kit("generation"), load_kit("generation", device=device)
    worst = 0.0
    for question in demo_questions():
        prompt = here.prompt(question=question.question, context=question.passages)
        report = here.generate(prompt, max_new_tokens=60)
        tokens = there.score(prompt, response_token_ids=report.tokens.token_ids.tolist()).tokens
        for name in SIGNALS:
            worst = max(worst, float(np.abs(getattr(tokens, name) - getattr(report.tokens, name)).max(initial=0.0)))
    return worst


def main(words: Sequence[str] | None = None) -> int:
    """Run, print; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="tiny shapes on the CPU: the figures mean nothing")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write what was measured there, as JSON")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="nats (%(default)s)")
    args = parser.parse_args(words)
    if not args.dry_run and not torch.cuda.is_available():
        parser.error("there is no GPU that torch can use; pass --dry-run to try the command on the CPU")
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
    failed = []
    for script, options in runs(args.output, dry=args.dry_run).items():
        print(f"\n{script} {' '.join(options)}", flush=True)
        if subprocess.run([sys.executable, str(FOLDER / script), *options], check=False).returncode:
            failed.append(script)
    off = disagreement("cpu" if args.dry_run else "cuda")
    print(f"\nsignals on the GPU: at most {off:.1e} nats from those on the CPU", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}; their messages are above", file=sys.stderr)
    return int(bool(failed) or off > args.tolerance)


if __name__ == "__main__":
    sys.exit(main())
