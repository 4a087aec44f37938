"""Labels of Mu-SHROOM's items by regressions that were trained on other responses: no question is on both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, cast
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators.trees import Forest
from syncheck.base.checks import check_choice
from syncheck.base.errors import InputError
from syncheck.results import SpanItem, SpanLabels
from syncheck.results.types import Floats
from syncheck.spans import SpanRegressor, SpanSchema, word_features, words_of
from syncheck.spans.mikani import word_risks

SpanFolds = Literal["question", "language"]
RegressorKind = Literal["xgb", "svr"]
"""Trees, or MiKaNi's support vector regression."""

SVR_C = 10.0
SVR_WEIGHTS = (0.01, 100.0)
"""Weights of words that no annotator marked, and of all others (MiKaNi, section 3.4.3)."""
MAX_WORDS = 6000
"""Largest number of words on which support vector regression is fitted: its time grows at least with their square. On
Mu-SHROOM's validation sets, with 32,000 words, all held-out fits take about two minutes on one core."""


class SupportVectors:
    """MiKaNi's regression: of scaled features, with an RBF kernel, clipped to [0, 1]."""

    def __init__(self, X: Floats, y: Floats) -> None:
        """Fit on features (N, F), NaN if not measured, and risks (N,)."""
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVR

        impute = SimpleImputer(strategy="median", keep_empty_features=True)
        self.machine = make_pipeline(impute, StandardScaler(), SVR(C=SVR_C))
        self.machine.fit(X, y, svr__sample_weight=np.where(y > 0, *SVR_WEIGHTS[::-1]))

    def probability(self, X: Floats) -> Floats:
        """Compute the risks, (N,) float64 in [0, 1]."""
        return np.asarray(self.machine.predict(X)).clip(0, 1)


def support_vectors(
    items: Sequence[SpanItem], measured: Sequence[Floats], *, schema: SpanSchema, seed: int, max_words: int = MAX_WORDS
) -> SpanRegressor:
    """Fit MiKaNi's regression on ``max_words`` words of labelled items, drawn at random if there are more."""
    X, y = np.concatenate(list(measured)), np.concatenate([word_risks(item)[0] for item in items])
    kept = np.sort(np.random.default_rng(seed).permutation(len(y))[:max_words])
    return SpanRegressor(schema, cast(Forest, SupportVectors(X[kept], y[kept])))


def question_of(item: SpanItem) -> str:
    """Choose the key by which the question of an item is recognised: the title of its page, or else its words.

    A question in several languages is recognised if its page has the same title in all of them.
    """
    return unquote(item.source.rpartition("/")[2]) or item.question


def held_out_folds(
    items: Sequence[SpanItem], *, by: SpanFolds, folds: int = 5, seed: int = 0
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Split into pairs of indices to train on and to hold out; each item is held out once.

    By ``question``, there are ``folds`` parts, drawn with ``seed``, with all items of a question in the same part. By
    ``language``, there is one part for each language, whose questions are not trained on in any language. If ``by`` is
    unknown, or there are fewer than two parts, InputError is raised.
    """
    check_choice(by, "by", SpanFolds)
    questions = np.array([question_of(item) for item in items])
    names, number = np.unique(questions, return_inverse=True)
    part = np.random.default_rng(seed).permutation(len(names))[number] % folds
    if by == "language":
        part = np.unique([item.lang.upper() for item in items], return_inverse=True)[1]
    parts = np.unique(part)
    if len(parts) < 2:
        raise InputError(f"expected two or more parts by {by} to hold one out; found {len(parts)}")
    pairs = []
    for number in parts:
        held = np.flatnonzero(part == number)
        pairs.append((np.flatnonzero((part != number) & ~np.isin(questions, questions[held])), held))
    return pairs


def held_out_labels(
    items: Sequence[SpanItem],
    *,
    by: SpanFolds,
    schema: SpanSchema = "spans.v1",
    kind: RegressorKind = "xgb",
    folds: int = 5,
    seed: int = 0,
    max_words: int = MAX_WORDS,
    on_fold: Callable[[], object] = lambda: None,
) -> dict[str, SpanLabels]:
    """Label each item, by id, with a regression that was trained without its fold.

    Folds are those of :func:`held_out_folds`; the seed is used for the regression too, and ``max_words`` for that of
    the kind ``svr``. Every item is measured once. ``on_fold`` is called after each fold, for a progress bar.
    """
    options: dict[str, Any] = {"schema": schema, "seed": seed}
    measured = [word_features(item, words_of(item.response), schema) for item in items]
    labels: dict[str, SpanLabels] = {}
    for train, held in held_out_folds(items, by=by, folds=folds, seed=seed):
        own, values = [items[i] for i in train], [measured[i] for i in train]
        fitted = (
            support_vectors(own, values, max_words=max_words, **options)
            if kind == "svr"
            else SpanRegressor.fit(own, measured=values, **options)
        )
        labels |= {items[i].id: fitted.detect(items[i], measured=measured[i]) for i in held}
        on_fold()
    return labels
