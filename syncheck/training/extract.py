"""Labelled responses -> measured sentences: replayed through a monitor, at once or in parts that survive a kill."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from syncheck.errors import (
    CheckpointError,
    InputError,
    PromptError,
    SyncheckError,
    TextGeneratorError,
    describe_failure,
)
from syncheck.files import UNFINISHED, enter_run
from syncheck.labelling.datasets import labelled_responses
from syncheck.labelling.labels import check_cut
from syncheck.labelling.responses import LabelledResponse, prompt_of
from syncheck.replay import GivenResponse
from syncheck.scoring import not_finite
from syncheck.training.measured import MeasuredSentences, joined
from syncheck.training.parquet import provenance_of, read_parquet, write_parquet
from syncheck.training.provenance import instrument_of
from syncheck.types import RagPrompt

if TYPE_CHECKING:
    from syncheck.decoding.scored import ScoredAnswer
    from syncheck.monitor import Monitor


def measure(
    monitor: Monitor,
    records: Iterable[LabelledResponse | Mapping[str, Any]],
    *,
    batch_size: int = 1,
    show_progress: bool | None = None,
) -> MeasuredSentences:
    """Replay labelled responses and measure their sentences.

    Parameters
    ----------
    monitor
        Its scores, if it has an aggregator, are not used.
    records
        Also as dicts, see :func:`~syncheck.labelling.labelled_responses`. A record's own prompts are used when it has
        them, the monitor's template otherwise.
    batch_size
        Responses replayed at once, those of like length together; the values agree with those of 1 up to rounding. A
        batch for which memory runs out is halved.
    show_progress
        None shows a bar on a terminal.

    Returns
    -------
    MeasuredSentences
        ``left_out`` gives the reason for records whose prompts cannot be used or do not fit the model's window or
        memory, or for which the model puts out something that is not finite.

    Raises
    ------
    InputError
        If no record has a sentence, or ``batch_size`` is below 1.
    TextGeneratorError
        If the aligner fails on a record, whose sentences would lack a feature for good.
    RecordError
        If a record has labels of sentences that the monitor cuts otherwise, and ``carry_labels`` is not set.
    WrongTypeError
        If a record is neither a :class:`LabelledResponse` nor a dict.
    """
    records = labelled_responses(records)
    check_sentences(monitor, records)
    disable = None if show_progress is None else not show_progress
    with tqdm(total=len(records), desc="responses", unit=" responses", disable=disable) as bar:
        measured = measure_records(monitor, records, batch_size=batch_size, bar=bar)
    _check_any(measured)
    return replace(measured, provenance=instrument_of(monitor))


def _check_any(measured: MeasuredSentences) -> None:
    if not measured.texts:
        raise InputError(
            f"none of the records has a sentence that fits the model's window; left out: {dict(measured.left_out)}"
        )


def check_sentences(monitor: Monitor, records: Iterable[LabelledResponse]) -> None:
    """Check, before any is measured, that each labelled sentence will be measured as one; see :func:`check_cut`."""
    for record in records:
        if record.sentences is not None and not record.carry_labels:
            with suppress(PromptError):  # it will be left out
                given = monitor.read(prompt_of(monitor, record), record.response)
                check_cut(record, [(span.start, span.end) for span in given.spans])


def measure_records(
    monitor: Monitor, records: Sequence[LabelledResponse], *, batch_size: int, bar: tqdm
) -> MeasuredSentences:
    """Measure some of the records, advancing a bar; as :func:`measure`, but there may be no sentence in them."""
    kept: list[tuple[LabelledResponse, RagPrompt, GivenResponse]] = []
    left_out: dict[str, str] = {}
    for record in records:
        try:
            prompt = prompt_of(monitor, record)
            kept.append((record, prompt, monitor.read(prompt, record.response)))
        except Exception as error:  # a chat template or a tokenizer may fail on one text in any way
            if isinstance(error, SyncheckError) and not isinstance(error, PromptError):
                raise
            left_out[record.id] = describe_failure(error)
            bar.update()
    answers: dict[int, ScoredAnswer] = {}

    def leave_out(place: int, reason: str) -> None:
        left_out[kept[place][0].id] = reason
        bar.update()

    for place, answer in monitor.replay_batch(
        [prompt for _, prompt, _ in kept],
        [given for _, _, given in kept],
        signals=False,
        batch_size=batch_size,
        on_failure=leave_out,
    ):
        has_context, measured = answer.scorer.prompt.has_context, [s for s in answer.signals if s.measured]
        broken = next(filter(None, (not_finite(signals, has_context=has_context) for signals in measured)), None)
        if broken is not None:
            leave_out(place, broken)
            continue
        _check_aligned(kept[place][0], answer)
        answers[place] = answer
        bar.update()
    done = sorted(answers)
    return _measured(monitor, [kept[i][0] for i in done], left_out, [answers[i] for i in done])


def _check_aligned(record: LabelledResponse, answer: ScoredAnswer) -> None:
    reason = next((sentence.reason for sentence in answer.sentences if sentence.status == "failed"), None)
    if reason is not None:
        raise TextGeneratorError(
            f"record {record.id!r}: expected support for each of its sentences; found that the {reason}. Fix that, or "
            "take the record out, and measure again"
        )


def _measured(
    monitor: Monitor, records: Sequence[LabelledResponse], left_out: Mapping[str, str], answers: Sequence[ScoredAnswer]
) -> MeasuredSentences:
    signals = [signal for answer in answers for signal in answer.signals]
    rows = [list(sentence.features.values()) for answer in answers for sentence in answer.sentences]
    bounds = [(s.span.start, s.span.end) for s in signals]
    owners = [index for index, answer in enumerate(answers) for _ in answer.signals]
    return MeasuredSentences(
        schema=monitor.schema,
        values=np.array(rows, np.float64).reshape(len(rows), len(monitor.schema.names)),
        activations=_stacked([s.activations for s in signals]),
        bounds=np.array(bounds, np.int64).reshape(len(bounds), 2),
        texts=tuple(s.text for s in signals),
        owners=np.array(owners, np.int64),
        records=tuple(records),
        left_out=left_out,
        segmenter=monitor.config.segmenter,
    )


def _stacked(activations: Sequence[Mapping[int, NDArray[np.float32]]]) -> dict[int, NDArray[np.float32]]:
    """By layer (N, H); NaN for a sentence without its own token."""
    found = next((a for a in activations if a), {})
    return {
        layer: np.stack([a.get(layer, np.full_like(example, np.nan)) for a in activations])
        for layer, example in found.items()
    }


_RUN = "run.json"


@dataclass(frozen=True, slots=True)
class Shard:
    """The ``number``-th of ``count`` processes that share the parts of one corpus, from 1."""

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
    that is started again measures those of its parts that are missing or damaged: a kill costs at most one part, and
    the file is the same as without the kill. When all parts are there they are joined in the order of the records and
    replace ``output``.

    Parameters
    ----------
    monitor, show_progress
        As in :func:`measure`.
    records
        The whole corpus, for every shard.
    output
        The Parquet file.
    batch_size
        As in :func:`measure`; it may change when a run goes on. Batches end with their part.
    part_size
        Records that are measured, and can be lost, at once.
    shard
        This process measures every ``count``-th part. Processes share the folder, or it is copied together; the one
        that finds all parts there joins them. A single shard removes the folder once ``output`` was read again.

    Returns
    -------
    MeasuredSentences or None
        None if parts of other shards are missing or damaged.

    Raises
    ------
    InputError
        If ``part_size`` or ``batch_size`` is below 1, the folder of ``output`` does not exist, or no record has a
        sentence.
    TextGeneratorError
        If the aligner fails; the part is then not written.
    RecordError
        As in :func:`measure`, before the first is measured.
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
    enter_run(folder / _RUN, provenance)
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
    whole = joined(parts)
    _check_any(whole)
    write_parquet(whole, output, provenance=provenance)
    if shard.count == 1:
        _remove(folder, output)
    return whole


def _check(output: Path, part_size: int, batch_size: int) -> None:
    if part_size < 1 or batch_size < 1:
        raise InputError(f"part_size and batch_size must be at least 1; found {part_size} and {batch_size}")
    if not output.parent.is_dir():
        raise InputError(f"{output}: the folder does not exist; make it first")


def _provenance(monitor: Monitor, records: Sequence[LabelledResponse], part_size: int) -> dict[str, str]:
    """Return the facts that determine the values of a run, by name."""
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


def _read(path: Path, provenance: dict[str, str]) -> MeasuredSentences | None:
    """Return the sentences in a file; None if it is missing, damaged or of another run."""
    try:
        if provenance_of(path) != provenance:
            return None
        return read_parquet(path)
    except CheckpointError:
        return None


def _remove(folder: Path, output: Path) -> None:
    """Remove the parts, and files that killed processes left unfinished."""
    unfinished = (path for path in output.parent.iterdir() if path.name.startswith(f"{output.name}{UNFINISHED}"))
    for path in (*folder.glob("part-*.parquet*"), *folder.glob(f"{_RUN}*"), *unfinished):
        path.unlink(missing_ok=True)
    folder.rmdir()
