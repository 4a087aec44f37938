"""Measuring a corpus into one Parquet file, in parts that survive a kill and may be shared among processes."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from glob import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from syncheck.base.errors import (
    CheckpointError,
    InputError,
)
from syncheck.base.files import UNFINISHED
from syncheck.corpus import Line, Store, Worker, answer_corpus, run_locally
from syncheck.corpus.store import PART_SIZE, Engine
from syncheck.labelling.datasets import labelled_responses
from syncheck.labelling.responses import LabelledResponse, response_from_json, response_to_json
from syncheck.model_monitor import ModelMonitor
from syncheck.training.extract import check_any, check_sentences, measure_records
from syncheck.training.measured import MeasuredSentences, joined
from syncheck.training.parquet import provenance_of, read_parquet, write_parquet
from syncheck.training.provenance import instrument_of
from syncheck.verifier import Verifier


@dataclass(frozen=True, slots=True)
class Shard:
    """Share of one process in the parts of a corpus: it is the ``number``-th, from 1, of ``count`` processes.

    Another number raises InputError.
    """

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise InputError(f"expected shard i of n with 1 <= i <= n; found {self.number} of {self.count}")

    def has(self, part: int) -> bool:
        """Tell whether a part, by its number from 0, belongs to this process."""
        return part % self.count == self.number - 1


class SentenceMeasurer:
    """Measures the sentences of labelled responses; a :data:`~syncheck.corpus.records.Worker`."""

    def __init__(self, monitor: ModelMonitor | Verifier, *, batch_size: int = 1) -> None:
        self._monitor = monitor
        self._batch_size = batch_size

    def __call__(self, lines: Sequence[Line]) -> list[dict[str, Any]]:
        """Measure the row of each line; TextGeneratorError if the aligner fails, so that the part is not stored."""
        records = [response_from_json(line.content.decode()) for line in lines]
        with tqdm(disable=True) as bar:
            measured = measure_records(self._monitor, records, batch_size=self._batch_size, bar=bar)
        rows = {record.id: _row(measured, i) for i, record in enumerate(measured.records)}
        for line, record in zip(lines, records, strict=True):
            if record.id in measured.left_out:
                rows[record.id] = {"id": record.id, "line": line.number, "error": measured.left_out[record.id]}
        return [rows[record.id] for record in records]


def _row(measured: MeasuredSentences, index: int) -> dict[str, Any]:
    """Write the sentences of one response, with activations (N, H) as little-endian float32 in base64."""
    own = np.flatnonzero(measured.owners == index)
    names = measured.schema.names
    return {
        "id": measured.records[index].id,
        "sentences": [
            {
                "text": measured.texts[i],
                "start": int(measured.bounds[i, 0]),
                "end": int(measured.bounds[i, 1]),
                "score": None,
                "features": {
                    n: None if np.isnan(v) else float(v) for n, v in zip(names, measured.values[i], strict=True)
                },
            }
            for i in own
        ],
        "activations": {
            str(layer): b64encode(states[own].astype("<f4").tobytes()).decode()
            for layer, states in measured.activations.items()
            if len(own)
        },
    }


def _of_row(row: Mapping[str, Any], record: LabelledResponse, monitor: ModelMonitor | Verifier) -> MeasuredSentences:
    """Read the sentences in a row that :func:`_row` wrote; none if the response was left out."""
    sentences = row.get("sentences", [])
    names = monitor.schema.names
    rows = [[np.nan if s["features"][name] is None else s["features"][name] for name in names] for s in sentences]
    return MeasuredSentences(
        schema=monitor.schema,
        values=np.array(rows, np.float64).reshape(len(rows), len(names)),
        activations={
            int(layer): np.frombuffer(b64decode(states), "<f4").reshape(len(rows), -1).astype(np.float32)
            for layer, states in row.get("activations", {}).items()
        },
        bounds=np.array([(s["start"], s["end"]) for s in sentences], np.int64).reshape(len(rows), 2),
        texts=tuple(s["text"] for s in sentences),
        owners=np.zeros(len(rows), np.int64),
        records=() if "error" in row else (record,),
        left_out={record.id: row["error"]} if "error" in row else {},
        segmenter=monitor.config.segmenter,
    )


def measure_to_parquet(
    monitor: ModelMonitor | Verifier,
    records: Iterable[LabelledResponse | Mapping[str, Any]],
    output: str | Path,
    *,
    batch_size: int = 1,
    part_size: int = PART_SIZE,
    shard: Shard = Shard(),  # noqa: B008 (frozen)
    engine: Engine = run_locally,
    make_worker: Callable[[], Worker] | None = None,
    show_progress: bool | None = None,
) -> MeasuredSentences | None:
    """Measure labelled responses into a Parquet file, part by part; None if rows of other shards are missing.

    Rows are stored in the folder ``<output>.parts``, a :class:`~syncheck.corpus.Store`. A process that is started again
    measures only missing records, so that a kill costs at most one part of each worker, and the file is the same as
    without the kill. Once the rows of all records are there, they are joined in the order of the records and replace
    ``output``.

    ``records`` are the whole corpus, for every shard; a shard measures every ``count``-th part. Processes share the
    folder, or their folders are merged; the process that finds all rows joins them. A single shard removes the folder
    after verifying ``output``. ``batch_size`` is as in :func:`measure` and may change when a run continues; batches end
    with their part. ``make_worker`` builds a :class:`SentenceMeasurer` of an equal monitor in another process; None
    uses ``monitor``.

    Errors are those of :func:`measure`, and CheckpointError if the written file cannot be read again; the parts are
    then kept. If the folder has rows of another model, aligner or config, MismatchError is raised.
    """
    output, records = Path(output), labelled_responses(records)
    if part_size < 1 or batch_size < 1:
        raise InputError(f"part_size and batch_size must be at least 1; found {part_size} and {batch_size}")
    if not output.parent.is_dir():
        raise InputError(f"{output}: the folder does not exist; create it first")
    facts = _facts(monitor)
    lines = [Line(str(r.source or "records"), i, _content(r)) for i, r in enumerate(records, 1)]
    provenance = {"records": hashlib.sha256(b"\n".join(line.content for line in lines)).hexdigest(), **facts}
    folder = output.with_name(f"{output.name}.parts")
    if not folder.exists() and (finished := _read(output, provenance)) is not None:
        return finished
    own = [record for i, record in enumerate(records) if shard.has(i // part_size)]
    if is_new := not folder.exists():
        check_sentences(monitor, own)  # what is refused must leave no folder
    with _entered(folder, facts, shard) as store:
        if not is_new:
            lacking = {record.id for i, record in enumerate(records) if store.key(lines[i]) not in store}
            check_sentences(monitor, [record for record in own if record.id in lacking])
        answer_corpus(
            lines,
            store,
            make_worker or (lambda: SentenceMeasurer(monitor, batch_size=batch_size)),
            engine=lambda parts, make: engine((part for part in parts if shard.has(part.number)), make),
            part_size=part_size,
            total=len(records),
            show_progress=show_progress,
        )
    store = Store(folder, facts, shared=shard.count > 1)  # with what other shards have written meanwhile
    keys = [store.key(line) for line in lines]
    if not all(key in store for key in keys):
        return None
    rows = dict(store.rows())
    parts = [_of_row(rows[key], record, monitor) for key, record in zip(keys, records, strict=True)]
    whole = replace(joined(parts), provenance=provenance)
    if whole.texts:
        write_parquet(whole, output)
    if shard.count == 1:
        store.remove()
        for path in output.parent.glob(f"{escape(output.name)}{UNFINISHED}*"):  # left behind by killed processes
            path.unlink(missing_ok=True)
    check_any(whole)
    return whole


@contextmanager
def _entered(folder: Path, facts: Mapping[str, str], shard: Shard) -> Iterator[Store]:
    """Open a store; a new one that gets no row because of an error is removed, since it would refuse other options."""
    is_new, is_shared = not folder.exists(), shard.count > 1
    store = Store(folder, facts, shared=is_shared)
    try:
        with store:
            yield store
    except BaseException:
        if is_new and not store and not is_shared:
            store.remove()
        raise


def _content(record: LabelledResponse) -> bytes:
    return response_to_json(replace(record, source=None, line=None)).encode()


def _facts(monitor: ModelMonitor | Verifier) -> dict[str, str]:
    """Collect the facts, besides the records, that determine the values, by name."""
    config = asdict(monitor.config)
    return {
        "config": json.dumps({name: config[name] for name in ("schema", "layers", "segmenter")}),
        **instrument_of(monitor),
        **({} if isinstance(monitor, Verifier) else {"dtype": str(monitor.model.dtype)}),
        "LID references": "none" if isinstance(monitor, Verifier) else _references(monitor),
        "version": version("syncheck"),
    }


def _references(monitor: ModelMonitor) -> str:
    if monitor.lid_references is None:
        return "none"
    digest = hashlib.sha256()
    for layer, states in sorted(monitor.lid_references.references.items()):
        digest.update(f"{layer} {tuple(states.shape)}".encode())
        digest.update(states.float().cpu().numpy().tobytes())
    return digest.hexdigest()


def _read(path: Path, provenance: dict[str, str]) -> MeasuredSentences | None:
    """Read the sentences in a file; None if it is missing, damaged or of another run."""
    with suppress(CheckpointError):
        if provenance_of(path) == provenance:
            return read_parquet(path)
    return None
