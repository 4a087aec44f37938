"""One signal as the score: AlignScore or MiniCheck alone, FLARE's minimum probability, overlap."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from syncheck.errors import CheckpointError, InputError
from syncheck.files import parse_object
from syncheck.types import FeatureSchema

__all__ = ["Column", "signal_column"]

MAX_FEATURES = 100_000
"""Columns that a file may count."""


@dataclass(frozen=True, slots=True)
class Column:
    """Reads the score from one of F features.

    Attributes
    ----------
    index, features : int
        Place of the feature, and F.
    missing : float or None
        P(faithful) where it was not measured; None refuses such a sentence.
    """

    index: int
    features: int
    missing: float | None

    def probability(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the column, (N,) float64, of (N, F) features.

        Raises
        ------
        InputError
            If the signal of a sentence was not measured and ``missing`` is None, or a value is no probability.
        """
        values = X[:, self.index].astype(np.float64)
        absent = np.isnan(values)
        if self.missing is not None:
            values[absent] = self.missing
        elif absent.any():
            raise InputError(
                f"the signal in column {self.index}, which is the whole score, was not measured for "
                f"{int(absent.sum())} of {len(values)} sentences; give the monitor an aligner, or say what they score "
                "(missing=)"
            )
        if ((values < 0) | (values > 1)).any():
            raise InputError(
                f"the signal in column {self.index} must be in [0, 1]; found {values.min()}..{values.max()}"
            )
        return values

    def contributions(self, x: NDArray[np.float64], medians: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the signal itself in its place and 0 elsewhere, (F,) float64; nothing is learnt, nothing added up."""
        found = np.zeros(self.features)
        found[self.index] = self.probability(x[None])[0]
        return found

    def to_bytes(self) -> bytes:
        """Return the fields as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what :meth:`to_bytes` wrote.

        Raises
        ------
        CheckpointError
            If it is anything else, or names no column.
        """
        fields: Any = parse_object(data, Path("the signal's file"))
        if fault := _fault(fields):
            raise CheckpointError(f"the signal's file must name one column of those it counts; found {fault}")
        return cls(**fields)


def _fault(fields: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the fields of a file; None where nothing is."""
    if set(fields) != {"index", "features", "missing"}:
        return f"the fields {sorted(fields)}"
    index, count, missing = fields["index"], fields["features"], fields["missing"]
    if not (type(index) is type(count) is int and 0 <= index < count <= MAX_FEATURES):
        return f"column {index!r} of {count!r}"
    if missing is not None and not (type(missing) in (int, float) and 0 <= missing <= 1):
        return f"the score {missing!r} for a missing signal"
    return None


def signal_column(name: str, schema: FeatureSchema, missing: float | None) -> Column:
    """Return the reader of a signal that is a score as it stands.

    Parameters
    ----------
    name
        A feature of the schema in [0, 1] that is higher for more faithful sentences.
    schema
        The columns.
    missing
        As in :class:`Column`.

    Raises
    ------
    InputError
        If the schema has no such feature, or it is no score.
    """
    usable = [
        column
        for column, unit, direction in zip(schema.names, schema.units, schema.directions, strict=True)
        if direction == 1 and unit.endswith("[0, 1]")
    ]
    if name not in usable:
        raise InputError(
            f"expected a signal of schema {schema.version!r} in [0, 1] that rises with faithfulness: "
            f"{', '.join(usable) or 'it has none'}; found {name!r}"
        )
    if missing is not None and not 0 <= missing <= 1:
        raise InputError(f"missing must be a probability in [0, 1], or None; found {missing!r}")
    return Column(schema.names.index(name), len(schema.names), missing)
