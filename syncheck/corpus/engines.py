"""One run over a corpus: records missing in the store go to an engine, part by part, and the answers are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tqdm import tqdm

from syncheck.corpus.records import Line, Worker
from syncheck.corpus.store import Store, table_of

if TYPE_CHECKING:
    import pyarrow as pa

PART_SIZE = 64


@dataclass(frozen=True, slots=True)
class Part:
    """Records that are answered, and kept or lost, together.

    Attributes
    ----------
    number : int
        Its place in the corpus, from 0.
    lines : tuple of Line
        Those that the store lacks.
    keys : tuple of str
        Their keys in the store.
    """

    number: int
    lines: tuple[Line, ...]
    keys: tuple[str, ...]


Engine = Callable[[Iterator[Part], Callable[[], Worker]], Iterator[tuple[int, "pa.Table"]]]
"""Parts and what makes a worker, to the numbers and tables of parts, in any order and as soon as they are done."""


def run_locally(parts: Iterator[Part], make_worker: Callable[[], Worker]) -> Iterator[tuple[int, pa.Table]]:
    """Answer parts one after the other, in this process."""
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
    """Answer the records of a corpus that a store does not hold yet.

    A part has the missing ones among ``part_size`` records that follow each other in the corpus, so that a run that was
    killed continues with the same parts that it would have had. Equal records, ids included, are answered once.

    Parameters
    ----------
    lines
        The whole corpus.
    store
        Where rows are kept.
    make_worker
        Builds a worker; each process of an engine builds its own.
    engine
        :func:`run_locally`, or one that spreads parts over machines.
    part_size
        Records that a kill can cost each worker.
    total
        Records of the corpus, for the bar.
    show_progress
        None shows a bar on a terminal.
    on_part
        Told of each part once it is kept.

    Returns
    -------
    set of str
        The keys of the corpus's records: a store may hold rows of others too.
    """
    asked: set[str] = set()
    disable = None if show_progress is None else not show_progress
    with tqdm(total=total, desc="records", unit=" records", disable=disable) as bar:
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
