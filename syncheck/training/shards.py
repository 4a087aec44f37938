"""Measuring a corpus in parts that are kept as they are finished: by several processes, and on after a kill."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from syncheck.errors import CheckpointError, InputError, MismatchError
from syncheck.labelling.datasets import LabelledResponse, labelled_responses
from syncheck.training.extract import check_sentences, measure_records
from syncheck.training.measured import MeasuredSentences, joined
from syncheck.training.parquet import provenance_of, read_parquet, write_parquet
from syncheck.training.provenance import instrument_of
from syncheck.unfinished import UNFINISHED, replaced

if TYPE_CHECKING:
    from syncheck.monitor import Monitor

__all__ = ["Shard", "measure_to_parquet"]

_RUN = "run.json"


@dataclass(frozen=True, slots=True)
class Shard:
    """The ``number``-th of ``count`` processes that share the parts of one corpus, from 1.

    Raises
    ------
    InputError
        If ``number`` is not in 1..``count``.
    """

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise InputError(f"expected shard i of n with 1 <= i <= n; found {self.number} of {self.count}")


def measure_to_parquet(
    monitor: Monitor,
    records: Iterable[LabelledResponse | Mapping[str, Any]],
    output: str | Path,
    *,
    batch_size: int = 1,
    part_size: int = 64,
    shard: Shard = Shard(),  # noqa: B008 (frozen)
    show_progress: bool | None = None,
) -> MeasuredSentences | None:
    """Measure labelled responses into a Parquet file, part by part.

    Parts of ``part_size`` records are written to the folder ``<output>.parts``, each whole or not at all. A process
    that is started again measures those of its parts that are not there yet or are damaged: a kill costs at most one
    part, no record is lost or is in the file twice, and the file is the same as without the kill. When all parts are
    there they are joined in the order of the records and written to ``output``, an older file there being replaced.

    Parameters
    ----------
    monitor, show_progress
        As in :func:`~syncheck.training.extract.measure`.
    records
        The whole corpus, for every shard.
    output
        The Parquet file.
    batch_size
        As in :func:`~syncheck.training.extract.measure`; it may change when a run goes on. Batches end with their part.
    part_size
        Records that are measured, and can be lost, at once.
    shard
        Which parts this process measures: every ``count``-th. Processes share the folder, or it is copied together; the
        one that finds all parts there joins them. Several shards leave the folder, for one another; one alone removes
        it once ``output`` was read again.

    Returns
    -------
    MeasuredSentences or None
        None if parts of other shards are missing yet, or damaged.

    Raises
    ------
    InputError
        If ``part_size`` or ``batch_size`` is below 1, the folder of ``output`` does not exist, or no record has a
        sentence.
    TextGeneratorError
        If the aligner fails; the part is then not written.
    RecordError
        As in :func:`~syncheck.training.extract.measure`, before the first is measured.
    MismatchError
        If the folder holds parts of other records, another model, aligner, config or part size.
    CheckpointError
        If what was written cannot be read; the parts are then still there.
    MissingExtraError
        If pyarrow is not installed.
    """
    output, records = Path(output), labelled_responses(records)
    _check(output, part_size, batch_size)
    provenance = _provenance(monitor, records, part_size)
    folder = output.with_name(f"{output.name}.parts")
    if not folder.exists() and (finished := _read(output, provenance)) is not None:
        return finished
    _enter(folder, provenance)
    chunks = [records[first : first + part_size] for first in range(0, len(records), part_size)]
    paths = [folder / f"part-{index:05d}.parquet" for index in range(len(chunks))]
    own = list(zip(paths, chunks, strict=True))[shard.number - 1 :: shard.count]
    missing = [(path, chunk) for path, chunk in own if _read(path, provenance) is None]
    check_sentences(monitor, [record for _, chunk in missing for record in chunk])
    total, left = sum(len(chunk) for _, chunk in own), sum(len(chunk) for _, chunk in missing)
    disable = None if show_progress is None else not show_progress
    with tqdm(total=total, initial=total - left, desc="responses", unit=" responses", disable=disable) as bar:
        for path, chunk in missing:
            write_parquet(measure_records(monitor, chunk, batch_size=batch_size, bar=bar), path, provenance=provenance)
    parts = []
    for path in paths:
        if (part := _read(path, provenance)) is None:
            return None
        parts.append(part)
    whole = _joined(parts)
    write_parquet(whole, output, provenance=provenance)
    if shard.count == 1:
        _remove(folder, output)
    return whole


def _check(output: Path, part_size: int, batch_size: int) -> None:
    if part_size < 1 or batch_size < 1:
        raise InputError(f"part_size and batch_size must be at least 1; found {part_size} and {batch_size}")
    if not output.parent.is_dir():
        raise InputError(f"{output}: the folder does not exist; make it first")


def _joined(parts: Sequence[MeasuredSentences]) -> MeasuredSentences:
    left_out = {name: reason for part in parts for name, reason in part.left_out.items()}
    if not any(part.texts for part in parts):
        raise InputError(f"none of the records has a sentence that fits the model's window; left out: {left_out}")
    return joined(parts)


def _provenance(monitor: Monitor, records: Sequence[LabelledResponse], part_size: int) -> dict[str, str]:
    """Return what decides the values of a run, by name."""
    corpus = hashlib.sha256()
    for record in records:
        content = {name: value for name, value in asdict(record).items() if name not in ("source", "line")}
        corpus.update(json.dumps(content, sort_keys=True).encode())
    config = asdict(monitor.config)
    return {
        "records": corpus.hexdigest(),
        "config": json.dumps({name: config[name] for name in ("schema", "layers", "segmenter")}),
        **instrument_of(monitor),
        "dtype": str(monitor.model.dtype),
        "LID references": _references(monitor),
        "part size": str(part_size),
        "version": version("syncheck"),
    }


def _references(monitor: Monitor) -> str:
    if monitor.lid_references is None:
        return "none"
    digest = hashlib.sha256()
    for layer, states in sorted(monitor.lid_references.references.items()):
        digest.update(f"{layer} {tuple(states.shape)}".encode())
        digest.update(states.float().cpu().numpy().tobytes())
    return digest.hexdigest()


def _enter(folder: Path, provenance: dict[str, str]) -> None:
    """Make the folder of a run, or check that it is of this one."""
    run = folder / _RUN
    if not run.exists():
        if any(_parts(folder)):
            raise MismatchError(f"{folder} holds parts but no {_RUN}; delete the folder, or pass another output")
        folder.mkdir(exist_ok=True)
        with replaced(run) as (file, _):
            file.write(f"{json.dumps(provenance, indent=2)}\n".encode())
        return
    try:
        found = dict(json.loads(run.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"{run} is damaged ({error}); delete {folder} and start anew") from error
    changed = [name for name in {**provenance, **found} if found.get(name) != provenance.get(name)]
    if changed:
        raise MismatchError(
            f"{folder} holds parts of another run: expected the same {', '.join(changed)}, found another. Go on with "
            "what the run began with, delete the folder to start anew, or pass another output"
        )


def _read(path: Path, provenance: dict[str, str]) -> MeasuredSentences | None:
    """Return what a file holds; None if it is not there, not of this run, or was left half or damaged."""
    try:
        if provenance_of(path) != provenance:
            return None
        return read_parquet(path)
    except CheckpointError:
        return None


def _parts(folder: Path) -> Iterator[Path]:
    yield from folder.glob("part-*.parquet")


def _remove(folder: Path, output: Path) -> None:
    """Remove the parts, and what processes that were killed had not finished writing."""
    unfinished = (path for path in output.parent.iterdir() if path.name.startswith(f"{output.name}{UNFINISHED}"))
    for path in (*folder.glob("part-*.parquet*"), *folder.glob(f"{_RUN}*"), *unfinished):
        path.unlink(missing_ok=True)
    folder.rmdir()
