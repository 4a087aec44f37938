"""Abstention: no answer is given if one of its sentences is below the threshold."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TYPE_CHECKING

import torch

from fod.config import ABSTENTION, Threshold, single_threshold
from fod.drop_in import AnswerGenerator, GeneratorOutput, event_of, ids_of
from fod.search import passes
from syncheck import Event, Monitor, NoticeEvent, RagPrompt, SentenceScore
from syncheck.base.errors import NotReadyError
from syncheck.decoding import GenerationSetup, ScoredAnswer, ScoredSession, Transcript, seeded_generator

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class AbstainGenerator(AnswerGenerator[GeneratorOutput]):
    """Gives an answer only if each of its sentences reaches the threshold (paper, section 4.3).

    Decoding stops at the first sentence that does not. ``report.stop`` is then ``"abstained"``, the report has the
    message and no sentence, and ``dropped`` has the sentences that were written.

    Parameters
    ----------
    model, tokenizer, monitor
        A trained monitor, with its model and tokenizer.
    threshold
        In [0, 1]; None takes the monitor's tau_1, ``"calibrated"`` the score that ``syncheck calibrate --risk`` chose,
        with the guarantee described at :class:`fod.Thresholds`. The paper uses 0.7.
    message
        Text that is given instead; an empty string gives an empty answer.

    Raises
    ------
    NotReadyError
        If the monitor has no aggregator, or no calibrated threshold where one is requested.
    InputError
        If the threshold is outside its range, or model and monitor do not belong together.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        monitor: Monitor,
        *,
        threshold: Threshold | None = None,
        message: str = ABSTENTION,
    ) -> None:
        super().__init__(model, tokenizer, monitor)
        if monitor.aggregator is None:
            raise NotReadyError("the monitor has no aggregator, so no sentence has a score; train one with Monitor.fit")
        self.thresholds = single_threshold(monitor, threshold=threshold)
        self.message = message

    def _told(self, prompt: RagPrompt, plan: GenerationSetup, seed: int) -> Generator[Event, None, GeneratorOutput]:
        started = time.perf_counter()
        generator = seeded_generator(self.monitor.model, seed)
        with self.monitor.session(prompt) as watched:
            stop = self._written(watched, plan, generator)
            seconds = time.perf_counter() - started
            row, (answer,) = watched.decoding.rows[0], watched.answers
            dropped: tuple[SentenceScore, ...] = ()
            if stop == "abstained":
                dropped = tuple(answer.sentences)
                report = ScoredAnswer(watched.scorer).report(Transcript(self.message, ()), stop=stop, seconds=seconds)
                ids = self.tokenizer(self.message, add_special_tokens=False)["input_ids"] if self.message else []
            else:
                (report,) = watched.reports(stops=[stop], seconds=seconds)
                ids = ids_of(row)
        if stop == "abstained" and self.message:
            yield NoticeEvent(self.message, tuple(ids))
        for sentence in report.sentences:
            yield event_of(sentence, row)
        return GeneratorOutput(
            sequences=self._sequences(prompt, ids),
            report=report,
            sampled_tokens=len(row.token_ids),
            dropped=dropped,
            message=(self.message or None) if stop == "abstained" else None,
            thresholds=self.thresholds,
        )

    def _written(self, watched: ScoredSession, plan: GenerationSetup, generator: torch.Generator) -> str | None:
        """Write the answer up to the first sentence that does not pass; return why it ended."""
        for (sentences,) in watched.decode(plan, generator=generator):
            if not all(passes(sentence, self.thresholds.backtrack) for sentence in sentences):
                return "abstained"
        return watched.stops[0]
