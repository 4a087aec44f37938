"""Log-probability, entropy and KL of each token from the raw logits of both branches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from syncheck.errors import InputError

__all__ = ["TokenStatistics", "context_sensitivity_ratio", "token_statistics"]

_ROWS_AT_ONCE = 8
_EXCLUDED = -1e30
_WIDEST = 1e4
_STEEP = 30.0
_CSR_FLOOR = 1e-8


@dataclass(frozen=True, slots=True)
class TokenStatistics:
    """Four (T,) float32 tensors, in nats: one value per token.

    Attributes
    ----------
    log_prob
        ln p(token | context), <= 0.
    log_prob_without_context
        ln q(token), the same without the context; NaN where there is no second branch.
    entropy
        H(p) in [0, ln V].
    kl
        KL(p || q) >= 0, inf where q excludes a token that p allows; NaN where there is no second branch.
    """

    log_prob: Tensor
    log_prob_without_context: Tensor
    entropy: Tensor
    kl: Tensor


def token_statistics(logits: Tensor, logits_without: Tensor | None, token_ids: Tensor) -> TokenStatistics:
    """Compute the tokenwise signals of the paper (section 3.2) from raw logits.

    Parameters
    ----------
    logits
        (T, V), any floating dtype: row t predicts token t with the context. Raw, that is before temperature,
        top-p or any processor; ``-inf`` excludes an entry.
    logits_without
        (T, V) without the context, or None when there is none.
    token_ids
        (T,) int64, the tokens that followed.

    Returns
    -------
    TokenStatistics

    Raises
    ------
    InputError
        If the shapes do not agree.

    Notes
    -----
    With ``lse`` the log-sum-exp of a row, H = lse_p - E_p[logit_p]; KL is summed as p d + q - p with d = ln p - ln q,
    which keeps its digits where the two distributions nearly agree. Sums are pairwise in float32; rows go in groups of
    eight, so that the temporaries stay small beside the logits.
    """
    expected = (len(token_ids), logits.shape[-1])
    for name, given in (("logits", logits), ("logits_without", logits_without)):
        if given is not None and tuple(given.shape) != expected:
            raise InputError(f"{name} must have shape (T, V) = {expected}; found {tuple(given.shape)}")
    if not len(token_ids):
        empty = logits.new_empty(0, dtype=torch.float32)
        return TokenStatistics(empty, empty, empty, empty)
    groups = [
        _statistics_of_rows(
            logits[i : i + _ROWS_AT_ONCE],
            None if logits_without is None else logits_without[i : i + _ROWS_AT_ONCE],
            token_ids[i : i + _ROWS_AT_ONCE],
        )
        for i in range(0, len(token_ids), _ROWS_AT_ONCE)
    ]
    return TokenStatistics(*(torch.cat(column) for column in zip(*groups, strict=True)))


def _statistics_of_rows(
    logits: Tensor, logits_without: Tensor | None, token_ids: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    # Upcast before any exp: half precision underflows most of a vocabulary.
    x = _centred(logits)  # (R, V)
    lowest = torch.finfo(torch.float32).min  # 0 * -inf is NaN, 0 * lowest is 0
    lse_p = x.logsumexp(-1)  # (R,)
    log_prob = x.gather(-1, token_ids[:, None])[:, 0] - lse_p
    p = (x - lse_p[:, None]).exp_()  # (R, V)
    mean_p = (p * x.clamp_min(lowest)).sum(-1)
    entropy = (lse_p - mean_p).clamp_min(0)
    if logits_without is None:
        missing = torch.full_like(entropy, torch.nan)
        return log_prob, missing, entropy, missing
    y = _centred(logits_without)
    lse_q = y.logsumexp(-1)
    log_prob_without = y.gather(-1, token_ids[:, None])[:, 0] - lse_q
    return log_prob, log_prob_without, entropy, _kl(p, x - lse_p[:, None], y - lse_q[:, None])


def _kl(p: Tensor, log_p: Tensor, log_q: Tensor) -> Tensor:
    """KL(p || q) of each row as sum p d + q - p with d = ln p - ln q: no term is negative, so nothing cancels."""
    impossible = ((log_q < _EXCLUDED) & (p > 0)).any(-1)
    d = (log_p - log_q).nan_to_num(nan=0.0).clamp(-_WIDEST, _WIDEST)  # NaN: excluded by both
    terms = torch.where(d < -_STEEP, p * (d - 1) + log_q.exp(), p * (d + torch.expm1(-d)))
    return terms.sum(-1).clamp_min(0).masked_fill(impossible, torch.inf)


def _centred(logits: Tensor) -> Tensor:
    # An offset common to a row changes nothing but costs digits: GPT-2's logits lie around -100.
    x = logits.float()
    return x - x.amax(-1, keepdim=True)


def context_sensitivity_ratio(log_prob: Tensor, log_prob_without_context: Tensor) -> Tensor:
    """Return REFIND's ratio ``log p(t | D, q, t<i) / (log p(t | q, t<i) + 1e-8)``, shape (T,), no unit."""
    return log_prob / (log_prob_without_context + _CSR_FLOOR)
