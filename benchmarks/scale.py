"""Speed of scoring responses by context, answer, batch and workers; `syncheck plan` reads the result.

    python benchmarks/scale.py --output rates.json     # of this machine, for syncheck plan --rates
    python benchmarks/scale.py --bundled --count 48    # the bundled rates, and what docs/scale.md shows of them
    python benchmarks/scale.py --docs                  # that part of docs/scale.md alone

Each figure is of processes of its own, one for each worker, with one thread each and the bundled monitor for answers of
other models. They score synthetic answers once to warm up and then for the time. ``--clock cpu`` takes processor time,
which other programs disturb less; it cannot see workers waiting for each other.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from machine import describe_machine

from syncheck.corpus.scale import BUNDLED_RATES, FORMAT, Rate, Rates

ROOT = Path(__file__).parents[1]
CONTEXTS, ANSWERS = (250, 750, 1500), (50, 200)
BATCH_TOKENS = (4096,)
WORKERS = (1, 2)
SEED = 0
DOCS = ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- begin: python benchmarks/scale.py --docs -->\n", "<!-- end -->\n"
PLAN = "plan --answers 1e6 --context-tokens 1000 --answer-tokens 150 --price-per-hour 0.05"


def measured(context: int, answer: int, batch_tokens: int | None, count: int, clock: str) -> dict[str, float]:
    """Score ``count`` answers in this process; return seconds for one, and the peak of memory in MB."""
    import torch
    from workload import Subject, copying_model, make_job

    from syncheck import Monitor
    from syncheck.aligners import BundledAligner
    from syncheck.corpus import Line, RecordScorer

    torch.set_num_threads(1)
    monitor = Monitor(*copying_model(), aligner=BundledAligner.load())
    subject = Subject("copying model", monitor, monitor)
    job = make_job(subject, context=context, tokens=answer, batch=count + 1, seed=SEED)
    lines = [
        Line(
            "synthetic",
            i,
            json.dumps(
                {
                    "id": i,
                    "question": prompt.question,
                    "context": list(prompt.passages),
                    "response": monitor.tokenizer.decode(ids),
                }
            ).encode(),
        )
        for i, (prompt, ids) in enumerate(zip(job.prompts, job.answers, strict=True))
    ]
    scorer = RecordScorer(monitor, batch_tokens=batch_tokens)
    scorer(lines[:1])
    now = time.process_time if clock == "cpu" else time.perf_counter
    started = now()
    rows = scorer(lines[1:])
    seconds = (now() - started) / count
    failed = [row["error"] for row in rows if "error" in row]
    if failed:
        raise SystemExit(f"{len(failed)} of {count} were not scored: {failed[0]}")
    return {"seconds": seconds, "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}


def at_once(workers: int, arguments: list[str]) -> dict[str, float]:
    """Measure in so many processes at once; return the mean of their seconds and the largest memory."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    line = [sys.executable, __file__, "--one", *arguments]
    running = [subprocess.Popen(line, env=environment, stdout=subprocess.PIPE) for _ in range(workers)]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise SystemExit("a worker failed; its message is above")
    found = [json.loads(output.splitlines()[-1]) for output in outputs]
    return {
        "seconds": statistics.fmean(entry["seconds"] for entry in found),
        "memory_mb": max(entry["memory_mb"] for entry in found),
    }


def settings(args: argparse.Namespace) -> list[tuple[int, int, int | None, int]]:
    """Return context, answer, batch and workers of each figure: workers together at the middle lengths alone."""
    grid = [(c, a, b, 1) for b in (None, *args.batch_tokens) for c in args.contexts for a in args.answers]
    middle = args.contexts[len(args.contexts) // 2], args.answers[-1]
    return grid + [(*middle, b, n) for b in (None, *args.batch_tokens) for n in args.workers if n > 1]


def documented(path: Path) -> str:
    """Return the part of docs/scale.md that shows rates: a table of them, and a plan."""
    from syncheck.cli import main as command
    from syncheck.corpus import load_rates

    rates = load_rates(path)
    by_batch: dict[int | None, dict[tuple[int, int, int], Rate]] = {}
    for rate in rates.rates:
        place = (rate.context_tokens, rate.answer_tokens, rate.workers)
        by_batch.setdefault(rate.batch_tokens, {})[place] = rate
    (together,) = (size for size in by_batch if size is not None)
    rows = [
        f"| {context:,} | {answer} | {workers} | {1 / alone.seconds:.2f} | {1 / batch.seconds:.2f} "
        f"| {alone.memory_mb / 1000:.2f} GB, {batch.memory_mb / 1000:.2f} GB |"
        for (context, answer, workers), alone in by_batch[None].items()
        for batch in (by_batch[together][context, answer, workers],)
    ]
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        command([*PLAN.split(), "--rates", str(path)])
    lines = [
        f"Measured with {', '.join(rates.machine.values())}:",
        "",
        f"| prompt, tokens | answer, tokens | workers at once | answers per second and worker | with `--batch-tokens "
        f"{together}` | memory per worker: without, with batches |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
        *rows,
        "",
        "A million answers, at a price of 0.05 per worker and hour:",
        "",
        "```console",
        f"$ syncheck {PLAN}",
        *(line.rstrip() for line in shown.getvalue().splitlines()),
        "```",
    ]
    return "\n".join(lines) + "\n"


def write_docs(path: Path) -> None:
    """Put what :func:`documented` returns between its marks in docs/scale.md."""
    before, rest = DOCS.read_text(encoding="utf-8").split(BEGIN)
    DOCS.write_text(before + BEGIN + documented(path) + END + rest.split(END)[1], encoding="utf-8")


def save_rates(rates: Rates, path: str | Path) -> None:
    """Write rates as JSON."""
    Path(path).write_text(json.dumps({"format": FORMAT, **asdict(rates)}, indent=1) + "\n", encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Measure and write the rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contexts", type=int, nargs="+", default=CONTEXTS, help="tokens of a prompt (%(default)s)")
    parser.add_argument("--answers", type=int, nargs="+", default=ANSWERS, help="tokens of an answer (%(default)s)")
    parser.add_argument("--batch-tokens", type=int, nargs="*", default=BATCH_TOKENS, help="and none (%(default)s)")
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS, help="at once (%(default)s)")
    parser.add_argument("--count", type=int, default=24, help="answers a figure and worker (%(default)s)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--note", default="", help="what should be known of the run, kept with the rates")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--output", type=Path, help="JSON file")
    target.add_argument("--bundled", action="store_true", help="replace the bundled rates, and rewrite docs/scale.md")
    target.add_argument("--docs", action="store_true", help="measure nothing: rewrite docs/scale.md")
    parser.add_argument("--one", type=json.loads, metavar="JSON", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.one is not None:
        print(json.dumps(measured(*args.one, args.count, args.clock)))
        return 0
    if args.docs:
        write_docs(BUNDLED_RATES)
        return 0
    rates = []
    for context, answer, batch_tokens, workers in settings(args):
        arguments = [json.dumps([context, answer, batch_tokens]), "--count", str(args.count), "--clock", args.clock]
        rate = Rate(context, answer, batch_tokens, workers, **at_once(workers, arguments))
        rates.append(rate)
        print(
            f"context {context}, answer {answer}, batch {batch_tokens}, workers {workers}: "
            f"{1 / rate.seconds:.2f} answers/s a worker, {rate.memory_mb:.0f} MB",
            flush=True,
        )
    machine = {
        "monitor": "the bundled monitor generic-bundled, which reads text alone",
        **describe_machine("cpu", 1, args.clock),
        "cores": f"{os.cpu_count()} cores",
        **({"note": args.note} if args.note else {}),
    }
    target_file = BUNDLED_RATES if args.bundled else args.output
    if target_file is not None:
        save_rates(Rates(machine, tuple(rates)), target_file)
    if args.bundled:
        write_docs(BUNDLED_RATES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
