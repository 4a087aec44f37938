"""Parquet files of measured sentences: measure once, train and evaluate many times."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from syncheck.base.errors import CheckpointError, MissingExtraError
from syncheck.base.files import replaced
from syncheck.features.schemas import feature_schema
from syncheck.labelling.responses import LabelledResponse, response_from_json, response_to_json
from syncheck.text.sentences.boundaries import SegmenterConfig
from syncheck.training.measured import MeasuredSentences

if TYPE_CHECKING:
    import pyarrow as pa

_KEY = b"syncheck"
_DIGEST = b"syncheck sha256"
_ACTIVATION = "activation_layer_"
_RESPONSE = "labelled_response"

_LAYOUT = 2
"""Layout of written files; layout 1 had all labelled responses in the metadata, whose size is limited."""


def write_parquet(
    measured: MeasuredSentences, path: str | Path, *, provenance: Mapping[str, str] | None = None
) -> None:
    """Write one row for each sentence: record, group, generator, task, text, bounds, labels, features, activations.

    The labelled response itself, as JSON, is in the row of its first sentence. The feature schema and responses without
    a sentence are in the file's metadata, so that :func:`read_parquet` restores everything. The ``provenance`` is
    stored there too, see :func:`provenance_of`; None takes that of the sentences.

    The file is written under a temporary name and verified before it is renamed, so it is never incomplete. One that
    cannot be read again raises CheckpointError, and an older file at ``path`` is kept. Without pyarrow,
    MissingExtraError is raised.
    """
    pa = _pyarrow()
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
        "provenance": dict(measured.provenance if provenance is None else provenance),
    }
    table, noted = pa.table(columns), json.dumps(facts, ensure_ascii=False).encode()
    table = table.replace_schema_metadata({_KEY: noted, _DIGEST: _digest(noted, table.schema)})
    place = Path(path)
    with replaced(place) as (file, unfinished):
        parquet.write_table(table, file, write_page_checksum=True)
        file.flush()
        _check_readable(unfinished, place)


def read_parquet(path: str | Path) -> MeasuredSentences:
    """Read what :func:`write_parquet` wrote.

    A file that is missing, damaged, of an earlier layout or not one of measured sentences raises CheckpointError;
    without pyarrow, MissingExtraError is raised.
    """
    with _reading(path) as parquet:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            facts = _facts(path, file.schema_arrow)
            table = file.read()
        schema, segmenter = feature_schema(facts["schema"], facts["layers"]), facts["segmenter"]
        values = np.stack([table[name].to_numpy() for name in schema.names], axis=1).astype(np.float64)
        return MeasuredSentences(
            schema=schema,
            values=values,
            activations=_activations(table),
            bounds=np.stack([table["start"].to_numpy(), table["end"].to_numpy()], axis=1),
            texts=tuple(table["text"].to_pylist()),
            owners=table["owner"].to_numpy(),
            records=_responses(table, facts),
            left_out=facts["left_out"],
            max_references=facts["max_references"],
            segmenter=SegmenterConfig(**segmenter | {"abbreviations": tuple(segmenter["abbreviations"])}),
            provenance=_provenance(facts),
        )


def provenance_of(path: str | Path) -> dict[str, str]:
    """Read the provenance of the values in a file, by name; empty if the file does not have it.

    Errors are those of :func:`read_parquet`.
    """
    with _reading(path) as parquet:
        return _provenance(_facts(path, parquet.read_schema(path)))


@contextmanager
def _reading(path: str | Path) -> Iterator[Any]:
    """Yield pyarrow's Parquet module, and turn problems with a file into an error that names it."""
    pa = _pyarrow()
    import pyarrow.parquet as parquet

    try:
        yield parquet
    except CheckpointError:
        raise
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise CheckpointError(
            f"{path} is not a file of measured sentences ({type(error).__name__}: {error}); write one with "
            "`syncheck features`"
        ) from error


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


def _check_readable(unfinished: Path, place: Path) -> None:
    """Read a whole file, in batches of rows, and verify its checksums."""
    pa = _pyarrow()
    import pyarrow.parquet as parquet

    try:
        with parquet.ParquetFile(unfinished, page_checksum_verification=True) as file:
            for _ in file.iter_batches():
                pass
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CheckpointError(
            f"what was written for {place} cannot be read ({type(error).__name__}: {error}) and was removed. Check the "
            "disk and run again; if that is sound, measure fewer responses into one file"
        ) from error


def _responses(table: pa.Table, facts: Mapping[str, Any]) -> tuple[LabelledResponse, ...]:
    """Read the responses of the rows and those without a sentence, in their original order."""
    texts = {int(index): text for index, text in facts["without sentence"].items()}
    for index, text in zip(table["owner"].to_pylist(), table[_RESPONSE].to_pylist(), strict=True):
        if text is not None:
            texts[index] = text
    return tuple(response_from_json(texts[index]) for index in range(facts["responses"]))


def _activations(table: pa.Table) -> dict[int, np.ndarray]:
    names = [name for name in table.column_names if name.startswith(_ACTIVATION)]
    if not len(table):  # no sentence to tell how wide they are
        return {}
    return {int(name.removeprefix(_ACTIVATION)): _states(table[name], name) for name in names}


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


def _provenance(facts: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in dict(facts.get("provenance", {})).items()}


def _pyarrow() -> Any:
    with MissingExtraError.unless("pyarrow", "data"):
        import pyarrow
    return pyarrow
