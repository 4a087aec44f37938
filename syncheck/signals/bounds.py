"""Bounds of entropy and KL when only the likeliest tokens are known, as inference servers report them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from syncheck.base.errors import InputError
from syncheck.results.types import Bounds, Floats

_LOWEST = -600.0
"""Least log-probability that is used, in nats; its exponential is not 0."""
_PEAK = 1 / np.e
"""Value of p at which -p ln p is largest."""


def entropy_bounds(
    log_probs: ArrayLike, vocab_size: int, *, largest_other: ArrayLike = 0.0, error: float = 1e-9
) -> Bounds:
    """Bound the entropy of distributions, some of whose entries are known.

    Parameters
    ----------
    log_probs : array-like of shape (T, K)
        Log-probabilities, in nats, of different entries of each distribution; NaN fills a row that has fewer.
    vocab_size
        Number V of entries of each distribution.
    largest_other : array-like of shape (T,) or ()
        Log-probability, in nats, that no other entry exceeds: the lowest of the k likeliest, if those are all known.
    error
        Error, in nats, of each log-probability and of the exact value that the bounds are to contain.

    Returns
    -------
    Bounds
        (T,) in nats; NaN where a whole row is NaN.

    Raises
    ------
    InputError
        If a row has more than V entries, a log-probability is above 0, or the probabilities add up to more than 1.

    Notes
    -----
    Let H_k be the sum of -p ln p over the k known entries, and t the mass of the others. The entropy lies between
    H_k - t ln t (all of t on one entry) and H_k - t ln t + t ln(V - k) (t spread evenly). If no other entry exceeds
    c < t, t is divided among several: the lower bound then has as many entries of c as fit into t, and one with the
    remainder.
    """
    rows = _rows(log_probs, error)
    known = (~np.isnan(rows)).sum(-1)
    if (known > vocab_size).any():
        raise InputError(
            f"expected log-probabilities of at most {vocab_size} entries, the vocabulary; found {known.max()}"
        )
    others = (vocab_size - known).astype(np.float64)
    low, high = np.exp(rows - error), np.minimum(np.exp(rows + error), 1.0)  # (T, K)
    ends = _surprise(low), _surprise(high)
    peak = (low <= _PEAK) & (high >= _PEAK)
    least = np.nansum(np.minimum(*ends), axis=-1)
    most = np.nansum(np.where(peak, _PEAK, np.maximum(*ends)), axis=-1)
    tail_low, tail_high = _tail(low, high, others)
    cap = np.exp(np.clip(np.asarray(largest_other, np.float64) + error, _LOWEST, 0.0))
    spread = np.clip(others * _PEAK, tail_low, tail_high)  # where t ln(n / t) is largest
    bounds = (
        least + _least_tail(tail_low, tail_high, cap) - error,
        np.minimum(most + _surprise(spread) + spread * np.log(np.maximum(others, 1.0)), np.log(vocab_size)) + error,
    )
    lower, upper = (np.where(known > 0, bound, np.nan) for bound in bounds)
    return Bounds(np.minimum(lower, upper), upper)


def kl_bounds(log_p: ArrayLike, log_q: ArrayLike, *, error: float = 1e-9) -> Bounds:
    """Bound KL(p || q) from below by the entries that are known in both; nothing bounds it from above.

    Parameters
    ----------
    log_p, log_q : array-like of shape (T, K)
        Log-probabilities, in nats, of the same entries of p and q; NaN in either leaves an entry to the tail.
    error
        Error, in nats, of each log-probability and of the exact value that the bounds are to contain.

    Returns
    -------
    Bounds
        (T,) in nats: from the KL of the distributions in which all other entries are merged into one, up to inf.

    Raises
    ------
    InputError
        If the shapes differ, a log-probability is above 0, or the probabilities add up to more than 1.
    """
    p, q = _rows(log_p, error), _rows(log_q, error)
    if p.shape != q.shape:
        raise InputError(f"log_p and log_q must have the same shape; found {p.shape} and {q.shape}")
    unknown = np.isnan(p) | np.isnan(q)
    p, q = (np.where(unknown, np.nan, rows) for rows in (p, q))
    p_low, p_high = np.exp(p - error), np.minimum(np.exp(p + error), 1.0)
    log_q_high = np.minimum(q + error, 0.0)  # in logs: below about -745 nats a probability is 0
    many = np.full(len(p), np.inf)
    tail_p, tail_q = _tail(p_low, p_high, many), _tail(np.exp(q - error), np.exp(log_q_high), many)
    terms = np.nansum(_least_term(p_low, p_high, log_q_high), axis=-1)
    with np.errstate(divide="ignore"):
        tail = _least_term(*tail_p, np.log(tail_q[1]))
    lower = np.maximum(terms + tail - error, 0.0)
    return Bounds(lower, np.full_like(lower, np.inf))


def _rows(log_probs: ArrayLike, error: float) -> Floats:
    rows = np.asarray(log_probs, np.float64)
    if rows.ndim != 2:
        raise InputError(f"log-probabilities must be (T, K); found the shape {rows.shape}")
    if (rows > error).any() or (np.nansum(np.exp(rows), axis=-1) > np.exp(2 * error) + 1e-9).any():
        raise InputError(
            "log-probabilities must be of different entries of a distribution: each at most 0, and their probabilities "
            "at most 1 together"
        )
    return np.minimum(rows, 0.0)


def _tail(low: Floats, high: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Compute the least and the largest mass of the entries that are not known; 0 if there are no others."""
    least, most = (np.clip(1.0 - np.nansum(side, axis=-1), 0.0, 1.0) for side in (high, low))
    return np.where(others > 0, least, 0.0), np.where(others > 0, most, 0.0)


def _least_tail(low: Floats, high: Floats, cap: Floats) -> Floats:
    """Compute the least that a tail with a mass from low to high adds to the entropy, with no entry above the cap."""
    together = np.minimum(_surprise(low), _surprise(high))  # concave: the least is at an end
    full = np.floor(low / cap)
    apart = full * _surprise(cap) + _surprise(np.clip(low - full * cap, 0.0, cap))  # rises with the mass below the peak
    return np.where(cap <= _PEAK, apart, together)


def _least_term(p_low: Floats, p_high: Floats, log_q_high: Floats) -> Floats:
    """Compute the least of p ln(p / q) over an interval of p and all q up to a largest one."""
    p = np.clip(np.exp(log_q_high) * _PEAK, p_low, p_high)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p == 0, 0.0, p * (np.log(p) - log_q_high))


def _surprise(p: Floats) -> Floats:
    """Compute -p ln p, 0 at 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p == 0, 0.0, -p * np.log(p))
