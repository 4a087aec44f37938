"""Names of the kinds of aggregator, and the interface of a classifier of the user's."""

from __future__ import annotations

from typing import Any, Literal, Protocol

ClassifierKind = Literal["lr", "xgb", "mlp"]
AggregatorKind = Literal["lr", "monotone", "xgb", "mlp", "ensemble"]


class ProbabilisticClassifier(Protocol):
    """A classifier with scikit-learn's interface: one of scikit-learn's own, a pipeline, a search."""

    def fit(self, X: Any, y: Any) -> Any:
        """Train on rows of features and their labels."""

    def predict_proba(self, X: Any) -> Any:
        """Compute the probability of each class, (N, 2)."""
