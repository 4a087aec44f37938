"""Monotone logistic regression, whose weights have known directions and are pulled towards a prior.

Free weights that are fitted to a few hundred unfaithful sentences fit the source that these come from. Here a feature
with a known direction keeps it, and equal weights are the best guess until data say more.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from syncheck.results.types import Floats

MAX_ITERATIONS = 200
"""Largest number of iterations of L-BFGS-B."""


class MonotoneLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier of two classes in which each feature changes P(second class) in one direction.

    Parameters
    ----------
    directions : array-like of shape (F,), optional
        +1 if a higher value makes the second class likelier, -1 if less likely, 0 if the means of the two classes
        decide, as they do for all features without it.
    prior_weights : float or array-like of shape (F,), default 0.15
        Weights of standardised features, >= 0, in nats, towards which the fit is pulled.
    prior_coef : array-like of shape (F,), optional
        Weights of the features as they are, in place of ``prior_weights``: those of a model that the fit starts from.
    strength : float, default 0.3
        Strength of the pull; 0 turns it off.
    fades : bool, default False
        True divides the strength by the number of rows, so that many rows outweigh the prior.
    fill : float, array-like of shape (F,) or None, default None
        Values that replace NaN, which means not measured; None, or NaN in an array, takes the column's training mean.
    balanced : bool, default True
        True gives both classes the same weight in the loss, so that probabilities assume equal shares.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shapes (1, F) and (1,), float64
        Weights of the features as they are (directed weights divided by the scale), and the intercept.
    directions_, fill_, mean_, scale_, weights_ : ndarray of shape (F,), float64
        +1 or -1; what replaces NaN; mean and deviation under the weights of the rows, 1 for a constant column; weights
        of the standardised, directed features, >= 0, the prior one for a constant column, which adds nothing.

    Notes
    -----
    The fit minimises sum_i w_i ln(1 + exp(-s_i (x_i t + b))) + strength / 2 |t - t0|^2, which is convex, over weights
    t >= 0 and an intercept b, with x standardised and directed, s_i = +1 or -1 by class, row weights w that sum to 1,
    and prior weights t0.

    Examples
    --------
    >>> model = MonotoneLogisticRegression(directions=[1, -1]).fit([[0.0, 1], [1, 1], [2, 1], [3, 0]], [0, 0, 1, 1])
    >>> bool(model.coef_[0, 0] > 0 > model.coef_[0, 1])
    True
    """

    def __init__(
        self,
        *,
        directions: ArrayLike | None = None,
        prior_weights: float | ArrayLike = 0.15,
        prior_coef: ArrayLike | None = None,
        strength: float = 0.3,
        fades: bool = False,
        fill: float | ArrayLike | None = None,
        balanced: bool = True,
    ) -> None:
        self.directions = directions
        self.prior_weights = prior_weights
        self.prior_coef = prior_coef
        self.strength = strength
        self.fades = fades
        self.fill = fill
        self.balanced = balanced

    def __sklearn_tags__(self) -> Any:
        """Declare that there are only two classes, and that NaN is allowed."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to features (N, F), NaN if not measured, labels (N,) of two classes, and weights of the rows (N,)."""
        rows: Floats
        rows, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        self.classes_, second = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: expected two classes, "
                f"found {len(self.classes_)}"
            )
        if len(self.classes_) < 2:
            raise ValueError(f"training needs rows of two classes; found only one class: {self.classes_.tolist()}")
        self._check_pull()
        row_weights = _row_weights(second, sample_weight, rows, balanced=self.balanced)
        self.fill_ = self._fill_values(rows, row_weights)
        filled: Floats = np.where(np.isnan(rows), self.fill_, rows)
        self.mean_ = row_weights @ filled
        deviation = np.sqrt(row_weights @ (filled - self.mean_) ** 2)
        constant = deviation <= 10 * np.finfo(np.float64).eps * np.maximum(np.abs(self.mean_), 1.0)
        self.scale_ = np.where(constant, 1.0, deviation)
        standardised: Floats = np.where(constant, 0.0, (filled - self.mean_) / self.scale_)
        directions = np.asarray(np.zeros(rows.shape[1]) if self.directions is None else self.directions, np.float64)
        if directions.shape != self.scale_.shape or not np.isin(directions, (-1.0, 0.0, 1.0)).all():
            raise ValueError(
                f"directions must be +1, -1 or 0 for each of {rows.shape[1]} features; found {self.directions!r}"
            )
        differences: Floats = (row_weights * (second - 0.5)) @ standardised
        self.directions_ = np.where(directions == 0, np.where(differences < 0, -1.0, 1.0), directions)
        prior = np.broadcast_to(np.asarray(self.prior_weights, np.float64), self.scale_.shape)
        if self.prior_coef is not None:
            prior = np.maximum(np.asarray(self.prior_coef, dtype=np.float64) * self.scale_ * self.directions_, 0.0)
        self.weights_, intercept = _minimise(
            standardised * self.directions_,
            np.where(second == 1, 1.0, -1.0),
            row_weights,
            prior,
            self.strength / (len(rows) if self.fades else 1),
        )
        self.coef_ = np.where(constant, 0.0, self.weights_ * self.directions_ / self.scale_)[None]
        self.intercept_ = np.array([intercept - self.coef_[0] @ self.mean_])
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute the log-odds of the second class, (N,) float64, in nats."""
        return np.asarray(self._filled(X) @ self.coef_[0] + self.intercept_[0], dtype=np.float64)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Compute the probability of each class, (N, 2) float64."""
        second = expit(self.decision_function(X))
        return np.stack([1.0 - second, second], axis=1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the likelier class of each row, (N,)."""
        likelier = self.decision_function(X) > 0
        return np.asarray(self.classes_[likelier.astype(np.intp)])

    def contributions(self, X: ArrayLike) -> Floats:
        """Attribute the log-odds less those at the training means to the features, (N, F), in nats."""
        return np.asarray((self._filled(X) - self.mean_) * self.coef_[0], dtype=np.float64)

    def _filled(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        rows: Floats = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        return np.where(np.isnan(rows), self.fill_, rows)

    def _fill_values(self, X: Floats, row_weights: Floats) -> Floats:
        measured = ~np.isnan(X)
        counted = row_weights @ measured
        means = np.zeros(X.shape[1])
        np.divide(row_weights @ np.where(measured, X, 0.0), counted, out=means, where=counted > 0)
        given = np.broadcast_to(np.asarray(np.nan if self.fill is None else self.fill, np.float64), means.shape)
        return np.where(np.isnan(given), means, given)

    def _check_pull(self) -> None:
        for name in ("prior_coef", "fill"):
            value = getattr(self, name)
            if value is not None and np.shape(value) not in ((self.n_features_in_,), *[()] * (name == "fill")):
                raise ValueError(
                    f"{name} must be one number for each of {self.n_features_in_} features; found {value!r}"
                )
        prior = np.asarray(self.prior_weights, dtype=np.float64)
        if prior.shape not in ((), (self.n_features_in_,)) or not (prior >= 0).all():
            raise ValueError(
                f"prior_weights must be one weight >= 0, or one for each of {self.n_features_in_} features; found "
                f"{self.prior_weights!r}"
            )
        if not self.strength >= 0:
            raise ValueError(f"strength must be >= 0; found {self.strength!r}")


def _row_weights(second: NDArray[np.intp], given: ArrayLike | None, X: Floats, *, balanced: bool) -> Floats:
    """Compute the weights of the rows, (N,), summing to 1."""
    from sklearn.utils.validation import _check_sample_weight

    weights = np.asarray(_check_sample_weight(given, X, dtype=np.float64, ensure_non_negative=True), dtype=np.float64)
    sums = np.bincount(second, weights=weights, minlength=2)
    if not (sums > 0).all():
        raise ValueError("sample_weight leaves only one class with a weight above 0; training needs two")
    return weights / (2.0 * sums[second]) if balanced else weights / weights.sum()


def _minimise(rows: Floats, signs: Floats, row_weights: Floats, prior: Floats, strength: float) -> tuple[Floats, float]:
    from scipy.optimize import minimize

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights, intercept = parameters[:-1], parameters[-1]
        margins = signs * (rows @ weights + intercept)
        pull = weights - prior
        slopes = -row_weights * signs * expit(-margins)
        value = row_weights @ np.logaddexp(0.0, -margins) + strength / 2 * (pull @ pull)
        return float(value), np.append(slopes @ rows + strength * pull, slopes.sum())

    minimum = minimize(
        loss,
        np.append(prior, 0.0),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(prior) + [(None, None)],
        options={"maxiter": MAX_ITERATIONS, "ftol": 1e-14, "gtol": 1e-9},
    )
    return minimum.x[:-1], float(minimum.x[-1])
