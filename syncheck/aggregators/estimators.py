"""The scikit-learn estimators behind an aggregator, and their training.

scikit-learn and XGBoost are imported inside the functions: a saved aggregator scores without either having
to load, except that ``xgb`` and ``ensemble`` need XGBoost.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators.network import Network
from syncheck.aggregators.trees import Forest
from syncheck.config import ClassifierKind
from syncheck.errors import InputError
from syncheck.schemas import FEATURES, LID

__all__ = ["fit_classifier", "fit_monotone", "make_aggregator", "prior_weight"]

LID_PREFIX = LID.format(k="")
PRIOR_WEIGHT, ALIGNER_WEIGHT, CONTRAST_WEIGHT = 0.15, 0.55, 0.1
"""What the weights of ``monotone`` are pulled towards, in nats for a standard deviation.

Chosen by leaving one source of labelled sentences out."""
MLP_BATCH = 128
"""Rows of one gradient step (paper, appendix A.2)."""


def make_aggregator(kind: ClassifierKind, seed: int = 0) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    """Return an untrained scikit-learn classifier; label 1 is faithful.

    Parameters
    ----------
    kind
        ``lr``: logistic regression. ``mlp``: one hidden layer of 100 ReLU units, Adam at 1e-3, batches of
        128, 300 epochs at most (paper, appendix A.2), and a weight decay of 1, which is ours: without it a few
        thousand sentences are learned by heart. ``xgb``: gradient-boosted trees; the paper gives no settings for
        them, these are shallow and cautious ones that suit a few thousand sentences.
    seed
        Of the initial weights and of the order of the rows.

    Returns
    -------
    sklearn.pipeline.Pipeline or xgboost.XGBClassifier
        ``lr`` and ``mlp`` are pipelines: training median and a "was missing" indicator, standard scaling,
        then the classifier. A column that is NaN throughout keeps its place. ``xgb`` takes NaN as it is.

    Raises
    ------
    InputError
        If the kind is unknown.

    Notes
    -----
    The classes are not re-weighted: weights would hardly move the order of the scores, and P(faithful) would
    no longer be a probability at the share of unfaithful sentences seen in training.

    An MLP that uses up its 300 epochs warns with scikit-learn's ``ConvergenceWarning``.
    """
    if kind == "xgb":
        from xgboost import XGBClassifier

        return XGBClassifier(
            n_estimators=200,
            max_depth=3,
            learning_rate=0.05,
            subsample=0.8,
            colsample_bytree=0.8,
            min_child_weight=5.0,
            reg_lambda=5.0,
            n_jobs=1,
            random_state=seed,
        )
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    return Pipeline(
        [
            ("impute", SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)),
            ("scale", StandardScaler()),
            ("classify", _classifier(kind, seed)),
        ]
    )


def _classifier(kind: ClassifierKind, seed: int) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    if kind == "lr":
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1000, random_state=seed)
    if kind == "mlp":
        from sklearn.neural_network import MLPClassifier

        return MLPClassifier(
            hidden_layer_sizes=(100,),
            activation="relu",
            solver="adam",
            alpha=1.0,
            learning_rate_init=1e-3,
            batch_size=MLP_BATCH,
            max_iter=300,
            random_state=seed,
        )
    raise InputError(f"a classifier is one of {', '.join(get_args(ClassifierKind))}, not {kind!r}")


def fit_classifier(kind: ClassifierKind, X: NDArray[np.float64], y: NDArray[np.int64], seed: int) -> Network | Forest:
    """Train a classifier on (N, F) features and (N,) labels, and keep what scoring needs of it."""
    estimator = make_aggregator(kind, seed)
    if kind == "xgb":
        return Forest(estimator.fit(X, y).get_booster())
    if kind == "lr":
        return Network.from_pipeline(estimator.fit(X, y))
    from sklearn.exceptions import ConvergenceWarning

    estimator.set_params(classify__batch_size=min(MLP_BATCH, len(X)))
    with warnings.catch_warnings():
        # 300 epochs are the paper's training budget: using them up is no fault.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Network.from_pipeline(estimator.fit(X, y))


def fit_monotone(X: NDArray[np.float64], y: NDArray[np.int64], seed: int, names: Sequence[str]) -> Network:
    """Train the non-negative regression on (N, F) features and (N,) labels, and keep what scoring needs of it.

    The directions are those that :data:`~syncheck.schemas.FEATURES` has; where it expects none, or the name is unknown,
    the means of the two classes decide. There is nothing random in it.
    """
    from syncheck.aggregators.monotone import MonotoneLogisticRegression

    known = {feature.name: feature.direction for feature in FEATURES}
    fitted = MonotoneLogisticRegression(
        directions=[known.get(LID if name.startswith(LID_PREFIX) else name, 0) for name in names] if names else None,
        prior_weights=[prior_weight(name) for name in names] if names else PRIOR_WEIGHT,
    ).fit(X, y)
    return Network(
        fill=fitted.fill_,
        flagged=np.empty(0, np.int64),
        mean=fitted.mean_,
        scale=fitted.scale_,
        weights=((fitted.coef_[0] * fitted.scale_)[:, None],),
        biases=(fitted.intercept_ + fitted.coef_ @ fitted.mean_,),
    )


def prior_weight(name: str) -> float:
    """Return what the weight of a feature is pulled towards in ``monotone``."""
    return (
        CONTRAST_WEIGHT if name.startswith("contrast_") else ALIGNER_WEIGHT if name == "align_logit" else PRIOR_WEIGHT
    )
