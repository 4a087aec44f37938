"""Ray: parts of a corpus, answered by the actors of a cluster."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from syncheck.base.errors import InputError, MissingExtraError
from syncheck.corpus.records import Line, Worker
from syncheck.corpus.store import Part, table_of

if TYPE_CHECKING:
    import pyarrow as pa

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
