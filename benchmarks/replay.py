"""The cost of scoring given answers, relative to the forward passes that it needs."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
from turns import CLOCKS
from workload import Job, Subject, make_job

from syncheck import Monitor

CONTEXT, TOKENS, ANSWERS = 1000, 250, 16
WARM_UP_SEED, THROUGHPUT_SEED = 2001, 3001

TWO_PASSES = "the two forward passes alone"
SIGNALS = "monitor.score, signals only"
FULL = "monitor.score, with aligner and aggregator"


@dataclass(slots=True)
class Replay:
    """Seconds of each way by repeat, and those of many answers one by one and in one batch."""

    context: int
    tokens: int
    answers: int
    seconds: dict[str, list[float]] = field(default_factory=lambda: {TWO_PASSES: [], SIGNALS: [], FULL: []})
    one_by_one: list[float] = field(default_factory=list)
    together: list[float] = field(default_factory=list)

    def ratios(self, name: str) -> list[float]:
        """Ratios to the two passes, repeat by repeat."""
        return [own / base for own, base in zip(self.seconds[name], self.seconds[TWO_PASSES], strict=True)]


def two_passes(subject: Subject, job: Job) -> None:
    """Run prompt and answer once with the context and once without, keeping the logits of the answer only."""
    answer = list(job.answers[0])
    for prompt in (job.prompts[0].with_context_ids, job.prompts[0].without_context_ids):
        ids = torch.tensor([[*prompt, *answer]], device=subject.model.device)
        with torch.inference_mode():
            subject.model(input_ids=ids, use_cache=False, logits_to_keep=len(answer) + 1)


def measure_replay(
    subject: Subject, *, repeats: int, throughput_repeats: int, small: bool, clock: str, tick: Callable[[], object]
) -> Replay:
    """Score answers of 250 tokens over contexts of 1,000 (``small``: 20 over 60), in turn with the bare passes."""
    context, tokens, answers = (60, 20, 2) if small else (CONTEXT, TOKENS, ANSWERS)
    make = partial(make_job, subject, context=context, tokens=tokens)
    found = Replay(context, tokens, answers)
    device = subject.model.device.type
    for repeat in range(-1, repeats):
        job = make(batch=1, seed=repeat if repeat >= 0 else WARM_UP_SEED)
        taken = {
            TWO_PASSES: _seconds(partial(two_passes, subject, job), device, clock),
            SIGNALS: _seconds(partial(_score, subject.signals, job), device, clock),
            FULL: _seconds(partial(_score, subject.full, job), device, clock),
        }
        if repeat >= 0:  # the first one warms up
            for name, seconds in taken.items():
                found.seconds[name].append(seconds)
        tick()
    for repeat in range(throughput_repeats):
        job = make(batch=answers, seed=THROUGHPUT_SEED + repeat)
        found.one_by_one.append(_seconds(partial(_score, subject.signals, job), device, clock))
        found.together.append(_seconds(partial(_score_together, subject.signals, job), device, clock))
        tick()
    return found


def _score(monitor: Monitor, job: Job) -> None:
    for prompt, answer in zip(job.prompts, job.answers, strict=True):
        monitor.score(prompt, response_token_ids=answer)


def _score_together(monitor: Monitor, job: Job) -> None:
    monitor.score_batch(list(job.prompts), response_token_ids=list(job.answers), batch_size=len(job.prompts))


def _seconds(call: Callable[[], object], device: str, clock: str) -> float:
    now = CLOCKS[clock]
    gc.collect()
    gc.disable()
    try:
        started = now()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        return now() - started
    finally:
        gc.enable()
