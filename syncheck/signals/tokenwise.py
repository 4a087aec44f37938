"""Tokenwise signals from raw logits, and bounds on them from the log-probabilities that a server reports."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from syncheck.base.errors import InputError
from syncheck.results.types import Bounds, Floats

_BUFFERS = 4
_BUFFERS_BYTES = 8 * 2**20
_LOWEST = -1e4  # exp gives 0 as for -inf, but 0 times it is 0
_CSR_FLOOR = 1e-8


@dataclass(frozen=True, slots=True)
class TokenStatistics:
    """Four (T,) float32 tensors, one value per token.

    A value is NaN if a row of logits that it needs is not a distribution: it has NaN or +inf, or excludes every entry.
    """

    log_prob: Tensor
    """ln p(token | context) in nats, <= 0, -inf where the token is excluded."""
    log_prob_without_context: Tensor
    """ln q(token), the same without the context; NaN if there is no second branch."""
    entropy: Tensor
    """H(p) in nats, in [0, ln V]."""
    kl: Tensor
    """KL(p || q) in nats, >= 0, inf where q excludes an entry that p allows; NaN if there is no second branch."""


@torch.no_grad()
def token_statistics(logits: Tensor, logits_without: Tensor | None, token_ids: Tensor) -> TokenStatistics:
    """Compute the tokenwise signals of the paper (section 3.2) from raw logits.

    ``logits`` (T, V), of any floating dtype, predict the tokens ``token_ids``, (T,) int64, with the context, before
    temperature, top-p or any processor, and ``logits_without`` the same without it, or None; ``-inf`` excludes an
    entry. Shapes that do not agree, and token ids outside the columns, raise InputError.

    Notes
    -----
    All values are float32, after subtracting each row's largest logit. With e = ln q - ln p and
    t = tanh(e / 2) = (q - p) / (q + p), KL is the sum of p (t - e) + q t, which is -p e + q - p. No term is negative
    and each vanishes with e, so that equal branches give 0 and nearly equal ones keep their digits. Sums are pairwise.

    Rows pass in groups through four buffers, which take 8 MiB together, or one row each if that is more.
    """
    token_ids, columns = token_ids.to(logits.device), logits.shape[-1]
    expected = (len(token_ids), columns)
    for name, given in (("logits", logits), ("logits_without", logits_without)):
        if given is not None and tuple(given.shape) != expected:
            raise InputError(f"{name} must have shape (T, V) = {expected}; found {tuple(given.shape)}")
    outside = (token_ids < 0) | (token_ids >= columns)
    if outside.any():
        raise InputError(
            f"token_ids must be in 0..{columns - 1}, the columns of the logits; found "
            f"{sorted(set(token_ids[outside].tolist()))}. Pass the logits of the tokens' own model"
        )
    rows = max(1, min(_BUFFERS_BYTES // (_BUFFERS * 4 * columns), len(token_ids)))
    buffers = logits.new_empty((_BUFFERS, rows, columns), dtype=torch.float32)
    without: Iterable[Tensor | None] = repeat(None) if logits_without is None else torch.split(logits_without, rows)
    groups = zip(torch.split(logits, rows), without, torch.split(token_ids, rows), strict=False)
    values = [_statistics_of_rows(*group, buffers[:, : len(group[0])]) for group in groups]
    return TokenStatistics(*(torch.cat(column) for column in zip(*values, strict=True)))


def context_sensitivity_ratio(log_prob: Tensor, log_prob_without_context: Tensor) -> Tensor:
    """Compute REFIND's ratio ``ln p(t_i | D, q, t_<i) / (ln p(t_i | q, t_<i) + 1e-8)``, shape (T,), without a unit."""
    return log_prob / (log_prob_without_context + _CSR_FLOOR)


def _statistics_of_rows(
    logits: Tensor, logits_without: Tensor | None, token_ids: Tensor, buffers: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    x, p, y, q = buffers  # (R, V) each; p and q are not normalised, their sums are
    log_prob, sum_p, log_sum_p = _branch(logits, token_ids, x, p)  # (R,) each
    x.clamp_min_(_LOWEST)
    entropy = log_sum_p - torch.mul(p, x, out=y).sum(-1) / sum_p
    if logits_without is None:
        missing = torch.full_like(entropy, torch.nan)
        return log_prob, missing, entropy, missing
    log_prob_without, sum_q, log_sum_q = _branch(logits_without, token_ids, y, q)
    half_offset = (log_sum_p - log_sum_q)[:, None] / 2
    half_e = torch.add(half_offset, torch.sub(y, x, out=y), alpha=0.5, out=y)  # -inf where q excludes
    t = torch.tanh(half_e, out=x)
    p_terms = torch.sub(t, half_e, alpha=2, out=y).mul_(p)
    p_terms.nan_to_num_(nan=0.0, posinf=math.inf)  # 0 * inf: q excludes what p excludes too
    kl = (p_terms.sum(-1) / sum_p + t.mul_(q).sum(-1) / sum_q).clamp_min_(0)
    return log_prob, log_prob_without, entropy, kl


def _branch(logits: Tensor, token_ids: Tensor, centred: Tensor, exponentials: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Fill the two buffers; return the tokens' log-probabilities, the sums of exponentials and their logarithms."""
    # Upcast before any exp, since half precision underflows most of a vocabulary. An offset common to a row changes
    # nothing but costs digits: GPT-2's logits lie around -100.
    rows = logits if logits.dtype == torch.float32 else centred.copy_(logits)
    torch.sub(rows, rows.amax(-1, keepdim=True), out=centred)
    total = torch.exp(centred, out=exponentials).sum(-1)
    log_total = total.log()
    return centred.gather(-1, token_ids[:, None])[:, 0] - log_total, total, log_total


_LEAST_LOG_PROB = -600.0
"""Least log-probability that is used, in nats; its exponential is not 0."""
_PEAK = 1 / np.e
"""Value of p at which -p ln p is largest."""


def entropy_bounds(
    log_probs: ArrayLike, vocab_size: int, *, largest_other: ArrayLike = 0.0, error: float = 1e-9
) -> Bounds:
    """Bound the entropy of distributions, some of whose entries are known: (T,) in nats, NaN where a whole row is NaN.

    Parameters
    ----------
    log_probs
        Log-probabilities (T, K), in nats, of different entries of each distribution; NaN fills a row that has fewer. A
        row with more than V of them, one above 0, and probabilities that add up to more than 1 raise InputError.
    vocab_size
        Number V of entries of each distribution.
    largest_other
        Log-probability, (T,) or one, that no other entry exceeds: the lowest of the k likeliest, if all are known.
    error
        Error, in nats, of each log-probability and of the exact value that the bounds are to contain.

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
    cap = np.exp(np.clip(np.asarray(largest_other, np.float64) + error, _LEAST_LOG_PROB, 0.0))
    spread = np.clip(others * _PEAK, tail_low, tail_high)  # where t ln(n / t) is largest
    bounds = (
        least + _least_tail(tail_low, tail_high, cap) - error,
        np.minimum(most + _surprise(spread) + spread * np.log(np.maximum(others, 1.0)), np.log(vocab_size)) + error,
    )
    lower, upper = (np.where(known > 0, bound, np.nan) for bound in bounds)
    return Bounds(np.minimum(lower, upper), upper)


def kl_bounds(log_p: ArrayLike, log_q: ArrayLike, *, error: float = 1e-9) -> Bounds:
    """Bound KL(p || q) from below by the entries that are known in both; nothing bounds it from above.

    ``log_p`` and ``log_q``, (T, K), are log-probabilities of the same entries, in nats; NaN in either leaves an entry
    to the tail. The bounds (T,), in nats, go from the KL of the distributions in which all other entries are merged
    into one, up to inf. ``error`` is as in :func:`entropy_bounds`; what that refuses, and shapes that differ, raise
    InputError.
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
