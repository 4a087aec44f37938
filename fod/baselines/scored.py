"""A decoding loop whose sentences are scored as they come, for decoders that choose token by token."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from transformers.generation import LogitsProcessorList, TemperatureLogitsWarper, TopPLogitsWarper

from syncheck import SentenceEvent, SentenceScore
from syncheck.decoding import GenerationSetup, Row, ScoredSession, decode

__all__ = ["ScoredDecoding", "event_of", "ids_of", "sampling"]


class ScoredDecoding:
    """Decodes until every row is over, giving after each round the sentences that each row has closed in it.

    Parameters
    ----------
    watched
        A session that nothing has been decoded in yet.
    plan
        How tokens are chosen.
    generator
        Of the sampling; None uses torch's own.

    Attributes
    ----------
    stops : sequence of str or None
        Why each row has stopped; known once the iteration is over.
    """

    def __init__(self, watched: ScoredSession, plan: GenerationSetup, *, generator: torch.Generator | None) -> None:
        self.stops: Sequence[str | None] = ()
        self._watched = watched
        self._plan = plan
        self._generator = generator

    def __iter__(self) -> Iterator[list[list[SentenceScore]]]:
        for step in decode(self._watched.decoding, self._plan, generator=self._generator):
            self.stops = step.stops
            if self._watched.is_due():
                yield self._watched.score_round()


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
    return SentenceEvent(sentence, tuple(row.token_ids[sentence.token_start : sentence.token_end]))
