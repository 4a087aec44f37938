"""AUROC, and bootstrap samples and intervals over groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["BootstrapSamples", "auroc", "bootstrap_interval", "deviation"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BootstrapSamples:
    """Counts of each of G groups in each of D resamples of G groups with replacement.

    The same draws serve every system, so that differences between systems are paired.

    Attributes
    ----------
    group : ndarray of shape (N,), int64
        Group of each sentence, 0 to G - 1.
    counts : ndarray of shape (D, G), float64
    """

    group: NDArray[np.int64]
    counts: Floats

    @classmethod
    def of(cls, groups: NDArray[np.generic], *, draws: int, seed: int) -> BootstrapSamples:
        """Draw ``draws`` resamples of the groups that sentences belong to."""
        names, group = np.unique(groups, return_inverse=True)
        size = len(names)
        counts = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=draws)
        return cls(group.astype(np.int64), counts.astype(np.float64))

    def auroc(self, scores: Floats, y: NDArray[np.int64], chosen: NDArray[np.bool_]) -> tuple[float, Floats]:
        """Return the AUROC of the chosen sentences, and that of each resample.

        Parameters
        ----------
        scores : ndarray of shape (R, N), float64
            One row per repeat; the AUROC is computed in each and averaged.
        y : ndarray of shape (N,), int64
            1 faithful, 0 unfaithful.
        chosen : ndarray of shape (N,), bool
            The sentences that count.

        Returns
        -------
        float, ndarray of shape (D,)
            P(a faithful sentence scores above an unfaithful one), ties half; NaN if one label is absent, and in every
            resample if one label is in a single group, which says nothing about other groups.
        """
        good, bad = chosen & (y == 1), chosen & (y == 0)
        groups = self.counts.shape[1]
        goods = np.bincount(self.group[good], minlength=groups).astype(np.float64)
        bads = np.bincount(self.group[bad], minlength=groups).astype(np.float64)
        wins = np.mean([self._wins(row, good, bad) for row in scores], axis=0)
        drawn = ((self.counts @ wins) * self.counts).sum(axis=1)
        pairs = (self.counts @ goods) * (self.counts @ bads)
        known = (pairs > 0) & (min(np.count_nonzero(goods), np.count_nonzero(bads)) > 1)
        resampled = np.divide(drawn, pairs, out=np.full(len(drawn), np.nan), where=known)
        total = goods.sum() * bads.sum()
        return (float(wins.sum() / total) if total else float("nan")), resampled

    def _wins(self, scores: Floats, good: NDArray[np.bool_], bad: NDArray[np.bool_]) -> Floats:
        """Count, for each pair of groups (G, G), the faithful of one above the unfaithful of the other.

        The AUROC of any resample is a quadratic form of this matrix: no resample is ever ranked.
        """
        groups = self.counts.shape[1]
        wins = np.zeros((groups, groups))
        for unfaithful in np.unique(self.group[bad]):
            below = np.sort(scores[bad & (self.group == unfaithful)])
            left = np.searchsorted(below, scores[good], side="left")
            right = np.searchsorted(below, scores[good], side="right")
            wins[:, unfaithful] = np.bincount(self.group[good], weights=(left + right) / 2, minlength=groups)
        return wins


def auroc(scores: Floats, y: NDArray[np.int64]) -> float:
    """Return P(a faithful sentence scores above an unfaithful one), ties half; NaN if one label is absent.

    ``scores`` is (N,), and ``y`` (N,) is 1 for faithful and 0 for unfaithful.
    """
    from scipy.stats import rankdata

    goods, bads = int((y == 1).sum()), int((y == 0).sum())
    if not goods or not bads:
        return float("nan")
    return float((rankdata(scores)[y == 1].sum() - goods * (goods + 1) / 2) / (goods * bads))


def deviation(scores: Floats, y: NDArray[np.int64]) -> float:
    """Return the sample standard deviation of the AUROC over the rows of (R, N) scores; NaN for one row."""
    return float(np.std([auroc(row, y) for row in scores], ddof=1)) if len(scores) > 1 else float("nan")


def bootstrap_interval(resampled: Floats, confidence: float = 0.95) -> tuple[float, float]:
    """Return the percentile interval of resampled values; resamples without a value are left out."""
    values = resampled[~np.isnan(resampled)]
    if not len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
