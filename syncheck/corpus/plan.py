"""Estimates of the time and memory that a corpus takes, from measured rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from syncheck.base.errors import CheckpointError, InputError
from syncheck.base.files import read_object

FORMAT = "syncheck.rates.v1"
BUNDLED_RATES = Path(str(files("syncheck") / "assets" / "rates.json"))
"""File with the rates of the bundled monitor."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Time and memory of scoring in one setting."""

    context_tokens: int
    answer_tokens: int
    """Length of each prompt with its passages, and of each answer."""
    batch_tokens: int | None
    """As in ``syncheck score --batch-tokens``; None for one answer at a time."""
    workers: int
    """Number of processes that scored at the same time."""
    seconds: float
    """Time that one worker takes for one answer."""
    memory_mb: float
    """Peak memory of one worker, model and libraries included, in MB (10^6 bytes)."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of one model on one machine, with a description of both in ``machine``."""

    machine: Mapping[str, str]
    rates: tuple[Rate, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time and memory that a corpus would take."""

    workers: int
    """Number of workers."""
    hours: float
    """Wall time with these workers."""
    memory_gb: float
    """Memory of all workers together, in GB (10^9 bytes): that of one times their number."""
    hours_extrapolated: bool
    memory_extrapolated: bool
    """True if the length of context or answer, or the number of workers, is outside the measured range."""


def load_rates(path: str | Path) -> Rates:
    """Read measured rates from a JSON file, such as ``syncheck/assets/rates.json``.

    Raises
    ------
    CheckpointError
        If the file is missing, damaged or of another format.
    """
    values = read_object(Path(path))
    try:
        if values["format"] != FORMAT:
            raise ValueError(f"format {values['format']!r}")
        rates = Rates(dict(values["machine"]), tuple(Rate(**entry) for entry in values["rates"]))
        if not all(rate.seconds > 0 and rate.memory_mb > 0 and rate.workers > 0 for rate in rates.rates):
            raise ValueError("a rate that is not above 0")
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: expected rates as benchmarks/scale.py writes them; found {type(error).__name__}: {error}"
        ) from error
    return rates


def estimate(
    rates: Rates,
    *,
    answers: float,
    context_tokens: float,
    answer_tokens: float,
    workers: Sequence[int],
    batch_tokens: int | None = None,
) -> tuple[Estimate, ...]:
    """Estimate the time and memory of scoring a corpus with given numbers of workers.

    Between measured lengths, the time of an answer is interpolated linearly. Outside them, the line through the two
    nearest is extended, which is too low for much longer texts, since attention grows with the square. With more
    workers than were measured, each is assumed to be as fast as with the largest measured number, as on additional
    machines of that kind.

    Parameters
    ----------
    rates
        Measured rates of the model and machine.
    answers
        Number of answers in the corpus.
    context_tokens, answer_tokens
        Mean lengths of prompts with their passages, and of answers.
    workers
        Numbers of workers to estimate for.
    batch_tokens
        As in ``syncheck score --batch-tokens``; rates must have been measured with it.

    Returns
    -------
    tuple of Estimate
        One for each number of workers.

    Raises
    ------
    InputError
        If nothing was measured with this ``batch_tokens``, or an extrapolated time would not be above 0.
    """
    chosen = [rate for rate in rates.rates if rate.batch_tokens == batch_tokens]
    alone = [rate for rate in chosen if rate.workers == 1]
    if not alone:
        measured = sorted({rate.batch_tokens or 0 for rate in rates.rates})
        raise InputError(f"batch_tokens must be one that was measured, {measured} (0: none); found {batch_tokens}")
    seconds, outside = _at(alone, "seconds", context_tokens, answer_tokens)
    memory, _ = _at(alone, "memory_mb", context_tokens, answer_tokens)
    slower = _slower(chosen, alone)
    if seconds <= 0 or memory <= 0:
        raise InputError(
            "expected lengths near those measured; found lengths too short for an estimate. Measure them with "
            "benchmarks/scale.py"
        )
    estimates = []
    for count in workers:
        factor, beyond = _along(slower, count) if count <= max(slower) else (slower[max(slower)], True)
        hours = answers * seconds * factor / count / 3600
        estimates.append(
            Estimate(count, hours, count * memory / 1000, outside or beyond, outside or count not in slower)
        )
    return tuple(estimates)


def _slower(rates: Sequence[Rate], alone: Sequence[Rate]) -> dict[float, float]:
    """Compute, by number of workers, the factor by which one of them is slower than a single worker."""
    lengths = {(rate.context_tokens, rate.answer_tokens): rate.seconds for rate in alone}
    by_workers: dict[float, list[float]] = {}
    for rate in rates:
        if (rate.context_tokens, rate.answer_tokens) in lengths:
            ratio = rate.seconds / lengths[rate.context_tokens, rate.answer_tokens]
            by_workers.setdefault(rate.workers, []).append(ratio)
    return {count: sum(ratios) / len(ratios) for count, ratios in by_workers.items()}


def _at(rates: Sequence[Rate], name: str, context: float, answer: float) -> tuple[float, bool]:
    """Interpolate a value at given lengths of context and answer, and tell whether it is extrapolated."""
    rows: dict[float, tuple[float, bool]] = {}
    for length in {rate.answer_tokens for rate in rates}:
        points: dict[float, float] = {r.context_tokens: getattr(r, name) for r in rates if r.answer_tokens == length}
        rows[length] = _along(points, context)
    value, outside = _along({length: value for length, (value, _) in rows.items()}, answer)
    return value, outside or any(beyond for _, beyond in rows.values())


def _along(points: Mapping[float, float], x: float) -> tuple[float, bool]:
    """Interpolate at ``x`` on the line through its neighbours, and tell whether ``x`` is outside the points."""
    xs = sorted(points)
    outside = not xs[0] <= x <= xs[-1]
    if len(xs) == 1:
        return points[xs[0]], outside
    right = next((i for i in range(1, len(xs)) if x <= xs[i]), len(xs) - 1)
    a, b = xs[right - 1], xs[right]
    return points[a] + (points[b] - points[a]) * (x - a) / (b - a), outside
