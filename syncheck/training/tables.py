"""Measured sentences as a Parquet file: measure once, train and evaluate many times."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from syncheck.config import SegmenterConfig
from syncheck.errors import CheckpointError, InputError, MissingExtraError
from syncheck.features import feature_schema
from syncheck.training.datasets import LabelledResponse
from syncheck.training.extract import MeasuredSentences
from syncheck.training.labels import LabelledSentence, UnfaithfulSpan

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_parquet", "write_parquet"]

_KEY = b"syncheck"
_ACTIVATION = "activation_layer_"


def write_parquet(measured: MeasuredSentences, path: str | Path) -> None:
    """Write one row a sentence: record, group, generator, text, bounds, labels by both rules, features, activations.

    The labelled responses themselves go into the file's metadata, so that :func:`read_parquet` gives back all of it.

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
        "layers": [int(n.rpartition("_")[2]) for n in measured.schema.names if n.startswith("lid_layer_")],
        "records": [asdict(record) for record in measured.records],
        "left_out": dict(measured.left_out),
        "max_references": measured.max_references,
        "segmenter": asdict(measured.segmenter),
    }
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(facts, ensure_ascii=False)})
    parquet.write_table(table, path)


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
        )
    except (OSError, InputError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise CheckpointError(
            f"{path} is not a file of measured sentences ({type(error).__name__}: {error}); write one with "
            "`syncheck features`"
        ) from error


def _activations(table: pa.Table) -> dict[int, np.ndarray]:
    names = [name for name in table.column_names if name.startswith(_ACTIVATION)]
    return {int(name.removeprefix(_ACTIVATION)): np.stack(table[name].to_pylist()).astype(np.float32) for name in names}


def _segmenter(entry: dict[str, Any]) -> SegmenterConfig:
    return SegmenterConfig(**{**entry, "abbreviations": tuple(entry["abbreviations"])})


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
