"""The loop that decodes: token by token, all rows in lockstep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from syncheck.decoding.plan import DecodingPlan, StopReason
from syncheck.decoding.session import DecodingSession

__all__ = ["Step", "decode"]


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
    """
    stops: list[StopReason | None] = [None] * len(session.rows)
    if plan.streamer is not None:
        plan.streamer.put(session.sequences().cpu())
    while None in stops:
        token_ids, scores = plan.choose(session.sequences(), session.next_logits, generator)
        over = torch.tensor([stop is not None for stop in stops], device=token_ids.device)
        token_ids = token_ids.masked_fill(over, plan.pad_token)
        texts = session.push(token_ids, end_tokens=plan.end_tokens)
        if plan.streamer is not None:
            plan.streamer.put(token_ids.cpu())
        fired = plan.criteria(session.sequences(), scores).tolist()
        for index, row in enumerate(session.rows):
            if stops[index] is None:
                stops[index] = _reason(session, plan, has_ended=row.ended, has_fired=fired[index])
                if stops[index] is not None:
                    row.end()
        yield Step(tuple(token_ids.tolist()), tuple(texts), tuple(stops))
    if plan.streamer is not None:
        plan.streamer.end()


def _reason(session: DecodingSession, plan: DecodingPlan, *, has_ended: bool, has_fired: bool) -> StopReason | None:
    if has_ended:
        return "end_of_text"
    if has_fired:
        return "length" if session.sequences().shape[1] >= plan.config.max_length else "criteria"
    return "window" if session.room is not None and session.room <= 0 else None
