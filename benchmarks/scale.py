"""Speed and memory of scoring responses by context, answer, batch and workers, as the table in docs/scale.md.

    python benchmarks/scale.py --count 48

Each figure is of processes of its own, one for each worker, with one thread each and a verifier, so that no language
model is loaded. They score one synthetic answer to warm up and then others for the time; lengths are in tokens of the
kit's model. ``--clock cpu`` takes processor time, which other programs disturb less; it cannot see workers waiting for
each other.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from machine import describe_machine
from peak_memory import resident_bytes

from syncheck import Verifier
from syncheck.aligners import load_aligner
from syncheck.corpus import Line, RecordScorer

CONTEXTS, ANSWERS = (250, 750, 1500), (50, 200)
BATCH_TOKENS = 4096
WORKERS = (1, 2)
SEED = 0


def write_lines(path: Path, context: int, answer: int, count: int) -> None:
    """Write records with prompts and answers of so many tokens, one more than are counted."""
    from workload import make_job, subject_of  # which workers that read text alone do not load

    subject = subject_of("kit", shape="", device="cpu", dtype=torch.float32)
    job = make_job(subject, context=context, tokens=answer, batch=count + 1, seed=SEED)
    records = (
        {
            "id": number,
            "question": prompt.question,
            "context": list(prompt.passages),
            "response": subject.tokenizer.decode(ids),
        }
        for number, (prompt, ids) in enumerate(zip(job.prompts, job.answers, strict=True))
    )
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")


def measured(path: Path, batch_tokens: int | None, aligner: str, clock: str) -> dict[str, float]:
    """Score the records of a file in this process; return seconds for one, and the peak of memory in MB."""
    torch.set_num_threads(1)
    lines = [Line("synthetic", n, line) for n, line in enumerate(path.read_bytes().splitlines())]
    scorer = RecordScorer(Verifier(load_aligner(aligner)), batch_tokens=batch_tokens)
    scorer(lines[:1])
    now = time.process_time if clock == "cpu" else time.perf_counter
    started = now()
    rows = scorer(lines[1:])
    seconds = (now() - started) / len(rows)
    failed = [row["error"] for row in rows if "error" in row]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(rows)} were not scored: {failed[0]}")
    return {"seconds": seconds, "memory_mb": resident_bytes("VmHWM") / 1e6}


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


def main(argv: list[str] | None = None) -> int:
    """Measure, and print the table: workers together at the middle lengths alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contexts", type=int, nargs="+", default=CONTEXTS, help="tokens of a prompt (%(default)s)")
    parser.add_argument("--answers", type=int, nargs="+", default=ANSWERS, help="tokens of an answer (%(default)s)")
    parser.add_argument("--batch-tokens", type=int, default=BATCH_TOKENS, help="beside one by one (%(default)s)")
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS, help="at once (%(default)s)")
    parser.add_argument("--count", type=int, default=24, help="answers a figure and worker (%(default)s)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--aligner", choices=("bundled", "reader"), default="bundled", help="(%(default)s)")
    parser.add_argument("--one", type=json.loads, metavar="JSON", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.one is not None:
        path, batch_tokens = args.one
        print(json.dumps(measured(Path(path), batch_tokens, args.aligner, args.clock)))
        return 0
    middle = args.contexts[len(args.contexts) // 2], args.answers[-1]
    places = [(context, answer, 1) for context in args.contexts for answer in args.answers]
    places += [(*middle, workers) for workers in args.workers if workers > 1]
    machine = ", ".join(describe_machine("cpu", 1, args.clock).values())
    print(f"Measured with generic-{args.aligner}, which reads text alone, {machine}:\n")
    print("| prompt, tokens | answer, tokens | workers at once | answers per second and worker", end=" ")
    print(f"| with `--batch-tokens {args.batch_tokens}` | memory per worker: without, with batches |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    options = ["--aligner", args.aligner, "--clock", args.clock]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        for context, answer, workers in places:
            write_lines(path, context, answer, args.count)
            alone, batch = (at_once(workers, [json.dumps([str(path), n]), *options]) for n in (None, args.batch_tokens))
            print(
                f"| {context:,} | {answer} | {workers} | {1 / alone['seconds']:.2f} | {1 / batch['seconds']:.2f} "
                f"| {alone['memory_mb'] / 1000:.2f} GB, {batch['memory_mb'] / 1000:.2f} GB |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
