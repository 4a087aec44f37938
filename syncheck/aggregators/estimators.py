"""Classifiers with scikit-learn's interface as aggregators, saved with skops and never as pickles.

A file names the types that it consists of, and is read only if the caller names them too, since their code runs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Protocol, Self
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators.models import occlusion
from syncheck.base.errors import CheckpointError, InputError, MissingExtraError, UntrustedTypesError, describe_failure
from syncheck.base.files import REMEDY
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
            found = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        except ValueError as error:
            remedy = f"; {NEEDS_IMPUTER}" if np.isnan(X).any() else ""
            raise InputError(f"{type(self.estimator).__name__} fails ({describe_failure(error)}){remedy}") from error
        faithful: Floats = found[:, list(self.estimator.classes_).index(1)]
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
        found = types_of(data)
        if missing := sorted(set(found) - set(trusted)):
            raise UntrustedTypesError(missing)
        try:
            stored = _skops().loads(data, trusted=list(found))
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
        found = estimator if isinstance(estimator, type) else type(estimator)
        raise InputError(
            "an aggregator is the name of a kind or a scikit-learn classifier, as an instance, with predict_proba; "
            f"found {found.__name__}"
        )
