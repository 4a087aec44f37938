"""Several classifiers as one: their log-odds, averaged.

A linear model and trees err on different sentences, so that the average is better than either where sentences are few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from syncheck.aggregators.estimators import fit_classifier
from syncheck.aggregators.network import Network
from syncheck.aggregators.trees import Forest
from syncheck.config import ClassifierKind
from syncheck.errors import CheckpointError
from syncheck.files import parse_arrays

__all__ = ["Ensemble", "MEMBERS"]

Floats = NDArray[np.float64]

MEMBERS: Mapping[ClassifierKind, type[Network | Forest]] = {"lr": Network, "xgb": Forest}
"""Classifiers of an ensemble. An MLP as a third would add 0.001 AUROC at most, and takes the longest to train."""


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """Classifiers of the same F features.

    Attributes
    ----------
    members : mapping of str to Network or Forest
        Those of :data:`MEMBERS`; each counts the same.
    """

    members: Mapping[ClassifierKind, Network | Forest]

    @classmethod
    def fit(cls, X: Floats, y: NDArray[np.int64], seed: int) -> Self:
        """Train each member on (N, F) features and (N,) labels."""
        return cls({kind: fit_classifier(kind, X, y, seed) for kind in MEMBERS})

    @property
    def features(self) -> int:
        """F."""
        return next(iter(self.members.values())).features

    def probability(self, X: Floats) -> Floats:
        """Return P(faithful), (N,) float64, of (N, F) features; NaN means not measured."""
        from scipy.special import expit

        return np.asarray(expit(self.log_odds(X)), dtype=np.float64)

    def log_odds(self, X: Floats) -> Floats:
        """Return the mean of the members' log-odds, (N,) float64, in nats."""
        return np.asarray(np.mean([member.log_odds(X) for member in self.members.values()], axis=0), dtype=np.float64)

    def contributions(self, x: Floats, medians: Floats) -> Floats:
        """Return what each feature of one row (F,) adds to its log-odds, (F,) float64: the mean over the members."""
        found = [member.contributions(x, medians) for member in self.members.values()]
        return np.asarray(np.mean(found, axis=0), dtype=np.float64)

    def to_bytes(self) -> bytes:
        """Return the members' own files, each an array of bytes in one of the safetensors format."""
        files = {kind: np.frombuffer(member.to_bytes(), np.uint8) for kind, member in self.members.items()}
        return bytes(safetensors.numpy.save(files))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what :meth:`to_bytes` wrote.

        Raises
        ------
        CheckpointError
            If it is anything else, a member is damaged, or they are not for the same number of features.
        """
        files = parse_arrays(data, what="an ensemble's members")
        if set(files) != set(MEMBERS) or any(file.dtype != np.uint8 for file in files.values()):
            raise CheckpointError(f"expected the files of {', '.join(MEMBERS)}; found {sorted(files)}. Train anew")
        members = {kind: reader.from_bytes(files[kind].tobytes()) for kind, reader in MEMBERS.items()}
        if len(counts := {member.features for member in members.values()}) > 1:
            raise CheckpointError(f"the members of the ensemble are for {sorted(counts)} features; train anew")
        return cls(members)
