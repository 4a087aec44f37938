"""One process that decodes and judges: the model, its monitor, the decoders by name and the judge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import torch
from decoding import (
    AnswerJudge,
    Decode,
    DecodedAnswer,
    DecodingLimits,
    EvaluatedAnswer,
    branching_over_thresholds,
    compared_decoders,
    reranking,
    swept_decoders,
)
from quality_prompts import Question
from transformers import AutoModelForCausalLM, AutoTokenizer

from syncheck import Monitor, load_aligner
from syncheck.base.errors import InputError, PromptError
from syncheck.kit import load_kit

PROBE_QUESTION, PROBE_CONTEXT = "Who built the tower?", ("Ana Velt built the tower of Mirath in 1743.",)
PROBE_ANSWER = "Ana Velt built the tower in 1743. She died in Lisbon."
"""Answer whose scores distinguish a monitor or a judge from another one of the same name."""

RERANKING = re.compile(r"Reranking of (\d+)")
BRANCHING = re.compile(r"FOD \(branch\) alpha=([\d.]+)")
SWEPT = re.compile(r"FOD K=(\d+) S=(\d+)")


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that a process needs to start.

    ``model`` and ``monitor`` are None for the kit; ``threads`` None leaves torch's choice.
    """

    model: str | None
    monitor: Path | None
    device: str
    judge: str
    judge_threshold: float
    allow_monitor_aligner: bool
    limits: DecodingLimits
    questions: tuple[Question, ...]
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One decoding of one prompt: what to do, by name, and the prompt's index."""

    key: str
    index: int


def reranking_key(candidates: int) -> str:
    """Name of reranking with a number of candidates, for jobs and the log."""
    return f"Reranking of {candidates}"


class Bench:
    """Runs jobs."""

    def __init__(self, setup: Setup) -> None:
        if setup.threads is not None:
            torch.set_num_threads(setup.threads)
        self.setup = setup
        self.monitor = load_monitor(setup)
        aligner = load_aligner(setup.judge, device=setup.device)
        if aligner is None:
            raise InputError("expected a judge; found 'none'. Pass --judge the folder that train_judge.py wrote")
        self._aligner = aligner
        self._judge = AnswerJudge(
            aligner,
            monitor=self.monitor,
            threshold=setup.judge_threshold,
            allow_monitor_aligner=setup.allow_monitor_aligner,
        )
        self._decoders = compared_decoders(self.monitor, setup.limits)
        self.independent = tuple(self._decoders)
        reranking(self.monitor, setup.limits, candidates=1)  # says at once if the monitor lacks what it needs

    def probes(self) -> dict[str, list[float | None]]:
        """Score one answer by the monitor and by the judge, so that a log notices when either is retrained."""
        prompt = self.monitor.prompt(question=PROBE_QUESTION, context=PROBE_CONTEXT)
        sentences = self.monitor.score(prompt, response=PROBE_ANSWER).sentences
        found = self._aligner.align(PROBE_CONTEXT, [sentence.text for sentence in sentences])
        return {
            "monitor_says": [None if s.score is None else round(s.score, 3) for s in sentences],
            "judge_says": [round(support.score, 3) for support in found],
        }

    def do(self, job: Job) -> list[EvaluatedAnswer]:
        """Decode and judge.

        Raises
        ------
        PromptError
            If a prompt does not fit the model's window; the error names it.
        """
        asked = self.setup.questions[job.index]
        prompt = self.monitor.prompt(question=asked.question, context=asked.passages)
        try:
            answers = self._decoder(job.key)(prompt, asked.id)
        except PromptError as error:
            raise PromptError(f"prompt {asked.id!r}: {error}") from error
        return self.judged(job.index, answers)

    def judged(self, index: int, answers: Sequence[DecodedAnswer]) -> list[EvaluatedAnswer]:
        """Judge answers to the prompt with this index."""
        asked = self.setup.questions[index]
        return self._judge.judge(answers, passages=asked.passages, prompt=asked.id, task=asked.task)

    def _decoder(self, key: str) -> Decode:
        if key not in self._decoders:
            limits = self.setup.limits
            if reranked := RERANKING.fullmatch(key):
                self._decoders[key] = reranking(self.monitor, limits, candidates=int(reranked[1]))
            elif branching := BRANCHING.fullmatch(key):
                self._decoders[key] = branching_over_thresholds(self.monitor, limits, alpha=float(branching[1]))
            elif swept := SWEPT.fullmatch(key):
                beam_size, samples = map(int, swept.groups())
                self._decoders |= swept_decoders(self.monitor, limits, pairs=[(beam_size, samples)])
        return self._decoders[key]


def load_monitor(setup: Setup) -> Monitor:
    """Load the kit, or the model and monitor that the settings name."""
    if setup.model is None or setup.monitor is None:
        return load_kit("generation", device=setup.device)
    model = AutoModelForCausalLM.from_pretrained(setup.model, dtype="auto", trust_remote_code=False).to(setup.device)
    return Monitor.from_pretrained(
        setup.monitor, model=model, tokenizer=AutoTokenizer.from_pretrained(setup.model, trust_remote_code=False)
    )


def results(bench: Bench, jobs: Sequence[Job], *, workers: int) -> Iterator[tuple[Job, list[EvaluatedAnswer]]]:
    """Run jobs, in this process or in several that are set up alike; yield each result as soon as it is there."""
    if workers == 1 or len(jobs) < 2:
        yield from ((job, bench.do(job)) for job in jobs)
        return
    with get_context("spawn").Pool(min(workers, len(jobs)), initializer=_start, initargs=(bench.setup,)) as pool:
        yield from pool.imap_unordered(_done, jobs)


_started: list[Bench] = []
"""That of a worker process."""


def _start(setup: Setup) -> None:
    _started.append(Bench(setup))


def _done(job: Job) -> tuple[Job, list[EvaluatedAnswer]]:
    return job, _started[0].do(job)
