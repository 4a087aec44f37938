"""Every way to an answer with a monitor, and the parts that must not differ between two answers to one question."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
import transformers

from fod import FODGenerator
from syncheck import EndEvent, Monitor, RagPrompt, Report, SentenceEvent
from syncheck.kit import demo_questions

Outcome = tuple[object, ...]
"""Compared with ``==``; two of them are equal when every number is, to the last bit."""


@dataclass(frozen=True, slots=True)
class Job:
    """One question to answer.

    Attributes
    ----------
    prompt : RagPrompt
    response : str
        What is scored where a response is given.
    seed : int
        Of all sampling.
    tokens : int
        Most tokens of an answer.
    """

    prompt: RagPrompt
    response: str
    seed: int
    tokens: int


Way = Callable[[Monitor, Job], Outcome]


def fingerprint(report: Report) -> Outcome:
    """Return all that a report holds except times; floats as their shortest exact text, so that NaN equals NaN."""
    tokens = report.tokens
    names = ("token_ids", "char_spans", "log_prob", "log_prob_without_context", "entropy", "kl")
    columns = tuple(getattr(tokens, name).tobytes() for name in names)
    sentences = tuple(repr(replace(sentence, latency_ms=None)) for sentence in report.sentences)
    return (report.response, report.stop, sentences, columns)


def _generator(monitor: Monitor, job: Job) -> torch.Generator:
    return torch.Generator(device=monitor.model.device).manual_seed(job.seed)


def _score(monitor: Monitor, job: Job) -> Outcome:
    return fingerprint(monitor.score(job.prompt, job.response))


def _generate(monitor: Monitor, job: Job) -> Outcome:
    options = {"max_new_tokens": job.tokens, "do_sample": True, "generator": _generator(monitor, job)}
    return fingerprint(monitor.generate(job.prompt, **options))


def _stream(monitor: Monitor, job: Job) -> Outcome:
    found: list[object] = []
    for event in monitor.stream(job.prompt, max_new_tokens=job.tokens):
        if isinstance(event, SentenceEvent):
            found.append(repr(replace(event.sentence, latency_ms=None)))
        else:
            found += fingerprint(event.report) if isinstance(event, EndEvent) else (repr(event),)
    return tuple(found)


def _attach(monitor: Monitor, job: Job) -> Outcome:
    with monitor.attach(job.prompt) as watch:
        inputs = job.prompt.inputs(monitor.model.device)
        output = monitor.model.generate(**inputs, max_new_tokens=job.tokens, do_sample=False)
        live = len(watch.sentences)
        report = watch.report(output)
    return (live, tuple(output[0].tolist()), *fingerprint(report))


def _fod(monitor: Monitor, job: Job) -> Outcome:
    decoder = FODGenerator(monitor.model, monitor.tokenizer, monitor, samples_per_step=4)
    output = decoder.generate(job.prompt, seed=job.seed, max_new_tokens=job.tokens, return_dict_in_generate=True)
    return (tuple(output.sequences[0].tolist()), output.sampled_tokens, *fingerprint(output.report))


WAYS: dict[str, Way] = {"score": _score, "generate": _generate, "stream": _stream, "attach": _attach, "fod": _fod}


def demo_jobs(monitor: Monitor, questions: int, *, seed: int, tokens: int) -> Sequence[Job]:
    """Return bundled questions, each with a response that the monitored model sampled."""
    prompted = [monitor.prompt(question=q.question, context=q.passages) for q in demo_questions()]
    make = partial(Job, response="", tokens=tokens)
    jobs = [make(prompt=prompted[i % len(prompted)], seed=seed + i) for i in range(questions)]
    answers = [
        monitor.generate(j.prompt, max_new_tokens=tokens, do_sample=True, generator=_generator(monitor, j))
        for j in jobs
    ]
    return [replace(job, response=report.response or " None.") for job, report in zip(jobs, answers, strict=True)]


def versions() -> str:
    """Return the conditions of a run's figures, as one line."""
    return (
        f"Python {platform.python_version()}, torch {torch.__version__} with {torch.get_num_threads()} threads of its "
        f"own, transformers {transformers.__version__}"
    )
