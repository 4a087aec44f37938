"""The kinds of aggregator: how each is trained, what reads it, and in which file it is kept.

A new kind is a file beside this one and an entry in :data:`KINDS`; those that are trained are named in
:data:`syncheck.config.AggregatorKind`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, Self, get_args

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators.ensemble import Ensemble
from syncheck.aggregators.estimators import fit_classifier, fit_monotone
from syncheck.aggregators.network import Network
from syncheck.aggregators.signal import Column
from syncheck.aggregators.trees import Forest
from syncheck.config import AggregatorKind
from syncheck.errors import InputError
from syncheck.given import has_both_labels, labels_found

__all__ = ["KINDS", "Kind", "KindName", "StoredModel", "fit_model"]

Floats = NDArray[np.float64]
KindName = AggregatorKind | Literal["signal"]
"""The trained kinds, and one signal taken as it is."""


class StoredModel(Protocol):
    """What an aggregator computes with, and is saved as."""

    @property
    def features(self) -> int:
        """F."""

    def probability(self, X: Floats) -> Floats:
        """Return P(faithful), (N,) float64, of (N, F) features; NaN means not measured."""

    def contributions(self, x: Floats, medians: Floats) -> Floats:
        """Return what each feature of one row (F,) adds to its log-odds, (F,) float64, given the training medians."""

    def to_bytes(self) -> bytes:
        """Return the contents of its file: arrays in the safetensors format, or JSON."""

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what :meth:`to_bytes` wrote; raise CheckpointError if it is anything else."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of aggregator.

    Attributes
    ----------
    model : type of StoredModel
        Reads the file.
    fit : callable or None
        Trains a model on (N, F) features, (N,) labels, a seed and the names of the features, where these are known;
        None where nothing is trained.
    file : str
    """

    model: type[StoredModel]
    fit: Callable[[Floats, NDArray[np.int64], int, Sequence[str]], StoredModel] | None
    file: str = "aggregator.safetensors"


def _unnamed(
    fit: Callable[[Floats, NDArray[np.int64], int], StoredModel],
    X: Floats,
    y: NDArray[np.int64],
    seed: int,
    names: Sequence[str],
) -> StoredModel:
    return fit(X, y, seed)


KINDS: Mapping[KindName, Kind] = {
    "lr": Kind(Network, partial(_unnamed, partial(fit_classifier, "lr"))),
    "monotone": Kind(Network, fit_monotone),
    "xgb": Kind(Forest, partial(_unnamed, partial(fit_classifier, "xgb"))),
    "mlp": Kind(Network, partial(_unnamed, partial(fit_classifier, "mlp"))),
    "ensemble": Kind(Ensemble, partial(_unnamed, Ensemble.fit)),
    "signal": Kind(Column, None, "aggregator.signal.json"),
}


def fit_model(
    X: Floats, y: NDArray[np.int64], *, kind: AggregatorKind, seed: int, names: Sequence[str] = ()
) -> StoredModel:
    """Train a model of a kind, and keep what scoring needs of it.

    Parameters
    ----------
    X : ndarray of shape (N, F), float64
        NaN means not measured.
    y : ndarray of shape (N,)
        1 faithful, 0 unfaithful.
    kind
    seed
        The same data and seed give the same model.
    names
        Of the F features; ``monotone`` reads their directions from them, or without them from the data.

    Raises
    ------
    InputError
        If the kind is none that is trained, the shapes do not fit, a value is infinite, or a label other than 0 and 1
        occurs or one of the two does not.
    """
    if kind not in get_args(AggregatorKind) or (fit := KINDS[kind].fit) is None:
        raise InputError(f"a trained aggregator is one of {', '.join(get_args(AggregatorKind))}; found {kind!r}")
    if X.ndim != 2 or y.shape != (len(X),):
        raise InputError(f"features must be (N, F) and labels (N,), but they are {X.shape} and {y.shape}")
    if np.isinf(X).any():
        raise InputError("a feature is infinite; use NaN for what was not measured")
    if not has_both_labels(y):
        raise InputError(
            f"training needs sentences of both labels, 1 (faithful) and 0 (unfaithful), but found {labels_found(y)}"
        )
    return fit(X, y, seed, names)
