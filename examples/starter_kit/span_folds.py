"""Labels of Mu-SHROOM's items by regressions that were trained on other responses: no question is on both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from syncheck.base.checks import check_choice
from syncheck.base.errors import InputError
from syncheck.results import SpanItem, SpanLabels
from syncheck.spans import MAX_WORDS, Measure, RegressorKind, SpanRegressor, SpanSchema, regression_features

SpanFolds = Literal["question", "language"]


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
    measure: Measure | None = None,
    on_fold: Callable[[], object] = lambda: None,
) -> dict[str, SpanLabels]:
    """Label each item, by id, with a regression that was trained without its fold.

    Folds are those of :func:`held_out_folds`; the seed is used for the trees too. The other options are those of
    :meth:`SpanRegressor.fit`; every item is measured once. ``on_fold`` is called after each fold, for a progress bar.
    """
    options: dict[str, Any] = {"schema": schema, "kind": kind, "seed": seed, "max_words": max_words}
    measured = [regression_features(item, schema, measure) for item in items]
    labels: dict[str, SpanLabels] = {}
    for train, held in held_out_folds(items, by=by, folds=folds, seed=seed):
        fitted = SpanRegressor.fit([items[i] for i in train], measured=[measured[i] for i in train], **options)
        labels |= {items[i].id: fitted.detect(items[i], measured=measured[i]) for i in held}
        on_fold()
    return labels
