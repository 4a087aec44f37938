"""Kernel machine: support vector regression with an RBF kernel, saved as plain arrays."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Self

import numpy as np
from safetensors.numpy import save

from syncheck.base.errors import CheckpointError
from syncheck.base.files import parse_arrays
from syncheck.results.types import Floats

_ROWS = 4096

MAX_VALUE = 1e15
"""Largest absolute value in a machine that is read, so that no sum of squares overflows."""

SMALLEST_SCALE = 1e-30


@dataclass(frozen=True, slots=True, eq=False)
class KernelMachine:
    """Regression ``sum_s weight_s exp(-gamma |x - vector_s|^2) + intercept`` of scaled features, clipped to [0, 1]."""

    vectors: Floats
    """(S, F) float64."""
    weights: Floats
    """(S,) float64."""
    medians: Floats
    means: Floats
    scales: Floats
    """(F,) float64 each: NaN is replaced with the training median, then ``(x - mean) / scale`` is taken."""
    constants: Floats
    """(2,) float64: gamma and intercept."""

    @property
    def features(self) -> int:
        """Number of features F."""
        return int(self.vectors.shape[1])

    @classmethod
    def fit(cls, X: Floats, y: Floats, weight: Floats, *, C: float) -> Self:
        """Fit on features (N, F), risks (N,) and sample weights (N,), with the penalty C."""
        from sklearn.svm import SVR

        known = ~np.isnan(X).all(axis=0)
        medians = np.zeros(X.shape[1])
        medians[known] = np.nanmedian(X[:, known], axis=0)
        filled = np.where(np.isnan(X), medians, X)
        means, scales = filled.mean(axis=0), filled.std(axis=0)
        scales[scales == 0] = 1.0
        machine = SVR(C=C, gamma="scale").fit((filled - means) / scales, y, sample_weight=weight)
        constants = np.array([machine._gamma, machine.intercept_[0]], dtype=np.float64)  # "scale" as a number
        return cls(machine.support_vectors_, machine.dual_coef_[0].copy(), medians, means, scales, constants)

    def probability(self, X: Floats) -> Floats:
        """Compute the risks, (N,) float64 in [0, 1], given features (N, F)."""
        parts = [self._of_rows(X[start : start + _ROWS]) for start in range(0, len(X), _ROWS)]
        return np.concatenate([np.zeros(0), *parts]).clip(0, 1)

    def _of_rows(self, X: Floats) -> Floats:
        gamma, intercept = self.constants
        scaled = (np.where(np.isnan(X), self.medians, X) - self.means) / self.scales
        squares = (scaled**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1) - 2 * scaled @ self.vectors.T
        return np.asarray(np.exp(-gamma * squares.clip(0)) @ self.weights + intercept)

    def to_bytes(self) -> bytes:
        """Serialize the arrays as safetensors."""
        return bytes(save({name: np.ascontiguousarray(values) for name, values in asdict(self).items()}))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the result of :meth:`to_bytes`; CheckpointError if it is anything else."""
        arrays = parse_arrays(data, what="a kernel machine's arrays")
        names = {field.name for field in fields(cls)}
        if set(arrays) != names or any(array.dtype != np.float64 for array in arrays.values()):
            raise CheckpointError(
                f"expected the float64 arrays {sorted(names)}; found {sorted(arrays)}. Train it again"
            )
        if fault := _fault(found := cls(**arrays)):
            raise CheckpointError(
                f"the arrays do not form a kernel machine: {fault}; copy the file again or train it again"
            )
        return found


def _fault(machine: KernelMachine) -> str | None:
    count, width = machine.weights.size, machine.medians.size
    shapes = {"vectors": (count, width), "weights": (count,), "constants": (2,)}
    shapes |= dict.fromkeys(("medians", "means", "scales"), (width,))
    if wrong := [name for name, shape in shapes.items() if getattr(machine, name).shape != shape]:
        return f"the shapes of {wrong} do not match the others"
    if not all((np.abs(getattr(machine, name)) <= MAX_VALUE).all() for name in shapes):
        return f"a number is not finite or beyond {MAX_VALUE:g}"
    if machine.constants[0] <= 0 or (machine.scales < SMALLEST_SCALE).any():
        return f"gamma is not above 0, or a scale is below {SMALLEST_SCALE:g}"
    return None
