"""What carries over: a classifier trained on all sources but one, and measured on that one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.errors import InputError
from syncheck.evaluation.transfer import AurocMatrix, cell
from syncheck.stats import BootstrapSamples

__all__ = ["left_out_matrix", "left_out_scores"]


def left_out_scores(X: ArrayLike, y: ArrayLike, sources: Sequence[str], *, estimator: Any) -> NDArray[np.float64]:
    """Score each source by a classifier that was trained on the others.

    Parameters
    ----------
    X : array-like of shape (N, F)
        NaN means not measured.
    y : array-like of shape (N,)
        1 faithful, 0 unfaithful.
    sources
        Where each row comes from.
    estimator
        An untrained scikit-learn classifier with ``predict_proba``; it is cloned for each source.

    Returns
    -------
    ndarray of shape (N,), float64
        P(faithful).

    Raises
    ------
    InputError
        If there is only one source, or the others of one lack a label.
    """
    from sklearn.base import clone

    rows, labels, names = np.asarray(X, dtype=np.float64), np.asarray(y), np.asarray(sources)
    known = _check_sources(rows, labels, names)
    scores = np.empty(len(rows))
    for source in known:
        own = names == source
        trained = clone(estimator).fit(rows[~own], labels[~own])
        scores[own] = trained.predict_proba(rows[own])[:, list(trained.classes_).index(1)]
    return scores


def left_out_matrix(
    systems: Mapping[str, ArrayLike],
    y: ArrayLike,
    groups: ArrayLike,
    sources: Sequence[str],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> AurocMatrix:
    """Measure scores source by source.

    Parameters
    ----------
    systems
        Scores (N,) by name, higher for more faithful; from :func:`left_out_scores`, or of a signal as it is.
    y, sources
        As there.
    groups
        What is drawn anew for the intervals: the question or context of each row. Groups of one name in two sources
        count as two.
    draws, seed
        Of the bootstrap.

    Returns
    -------
    AurocMatrix
        Systems by sources, in the order given.

    Raises
    ------
    InputError
        If a score is NaN, or the lengths do not fit.
    """
    labels, names = np.asarray(y).astype(np.int64), np.asarray(sources)
    resamples = {}
    for source in dict.fromkeys(names.tolist()):
        resamples[source] = BootstrapSamples.of(np.asarray(groups)[names == source], draws=draws, seed=seed)
    cells = {}
    for system, found in systems.items():
        scores = np.asarray(found, dtype=np.float64)
        if scores.shape != labels.shape or np.isnan(scores).any():
            raise InputError(f"expected a score for each of {len(labels)} rows; {system!r} has NaN or {scores.shape}")
        for source, own in resamples.items():
            chosen = names == source
            every = np.ones(int(chosen.sum()), dtype=bool)
            cells[system, source] = cell(scores[None, chosen], labels[chosen], own, every)
    return AurocMatrix("system \\ source left out", tuple(systems), tuple(resamples), cells)


def _check_sources(rows: NDArray[np.float64], y: NDArray[np.int64], names: NDArray[np.str_]) -> list[str]:
    if not len(rows) == len(y) == len(names):
        raise InputError(f"expected a label and a source for each of {len(rows)} rows; found {len(y)} and {len(names)}")
    known: list[str] = list(dict.fromkeys(names.tolist()))
    if len(known) < 2:
        raise InputError(f"leaving one source out needs at least two; found {', '.join(known) or 'none'}")
    for source in known:
        if len(np.unique(y[names != source])) < 2:
            raise InputError(f"without {source!r} only one label is left to train on; add sources with both")
    return known
