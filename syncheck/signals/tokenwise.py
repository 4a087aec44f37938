"""Tokenwise signals from raw logits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat

import torch
from torch import Tensor

from syncheck.base.errors import InputError

_BUFFERS = 4
_BUFFERS_BYTES = 8 * 2**20
_LOWEST = -1e4  # exp gives 0 as for -inf, but 0 times it is 0


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
