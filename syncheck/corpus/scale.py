"""Large corpora: estimates of the time and memory that one takes, from measured rates, and parts answered by Ray."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncheck.base.errors import CheckpointError, InputError, MissingExtraError
from syncheck.base.files import read_object
from syncheck.corpus.records import Line, Worker
from syncheck.corpus.store import Part, table_of

if TYPE_CHECKING:
    import pyarrow as pa

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


RETRIES = 2
"""How often a part is answered again after its worker died."""
_COLUMNS = ("number", "key", "source", "line", "content")


def run_on_ray(
    parts: Iterator[Part], make_worker: Callable[[], Worker], *, workers: int = 1, gpus: float = 0
) -> Iterator[tuple[int, pa.Table]]:
    """Answer parts with Ray actors, each with its own worker; an :data:`~syncheck.corpus.store.Engine`.

    Connects to the cluster at ``RAY_ADDRESS``, or starts one on this machine. Records pass through Ray's object store,
    so that machines need not share a file system; the model must have the same name on each. An actor that dies is
    replaced and its part answered again, at most twice, after the other parts.

    Parameters
    ----------
    parts
        Parts to answer.
    make_worker
        Builds the worker of an actor.
    workers
        Number of actors, with one CPU each.
    gpus
        Number of GPUs for each actor.

    Yields
    ------
    (int, pyarrow.Table)
        Number and table of each part.

    Raises
    ------
    InputError
        After all other parts, if workers died or failed on some parts each time.
    MissingExtraError
        If Ray is not installed.
    """
    ray, data = _ray()
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.WARNING)
    references: list[Any] = []
    left: dict[int, int] = {}
    spans: dict[int, str] = {}
    for part in parts:
        references.append(ray.put(_table(part)))
        left[part.number] = len(part.lines)
        spans[part.number] = f"{part.lines[0].source}:{part.lines[0].number} to {part.lines[-1].number}"
    if not references:
        return
    corpus = data.from_arrow_refs(references)
    corpus.context.enable_progress_bars = False  # one bar shows all records
    corpus.context.max_errored_blocks = -1  # the others are answered
    answered = corpus.map_batches(
        _Parts,
        fn_constructor_args=(make_worker, ray.remote(num_cpus=0)(_Attempts).remote()),
        batch_size=None,
        batch_format="pyarrow",
        compute=data.ActorPoolStrategy(size=min(workers, len(references))),
        num_gpus=gpus or None,
    )
    yield from _whole(answered.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0), left)
    lost = [spans[number] for number, count in left.items() if count]
    if lost:
        raise InputError(
            f"expected an answer to every part; found {len(lost)} where workers failed or died {1 + RETRIES} times, "
            f"with the records {'; '.join(lost[:3])}. The other parts are kept. Fix what Ray's messages say, or use a "
            "smaller part size to find the record, and run again"
        )


class _Attempts:
    """Counter of how often each part was begun, whichever worker died."""

    def __init__(self) -> None:
        self._made: Counter[int] = Counter()

    def add(self, number: int) -> int:
        """Count how often a part was begun, including this time."""
        self._made[number] += 1
        return self._made[number]


class _Parts:
    """Answers the parts in a block; Ray begins a block again, without a limit, if its worker died."""

    def __init__(self, make_worker: Callable[[], Worker], attempts: Any) -> None:  # noqa: ANN401 - Ray's handle
        self._worker = make_worker()
        self._attempts = attempts

    def __call__(self, table: pa.Table) -> pa.Table:
        columns = table.to_pydict()
        made = _ray()[0].get(self._attempts.add.remote(columns["number"][0]))
        if made > 1 + RETRIES:
            raise InputError(f"part {columns['number'][0]}: its worker died {made - 1} times")
        lines = [Line(*values) for values in zip(*(columns[name] for name in _COLUMNS[2:]), strict=True)]
        return table_of(lines, self._worker(lines), columns["key"]).append_column("number", table["number"])


def _table(part: Part) -> pa.Table:
    import pyarrow as pa

    rows = ((part.number, key, *astuple(line)) for key, line in zip(part.keys, part.lines, strict=True))
    return pa.table(dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True)))


def _whole(tables: Iterator[pa.Table], left: dict[int, int]) -> Iterator[tuple[int, pa.Table]]:
    """Join tables that Ray has split, and yield each part once it is complete."""
    import pyarrow as pa
    import pyarrow.compute as compute

    columns: dict[int, list[Any]] = {}
    for table in tables:
        for number in table["number"].unique().to_pylist():
            rows = table.filter(compute.equal(table["number"], number)).drop_columns(["number"])
            columns.setdefault(number, []).append(rows)
            left[number] -= len(rows)
            if not left[number]:
                yield number, pa.concat_tables(columns.pop(number)).combine_chunks()


def _ray() -> tuple[Any, Any]:
    """Import Ray and its module of datasets."""
    with MissingExtraError.unless("ray", "scale"):
        import ray
        import ray.data as data
    return ray, data
