"""Kinds of aggregator, and how each is trained. scikit-learn and XGBoost are imported where they are used.

A new kind is a :class:`~syncheck.aggregators.models.StoredModel` and an entry in :data:`KINDS`; those that are trained
are named in :data:`AggregatorKind`. A classifier of the user's is saved with skops and never as a pickle; its file
names the types that it consists of, and is read only if the caller names them too, since their code runs.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal, Protocol, Self, get_args
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators.models import MEMBERS, ClassifierKind, Column, Ensemble, Network, StoredModel, occlusion
from syncheck.aggregators.trees import Forest
from syncheck.base.checks import check_both_labels
from syncheck.base.errors import CheckpointError, InputError, MissingExtraError, UntrustedTypesError, describe_failure
from syncheck.base.files import REMEDY
from syncheck.features.schemas import feature_of
from syncheck.results.types import Floats

CLOSEST = 1e-6
"""Least distance of a probability from 0 and 1 when its log-odds are taken; forests give both values."""
HARMLESS = ("builtins", "numpy")
"""Packages of plain containers and arrays, which need no trust unless skops itself asks for it."""
NEEDS_IMPUTER = (
    "it has to take NaN, which means that a feature was not measured. Begin it with an imputer, as in make_pipeline("
    "SimpleImputer(add_indicator=True, keep_empty_features=True), classifier), or pass one that takes NaN, such as "
    "HistGradientBoostingClassifier"
)


class ProbabilisticClassifier(Protocol):
    """A classifier with scikit-learn's interface: one of scikit-learn's own, a pipeline, a search."""

    def fit(self, X: Any, y: Any) -> Any:
        """Train on rows of features and their labels."""

    def predict_proba(self, X: Any) -> Any:
        """Compute the probability of each class, (N, 2)."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedEstimator:
    """A fitted classifier of ``features`` features with ``predict_proba`` and the classes 0 and 1."""

    estimator: Any
    features: int

    @classmethod
    def fit(cls, estimator: ProbabilisticClassifier, X: Floats, y: NDArray[np.int64]) -> Self:
        """Train a clone of an estimator on features (N, F), NaN if not measured, and labels (N,) of 0 and 1."""
        from sklearn.base import clone

        name = type(estimator).__name__
        check_classifier(estimator)
        try:
            fitted = cls(clone(estimator).fit(X, y), X.shape[1])
        except (TypeError, ValueError) as error:
            remedy = f"; {NEEDS_IMPUTER}" if np.isnan(X).any() else ""
            raise InputError(f"{name} cannot be trained ({describe_failure(error)}){remedy}") from error
        if sorted(fitted.estimator.classes_) != [0, 1]:
            raise InputError(f"{name} must distinguish classes 0 and 1; found {fitted.estimator.classes_}")
        fitted.probability(np.full((1, X.shape[1]), np.nan))
        return fitted

    def probability(self, X: Floats) -> Floats:
        """Compute P(faithful), (N,) float64, of features (N, F); raise InputError if it does not accept NaN."""
        if not len(X):
            return np.empty(0)
        try:
            probabilities = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        except ValueError as error:
            remedy = f"; {NEEDS_IMPUTER}" if np.isnan(X).any() else ""
            raise InputError(f"{type(self.estimator).__name__} fails ({describe_failure(error)}){remedy}") from error
        faithful: Floats = probabilities[:, list(self.estimator.classes_).index(1)]
        if not ((faithful >= 0) & (faithful <= 1)).all():
            raise InputError(f"{type(self.estimator).__name__} must return probabilities in [0, 1]; found {faithful}")
        return faithful

    def contributions(self, x: Floats, medians: Floats) -> Floats:
        """Subtract from the log-odds those with each feature at its median (occlusion), (F,) float64."""

        def log_odds(X: Floats) -> Floats:
            kept = np.clip(self.probability(X), CLOSEST, 1 - CLOSEST)
            return np.asarray(np.log(kept / (1 - kept)), dtype=np.float64)

        return occlusion(log_odds, x, medians)

    def to_bytes(self) -> bytes:
        """Serialize the estimator in skops' format; raise InputError if skops cannot save it."""
        io = _skops()
        try:
            data = bytes(io.dumps({"features": self.features, "estimator": self.estimator}))
            self.from_bytes(data, types_of(data))  # skops also writes what it cannot read again, such as a lambda
        except Exception as error:  # the code of the estimator may raise anything
            raise InputError(
                f"skops cannot save {type(self.estimator).__name__} ({describe_failure(error)}); build it from classes "
                "and functions that can be imported by name"
            ) from error
        return data

    @classmethod
    def from_bytes(cls, data: bytes, trusted: Collection[str] = ()) -> Self:
        """Read what :meth:`to_bytes` wrote."""
        types = types_of(data)
        if missing := sorted(set(types) - set(trusted)):
            raise UntrustedTypesError(missing)
        try:
            stored = _skops().loads(data, trusted=list(types))
            estimator, features = stored["estimator"], stored["features"]
            if type(features) is not int or sorted(estimator.classes_) != [0, 1]:
                raise ValueError(f"{features!r} features and classes {estimator.classes_}")
            return cls(estimator, features)
        except Exception as error:  # the code of the trusted types may raise anything
            raise CheckpointError(f"the file holds no estimator ({describe_failure(error)}); {REMEDY}") from error


def types_of(data: bytes) -> list[str]:
    """List the full names of the types and functions in a file, sorted, without plain containers and arrays."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            named = set(_named(json.loads(archive.read("schema.json"))))
        unsafe = set(_skops().get_untrusted_types(data=data))
    except (ArithmeticError, AttributeError, BadZipFile, LookupError, RecursionError, TypeError, ValueError) as error:
        raise CheckpointError(f"the file is not in skops' format ({describe_failure(error)}); {REMEDY}") from error
    return sorted(unsafe | {name for name in named if name.partition(".")[0] not in HARMLESS})


def _named(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "__class__" in schema:
            yield f"{schema['__module__']}.{schema['__class__']}"
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from _named(part)


def is_balanced(estimator: Any) -> bool:
    """Tell whether both classes have equal weight in training, so that P(faithful) assumes equal shares."""
    parameters = {name.rpartition("__")[2]: value for name, value in estimator.get_params().items()}
    return parameters.get("class_weight") == "balanced" or parameters.get("balanced") is True


def _skops() -> Any:
    with MissingExtraError.unless("skops", "estimators"):
        import skops.io
    return skops.io


def check_classifier(estimator: object) -> None:
    """Refuse, with an InputError, anything but a scikit-learn classifier with ``predict_proba``, such as a class."""
    if isinstance(estimator, type) or not all(hasattr(estimator, name) for name in ("fit", "predict_proba")):
        given = estimator if isinstance(estimator, type) else type(estimator)
        raise InputError(
            "an aggregator is the name of a kind or a scikit-learn classifier, as an instance, with predict_proba; "
            f"found {given.__name__}"
        )


AggregatorKind = Literal["lr", "monotone", "xgb", "mlp", "ensemble"]
"""The trained kinds."""
KindName = AggregatorKind | Literal["estimator", "signal"]
"""The trained kinds, a scikit-learn classifier of the user's, and one signal taken as it is."""

KINDS: Mapping[KindName, type[StoredModel]] = {
    "lr": Network,
    "monotone": Network,
    "mlp": Network,
    "xgb": Forest,
    "ensemble": Ensemble,
    "estimator": FittedEstimator,
    "signal": Column,
}
"""Model of each kind."""

PRIOR_WEIGHT, ALIGNER_WEIGHT, CONTRAST_WEIGHT = 0.15, 0.55, 0.1
"""Weights towards which those of ``monotone`` are pulled, in nats per standard deviation.

Chosen by leaving out one source of labelled sentences at a time."""
PULL_ROWS = 30.0
"""Strength of the pull towards ``generic``, in labelled sentences per squared nat per standard deviation."""
CONTRAST_CEILING = 0.2
"""Share of P(faithful) that a contrast leaves in ``monotone``.

The share of supported sentences among those with a contrast, had half of all sentences support: 0.17 of one half of
the kit's written claims, 0.19 of the other, 0.23 of the claims of six published sources."""
MLP_BATCH = 128
"""Rows of one gradient step (paper, appendix A.2)."""


def file_of(kind: KindName) -> str:
    """Name the file with the model of an aggregator."""
    return {"signal": "aggregator.signal.json", "estimator": "aggregator.skops"}.get(kind, "aggregator.safetensors")


def make_aggregator(kind: ClassifierKind, seed: int = 0) -> Any:  # noqa: ANN401 (scikit-learn has no types)
    """Make an untrained scikit-learn classifier; label 1 is faithful.

    Parameters
    ----------
    kind
        ``lr``: logistic regression. ``mlp``: one hidden layer of 100 ReLU units, Adam at 1e-3, batches of 128, at most
        300 epochs (paper, appendix A.2), and a weight decay of 1, which is ours: without it, a few thousand sentences
        are memorised. ``xgb``: shallow gradient-boosted trees, which suit a few thousand sentences; the paper gives no
        settings.
    seed
        Seed of the initial weights and of the order of the rows.

    Returns
    -------
    sklearn.pipeline.Pipeline or xgboost.XGBClassifier
        ``lr`` and ``mlp`` are pipelines: imputation of the training median with a "was missing" indicator, standard
        scaling, then the classifier. A column that is NaN throughout keeps its place. ``xgb`` takes NaN as it is.

    Notes
    -----
    Classes are not re-weighted: weights would hardly change the order of scores, and P(faithful) would no longer be a
    probability at the share of faithful sentences in training. An MLP that uses up its 300 epochs warns with
    scikit-learn's ``ConvergenceWarning``.
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

    impute = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return Pipeline([("impute", impute), ("scale", StandardScaler()), ("classify", _classifier(kind, seed))])


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
    raise InputError(f"expected a classifier of {', '.join(get_args(ClassifierKind))}; found {kind!r}")


def fit_model(
    X: Floats,
    y: NDArray[np.int64],
    *,
    kind: AggregatorKind | ProbabilisticClassifier,
    seed: int,
    names: Sequence[str] = (),
) -> StoredModel:
    """Train a model of a kind, or a clone of a scikit-learn classifier.

    X is (N, F), NaN if not measured, and y (N,) is 1 for faithful and 0 for unfaithful. The same data and seed give
    the same model; a classifier of your own has its own ``random_state``. ``monotone`` takes the directions of features
    from their names or, without names, from the data.
    """
    if isinstance(kind, str) and kind not in get_args(AggregatorKind):
        raise InputError(f"a trained aggregator is one of {', '.join(get_args(AggregatorKind))}; found {kind!r}")
    if X.ndim != 2 or y.shape != (len(X),):
        raise InputError(f"features must be (N, F) and labels (N,), but they are {X.shape} and {y.shape}")
    if np.isinf(X).any():
        raise InputError("a feature is infinite; use NaN for what was not measured")
    check_both_labels(y, "training needs sentences")
    if not isinstance(kind, str):
        return _own_network(kind, X, y, names) if is_monotone(kind) else FittedEstimator.fit(kind, X, y)
    if kind == "monotone":
        return _fit_monotone(X, y, names)
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


def _fit_monotone(X: Floats, y: NDArray[np.int64], names: Sequence[str]) -> Network:
    """Train with the directions of :data:`FEATURES`; for a feature without one, the means of the classes decide."""
    from syncheck.aggregators.monotone import MonotoneLogisticRegression

    known = [feature_of(name) for name in names]
    estimator = MonotoneLogisticRegression(
        directions=[0 if feature is None else feature.direction for feature in known] if names else None,
        prior_weights=[prior_weight(name) for name in names] if names else PRIOR_WEIGHT,
    )
    return _own_network(estimator, X, y, names)


def shrunk_towards(prior: Network, own: Sequence[str], names: Sequence[str]) -> Any:  # noqa: ANN401
    """Make a monotone regression of the features ``names`` that is pulled towards a linear model of those in ``own``.

    Features that the model does not have are pulled towards 0. The fewer the labels, the stronger the pull.
    """
    from syncheck.aggregators.monotone import MonotoneLogisticRegression

    known = [feature_of(name) for name in names]
    coef = dict(zip(own, prior.weights[0][:, 0] / prior.scale, strict=True))
    fill = dict(zip(own, prior.fill, strict=True))
    return MonotoneLogisticRegression(
        directions=[0 if feature is None else feature.direction for feature in known],
        prior_coef=[coef.get(name, 0.0) for name in names],
        strength=PULL_ROWS,
        fades=True,
        fill=[fill.get(name, np.nan) for name in names],
        balanced=False,
    )


def is_monotone(kind: object) -> bool:
    """Tell whether an aggregator is of the kind ``monotone``, by name or with parameters of its own."""
    if isinstance(kind, str):
        return kind == "monotone"
    from syncheck.aggregators.monotone import MonotoneLogisticRegression

    return isinstance(kind, MonotoneLogisticRegression)


def _own_network(estimator: Any, X: Floats, y: NDArray[np.int64], names: Sequence[str]) -> Network:
    """Train a clone of a :class:`MonotoneLogisticRegression` and store it as the kind ``monotone`` is stored."""
    from sklearn.base import clone

    fitted = clone(estimator).fit(X, y)
    # The ceiling is that of even odds; probabilities hold at the share of the labels, unless the classes are balanced.
    odds = CONTRAST_CEILING / (1 - CONTRAST_CEILING) * (1.0 if fitted.balanced else y.mean() / (1 - y.mean()))
    ceilings = [odds / (1 + odds) if _is_contrast(name) else 1.0 for name in names]
    return Network(
        fill=fitted.fill_,
        flagged=np.empty(0, np.int64),
        mean=fitted.mean_,
        scale=fitted.scale_,
        weights=((fitted.coef_[0] * fitted.scale_)[:, None],),
        biases=(fitted.intercept_ + fitted.coef_ @ fitted.mean_,),
        ceilings=np.array(ceilings if any(map(_is_contrast, names)) else [], np.float64),
    )


def prior_weight(name: str) -> float:
    """Look up the weight towards which a feature's weight is pulled in ``monotone``."""
    if name == "align_logit":
        return ALIGNER_WEIGHT
    return CONTRAST_WEIGHT if _is_contrast(name) else PRIOR_WEIGHT


def _is_contrast(name: str) -> bool:
    return name == "contrasts"
