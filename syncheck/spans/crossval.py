"""Labels of responses that the regression was not trained on: by question, or by language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from syncheck.errors import InputError
from syncheck.spans.features import SpanSchema
from syncheck.spans.items import SpanItem, SpanLabels
from syncheck.spans.regressor import MAX_WORDS, RegressorKind, SpanRegressor
from syncheck.spans.word_sources import WordSource, regression_features

__all__ = ["SpanFolds", "held_out_folds", "held_out_labels", "question_of"]


SpanFolds = Literal["question", "language"]


def question_of(item: SpanItem) -> str:
    """Return what stands for the question of an item: the title of the page it was made from, else its own words.

    One question is asked in several languages; where the page has one title in all of them, that shows.
    """
    return unquote(item.source.rpartition("/")[2]) or item.question


def held_out_folds(
    items: Sequence[SpanItem], *, by: SpanFolds, folds: int = 5, seed: int = 0
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return pairs of places, trained on and held out: each item is held out once.

    Parameters
    ----------
    items
    by
        ``question``: ``folds`` parts, the items of a question in one. ``language``: one part for each language; the
        questions of the part are trained on in no language.
    folds, seed
        Of ``question``.

    Raises
    ------
    InputError
        If ``by`` is unknown, or there are fewer questions or languages than parts.
    """
    if by not in get_args(SpanFolds):
        raise InputError(f"by must be one of {get_args(SpanFolds)}; found {by!r}")
    questions = np.array([question_of(item) for item in items])
    names, number = np.unique(questions, return_inverse=True)
    part = np.random.default_rng(seed).permutation(len(names))[number] % folds
    if by == "language":
        part = np.unique([item.lang.upper() for item in items], return_inverse=True)[1]
    parts = np.unique(part)
    if len(parts) < 2:
        raise InputError(f"expected two or more parts by {by} to hold one out; found {len(parts)}")
    found = []
    for number in parts:
        held = np.flatnonzero(part == number)
        found.append((np.flatnonzero((part != number) & ~np.isin(questions, questions[held])), held))
    return found


def held_out_labels(
    items: Sequence[SpanItem],
    *,
    by: SpanFolds,
    schema: SpanSchema = "spans.v1",
    kind: RegressorKind = "xgb",
    folds: int = 5,
    seed: int = 0,
    max_words: int = MAX_WORDS,
    sources: Sequence[WordSource] = (),
    on_fold: Callable[[], object] = lambda: None,
) -> dict[str, SpanLabels]:
    """Return the labels of each item, by id, from a regression that was trained without its fold.

    Parameters
    ----------
    items
        All with labels.
    by, folds, seed
        See :func:`held_out_folds`; the seed is that of the trees too.
    schema, kind, max_words, sources
        See :meth:`SpanRegressor.fit`; every item is measured once.
    on_fold
        Called after each fold, for a progress bar.

    Raises
    ------
    InputError
        As :func:`held_out_folds` and :meth:`SpanRegressor.fit`.
    """
    options: dict[str, Any] = {"schema": schema, "kind": kind, "seed": seed, "max_words": max_words}
    measured = [regression_features(item, schema, sources) for item in items]
    found: dict[str, SpanLabels] = {}
    for train, held in held_out_folds(items, by=by, folds=folds, seed=seed):
        fitted = SpanRegressor.fit([items[i] for i in train], measured=[measured[i] for i in train], **options)
        found |= {items[i].id: fitted.detect(items[i], measured=measured[i]) for i in held}
        on_fold()
    return found
