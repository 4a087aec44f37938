"""Stored models of an aggregator: a dense network, an ensemble, and a single signal as the score.

Scoring uses plain arrays instead of the scikit-learn pipeline they come from, so that a saved model equals the trained
one and does not depend on scikit-learn's version.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from syncheck.aggregators.trees import MAX_FEATURES, Forest
from syncheck.base.errors import CheckpointError, InputError
from syncheck.base.files import parse_arrays
from syncheck.results.types import Floats

ClassifierKind = Literal["lr", "xgb", "mlp"]

MAX_DEPTH = 16
"""Largest number of layers of a network that is read."""
MAX_VALUE = 1e15
"""Largest absolute number in a network that is read, so that no sum of products overflows."""
SMALLEST_SCALE = 1e-30


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Logistic regression or MLP of F features: imputation, scaling, dense layers with ReLU between them.

    A feature with a ceiling multiplies the probability by it wherever the feature is above 0; of several ceilings, the
    lowest counts.
    """

    fill: Floats
    """(F,) float64: values that replace missing ones."""
    flagged: NDArray[np.int64]
    """(I,) int64: features whose absence is a separate input, in order."""
    mean: Floats
    scale: Floats
    """(F + I,) float64, as ``mean``."""
    weights: tuple[Floats, ...]
    """(F + I, H) to (H, 1), float64."""
    biases: tuple[Floats, ...]
    """(H,) to (1,), float64."""
    ceilings: Floats = field(default_factory=lambda: np.empty(0))
    """(F,) float64 in (0, 1], where 1 is no ceiling; or (0,) if no feature has one."""

    @property
    def features(self) -> int:
        """Number of features F."""
        return len(self.fill)

    @classmethod
    def from_pipeline(cls, pipeline: Any) -> Self:  # noqa: ANN401 (scikit-learn has no types)
        """Take the arrays out of a fitted ``lr`` or ``mlp`` pipeline of ``make_aggregator``."""
        imputer, scaler, classifier = (step for _, step in pipeline.steps)
        if hasattr(classifier, "coefs_"):
            weights, biases = list(classifier.coefs_), list(classifier.intercepts_)
        else:
            weights, biases = [classifier.coef_.T], [classifier.intercept_]
        # A column that never varied in training is 0 after scaling, so its weights were never learnt: an MLP's are
        # still the random initial ones and must not count later. The scaler leaves the scale of such columns at 1.
        varied = scaler.scale_ == np.sqrt(scaler.var_)
        first = np.where(varied[:, None], weights[0], 0.0)
        return cls(
            fill=imputer.statistics_.astype(np.float64),
            flagged=imputer.indicator_.features_.astype(np.int64),
            mean=scaler.mean_,
            scale=scaler.scale_,
            weights=tuple(np.ascontiguousarray(layer) for layer in (first, *weights[1:])),
            biases=tuple(biases),
        )

    def probability(self, X: Floats) -> Floats:
        """Compute P(faithful), (N,) float64, of (N, F) features."""
        return _expit(self.log_odds(X))

    def log_odds(self, X: Floats) -> Floats:
        """Compute ln(p / (1 - p)), (N,) float64, in nats; ``einsum``, unlike BLAS, rounds a row alike in any batch."""
        layer = self._inputs(X)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            layer = np.maximum(np.einsum("nf,fh->nh", layer, weight) + bias, 0.0)
        log_odds: Floats = np.einsum("nf,fh->nh", layer, self.weights[-1]) + self.biases[-1]
        return log_odds_below(log_odds[:, 0], self.ceiling(X))

    def ceiling(self, X: Floats) -> Floats:
        """Find the lowest ceiling of each row, (N,) float64; 1 is none."""
        if not self.ceilings.size:
            return np.ones(len(X))
        return np.asarray(np.where(X > 0, self.ceilings, 1.0).min(axis=1))

    def contributions(self, x: Floats, medians: Floats) -> Floats:
        """Compute each feature's part of the log-odds, (F,) float64.

        Logistic regression: the exact terms, relative to the training mean; with the intercept, they add up to the
        log-odds. The reduction by a ceiling is assigned to the feature with the lowest one. With hidden layers: the
        log-odds minus those with the feature at its median (occlusion).
        """
        if len(self.weights) > 1:
            at_median = np.tile(x, (len(x) + 1, 1))
            np.fill_diagonal(at_median, medians)
            values = self.log_odds(at_median)
            return np.asarray(values[-1] - values[:-1], dtype=np.float64)
        terms: Floats = self._inputs(x[None])[0] * self.weights[0][:, 0]  # (F + I,)
        contributions: Floats = terms[: self.features].copy()
        contributions[self.flagged] += terms[self.features :]
        if self.ceiling(x[None])[0] < 1:
            lowest = np.argmin(np.where(x > 0, self.ceilings, 1.0))
            contributions[lowest] += self.log_odds(x[None])[0] - (terms.sum() + self.biases[0][0])
        return contributions

    def _inputs(self, X: Floats) -> Floats:
        """Impute, flag and scale: (N, F) to (N, F + I)."""
        missing = np.isnan(X)
        columns = np.concatenate([np.where(missing, self.fill, X), missing[:, self.flagged]], axis=1)
        return np.asarray((columns - self.mean) / self.scale)

    def to_bytes(self) -> bytes:
        """Serialize the arrays in the safetensors format."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ("fill", "flagged", "mean", "scale")}
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            arrays |= {f"layers.{index}.weight": weight, f"layers.{index}.bias": bias}
        if self.ceilings.size:
            arrays["ceilings"] = self.ceilings
        return bytes(safetensors.numpy.save(arrays))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read arrays; raise CheckpointError unless they make a network of finite numbers."""
        arrays = parse_arrays(data, what="a network's weights")
        depth = sum(name.endswith(".weight") for name in arrays)
        if fault := _network_fault(arrays, depth):
            raise CheckpointError(f"the arrays do not form a network: {fault}; copy the file again or train it again")
        weights, biases = (
            tuple(arrays[f"layers.{index}.{part}"] for index in range(depth)) for part in ("weight", "bias")
        )
        ceilings = arrays.get("ceilings", np.empty(0))
        return cls(arrays["fill"], arrays["flagged"], arrays["mean"], arrays["scale"], weights, biases, ceilings)


def _network_fault(arrays: Mapping[str, NDArray[Any]], depth: int) -> str | None:
    layers = {f"layers.{index}.{part}" for index in range(depth) for part in ("weight", "bias")}
    if not 1 <= depth <= MAX_DEPTH or set(arrays) - {"ceilings"} != {"fill", "flagged", "mean", "scale", *layers}:
        return f"found {sorted(arrays)}"
    if any(array.dtype != (np.int64 if name == "flagged" else np.float64) for name, array in arrays.items()):
        return "an array has another type"
    if any(not (np.abs(array) <= MAX_VALUE).all() for name, array in arrays.items() if name != "flagged"):
        return f"a number is not finite or beyond {MAX_VALUE:g}"
    count, flagged, ceilings = arrays["fill"].size, arrays["flagged"], arrays.get("ceilings", np.ones(1))
    widths = [count + flagged.size, *(arrays[f"layers.{index}.bias"].size for index in range(depth))]
    shapes: dict[str, tuple[int, ...]] = {"fill": (count,), "flagged": (flagged.size,), "ceilings": (count,)}
    shapes |= dict.fromkeys(("mean", "scale"), (widths[0],))
    for index, (rows, columns) in enumerate(pairwise(widths)):
        shapes |= {f"layers.{index}.weight": (rows, columns), f"layers.{index}.bias": (columns,)}
    if wrong := [name for name, shape in shapes.items() if name in arrays and arrays[name].shape != shape]:
        return f"the shapes of {wrong} do not fit the others"
    if widths[-1] != 1 or not count:
        return f"it has {count} features and {widths[-1]} outputs"
    if ((flagged < 0) | (flagged >= count)).any() or len(np.unique(flagged)) != len(flagged):
        return f"a flag is for none of the {count} features, or two are for one"
    if (arrays["scale"] < SMALLEST_SCALE).any():
        return f"a scale is below {SMALLEST_SCALE:g}"
    return None if ((ceilings > 0) & (ceilings <= 1)).all() else "a ceiling is not above 0 and at most 1"


def log_odds_below(log_odds: Floats, ceilings: Floats) -> Floats:
    """Multiply probabilities by ceilings in (0, 1], all in log-odds; a ceiling of 1 changes nothing."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(ceilings) - np.logaddexp(np.log1p(-ceilings), -log_odds))


MEMBERS: Mapping[ClassifierKind, type[Network | Forest]] = {"lr": Network, "xgb": Forest}
"""Classifiers of an ensemble. An MLP as a third would add at most 0.001 AUROC, and takes the longest to train."""


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """Average of the log-odds of :data:`MEMBERS`, which err on different sentences."""

    members: Mapping[ClassifierKind, Network | Forest]

    @property
    def features(self) -> int:
        """Number of features F."""
        return next(iter(self.members.values())).features

    def probability(self, X: Floats) -> Floats:
        """Compute P(faithful), (N,) float64, of (N, F) features."""
        return _expit(np.mean([member.log_odds(X) for member in self.members.values()], axis=0))

    def contributions(self, x: Floats, medians: Floats) -> Floats:
        """Compute each feature's part of the log-odds, (F,) float64: the mean over the members."""
        by_member = [member.contributions(x, medians) for member in self.members.values()]
        return np.asarray(np.mean(by_member, axis=0), dtype=np.float64)

    def to_bytes(self) -> bytes:
        """Serialize the members' files, as arrays of bytes in one file in the safetensors format."""
        files = {kind: np.frombuffer(member.to_bytes(), np.uint8) for kind, member in self.members.items()}
        return bytes(safetensors.numpy.save(files))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the members; raise CheckpointError if one is missing, damaged or for another number of features."""
        files = parse_arrays(data, what="an ensemble's members")
        if set(files) != set(MEMBERS) or any(file.dtype != np.uint8 for file in files.values()):
            raise CheckpointError(f"expected the files of {', '.join(MEMBERS)}; found {sorted(files)}. Train it again")
        members = {kind: reader.from_bytes(files[kind].tobytes()) for kind, reader in MEMBERS.items()}
        if len(counts := {member.features for member in members.values()}) > 1:
            raise CheckpointError(f"the members of the ensemble are for {sorted(counts)} features; train it again")
        return cls(members)


@dataclass(frozen=True, slots=True)
class Column:
    """One of F features as the score: AlignScore or MiniCheck alone, FLARE's minimum probability, or overlap."""

    index: int
    features: int
    """Number of features F; ``index`` is the position of the one."""

    def probability(self, X: Floats) -> Floats:
        """Read the column, (N,) float64; raise InputError if a value is outside [0, 1] or NaN."""
        values = X[:, self.index].astype(np.float64)
        if absent := int(np.isnan(values).sum()):
            raise InputError(
                f"the signal in column {self.index}, which is the whole score, was not measured for "
                f"{absent} of {len(values)} sentences; give the monitor an aligner"
            )
        if ((values < 0) | (values > 1)).any():
            raise InputError(
                f"the signal in column {self.index} must be in [0, 1]; found {values.min()}..{values.max()}"
            )
        return values

    def contributions(self, x: Floats, medians: Floats) -> Floats:
        """Place the signal at its position and 0 elsewhere, (F,) float64."""
        contributions = np.zeros(self.features)
        contributions[self.index] = self.probability(x[None])[0]
        return contributions

    def to_bytes(self) -> bytes:
        """Serialize the fields as one array in the safetensors format."""
        return bytes(safetensors.numpy.save({"column": np.array([self.index, self.features], np.int64)}))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the fields; raise CheckpointError if they name no column."""
        arrays = parse_arrays(data, what="a signal's fields")
        fields = arrays["column"].tolist() if {n: a.dtype for n, a in arrays.items()} == {"column": np.int64} else None
        if not (isinstance(fields, list) and len(fields) == 2 and 0 <= fields[0] < fields[1] <= MAX_FEATURES):
            raise CheckpointError(f"a signal's file must name one of its columns; found {fields or sorted(arrays)}")
        return cls(*fields)


StoredModel: TypeAlias = Network | Forest | Ensemble | Column
"""The part of an aggregator that computes scores and is saved."""


def _expit(log_odds: Floats) -> Floats:
    """Compute 1 / (1 + exp(-x)), to the last bit as SciPy does, whose import takes longer than scoring an answer."""
    return np.array([_sigmoid(value) for value in log_odds.ravel().tolist()]).reshape(log_odds.shape)


def _sigmoid(log_odds: float) -> float:
    try:
        return 1 / (1 + math.exp(-log_odds))
    except OverflowError:
        return 0.0
