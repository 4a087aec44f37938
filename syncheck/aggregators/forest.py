"""XGBoost's trees, saved as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators.trees import Trees

__all__ = ["Forest"]


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """A trained ``xgboost.Booster`` of F features with logistic output.

    NaN follows the branch that each split learnt for it.
    """

    booster: Any

    @property
    def features(self) -> int:
        """F."""
        return int(self.booster.num_features())

    def probability(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(faithful), (N,) float64, of (N, F) features; NaN means not measured."""
        return np.asarray(self.booster.inplace_predict(X), dtype=np.float64)

    def log_odds(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ln(p / (1 - p)), (N,) float64, in nats, of P(faithful) as :meth:`probability` has it."""
        return np.asarray(self.booster.inplace_predict(X, predict_type="margin"), dtype=np.float64)

    def contributions(self, x: NDArray[np.float64], medians: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what each feature of one row (F,) adds to its log-odds, (F,) float64: XGBoost's own tree SHAP.

        With the booster's base they add up to the log-odds; the medians are not needed.
        """
        from xgboost import DMatrix

        values = self.booster.predict(DMatrix(x[None], nthread=1), pred_contribs=True, validate_features=False)
        return np.asarray(values[0, :-1], dtype=np.float64)

    def to_bytes(self) -> bytes:
        """Return the trees as arrays; see :class:`~syncheck.aggregators.trees.Trees`."""
        return Trees.from_booster(self.booster).to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what :meth:`to_bytes` wrote, validated before XGBoost sees it.

        Raises
        ------
        CheckpointError
            If it is anything else.
        """
        return cls(Trees.from_bytes(data).to_booster())
