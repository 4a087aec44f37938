"""Choice of a token: the likeliest, or one from the nucleus, of logits or of their contrast without the context."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

_FIRST_LOOK = 256
"""Number of most likely tokens that are searched first for the nucleus, which is rarely wider."""


def nucleus(scores: Tensor, *, temperature: float, top_p: float) -> tuple[Tensor, Tensor]:
    """Find the most likely tokens that together reach ``top_p``.

    Parameters
    ----------
    scores
        (B, V) float32, not normalised; -inf for tokens that are not allowed.
    temperature
        Divides the scores; above 0.
    top_p
        Probability, in (0, 1], that the tokens together reach.

    Returns
    -------
    probabilities : Tensor of shape (B, n), float32
        In descending order, 0 after the nucleus. They are not normalised: the sum of a row is the probability of its
        nucleus, at least ``top_p``.
    token_ids : Tensor of shape (B, n), int64

    Notes
    -----
    A token is in the nucleus if the tokens more likely than it do not reach ``top_p`` together, as with
    ``TemperatureLogitsWarper`` and then ``TopPLogitsWarper`` of transformers.
    """
    scaled = scores / temperature
    total = scaled.logsumexp(-1, keepdim=True)
    size = min(_FIRST_LOOK, scaled.shape[-1])
    while True:
        values, token_ids = scaled.topk(size, dim=-1)  # (B, n)
        probabilities = (values - total).exp()
        before = probabilities.cumsum(-1) - probabilities
        is_complete = size == scaled.shape[-1] or bool((before[:, -1] >= top_p).all())
        if is_complete:
            return probabilities.masked_fill(before >= top_p, 0.0), token_ids
        size = scaled.shape[-1]


def sample_nucleus(
    scores: Tensor, *, temperature: float, top_p: float, generator: torch.Generator | None = None
) -> Tensor:
    """Draw a token (B,), int64, from the nucleus of each row, with one uniform number each; see :func:`nucleus`."""
    probabilities, token_ids = nucleus(scores, temperature=temperature, top_p=top_p)
    share = probabilities.cumsum(-1)  # (B, n)
    drawn = torch.rand(len(scores), 1, generator=generator, device=scores.device) * share[:, -1:]
    # The last token of the nucleus where rounding leaves nothing above what was drawn.
    places = torch.searchsorted(share, drawn, right=True).minimum((probabilities > 0).sum(-1, keepdim=True) - 1)
    return token_ids.gather(-1, places)[:, 0]


def contrast_scores(
    with_context: Tensor, without_context: Tensor, *, alpha: float, plausibility: float = 0.0
) -> Tensor:
    """Compute the scores from whose softmax context-aware decoding samples.

    Parameters
    ----------
    with_context, without_context
        Raw logits (B, V).
    alpha
        Strength, at least 0, with which the context's influence is amplified; 0 gives ``with_context``.
    plausibility
        Share, in [0, 1], of the likeliest token's probability with the context; tokens below it get -inf.

    Returns
    -------
    Tensor of shape (B, V), float32

    Notes
    -----
    ``(1 + alpha) * logits(y | c, x) - alpha * logits(y | x)`` (Shi et al., 2024, equation 2); the plausibility
    constraint is that of contrastive decoding (Li et al., 2023). Tokens with -inf with the context keep it.
    """
    known, other = with_context.float(), without_context.float()
    scores = (1 + alpha) * known - alpha * other if alpha else known
    least = known.amax(-1, keepdim=True) + math.log(plausibility) if plausibility else torch.tensor(-math.inf)
    return scores.masked_fill((known < least.to(known.device)) | known.isneginf(), -math.inf)


def contrasted(
    with_context: Tensor, without_context: Callable[[], Tensor], *, alpha: float, plausibility: float
) -> Tensor:
    """Compute :func:`contrast_scores`, asking for the logits (B, V) without the context only if they can decide.

    They cannot if each row has only one plausible token, as in four of five steps of the bundled model at 0.02. A
    branch that is not asked reads those tokens later, several in one pass.
    """
    alone = contrast_scores(with_context, with_context, alpha=0.0, plausibility=plausibility)
    is_decided = bool(((alone > -math.inf).sum(-1) == 1).all())
    if is_decided or not alpha:
        return alone
    scores = contrast_scores(with_context, without_context(), alpha=alpha)
    return scores.masked_fill_(alone.isneginf(), -math.inf)


def likeliest(scores: Tensor) -> Tensor:
    """Find the likeliest token (B,) of each row."""
    return scores.argmax(-1)
