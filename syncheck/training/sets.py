"""Measured sentences with the labels that count: the benchmark sets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from syncheck.errors import InputError
from syncheck.training.measured import MeasuredSentences

__all__ = ["LabelledSet", "SetName", "labelled_set"]


SetName = Literal["strict", "paper"]
"""``strict``: sentences with a letter; any overlap with a span counts, also with one that is true of the world.
``paper``: all sentences; a span counts that contains the sentence or is contained by it, and is not marked as true of
the world. Neither has sentences of a response without a context, which get no score."""


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """N sentences of M measured ones, with their labels.

    Attributes
    ----------
    measured : MeasuredSentences
    labels : ndarray of shape (M,), int64
        1 faithful, 0 unfaithful, of all that were measured.
    used : ndarray of shape (N,), int64
        Indices of the sentences that count.
    """

    measured: MeasuredSentences
    labels: NDArray[np.int64]
    used: NDArray[np.int64]

    @property
    def y(self) -> NDArray[np.int64]:
        """Label of each sentence, (N,)."""
        return self.labels[self.used]

    @property
    def groups(self) -> NDArray[np.str_]:
        """Group of each sentence, (N,)."""
        return self.measured.groups[self.used]

    @property
    def generators(self) -> NDArray[np.str_]:
        """Model that wrote each sentence, (N,)."""
        return self.measured.generators[self.used]

    @property
    def tasks(self) -> NDArray[np.str_]:
        """Task of each sentence, (N,); ``"unknown"`` where the file does not say."""
        return self.measured.tasks[self.used]

    @property
    def ids(self) -> set[str]:
        """Ids of the responses that were measured."""
        return {record.id for record in self.measured.records}

    def features(self, train: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return (N, F) features whose LID references are among the sentences ``train`` (indices below N)."""
        return self.measured.features(self.labels, self.used[train])[self.used]

    def of(self, ids: Collection[str]) -> LabelledSet:
        """Return the sentences of these responses alone."""
        kept = [self.measured.records[owner].id in ids for owner in self.measured.owners[self.used]]
        return replace(self, used=self.used[np.array(kept, np.bool_)])


def labelled_set(measured: MeasuredSentences, name: SetName) -> LabelledSet:
    """Return a benchmark set of measured sentences.

    Parameters
    ----------
    measured
    name
        See :data:`SetName`.

    Raises
    ------
    InputError
        If there is no such set.
    """
    if name not in get_args(SetName):
        raise InputError(f"expected a set of {', '.join(map(repr, get_args(SetName)))}; found {name!r}")
    if name == "strict":
        used = np.flatnonzero(measured.with_letter & measured.with_context)
        return LabelledSet(measured, measured.labels(rule="overlap"), used)
    labels = measured.labels(rule="paper", implicit_true=False)
    return LabelledSet(measured, labels, np.flatnonzero(measured.with_context))
