"""A monitor that keeps what its sentences were scored by, and responses that any model writes."""

from collections.abc import Sequence

import torch
from families import Family
from transformers.generation import LogitsProcessor, LogitsProcessorList

from syncheck import Monitor, MonitorConfig, RagPrompt, SentenceScore
from syncheck.results.types import SentenceSignals
from syncheck.scoring import SentenceScorer

TEXT = " He is a player. Did he? He played."
"""Three sentences of 6, 4 and 4 tokens, each of which carries text."""


class RecordingScorer(SentenceScorer):
    def __init__(self, prompt: RagPrompt, **options) -> None:
        super().__init__(prompt, **options)
        self.signals: list[SentenceSignals] = []

    def answers(self, answers: Sequence[Sequence[SentenceSignals]], **options) -> list[list[SentenceScore]]:
        self.signals += [sentence for answer in answers for sentence in answer]
        return super().answers(answers, **options)


class RecordingMonitor(Monitor):
    """``scorers``: one for each response, with the signals it was given."""

    scorers: list[RecordingScorer]

    @classmethod
    def of(cls, family: Family, model=None) -> "RecordingMonitor":
        config = MonitorConfig(schema="syncheck.v3", layers=family.layers)
        monitor = cls(model or family.model, family.tokenizer, config=config)
        monitor.scorers = []
        return monitor

    def scorer(self, prompt: RagPrompt) -> RecordingScorer:
        scorer = RecordingScorer(prompt, config=self.config, aggregator=self.aggregator, aligner=self.aligner)
        self.scorers.append(scorer)
        return scorer


class RowScripts(LogitsProcessor):
    """Leaves each row one token at each step: the next of its script, then the end of the text."""

    def __init__(self, scripts: Sequence[Sequence[int]], end: int) -> None:
        self.scripts, self.end = scripts, end
        self.width: int | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if self.width is None:
            self.width = input_ids.shape[1]
        step = input_ids.shape[1] - self.width
        scores.fill_(-torch.inf)  # in place, which must not reach the signals
        for row, script in enumerate(self.scripts):
            scores[row, script[step] if step < len(script) else self.end] = 0.0
        return scores


def scripted(family: Family, *texts: str) -> tuple[list[list[int]], LogitsProcessorList]:
    """Return the ids of the texts, and processors that make any loop write them, one a row."""
    ids = [family.encode(text) for text in texts]
    return ids, LogitsProcessorList([RowScripts(ids, family.tokenizer.eos_token_id)])
