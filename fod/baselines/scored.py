"""What decoders share that choose token by token: sampling, and the ids and events of a row."""

from __future__ import annotations

import copy
from dataclasses import replace

from transformers.generation import LogitsProcessorList, TemperatureLogitsWarper, TopPLogitsWarper

from syncheck import SentenceEvent, SentenceScore
from syncheck.decoding import GenerationSetup, Row

__all__ = ["event_of", "ids_of", "sampling"]


def sampling(plan: GenerationSetup, *, temperature: float, top_p: float) -> GenerationSetup:
    """Return the plan with sampling from a nucleus behind its own processors."""
    config = copy.deepcopy(plan.config)
    config.do_sample = True
    warpers = [TemperatureLogitsWarper(temperature), TopPLogitsWarper(top_p)]
    return replace(plan, config=config, processors=LogitsProcessorList([*plan.processors, *warpers]))


def ids_of(row: Row) -> list[int]:
    """Return a row's tokens, with the end-of-text token that ended it."""
    return [*row.token_ids, *(() if row.end_token is None else (row.end_token,))]


def event_of(sentence: SentenceScore, row: Row) -> SentenceEvent:
    """Return the event of a row's sentence."""
    return SentenceEvent.of(sentence, row.token_ids, row.text)
