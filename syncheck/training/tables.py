"""Measured sentences as a Parquet file: measure once, train and evaluate many times."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from syncheck.config import SegmenterConfig
from syncheck.errors import CheckpointError, InputError, MissingExtraError
from syncheck.schemas import feature_schema
from syncheck.training.datasets import LabelledResponse
from syncheck.training.labels import LabelledSentence, UnfaithfulSpan
from syncheck.training.measured import MeasuredSentences

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["provenance_of", "read_parquet", "write_parquet"]

_KEY = b"syncheck"
_ACTIVATION = "activation_layer_"

UNFINISHED = ".unfinished-"
"""In the name of a file that is still being written, or was when its process ended."""


def write_parquet(
    measured: MeasuredSentences, path: str | Path, *, provenance: Mapping[str, str] | None = None
) -> None:
    """Write one row a sentence: record, group, generator, task, text, bounds, labels, features, activations.

    The feature schema and the labelled responses themselves go into the file's metadata, so that :func:`read_parquet`
    gives back all of it. The file is there whole or not at all: it is written beside its place and then put there.

    Parameters
    ----------
    measured
    path
    provenance
        What the values were measured with, kept in the metadata; see :func:`provenance_of`. None takes what the
        sentences say of themselves.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    pa = _pyarrow()
    import pyarrow.parquet as parquet

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
    }
    columns |= dict(zip(measured.schema.names, measured.values.T, strict=True))
    columns |= {f"{_ACTIVATION}{layer}": list(states) for layer, states in measured.activations.items()}
    facts = {
        "schema": measured.schema.version,
        "features": [
            {"name": name, "unit": unit, "direction": direction}
            for name, unit, direction in zip(
                measured.schema.names, measured.schema.units, measured.schema.directions, strict=True
            )
        ],
        "layers": [int(n.rpartition("_")[2]) for n in measured.schema.names if n.startswith("lid_layer_")],
        "records": [asdict(record) for record in measured.records],
        "left_out": dict(measured.left_out),
        "max_references": measured.max_references,
        "segmenter": asdict(measured.segmenter),
        "provenance": dict(measured.provenance if provenance is None else provenance),
    }
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(facts, ensure_ascii=False)})
    place = Path(path)
    unfinished = place.with_name(f"{place.name}{UNFINISHED}{os.getpid()}")
    try:
        parquet.write_table(table, unfinished)
        unfinished.replace(place)
    finally:
        unfinished.unlink(missing_ok=True)


def read_parquet(path: str | Path) -> MeasuredSentences:
    """Read what :func:`write_parquet` wrote.

    Raises
    ------
    CheckpointError
        If the file is missing, damaged or not one of measured sentences.
    MissingExtraError
        If pyarrow is not installed.
    """
    pa = _pyarrow()
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(path)
        facts = json.loads((table.schema.metadata or {})[_KEY])
        schema = feature_schema(facts["schema"], facts["layers"])
        values = np.stack([table[name].to_numpy() for name in schema.names], axis=1).astype(np.float64)
        return MeasuredSentences(
            schema=schema,
            values=values,
            activations=_activations(table),
            bounds=np.stack([table["start"].to_numpy(), table["end"].to_numpy()], axis=1),
            texts=tuple(table["text"].to_pylist()),
            owners=table["owner"].to_numpy(),
            records=tuple(_record(entry) for entry in facts["records"]),
            left_out=facts["left_out"],
            max_references=facts["max_references"],
            segmenter=_segmenter(facts["segmenter"]),
            provenance=_provenance(facts),
        )
    except (OSError, InputError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise _no_table(path, error) from error


def provenance_of(path: str | Path) -> dict[str, str]:
    """Return what the values of a file were measured with; empty for a file without a note of it.

    Raises
    ------
    CheckpointError
        If the file is missing, damaged or not one of measured sentences.
    MissingExtraError
        If pyarrow is not installed.
    """
    pa = _pyarrow()
    import pyarrow.parquet as parquet

    try:
        metadata = parquet.read_schema(path).metadata or {}
        return _provenance(json.loads(metadata[_KEY]))
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise _no_table(path, error) from error


def _no_table(path: str | Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{path} is not a file of measured sentences ({type(error).__name__}: {error}); write one with "
        "`syncheck features`"
    )


def _activations(table: pa.Table) -> dict[int, np.ndarray]:
    names = [name for name in table.column_names if name.startswith(_ACTIVATION)]
    if not len(table):  # no sentence to say how wide they are
        return {}
    return {int(name.removeprefix(_ACTIVATION)): np.stack(table[name].to_pylist()).astype(np.float32) for name in names}


def _segmenter(entry: dict[str, Any]) -> SegmenterConfig:
    return SegmenterConfig(**{**entry, "abbreviations": tuple(entry["abbreviations"])})


def _provenance(facts: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in dict(facts.get("provenance", {})).items()}


def _record(entry: dict[str, Any]) -> LabelledResponse:
    spans, sentences = entry.pop("spans"), entry.pop("sentences")
    return LabelledResponse(
        **{**entry, "passages": tuple(entry["passages"])},
        spans=None if spans is None else tuple(UnfaithfulSpan(**span) for span in spans),
        sentences=None if sentences is None else tuple(LabelledSentence(**s) for s in sentences),
    )


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError("pyarrow", "data") from error
    return pyarrow
