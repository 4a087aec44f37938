"""Kinds of aggregator, and how each is trained. scikit-learn and XGBoost are imported where they are used.

A new kind is an entry in :data:`KINDS`, with its :data:`~syncheck.aggregators.models.StoredModel`; those that are
trained are named in :data:`AggregatorKind`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators.models import MEMBERS, ClassifierKind, Column, Ensemble, Network, StoredModel
from syncheck.aggregators.trees import Forest
from syncheck.base.checks import check_both_labels, check_choice
from syncheck.base.errors import InputError
from syncheck.features.schemas import feature_of
from syncheck.results.types import Floats

if TYPE_CHECKING:
    from syncheck.aggregators.monotone import MonotoneLogisticRegression

AggregatorKind = Literal["lr", "monotone", "xgb", "mlp", "ensemble"]
"""The trained kinds."""
GivenKind: TypeAlias = "AggregatorKind | MonotoneLogisticRegression"
"""One of them, or a monotone regression with parameters of its own."""
KindName = AggregatorKind | Literal["signal"]
"""The trained kinds, and one signal taken as it is."""

KINDS: Mapping[KindName, type[StoredModel]] = {
    "lr": Network,
    "monotone": Network,
    "mlp": Network,
    "xgb": Forest,
    "ensemble": Ensemble,
    "signal": Column,
}
"""Model of each kind."""

CONTRASTS = "contrasts"
"""Name of the feature that has a ceiling in ``monotone``."""
PRIOR_WEIGHT = 0.15
PRIOR_WEIGHTS = {"align_logit": 0.55, CONTRASTS: 0.1}
"""Weights towards which those of ``monotone`` are pulled, in nats per standard deviation: that of most features, and
those of the others. Chosen by leaving out one source of labelled sentences at a time."""
PULL_ROWS = 30.0
"""Strength of the pull towards ``generic``, in labelled sentences per squared nat per standard deviation."""
CONTRAST_CEILING = 0.2
"""Share of P(faithful) that a contrast leaves in ``monotone``. If half of all sentences are supported, so are 0.17 to
0.23 of those with a contrast, in the kit's written claims and in the claims of six published sources."""
MLP_BATCH = 128
"""Rows of one gradient step (paper, appendix A.2)."""


def make_aggregator(kind: ClassifierKind, seed: int = 0) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    """Make an untrained scikit-learn classifier; label 1 is faithful.

    ``lr`` is logistic regression. ``mlp`` has one hidden layer of 100 ReLU units, Adam at 1e-3, batches of 128, at most
    300 epochs (paper, appendix A.2), and a weight decay of 1, which is ours: without it, a few thousand sentences are
    memorised. ``xgb`` is shallow gradient-boosted trees, which suit a few thousand sentences; the paper gives no
    settings. ``lr`` and ``mlp`` are pipelines: imputation of the training median with a "was missing" indicator,
    standard scaling, then the classifier. A column that is NaN throughout keeps its place. ``xgb`` takes NaN as it is.

    Classes are not re-weighted, so that P(faithful) is a probability at the share of faithful sentences in training.
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
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    check_choice(kind, "the classifier", ClassifierKind)
    classifier = (
        LogisticRegression(max_iter=1000, random_state=seed)
        if kind == "lr"
        else MLPClassifier((100,), alpha=1.0, batch_size=MLP_BATCH, max_iter=300, random_state=seed)
    )
    impute = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return Pipeline([("impute", impute), ("scale", StandardScaler()), ("classify", classifier)])


def fit_model(
    X: Floats,
    y: NDArray[np.int64],
    *,
    kind: GivenKind,
    seed: int,
    names: Sequence[str] = (),
) -> StoredModel:
    """Train a model of a kind, or a clone of a monotone regression with parameters of its own.

    X is (N, F), NaN if not measured, and y (N,) is 1 for faithful and 0 for unfaithful. The same data and seed give the
    same model. ``monotone`` takes the directions of features from their names or, without names, from the data.
    """
    check_kind(kind)
    if X.ndim != 2 or y.shape != (len(X),):
        raise InputError(f"features must be (N, F) and labels (N,), but they are {X.shape} and {y.shape}")
    if np.isinf(X).any():
        raise InputError("a feature is infinite; use NaN for what was not measured")
    check_both_labels(y, "training needs sentences")
    if not isinstance(kind, str) or kind == "monotone":
        return _monotone_network(_directed(names) if isinstance(kind, str) else kind, X, y, names)
    if kind == "ensemble":
        return Ensemble({member: _fit_classifier(member, X, y, seed) for member in MEMBERS})
    return _fit_classifier(kind, X, y, seed)


def _fit_classifier(kind: ClassifierKind, X: Floats, y: NDArray[np.int64], seed: int) -> Network | Forest:
    estimator = make_aggregator(kind, seed)
    if kind == "xgb":
        return Forest(estimator.fit(X, y).get_booster())
    if kind == "lr":
        return Network.from_pipeline(estimator.fit(X, y))
    from sklearn.exceptions import ConvergenceWarning

    estimator.set_params(classify__batch_size=min(MLP_BATCH, len(X)))
    with warnings.catch_warnings():
        # 300 epochs are the paper's training budget: using them up is not an error.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Network.from_pipeline(estimator.fit(X, y))


def _directed(names: Sequence[str], **options: Any) -> MonotoneLogisticRegression:  # noqa: ANN401
    """Make a monotone regression with the directions of :data:`FEATURES`; the classes decide for features without."""
    from syncheck.aggregators.monotone import MonotoneLogisticRegression

    directions = [getattr(feature_of(name), "direction", 0) for name in names] or None
    weights = [PRIOR_WEIGHTS.get(name, PRIOR_WEIGHT) for name in names] or PRIOR_WEIGHT
    return MonotoneLogisticRegression(**{"directions": directions, "prior_weights": weights, **options})


def shrunk_towards(prior: Network, own: Sequence[str], names: Sequence[str]) -> MonotoneLogisticRegression:
    """Make a monotone regression of the features ``names`` that is pulled towards a linear model of those in ``own``.

    Features that the model does not have are pulled towards 0. The fewer the labels, the stronger the pull.
    """
    coef = dict(zip(own, prior.weights[0][:, 0] / prior.scale, strict=True))
    fill = dict(zip(own, prior.fill, strict=True))
    return _directed(
        names,
        prior_weights=PRIOR_WEIGHT,
        prior_coef=[coef.get(name, 0.0) for name in names],
        strength=PULL_ROWS,
        fades=True,
        fill=[fill.get(name, np.nan) for name in names],
        balanced=False,
    )


def check_kind(kind: object, *, others: Sequence[str] = ()) -> None:
    """Refuse, with an InputError, what is neither the name of a kind, or of ``others``, nor a monotone regression."""
    from syncheck.aggregators.monotone import MonotoneLogisticRegression

    known = (*others, *get_args(AggregatorKind))
    if kind not in known if isinstance(kind, str) else not isinstance(kind, MonotoneLogisticRegression):
        raise InputError(
            f"aggregator must be one of {', '.join(map(repr, known))}, or a MonotoneLogisticRegression; found {kind!r}"
        )


def _monotone_network(
    estimator: MonotoneLogisticRegression, X: Floats, y: NDArray[np.int64], names: Sequence[str]
) -> Network:
    """Train a clone of a :class:`MonotoneLogisticRegression` and store it as the kind ``monotone`` is stored."""
    from sklearn.base import clone

    fitted = clone(estimator).fit(X, y)
    # The ceiling is that of even odds; probabilities hold at the share of the labels, unless the classes are balanced.
    odds = CONTRAST_CEILING / (1 - CONTRAST_CEILING) * (1.0 if fitted.balanced else y.mean() / (1 - y.mean()))
    ceilings = [odds / (1 + odds) if name == CONTRASTS else 1.0 for name in names]
    return Network(
        fill=fitted.fill_,
        flagged=np.empty(0, np.int64),
        mean=fitted.mean_,
        scale=fitted.scale_,
        weights=((fitted.coef_[0] * fitted.scale_)[:, None],),
        biases=(fitted.intercept_ + fitted.coef_ @ fitted.mean_,),
        ceilings=np.array(ceilings if CONTRASTS in names else [], np.float64),
    )
