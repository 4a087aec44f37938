"""Time and memory of the ways of watching, relative to plain ``generate``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import ways
from peak_memory import peak_mb
from turns import Pause, take_turns
from workload import Job, Subject, make_job

RE_PREFILL_SENTENCES = 3
"""Sentences that the slowest way is given; later ones cost more, since their texts are longer."""

MARGIN = 2
"""Tokens of the next sentence after which a sentence has been measured."""

WARM_UP_TOKENS = 40
MEMORY_TOKENS = 64
WARM_UP_SEED, MEMORY_SEED = 1001, 1002

WAYS: dict[str, ways.Way] = {
    "plain generate": ways.plain,
    "monitor, signals only": ways.signals_only,
    "monitor, with aligner and aggregator": ways.with_aligner,
    "monitor, streamed, with aligner and aggregator": ways.streamed,
    "attached to generate, signals only": ways.attached,
    "attached to generate, with aligner and aggregator": ways.attached_with_aligner,
    "second forward at every step": ways.per_step,
    "re-prefill for every sentence": ways.re_prefill,
}
PLAIN, SIGNALS, *_ = WAYS
SLOW = (ways.per_step, ways.re_prefill)
"""Only run in the first round."""

Tick = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Setting:
    """Tokens of a context, contexts in a batch, tokens of an answer, and rounds."""

    context: int
    batch: int
    tokens: int
    rounds: int

    def job(self, subject: Subject, *, seed: int, tokens: int | None = None) -> Job:
        """Make a job of this kind."""
        size = self.tokens if tokens is None else min(tokens, self.tokens)
        return make_job(subject, context=self.context, tokens=size, batch=self.batch, seed=seed)

    def ways(self, number: int = 0) -> Mapping[str, ways.Way]:
        """Return the ways of a round; only the first has the slow ones, and a stream has one row."""
        left_out = (*(SLOW if number else ()), *((ways.streamed,) if self.batch > 1 else ()))
        return {name: way for name, way in WAYS.items() if way not in left_out}

    def time_ticks(self) -> int:
        """Return the number of ticks of :func:`measure_times`."""
        return sum(len(self.ways(number)) for number in range(self.rounds))


@dataclass(slots=True)
class Cost:
    """Time and memory of one way.

    Attributes
    ----------
    first, decode : list of float
        Ratios to plain ``generate`` of the same round: to the first token, and turn by turn after it.
    seconds : list of float
        All decode turns, its own and plain's.
    ms_per_token : list of float
        One for each decode turn.
    peak_mb : float or None
        None where it was not measured.
    """

    first: list[float] = field(default_factory=list)
    decode: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=lambda: [0.0, 0.0])
    ms_per_token: list[float] = field(default_factory=list)
    peak_mb: float | None = None


def measure_times(subject: Subject, setting: Setting, clock: str, costs: Mapping[str, Cost], tick: Tick) -> None:
    """Let the ways take turns, after a sentence to warm up, and add what they took to their costs."""
    twins = {name: subject.twin() for name in WAYS}
    warm = setting.job(subject, seed=WARM_UP_SEED, tokens=WARM_UP_TOKENS).first_sentences(1)
    for name, way in setting.ways().items():
        way(twins[name], warm, _go_on)
    for seed in range(setting.rounds):
        job = setting.job(subject, seed=seed)
        players = {name: partial(_play, way, twins[name], job, tick) for name, way in setting.ways(seed).items()}
        if seed % 2:
            players = dict(reversed(players.items()))
        seconds = take_turns(players, device=subject.model.device.type, clock=clock)
        for name, turns in seconds.items():
            _add(costs[name], turns, seconds[PLAIN], job)


def measure_peaks(subject: Subject, setting: Setting, costs: Mapping[str, Cost], tick: Tick) -> None:
    """Run each way alone on a shorter answer and keep its peak."""
    job = setting.job(subject, seed=MEMORY_SEED, tokens=MEMORY_TOKENS)
    device = subject.model.device.type
    peak_mb(partial(ways.plain, subject, job.first_sentences(1), _go_on), device=device)
    for name, way in setting.ways().items():
        given = job.first_sentences(2) if way is ways.re_prefill else job
        costs[name].peak_mb = peak_mb(partial(way, subject, given, _go_on), device=device)
        tick()


def peaks_by_length(subject: Subject, *, context: int, lengths: Sequence[int], tick: Tick) -> dict[int, list[float]]:
    """Return for each length of the answer the peaks of plain ``generate`` and of the monitor, signals only, in MB."""
    found: dict[int, list[float]] = {}
    for tokens in lengths:
        job = make_job(subject, context=context, tokens=tokens, batch=1, seed=MEMORY_SEED)
        found[tokens] = []
        for way in (ways.plain, ways.signals_only):
            found[tokens].append(peak_mb(partial(way, subject, job, _go_on), device=subject.model.device.type))
            tick()
    return found


def _go_on(token: int) -> None:
    """Do not pause."""


def _turn_ends(job: Job) -> list[int]:
    """Return the tokens before which a turn ends: the first, and one shortly after each sentence of the first row."""
    return [0, *(end + MARGIN for end in job.sentences[0][:-1] if end + MARGIN < job.tokens)]


def _play(way: ways.Way, subject: Subject, job: Job, tick: Tick, pause: Pause) -> None:
    if way is ways.re_prefill:
        way(subject, job.first_sentences(RE_PREFILL_SENTENCES), lambda token: pause())
    else:
        ends = frozenset(_turn_ends(job))
        way(subject, job, lambda token: pause() if token in ends else None)
    tick()


def _add(cost: Cost, turns: Sequence[float], plain: Sequence[float], job: Job) -> None:
    pairs = list(zip(turns[1:], plain[1:], strict=False))  # the slowest way has fewer
    tokens = np.diff([*_turn_ends(job), job.tokens])
    cost.first.append(turns[0] / plain[0])
    cost.decode += [own / base for own, base in pairs]
    cost.seconds = [total + sum(part) for total, part in zip(cost.seconds, zip(*pairs, strict=True), strict=True)]
    cost.ms_per_token += [1e3 * own / int(n) for (own, _), n in zip(pairs, tokens, strict=False)]
