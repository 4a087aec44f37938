"""An aggregator as files: a readable ``aggregator.json`` and one file of weights, never a pickle.

The JSON file holds the digest of the weights, so a half-written or swapped file is found before it is parsed. What is
read is validated beside that: whoever altered the weights could have altered their digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from syncheck.aggregators.calibration import RiskControlledThreshold, calibration_from_dict, calibration_to_dict
from syncheck.aggregators.kinds import KINDS
from syncheck.errors import CheckpointError, MismatchError
from syncheck.files import REMEDY, read_bytes, read_object
from syncheck.types import FeatureSchema

if TYPE_CHECKING:
    from syncheck.aggregators.aggregator import Aggregator

__all__ = ["check_folder", "check_schema", "file_names", "load", "save"]

A = TypeVar("A", bound="Aggregator")
CONFIG = "aggregator.json"
FORMAT = "syncheck.aggregator.v1"
LIBRARIES = ("numpy", "scikit-learn", "xgboost")


def save(directory: Path, aggregator: Aggregator) -> None:
    """Write the two files, making the folder if it does not exist, and remove those that they replace."""
    directory.mkdir(parents=True, exist_ok=True)
    weights, file = aggregator.model.to_bytes(), KINDS[aggregator.kind].file
    calibration, threshold = aggregator.calibration, aggregator.calibrated_threshold
    config = {
        "format": FORMAT,
        "kind": aggregator.kind,
        "schema": asdict(aggregator.schema),
        "medians": [None if np.isnan(value) else float(value) for value in aggregator.medians],
        "weights": file,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "calibration": None if calibration is None else calibration_to_dict(calibration),
        "calibrated_threshold": None if threshold is None else asdict(threshold),
        "libraries": {name: version(name) for name in LIBRARIES},
    }
    (directory / file).write_bytes(weights)
    (directory / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for other in {kind.file for kind in KINDS.values()} - {file}:
        (directory / other).unlink(missing_ok=True)  # of an aggregator that this one was saved over


def load(cls: type[A], directory: Path) -> A:
    """Read the two files.

    Raises
    ------
    CheckpointError
        If one is missing, damaged, does not belong to the other, or has an unknown format.
    """
    check_folder(directory, written_by="Aggregator.save")
    config = _config(directory / CONFIG)
    try:
        schema = _schema(config["schema"])
        kind, digest, named = (_text(config[name]) for name in ("kind", "weights_sha256", "weights"))
        medians = np.array([np.nan if value is None else _number(value) for value in config["medians"]])
        # Files of before there was a calibration lack both.
        calibration, threshold = config.get("calibration"), config.get("calibrated_threshold")
        calibration = None if calibration is None else calibration_from_dict(calibration)
        threshold = None if threshold is None else RiskControlledThreshold.from_dict(threshold)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"{directory / CONFIG} is damaged ({type(error).__name__}: {error}); {REMEDY}") from error
    if kind not in tuple(KINDS):
        raise CheckpointError(f"{directory / CONFIG} has an aggregator of unknown kind {kind!r}; update syncheck")
    path = directory / KINDS[kind].file
    if named != path.name:
        raise CheckpointError(
            f"{directory / CONFIG} keeps its weights in {named!r}; this version reads {path.name!r}. XGBoost's own "
            ".ubj files are not read, since a damaged one ends the program: train and save the monitor anew, with "
            "syncheck train or Monitor.fit"
        )
    weights = read_bytes(path)
    if hashlib.sha256(weights).hexdigest() != digest:
        raise CheckpointError(f"{path} is not the file that {CONFIG} was saved with, or only a part of it; {REMEDY}")
    model = KINDS[kind].model.from_bytes(weights)
    if not len(schema.names) == len(medians) == model.features:
        raise CheckpointError(
            f"{directory / CONFIG} names {len(schema.names)} features and {len(medians)} medians, but the "
            f"weights are for {model.features}; {REMEDY}"
        )
    return cls(schema, kind, medians, model, calibration, threshold)


def file_names(kind: str) -> list[str]:
    """Return the names of the two files of an aggregator.

    Raises
    ------
    CheckpointError
        If the kind is unknown.
    """
    if kind not in tuple(KINDS):
        raise CheckpointError(f"an aggregator of kind {kind!r} is unknown; update syncheck")
    return [CONFIG, KINDS[kind].file]


def check_folder(directory: Path, *, written_by: str) -> None:
    """Raise CheckpointError if there is a file in place of a folder."""
    if not directory.is_file():
        return
    published = directory.suffix == ".pkl"
    remedy = "A file that the authors published goes to Aggregator.from_published" if published else "Pass the folder"
    raise CheckpointError(f"expected a folder that {written_by} wrote; found the file {directory}. {remedy}")


def check_schema(trained: FeatureSchema, passed: FeatureSchema | None) -> None:
    """Raise MismatchError unless the features passed are those trained on, in the same order."""
    if passed is None or (passed.version, passed.names) == (trained.version, trained.names):
        return
    raise MismatchError(
        f"the aggregator was trained on schema {trained.version!r} with {', '.join(trained.names)}, but is "
        f"asked to read {passed.version!r} with {', '.join(passed.names)}; load it with the features it was "
        "trained on, read a published one with schema=feature_schema(version, layers), or train one on these"
    )


def _schema(stored: Mapping[str, Any]) -> FeatureSchema:
    schema = FeatureSchema(
        version=_text(stored["version"]),
        names=tuple(map(_text, stored["names"])),
        units=tuple(map(_text, stored["units"])),
        directions=tuple(stored["directions"]),
    )
    if not len(set(schema.names)) == len(schema.names) == len(schema.units) == len(schema.directions):
        raise ValueError("a schema needs names that differ, with a unit and a direction each")
    if not all(type(direction) is int and -1 <= direction <= 1 for direction in schema.directions):
        raise ValueError(f"directions must be -1, 0 or 1; found {schema.directions}")
    return schema


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string; found {value!r}")
    return value


def _number(value: object) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"expected a number; found {value!r}")
    return float(value)  # type: ignore[arg-type]  # the line above


def _config(path: Path) -> Mapping[str, Any]:
    config = read_object(path)
    found = config.get("format")
    if found != FORMAT:
        raise CheckpointError(
            f"{path} has format {found!r}, expected {FORMAT!r}; update syncheck or train the aggregator anew"
        )
    return config
