"""Nucleus sampling with a temperature, without sorting the whole vocabulary at every step."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["nucleus", "sample_nucleus"]

_FIRST_LOOK = 256
"""Most likely tokens that are looked at first; the nucleus is rarely wider."""


def nucleus(scores: Tensor, *, temperature: float, top_p: float) -> tuple[Tensor, Tensor]:
    """Return the most likely tokens that together reach ``top_p``.

    Parameters
    ----------
    scores
        (B, V) float32, not normalised; -inf for what is not allowed.
    temperature
        Above 0.
    top_p
        In (0, 1].

    Returns
    -------
    probabilities : Tensor of shape (B, n)
        Falling; 0 behind the nucleus, and not normalised: their sum is the nucleus' share, at least ``top_p``.
    token_ids : Tensor of shape (B, n)

    Notes
    -----
    A token is in the nucleus when those more likely than it do not reach ``top_p``, as with transformers'
    ``TemperatureLogitsWarper`` and ``TopPLogitsWarper`` in turn.
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
    """Draw a token (B,) from the nucleus of each row, with one uniform number each; see :func:`nucleus`."""
    probabilities, token_ids = nucleus(scores, temperature=temperature, top_p=top_p)
    share = probabilities.cumsum(-1)  # (B, n)
    drawn = torch.rand(len(scores), 1, generator=generator, device=scores.device) * share[:, -1:]
    # The last token of the nucleus where rounding leaves nothing above what was drawn.
    places = torch.searchsorted(share, drawn, right=True).minimum((probabilities > 0).sum(-1, keepdim=True) - 1)
    return token_ids.gather(-1, places)[:, 0]
