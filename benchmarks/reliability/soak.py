"""A search for what grows and should not: memory, hooks on the model, threads, open files.

    python benchmarks/reliability/soak.py --count 1000 --fod 200 --seed 0

Lets a Llama of 8.9 M parameters, kept with the tests, answer questions of the demo, COUNT of them by ``generate`` and
as many as FOD by the search, and says every hundred how long they took and what is held. Exits with 1 if there are more
hooks, threads or open files at the end than after the first answers, or if memory kept growing; see :func:`growth`.
Reads ``/proc``, so it runs on Linux.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from jobs import versions

from fod import FODGenerator
from syncheck import Monitor, RagPrompt
from syncheck.kit import KIT_MODEL, demo_questions, load_kit

WARM_UP = 20
"""First answers, which load libraries and fill caches and arenas, and do not count."""
EVERY = 10
"""Answers between two readings of the memory."""
TOLERATED_MIB = 64.0
"""Largest rise of memory from the second to the last third of a run."""
HOOK_TABLES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


Way = tuple[str, int, Callable[[int], object]]
"""Its name, how many answers it gives, and what gives the i-th."""


@dataclass(frozen=True, slots=True)
class Held:
    """Resources that the process holds.

    Attributes
    ----------
    hooks : int
        On all modules of the model.
    threads : int
        Of the process, those of libraries included.
    files : int
        Open descriptors.
    memory_mib : float
        Resident.
    """

    hooks: int
    threads: int
    files: int
    memory_mib: float


def held(model: torch.nn.Module) -> Held:
    """Look at the process after a garbage collection."""
    gc.collect()
    hooks = sum(len(getattr(module, table)) for module in model.modules() for table in HOOK_TABLES)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    files = len(os.listdir("/proc/self/fd")) - 1  # without the one that lists them
    return Held(hooks, int(status["Threads"]), files, int(status["VmRSS"].split()[0]) / 1024)


def growth(before: Held, after: Held, memory: Sequence[float]) -> list[str]:
    """Describe what has grown; empty when nothing has.

    Parameters
    ----------
    before, after
        What was held after the first answers, and at the end.
    memory
        At least three readings in between, in MiB. It has kept growing when the median of the last third is above that
        of the second by more than :data:`TOLERATED_MIB`: what caches and arenas take levels off, a leak does not.
    """
    found = [
        f"{field.name}: {getattr(before, field.name)} before, {getattr(after, field.name)} after"
        for field in fields(Held)
        if field.name != "memory_mib" and getattr(after, field.name) > getattr(before, field.name)
    ]
    _, second, third = (float(np.median(part)) for part in np.array_split(memory, 3))
    if third - second > TOLERATED_MIB:
        found.append(f"memory_mib: median {second:.0f} in the second third of the run, {third:.0f} in the last")
    return found


def soak(monitor: Monitor, ways: Sequence[Way], *, say_every: int = 100) -> tuple[Held, Held, list[float]]:
    """Answer by each way in turn and return the resources before and after, and the memory in between, in MiB.

    Parameters
    ----------
    monitor
        Whose model is looked at.
    ways
        One after another.
    say_every
        Answers between two lines on the standard error.
    """
    for _, count, answer in ways:
        for i in range(min(WARM_UP, count)):
            answer(i)
    before = held(monitor.model)
    memory = [before.memory_mib]
    for name, count, answer in ways:
        began = time.perf_counter()
        for i in range(count):
            answer(i)
            if (i + 1) % EVERY == 0 or i + 1 == count:
                memory.append(held(monitor.model).memory_mib)
            if (i + 1) % say_every == 0 or i + 1 == count:
                seconds, began = time.perf_counter() - began, time.perf_counter()
                print(
                    f"{name}: {i + 1} of {count}, {seconds:.0f} s since the last line, {held(monitor.model)}",
                    file=sys.stderr,
                    flush=True,
                )
    return before, held(monitor.model), memory


def ways_over(
    monitor: Monitor, prompts: Sequence[RagPrompt], generations: int, searches: int, *, seed: int, tokens: int
) -> list[Way]:
    """Return both ways over some prompts, as :func:`soak` takes them; each answer has a seed of its own."""
    decoder = FODGenerator(monitor.model, monitor.tokenizer, monitor)

    def generate(i: int) -> object:
        generator = torch.Generator(device=monitor.model.device).manual_seed(seed + i)
        prompt = prompts[i % len(prompts)]
        return monitor.generate(prompt, max_new_tokens=tokens, do_sample=True, generator=generator)

    def search(i: int) -> object:
        return decoder.generate(prompts[i % len(prompts)], seed=seed + i, max_new_tokens=tokens)

    return [("generate", generations, generate), ("fod", searches, search)]


def main() -> int:
    """Run, print the resources, and say what has grown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="answers by generate")
    parser.add_argument("--fod", type=int, default=200, help="answers by FOD")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=64, help="most tokens of an answer")
    args = parser.parse_args()
    monitor = load_kit("generation")
    print(versions())
    print(
        f"{KIT_MODEL}, seed {args.seed}, {args.count} generations and {args.fod} runs of FOD of up to "
        f"{args.tokens} tokens; Python's own threads: {threading.active_count()}"
    )
    began = time.perf_counter()
    prompts = [monitor.prompt(question=q.question, context=q.passages) for q in demo_questions()]
    ways = ways_over(monitor, prompts, args.count, args.fod, seed=args.seed, tokens=args.tokens)
    before, after, memory = soak(monitor, ways)
    print(f"before {before}\nafter  {after}\nin {time.perf_counter() - began:.0f} s")
    tenths = [round(float(np.median(part))) for part in np.array_split(memory, 10) if len(part)]
    print(f"resident memory, median of each tenth of the run, MiB: {tenths}")
    found = growth(before, after, memory)
    print("grown: " + "; ".join(found) if found else "nothing has grown")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
