"""Engines: the records of a corpus that a store lacks are answered part by part, and the answers stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncheck.base.progress import progress
from syncheck.corpus.records import Line, Worker
from syncheck.corpus.store import Store, table_of

if TYPE_CHECKING:
    import pyarrow as pa
    from tqdm import tqdm

PART_SIZE = 64


@dataclass(frozen=True, slots=True)
class Part:
    """Records that are answered, and stored or lost, together."""

    number: int
    """Position of the part in the corpus, from 0."""
    lines: tuple[Line, ...]
    """The records that the store lacks."""
    keys: tuple[str, ...]
    """Their keys in the store."""


Engine = Callable[[Iterator[Part], Callable[[], Worker]], Iterator[tuple[int, "pa.Table"]]]
"""Function of parts and of a function that builds a worker; yields number and table of each completed part, in
any order."""


def run_locally(parts: Iterator[Part], make_worker: Callable[[], Worker]) -> Iterator[tuple[int, pa.Table]]:
    """Answer parts one after the other in this process; an :data:`~syncheck.corpus.engines.Engine`.

    It yields number and table of each part.
    """
    worker: Worker | None = None
    for part in parts:
        worker = worker or make_worker()
        yield part.number, table_of(part.lines, worker(part.lines), part.keys)


def answer_corpus(
    lines: Iterable[Line],
    store: Store,
    make_worker: Callable[[], Worker],
    *,
    engine: Engine = run_locally,
    part_size: int = PART_SIZE,
    total: int | None = None,
    show_progress: bool | None = None,
    on_part: Callable[[pa.Table], None] = lambda table: None,
) -> set[str]:
    """Answer the records of a corpus that a store lacks.

    A part has the missing ones among ``part_size`` consecutive records of the corpus, so that a run that was killed
    continues with the same parts. Equal records, ids included, are answered once.

    Parameters
    ----------
    lines
        The whole corpus.
    store
        Store of the rows.
    make_worker
        Builds a worker; each process of an engine builds its own.
    engine
        :func:`run_locally`, or one that distributes parts over machines, such as :func:`run_on_ray`.
    part_size
        Number of consecutive records per part, which is the most that a kill can cost each worker.
    total
        Number of records in the corpus, for the progress bar.
    show_progress
        None shows a progress bar on a terminal, and a line a minute elsewhere.
    on_part
        Called with the table of each part once it is stored.

    Returns
    -------
    set of str
        Keys of the corpus's records; a store may have rows of other records too.
    """
    asked: set[str] = set()
    with progress(total=total, desc="records", unit=" records", shown=show_progress) as bar:
        parts = _missing(lines, store, part_size, asked, bar)
        for number, table in engine(parts, make_worker):
            store.add(number, table)
            bar.update(len(table))
            on_part(table)
    return asked


def _missing(lines: Iterable[Line], store: Store, size: int, asked: set[str], bar: tqdm) -> Iterator[Part]:
    chunk: dict[str, Line] = {}
    seen = number = 0
    for line in lines:
        key = store.key(line)
        if key in asked or key in store:
            bar.update()
        else:
            chunk[key] = line
        asked.add(key)
        seen += 1
        if seen == size:
            if chunk:
                yield Part(number, tuple(chunk.values()), tuple(chunk))
            chunk, seen, number = {}, 0, number + 1
    if chunk:
        yield Part(number, tuple(chunk.values()), tuple(chunk))
