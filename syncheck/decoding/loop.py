"""The loop that decodes: token by token, all rows in lockstep."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from syncheck.decoding.plan import DecodingPlan, StopReason
from syncheck.decoding.rows import Row
from syncheck.decoding.session import DecodingSession

__all__ = ["Step", "decode"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of B rows.

    Attributes
    ----------
    token_ids : tuple of int
        What was chosen; padding for rows that were over before.
    texts : tuple of str
        What each row's token completed; empty for an end-of-text token.
    stops : tuple of StopReason or None
        Why each row is over; None while it is not.
    """

    token_ids: tuple[int, ...]
    texts: tuple[str, ...]
    stops: tuple[StopReason | None, ...]


def decode(session: DecodingSession, plan: DecodingPlan, *, generator: torch.Generator | None = None) -> Iterator[Step]:
    """Decode until every row is over.

    Pauses after each token, before it is fed to the model: whoever iterates can look at ``session.rows`` and measure
    a sentence before the next step costs anything. A row is over when a stopping criterion says so of it; it is then
    filled with the padding token, as ``generate`` does where there is an end-of-text token.

    The first logits of a row that are not finite are said in the log. The row ends there, ``not_finite``, unless
    processors have left it a token all the same.
    """
    stops: list[StopReason | None] = [None] * len(session.rows)
    if plan.streamer is not None:
        plan.streamer.put(session.sequences().cpu())
    warned: set[int] = set()
    while None in stops:
        _warn(session.next_logits, stops, warned)
        token_ids, scores, lost = plan.choose(session.sequences(), session.next_logits, generator)
        over = torch.tensor([stop is not None for stop in stops], device=token_ids.device)
        token_ids = token_ids.masked_fill(over, plan.pad_token)
        texts = session.push(token_ids, end_tokens=plan.end_tokens)
        if plan.streamer is not None:
            plan.streamer.put(token_ids.cpu())
        fired = plan.criteria(session.sequences(), scores).tolist()
        for index, row in enumerate(session.rows):
            if stops[index] is None:
                stops[index] = "not_finite" if lost[index] else _reason(session, plan, row, has_fired=fired[index])
                if stops[index] is not None:
                    row.end()
        yield Step(tuple(token_ids.tolist()), tuple(texts), tuple(stops))
    if plan.streamer is not None:
        plan.streamer.end()


def _reason(session: DecodingSession, plan: DecodingPlan, row: Row, *, has_fired: bool) -> StopReason | None:
    if row.ended:
        return "end_of_text"
    if has_fired:
        return "length" if session.sequences().shape[1] >= plan.config.max_length else "criteria"
    return "window" if session.room is not None and session.room <= 0 else None


def _warn(logits: Tensor, stops: list[StopReason | None], warned: set[int]) -> None:
    """Say which rows that go on have logits (B, V) that are no distribution, once of each."""
    for row, is_finite in enumerate(logits.amax(-1).isfinite().tolist()):  # amax is NaN where there is one
        if not is_finite and stops[row] is None and row not in warned:
            warned.add(row)
            logger.warning(
                "the model's logits are not finite in row %d: its sentence gets the status 'failed'. Check the "
                "weights, or run the model in another type, bfloat16 or float32",
                row,
            )
