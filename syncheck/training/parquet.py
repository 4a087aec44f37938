"""Parquet files of measured sentences: measured once, in parts that survive kills; trained and evaluated many times."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save
from tqdm import tqdm

from syncheck.base.errors import CheckpointError, InputError, MissingExtraError
from syncheck.base.files import UNFINISHED, replaced
from syncheck.corpus import Line, Store, answer_corpus
from syncheck.corpus.store import PART_SIZE
from syncheck.features.schemas import feature_schema
from syncheck.labelling.datasets import labelled_responses
from syncheck.labelling.responses import LabelledResponse, response_from_json, response_to_json
from syncheck.model_monitor import ModelMonitor
from syncheck.text.sentences.boundaries import SegmenterConfig
from syncheck.training.extract import check_any, check_sentences, measure_records
from syncheck.training.measured import MeasuredSentences, joined
from syncheck.training.provenance import run_facts
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    import pyarrow as pa


_KEY = b"syncheck"
_DIGEST = b"syncheck sha256"
_ACTIVATION = "activation_layer_"
_RESPONSE = "labelled_response"

_LAYOUT = 2
"""Layout of written files; layout 1 had all labelled responses in the metadata, whose size is limited."""


def write_parquet(measured: MeasuredSentences, path: str | Path) -> None:
    """Write one row for each sentence: record, group, generator, task, text, bounds, labels, features, activations.

    The labelled response itself, as JSON, is in the row of its first sentence; the feature schema, the provenance and
    responses without a sentence are in the metadata. The file is verified before it replaces one at ``path``: if it
    cannot be read again, CheckpointError is raised. Without pyarrow, MissingExtraError is raised.
    """
    with MissingExtraError.unless("pyarrow", "data"):
        import pyarrow as pa
        import pyarrow.parquet as parquet
    with_sentence, first_rows = np.unique(measured.owners, return_index=True)
    responses: list[str | None] = [None] * len(measured.texts)
    for index, row in zip(with_sentence, first_rows, strict=True):
        responses[row] = response_to_json(measured.records[index])
    columns: dict[str, Any] = {
        "record": [measured.records[i].id for i in measured.owners],
        "owner": measured.owners,
        "group": measured.groups,
        "generator": measured.generators,
        "task": measured.tasks,
        "text": list(measured.texts),
        "start": measured.bounds[:, 0],
        "end": measured.bounds[:, 1],
        "faithful_overlap": measured.labels(rule="overlap"),
        "faithful_paper": measured.labels(rule="paper", implicit_true=False),
        _RESPONSE: pa.array(responses, pa.string()),
    }
    schema = measured.schema
    columns |= dict(zip(schema.names, measured.values.T, strict=True))
    columns |= {f"{_ACTIVATION}{layer}": list(states) for layer, states in measured.activations.items()}
    facts = {
        "layout": _LAYOUT,
        "schema": schema.version,
        "features": [
            {"name": name, "unit": unit, "direction": direction}
            for name, unit, direction in zip(schema.names, schema.units, schema.directions, strict=True)
        ],
        "layers": [int(name.rpartition("_")[2]) for name in schema.names if name.startswith("lid_layer_")],
        "responses": len(measured.records),
        "without sentence": {
            str(index): response_to_json(measured.records[index])
            for index in np.setdiff1d(np.arange(len(measured.records)), with_sentence)
        },
        "left_out": dict(measured.left_out),
        "max_references": measured.max_references,
        "segmenter": asdict(measured.segmenter),
        "provenance": dict(measured.provenance),
    }
    table, noted = pa.table(columns), json.dumps(facts, ensure_ascii=False).encode()
    table = table.replace_schema_metadata({_KEY: noted, _DIGEST: _digest(noted, table.schema)})
    remedy = " and was removed. Check the disk and run again; if that is sound, measure fewer responses into one file"
    with replaced(place := Path(path)) as (file, unfinished):
        parquet.write_table(table, file, write_page_checksum=True)
        file.flush()
        with _reading(f"what was written for {place} cannot be read", remedy):
            with parquet.ParquetFile(unfinished, page_checksum_verification=True) as written:
                for _ in written.iter_batches():  # reading verifies the checksums
                    pass


def read_parquet(path: str | Path) -> MeasuredSentences:
    """Read what :func:`write_parquet` wrote, or raise CheckpointError; without pyarrow, MissingExtraError."""
    with _reading(f"{path} is not a file of measured sentences", "; write one with `syncheck features`") as parquet:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            facts = _facts(path, file.schema_arrow)
            table = file.read()
        schema, segmenter = feature_schema(facts["schema"], facts["layers"]), facts["segmenter"]
        values = np.stack([table[name].to_numpy() for name in schema.names], axis=1).astype(np.float64)
        return MeasuredSentences(
            schema=schema,
            values=values,
            # Without a sentence, nothing tells how wide they are.
            activations={
                int(name.removeprefix(_ACTIVATION)): _states(table[name], name)
                for name in table.column_names
                if name.startswith(_ACTIVATION) and len(table)
            },
            bounds=np.stack([table["start"].to_numpy(), table["end"].to_numpy()], axis=1),
            texts=tuple(table["text"].to_pylist()),
            owners=table["owner"].to_numpy(),
            records=_responses(table, facts),
            left_out=facts["left_out"],
            max_references=facts["max_references"],
            segmenter=SegmenterConfig(**segmenter | {"abbreviations": tuple(segmenter["abbreviations"])}),
            provenance=facts["provenance"],
        )


@contextmanager
def _reading(what: str, remedy: str) -> Iterator[Any]:
    """Yield pyarrow's Parquet module, and turn problems with a file into an error that says what is wrong."""
    with MissingExtraError.unless("pyarrow", "data"):
        import pyarrow as pa
        import pyarrow.parquet as parquet
    try:
        yield parquet
    except CheckpointError:
        raise
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise CheckpointError(f"{what} ({type(error).__name__}: {error}){remedy}") from error


def _facts(path: str | Path, schema: pa.Schema) -> dict[str, Any]:
    """Read the facts in the metadata, after checking their digest and layout."""
    metadata = schema.metadata or {}
    facts = dict(json.loads(metadata[_KEY]))
    layout = facts.get("layout", 1)
    if layout != _LAYOUT:
        raise CheckpointError(
            f"{path} was written by another version of syncheck: expected layout {_LAYOUT} of measured sentences, "
            f"found {layout}. Measure again with `syncheck features`"
        )
    if metadata[_DIGEST] != _digest(metadata[_KEY], schema):
        raise ValueError("its metadata or the names of its columns are not those that were written")
    return facts


def _digest(noted: bytes, schema: pa.Schema) -> bytes:
    """Compute a digest of the metadata and the columns' names, which no checksum of a page covers."""
    return hashlib.sha256(noted + json.dumps(schema.names).encode()).hexdigest().encode()


def _responses(table: pa.Table, facts: Mapping[str, Any]) -> tuple[LabelledResponse, ...]:
    """Read the responses of the rows and those without a sentence, in their original order."""
    texts = {int(index): text for index, text in facts["without sentence"].items()}
    rows = zip(table["owner"].to_pylist(), table[_RESPONSE].to_pylist(), strict=True)
    texts |= {index: text for index, text in rows if text is not None}
    return tuple(response_from_json(texts[index]) for index in range(facts["responses"]))


def _states(column: pa.ChunkedArray, name: str) -> np.ndarray:
    """Stack the lists of a column as rows (N, H)."""
    import pyarrow.compute as compute

    widths = compute.list_value_length(column).unique().to_pylist()
    if len(widths) != 1 or widths[0] is None:
        raise ValueError(f"{name} must have one width, found {widths}")
    # Not combined first: the offsets of a list column end at 2**31 values, which 500,000 wide rows exceed.
    return np.concatenate(
        [chunk.flatten().to_numpy().reshape(len(chunk), widths[0]).astype(np.float32) for chunk in column.chunks]
    )


def _measured_rows(monitor: ModelMonitor | Verifier, batch_size: int, lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Measure the row of each line; TextGeneratorError if the aligner fails, so that the part is not stored."""
    records = [response_from_json(line.content.decode()) for line in lines]
    with tqdm(disable=True) as bar:
        measured = measure_records(monitor, records, batch_size=batch_size, bar=bar)
    rows = {record.id: _row(measured, i) for i, record in enumerate(measured.records)}
    for line, record in zip(lines, records, strict=True):
        if record.id in measured.left_out:
            rows[record.id] = {"id": record.id, "line": line.number, "error": measured.left_out[record.id]}
    return [rows[record.id] for record in records]


def _row(measured: MeasuredSentences, index: int) -> dict[str, Any]:
    """Write the sentences of one response, their arrays as safetensors in base64."""
    own = np.flatnonzero(measured.owners == index)
    arrays: dict[str, NDArray[Any]] = {"values": measured.values[own], "bounds": measured.bounds[own]}
    arrays |= {str(layer): states[own] for layer, states in measured.activations.items() if len(own)}
    texts = [measured.texts[i] for i in own]
    return {"id": measured.records[index].id, "texts": texts, "arrays": b64encode(save(arrays)).decode()}


def _of_row(row: Mapping[str, Any], record: LabelledResponse, monitor: ModelMonitor | Verifier) -> MeasuredSentences:
    """Read the sentences in a row that :func:`_row` wrote; none if the response was left out."""
    arrays: dict[str, NDArray[Any]] = {} if "error" in row else load(b64decode(row["arrays"]))
    return MeasuredSentences(
        schema=monitor.schema,
        values=arrays.pop("values", np.zeros((0, len(monitor.schema.names)))),
        bounds=arrays.pop("bounds", np.zeros((0, 2), np.int64)),
        activations={layer: arrays[str(layer)] for layer in sorted(map(int, arrays))},
        texts=tuple(row.get("texts", ())),
        owners=np.zeros(len(row.get("texts", ())), np.int64),
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
    show_progress: bool | None = None,
) -> MeasuredSentences:
    """Measure labelled responses into a Parquet file, part by part.

    Rows are stored in the folder ``<output>.parts``, a :class:`~syncheck.corpus.Store`, so that a kill costs at most
    one part. A process that is started again measures only missing records. Once the rows of all records are there,
    they are joined in the order of the records and replace ``output``: the same file as without the kill. The folder is
    removed once ``output`` is verified. ``batch_size`` is as in :func:`measure` and may change when a run continues.

    Errors are those of :func:`measure`, CheckpointError if the written file cannot be read again, where the parts are
    kept, and MismatchError if the folder has rows of another model, aligner or config.
    """
    output, records = Path(output), labelled_responses(records)
    _check_asked(output, batch_size, part_size)
    facts = _run_facts(monitor)
    contents = [response_to_json(replace(record, source=None, line=None)).encode() for record in records]
    lines = [
        Line(str(r.source or "records"), i, of) for i, (r, of) in enumerate(zip(records, contents, strict=True), 1)
    ]
    provenance = {"records": hashlib.sha256(b"\n".join(contents)).hexdigest(), **facts}
    folder = output.with_name(f"{output.name}.parts")
    if not folder.exists():
        with suppress(CheckpointError):
            if (finished := read_parquet(output)).provenance == provenance:
                return finished
    if is_new := not folder.exists():
        check_sentences(monitor, records)  # what is refused must leave no folder
    with _entered(folder, facts) as store:
        keys = [store.key(line) for line in lines]
        if not is_new:
            check_sentences(monitor, [r for key, r in zip(keys, records, strict=True) if key not in store])
        answer_corpus(
            lines,
            store,
            partial(_measured_rows, monitor, batch_size),
            part_size=part_size,
            total=len(records),
            show_progress=show_progress,
        )
    rows = dict(store.rows())
    parts = [_of_row(rows[key], record, monitor) for key, record in zip(keys, records, strict=True)]
    whole = replace(joined(parts), provenance=provenance)
    if whole.texts:
        write_parquet(whole, output)
    store.remove()
    for path in output.parent.glob(f"{escape(output.name)}{UNFINISHED}*"):  # left behind by killed processes
        path.unlink(missing_ok=True)
    check_any(whole)
    return whole


def _check_asked(output: Path, batch_size: int, part_size: int) -> None:
    if part_size < 1 or batch_size < 1:
        raise InputError(f"part_size and batch_size must be at least 1; found {part_size} and {batch_size}")
    if not output.parent.is_dir():
        raise InputError(f"{output}: the folder does not exist; create it first")


@contextmanager
def _entered(folder: Path, facts: Mapping[str, str]) -> Iterator[Store]:
    """Open a store; a new one that gets no row because of an error is removed, since it would refuse other options."""
    is_new, store = not folder.exists(), Store(folder, facts)
    try:
        yield store
    except BaseException:
        if is_new and not store:
            store.remove()
        raise


def _run_facts(monitor: ModelMonitor | Verifier) -> dict[str, str]:
    """Collect the facts, besides the records, that determine the values, by name."""
    config, digest = asdict(monitor.config), hashlib.sha256()
    references = None if isinstance(monitor, Verifier) else monitor.lid_references
    for layer, states in () if references is None else sorted(references.references.items()):
        digest.update(f"{layer} {tuple(states.shape)}".encode())
        digest.update(states.float().cpu().numpy().tobytes())
    return {
        "config": json.dumps({name: config[name] for name in ("schema", "layers", "segmenter")}),
        "LID references": "none" if references is None else digest.hexdigest(),
        **run_facts(monitor),
    }
