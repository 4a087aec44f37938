"""Context-aware decoding (CAD): amplifies the context's effect on the logits at every token."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from fod.config import check_share, check_strength
from fod.drop_in import AnswerGenerator, GeneratorOutput, event_of, ids_of
from fod.token_choice import contrasted
from syncheck import Event, Monitor, RagPrompt
from syncheck.decoding import GenerationSetup, seeded_generator

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class CADGenerator(AnswerGenerator[GeneratorOutput]):
    """Decodes from a contrast of the distributions with and without the context (Shi et al., 2024).

    The monitor scores the sentences and changes nothing. Signals and scores are those of the raw logits with the
    context, as everywhere. There is no threshold, so sentences are released whatever their scores.

    Parameters
    ----------
    model, tokenizer, monitor
        The monitor that scores the sentences, with its model and tokenizer.
    alpha, plausibility
        Strength of the contrast and plausibility constraint; see :func:`fod.contrast_scores`.

    Raises
    ------
    InputError
        If a parameter is outside its range, or model and monitor do not belong together.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        monitor: Monitor,
        *,
        alpha: float = 0.5,
        plausibility: float = 0.0,
    ) -> None:
        super().__init__(model, tokenizer, monitor)
        check_strength(alpha, "alpha")
        check_share(plausibility, "plausibility")
        self.alpha = alpha
        self.plausibility = plausibility

    def _told(self, prompt: RagPrompt, plan: GenerationSetup, seed: int) -> Generator[Event, None, GeneratorOutput]:
        started = time.perf_counter()
        generator = seeded_generator(self.monitor.model, seed)
        with self.monitor.session(prompt) as watched:
            session = watched.decoding

            def adjust(logits: Tensor, _: Sequence[int]) -> Tensor:
                return contrasted(
                    logits, lambda: session.contrast_logits, alpha=self.alpha, plausibility=self.plausibility
                )

            (row,) = session.rows
            for (sentences,) in watched.decode(plan, generator=generator, adjust=adjust):
                for sentence in sentences:
                    yield event_of(sentence, row)
            (report,) = watched.reports(seconds=time.perf_counter() - started)
        return GeneratorOutput(
            sequences=self._sequences(prompt, ids_of(row)), report=report, sampled_tokens=len(row.token_ids), dropped=()
        )
