"""Tokenwise signals: log-probability, entropy, KL and context sensitivity from the raw logits of both branches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from syncheck.base.errors import InputError

_BUFFERS = 4
_BUFFERS_BYTES = 8 * 2**20
_LOWEST = -1e4  # exp gives 0 as for -inf, but 0 times it is 0
_CSR_FLOOR = 1e-8


@dataclass(frozen=True, slots=True)
class TokenStatistics:
    """Five (T,) float32 tensors, one value per token.

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
    csr: Tensor
    """:func:`context_sensitivity_ratio` of the two log-probabilities; NaN if there is no second branch."""


@torch.no_grad()
def token_statistics(
    logits: Tensor, logits_without: Tensor | None, token_ids: Tensor, *, vocab_size: int | None = None
) -> TokenStatistics:
    """Compute the tokenwise signals of the paper (section 3.2) and of REFIND from raw logits.

    Parameters
    ----------
    logits
        (T, V), any floating dtype: row t predicts token t with the context, before temperature, top-p or any processor;
        ``-inf`` excludes an entry.
    logits_without
        (T, V) without the context, or None if there is none.
    token_ids
        (T,) int64, the tokens that followed.
    vocab_size
        Number of columns, from the first, that count: a model's output can be wider than its vocabulary, and the
        padding takes a share of the probability. None counts all V.

    Raises
    ------
    InputError
        If shapes do not agree, or a token id or ``vocab_size`` is outside the columns.

    Notes
    -----
    All values are float32, after subtracting each row's largest logit. With e = ln q - ln p and
    t = tanh(e / 2) = (q - p) / (q + p), KL is the sum of p (t - e) + q t, which is -p e + q - p. No term is negative
    and each vanishes with e, so that equal branches give 0 and nearly equal ones keep their digits. Sums are pairwise.

    Rows pass in groups through four buffers (rows, V), which take 8 MiB together, or one row each if that is more,
    whatever T is.
    """
    token_ids = token_ids.to(logits.device)
    columns = _columns(logits, logits_without, token_ids, vocab_size)
    tokens = len(token_ids)
    if not tokens:
        empty = logits.new_empty(0, dtype=torch.float32)
        return TokenStatistics(empty, empty, empty, empty, empty)
    rows = min(max(1, _BUFFERS_BYTES // (_BUFFERS * 4 * columns)), tokens)
    buffers = logits.new_empty((_BUFFERS, rows, columns), dtype=torch.float32)
    groups = [
        _statistics_of_rows(
            logits[i : i + rows, :columns],
            None if logits_without is None else logits_without[i : i + rows, :columns],
            token_ids[i : i + rows],
            buffers[:, : tokens - i],
        )
        for i in range(0, tokens, rows)
    ]
    log_prob, without, entropy, kl = (torch.cat(column) for column in zip(*groups, strict=True))
    return TokenStatistics(log_prob, without, entropy, kl, context_sensitivity_ratio(log_prob, without))


def context_sensitivity_ratio(log_prob: Tensor, log_prob_without_context: Tensor) -> Tensor:
    """Compute REFIND's ratio ``ln p(t_i | D, q, t_<i) / (ln p(t_i | q, t_<i) + 1e-8)``, shape (T,), without a unit."""
    return log_prob / (log_prob_without_context + _CSR_FLOOR)


def _columns(logits: Tensor, logits_without: Tensor | None, token_ids: Tensor, vocab_size: int | None) -> int:
    """Check the arguments and return the number of columns that count."""
    expected = (len(token_ids), logits.shape[-1])
    for name, given in (("logits", logits), ("logits_without", logits_without)):
        if given is not None and tuple(given.shape) != expected:
            raise InputError(f"{name} must have shape (T, V) = {expected}; found {tuple(given.shape)}")
    columns = expected[1] if vocab_size is None else vocab_size
    if not 0 < columns <= expected[1]:
        raise InputError(f"vocab_size must be in 1..V = {expected[1]}; found {columns}")
    outside = (token_ids < 0) | (token_ids >= columns)
    if outside.any():
        raise InputError(
            f"token_ids must be in 0..{columns - 1}, the columns of the logits that count; found "
            f"{sorted(set(token_ids[outside].tolist()))}. Pass the logits of the tokens' own model"
        )
    return columns


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
