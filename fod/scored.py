"""A decoding loop whose sentences are scored as they come, for decoders that choose token by token."""

from __future__ import annotations

import copy
from collections.abc import Generator, Sequence
from dataclasses import replace

import torch
from transformers.generation import LogitsProcessorList, TemperatureLogitsWarper, TopPLogitsWarper

from fod.events import ReleaseEvent
from syncheck import DecodingPlan, MonitoredSession, Row, SentenceScore, decode

__all__ = ["ids_of", "release_of", "sampling", "scored"]

Stops = Sequence[str | None]


def scored(
    watched: MonitoredSession, plan: DecodingPlan, *, generator: torch.Generator | None
) -> Generator[list[list[SentenceScore]], None, Stops]:
    """Decode until every row is over; yields the sentences that each row has closed, returns why the rows stopped."""
    stops: Stops = ()
    for step in decode(watched.decoding, plan, generator=generator):
        stops = step.stops
        if watched.is_due():
            yield watched.judge_round()
    return stops


def sampling(plan: DecodingPlan, *, temperature: float, top_p: float) -> DecodingPlan:
    """Return the plan with sampling from a nucleus behind its own processors."""
    config = copy.deepcopy(plan.config)
    config.do_sample = True
    warpers = [TemperatureLogitsWarper(temperature), TopPLogitsWarper(top_p)]
    return replace(plan, config=config, processors=LogitsProcessorList([*plan.processors, *warpers]))


def ids_of(row: Row) -> list[int]:
    """Return a row's tokens, with the end-of-text token that ended it."""
    return [*row.token_ids, *(() if row.end_token is None else (row.end_token,))]


def release_of(sentence: SentenceScore, row: Row) -> ReleaseEvent:
    """Return the event of a row's sentence."""
    return ReleaseEvent(sentence, tuple(row.token_ids[sentence.token_start : sentence.token_end]))
