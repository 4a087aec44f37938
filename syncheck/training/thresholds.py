"""Below which score a decoder should take a sentence back, chosen on held-out sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from syncheck.errors import InputError
from syncheck.given import real_numbers
from syncheck.labels_found import labels_found

__all__ = ["Thresholds", "choose_thresholds"]

BACKTRACK_ALARMS = 0.1
PRUNE_ALARMS = 0.25
"""Largest share of the faithful sentences that may fall below each threshold. Backtracking costs a search, so
it has to be rare; pruning only chooses among samples that are there anyway, so it may be stricter."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Scores below which a sentence is taken back or a sample dropped, and what they catch.

    Attributes
    ----------
    backtrack, prune : float
        tau_1 and tau_2 of FOD; ``backtrack <= prune``.
    backtrack_recall, prune_recall : float
        Share of the unfaithful sentences that fall below, in [0, 1].
    """

    backtrack: float
    prune: float
    backtrack_recall: float
    prune_recall: float


def choose_thresholds(scores: ArrayLike, y: ArrayLike) -> Thresholds:
    """Choose both thresholds by how many faithful sentences they may cost.

    Each is the largest score with at most 10 % (backtrack) or 25 % (prune) of the faithful sentences below
    it. The rule needs no calibrated scores, and a stricter aggregator gives no more alarms.

    Parameters
    ----------
    scores : array-like of shape (N,)
        P(faithful) of sentences that the aggregator was not trained on.
    y : array-like of shape (N,)
        1 faithful, 0 unfaithful.

    Raises
    ------
    InputError
        If either label is absent.
    """
    values, labels = real_numbers(scores, "scores").astype(np.float64), real_numbers(y, "labels")
    faithful, unfaithful = np.sort(values[labels == 1]), values[labels == 0]
    if not len(faithful) or not len(unfaithful):
        raise InputError(
            f"thresholds need sentences of both labels, but found {labels_found(labels)}; hold out more sentences"
        )
    backtrack, prune = (
        float(faithful[math.floor(share * len(faithful))]) for share in (BACKTRACK_ALARMS, PRUNE_ALARMS)
    )
    return Thresholds(
        backtrack,
        prune,
        backtrack_recall=float((unfaithful < backtrack).mean()),
        prune_recall=float((unfaithful < prune).mean()),
    )
