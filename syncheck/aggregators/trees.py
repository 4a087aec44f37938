"""Boosted trees of XGBoost, saved in its own format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import safetensors.numpy

from syncheck.base.errors import CheckpointError
from syncheck.base.files import REMEDY, parse_arrays
from syncheck.results.types import Floats

_UBJ = "ubj"


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """A trained ``xgboost.Booster`` of F features with logistic output; NaN takes the branch that each split learnt."""

    booster: Any

    @property
    def features(self) -> int:
        """Number of features F."""
        return int(self.booster.num_features())

    def probability(self, X: Floats) -> Floats:
        """Compute P(faithful), (N,) float64, of (N, F) features; NaN means not measured."""
        return np.asarray(self.booster.inplace_predict(X), dtype=np.float64)

    def log_odds(self, X: Floats) -> Floats:
        """Compute ln(p / (1 - p)), (N,) float64, in nats, of the P(faithful) that :meth:`probability` returns."""
        return np.asarray(self.booster.inplace_predict(X, predict_type="margin"), dtype=np.float64)

    def contributions(self, x: Floats, medians: Floats) -> Floats:
        """Attribute the log-odds of one row (F,), without the base, to its features, (F,) float64, by tree SHAP."""
        from xgboost import DMatrix

        values = self.booster.predict(DMatrix(x[None], nthread=1), pred_contribs=True, validate_features=False)
        return np.asarray(values[0, :-1], dtype=np.float64)

    def to_bytes(self) -> bytes:
        """Serialize the booster as XGBoost does, as one array in the safetensors format."""
        return bytes(safetensors.numpy.save({_UBJ: np.frombuffer(self.booster.save_raw("ubj"), np.uint8)}))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what :meth:`to_bytes` wrote; CheckpointError if XGBoost cannot.

        XGBoost trusts what it reads: digests tell a damaged file, so check them before. The booster is for one thread;
        its predictions and attributions are those of the one that was saved.
        """
        from xgboost import Booster
        from xgboost.core import XGBoostError

        arrays = parse_arrays(data, what="trees")
        if set(arrays) != {_UBJ} or arrays[_UBJ].dtype != np.uint8:
            raise CheckpointError(
                f"expected the trees of XGBoost as one array of bytes; found {sorted(arrays)}. {REMEDY}"
            )
        booster = Booster({"nthread": 1})
        try:
            booster.load_model(bytearray(arrays[_UBJ].tobytes()))
        except (XGBoostError, ValueError) as error:
            raise CheckpointError(f"XGBoost cannot read these trees: {error}. {REMEDY}") from error
        return cls(booster)
