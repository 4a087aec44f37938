"""Logistic regression and MLP as plain arrays: impute, scale, a few dense layers.

Scoring with these arrays instead of the scikit-learn pipeline they come from makes the saved aggregator the
same object as the trained one, independent of scikit-learn's version, and one row a matter of
microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from syncheck.errors import CheckpointError
from syncheck.files import parse_arrays

__all__ = ["Network"]

MAX_DEPTH = 16
"""Layers of a network that is read."""

MAX_VALUE = 1e15
"""Largest number in a network that is read, either sign, so that no sum of products overflows."""

SMALLEST_SCALE = 1e-30

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A dense classifier of F features.

    Attributes
    ----------
    fill : ndarray of shape (F,), float64
        What a missing value is replaced by.
    flagged : ndarray of shape (I,), int64
        Features whose absence is an input of its own, in order.
    mean, scale : ndarray of shape (F + I,), float64
    weights : tuple of ndarray, (F + I, H) to (H, 1), float64
        ReLU between the layers, logistic at the end.
    biases : tuple of ndarray, (H,) to (1,), float64
    """

    fill: Floats
    flagged: NDArray[np.int64]
    mean: Floats
    scale: Floats
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]

    @property
    def features(self) -> int:
        """F."""
        return len(self.fill)

    @classmethod
    def from_pipeline(cls, pipeline: Any) -> Self:  # noqa: ANN401 (scikit-learn has no types)
        """Take the arrays out of a fitted ``lr`` or ``mlp`` pipeline of ``make_aggregator``."""
        imputer, scaler, classifier = (step for _, step in pipeline.steps)
        if hasattr(classifier, "coefs_"):
            weights, biases = list(classifier.coefs_), list(classifier.intercepts_)
        else:
            weights, biases = [classifier.coef_.T], [classifier.intercept_]
        # A column that never varied in training is 0 after scaling, so its weights were never learnt: an
        # MLP's are still the random initial ones, which must not speak when the column varies later.
        # The scaler leaves such columns alone, so its scale is not their deviation.
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
        """Return P(faithful), (N,) float64, of (N, F) features; NaN means not measured.

        A row's result does not depend on the rows beside it: BLAS would round a row differently in another
        batch, ``einsum`` sums each in the same order.
        """
        from scipy.special import expit

        return np.asarray(expit(self.log_odds(X)), dtype=np.float64)

    def log_odds(self, X: Floats) -> Floats:
        """Return ln(p / (1 - p)), (N,) float64, in nats, of P(faithful) as :meth:`probability` has it."""
        layer = self._inputs(X)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            layer = np.maximum(np.einsum("nf,fh->nh", layer, weight) + bias, 0.0)
        log_odds: Floats = np.einsum("nf,fh->nh", layer, self.weights[-1]) + self.biases[-1]
        return log_odds[:, 0]

    def contributions(self, x: Floats, medians: Floats) -> Floats:
        """Return what each feature of one row (F,) adds to its log-odds, (F,) float64.

        Logistic regression: exactly the feature's terms, against the mean of training; with the intercept they add up
        to the log-odds. A network with hidden layers: the change of the log-odds against the feature at its median
        (occlusion).
        """
        if len(self.weights) > 1:
            at_median = np.tile(x, (self.features + 1, 1))
            np.fill_diagonal(at_median, medians)
            log_odds = self.log_odds(at_median)
            return np.asarray(log_odds[-1] - log_odds[:-1], dtype=np.float64)
        terms: Floats = self._inputs(x[None])[0] * self.weights[0][:, 0]  # (F + I,)
        found: Floats = terms[: self.features].copy()
        found[self.flagged] += terms[self.features :]
        return found

    def _inputs(self, X: Floats) -> Floats:
        """Impute, flag and scale: (N, F) to (N, F + I)."""
        missing = np.isnan(X)
        columns = np.concatenate([np.where(missing, self.fill, X), missing[:, self.flagged]], axis=1)
        return np.asarray((columns - self.mean) / self.scale)

    def to_bytes(self) -> bytes:
        """Return the arrays in the safetensors format."""
        arrays: dict[str, NDArray[Any]] = {
            "fill": self.fill,
            "flagged": self.flagged,
            "mean": self.mean,
            "scale": self.scale,
        }
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            arrays |= {f"layers.{index}.weight": weight, f"layers.{index}.bias": bias}
        return bytes(safetensors.numpy.save(arrays))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what :meth:`to_bytes` wrote.

        Raises
        ------
        CheckpointError
            If it is anything else, or the arrays make no network of finite numbers.
        """
        arrays = parse_arrays(data, what="a network's weights")
        if fault := _fault(arrays):
            raise CheckpointError(f"the arrays make no network: {fault}; copy the file again or train anew")
        depth = _depth(arrays)
        return cls(
            fill=arrays["fill"],
            flagged=arrays["flagged"],
            mean=arrays["mean"],
            scale=arrays["scale"],
            weights=tuple(arrays[f"layers.{index}.weight"] for index in range(depth)),
            biases=tuple(arrays[f"layers.{index}.bias"] for index in range(depth)),
        )


def _depth(arrays: Mapping[str, NDArray[Any]]) -> int:
    return sum(name.endswith(".weight") for name in arrays)


def _fault(arrays: Mapping[str, NDArray[Any]]) -> str | None:
    """Say what is wrong with a network's arrays; None where nothing is."""
    depth = _depth(arrays)
    layers = {f"layers.{index}.{part}" for index in range(depth) for part in ("weight", "bias")}
    if not 1 <= depth <= MAX_DEPTH or set(arrays) != {"fill", "flagged", "mean", "scale", *layers}:
        return f"found {sorted(arrays)}"
    floats = {name: array for name, array in arrays.items() if name != "flagged"}
    if arrays["flagged"].dtype != np.int64 or any(array.dtype != np.float64 for array in floats.values()):
        return "an array has another type"
    if any(not (np.abs(array) <= MAX_VALUE).all() for array in floats.values()):
        return f"a number is not finite or beyond {MAX_VALUE:g}"
    return _shape_fault(arrays, depth)


def _shape_fault(arrays: Mapping[str, NDArray[Any]], depth: int) -> str | None:
    count, flagged = arrays["fill"].size, arrays["flagged"]
    inputs = count + flagged.size
    widths = [inputs, *(arrays[f"layers.{index}.bias"].size for index in range(depth))]
    shapes: dict[str, tuple[int, ...]] = {
        "fill": (count,),
        "flagged": (flagged.size,),
        "mean": (inputs,),
        "scale": (inputs,),
    }
    for index, (rows, columns) in enumerate(pairwise(widths)):
        shapes |= {f"layers.{index}.weight": (rows, columns), f"layers.{index}.bias": (columns,)}
    if wrong := [name for name, shape in shapes.items() if arrays[name].shape != shape]:
        return f"the shapes of {wrong} do not fit the others"
    if widths[-1] != 1 or not count:
        return f"it has {count} features and {widths[-1]} outputs"
    if ((flagged < 0) | (flagged >= count)).any() or len(np.unique(flagged)) != len(flagged):
        return f"a flag is for none of the {count} features, or two are for one"
    if (arrays["scale"] < SMALLEST_SCALE).any():
        return f"a scale is below {SMALLEST_SCALE:g}"
    return None
