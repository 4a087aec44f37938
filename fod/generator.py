"""Faithfulness-oriented decoding as a drop-in for ``model.generate``."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Literal, overload

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.generation import GenerationConfig, LogitsProcessorList, StoppingCriteriaList
from transformers.utils import ModelOutput

from fod.config import DEFAULTS, FODConfig
from fod.propose import SentenceProposer
from fod.search import search
from fod.types import SearchResult
from syncheck import (
    DecodingPlan,
    InputError,
    Monitor,
    NotReadyError,
    RagPrompt,
    Report,
    SentenceScore,
    WrongTypeError,
    plan_of,
    prepare,
    require_rewindable,
)

__all__ = ["FODGenerator", "FODOutput"]


@dataclass
class FODOutput(ModelOutput):  # type: ignore[misc]
    """What ``generate(return_dict_in_generate=True)`` returns.

    Attributes
    ----------
    sequences : Tensor of shape (1, prompt + response), int64
    report : Report
        The answer with its scores; ``report.stop`` says why it ended.
    search : SearchResult
        How the answer came about: what was taken back and each round's samples.
    sampled_tokens : int
        Tokens decoded, thrown away or not.
    """

    # ModelOutput allows one field without a default; all are always set.
    sequences: Tensor
    report: Report = field(default=None)  # type: ignore[assignment]
    search: SearchResult = field(default=None)  # type: ignore[assignment]
    sampled_tokens: int = field(default=None)  # type: ignore[assignment]

    @property
    def dropped(self) -> tuple[SentenceScore, ...]:
        """Sentences that stage 1 took back."""
        return self.search.dropped


class FODGenerator:
    """Decodes so that every sentence it releases reaches a score (paper, section 3.3, Algorithm 1).

    Parameters
    ----------
    model, tokenizer
        Those of the monitor.
    monitor
        A trained monitor.
    backtrack_threshold, prune_threshold
        tau_1 and tau_2 in [0, 1]; None takes those the monitor was saved with.
    beam_size, samples_per_step
        K and S.
    temperature, top_p
        Sampling of stage 2.
    until
        ``any``: stop when a kept beam has ended, as the paper does; ``all``: when all have.
    max_sentences
        Most sentences of an answer.

    Raises
    ------
    NotReadyError
        If the monitor has no aggregator.
    InputError
        If a parameter is outside its range, or model and monitor do not belong together.
    UnsupportedModelError
        If the model's state cannot be rewound.

    Examples
    --------
    >>> fod = FODGenerator(model, tokenizer, monitor)  # doctest: +SKIP
    >>> ids = fod.generate(prompt, max_new_tokens=200, seed=0)  # doctest: +SKIP
    >>> tokenizer.decode(ids[0, len(prompt.with_context_ids):])  # doctest: +SKIP
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        monitor: Monitor,
        *,
        backtrack_threshold: float | None = None,
        prune_threshold: float | None = None,
        beam_size: int = DEFAULTS.beam_size,
        samples_per_step: int = DEFAULTS.samples_per_step,
        temperature: float = DEFAULTS.temperature,
        top_p: float = DEFAULTS.top_p,
        until: Literal["any", "all"] = DEFAULTS.until,
        max_sentences: int = DEFAULTS.max_sentences,
    ) -> None:
        if model is not monitor.model:
            raise InputError("model must be the one the monitor watches; pass monitor.model")
        if monitor.aggregator is None:
            raise NotReadyError("the monitor has no aggregator, so no sentence has a score; train one with Monitor.fit")
        require_rewindable(model)
        saved = monitor.config
        self.monitor = monitor
        self.tokenizer = tokenizer
        self.config = FODConfig(
            backtrack_threshold=saved.backtrack_threshold if backtrack_threshold is None else backtrack_threshold,
            prune_threshold=saved.prune_threshold if prune_threshold is None else prune_threshold,
            beam_size=beam_size,
            samples_per_step=samples_per_step,
            temperature=temperature,
            top_p=top_p,
            until=until,
            max_sentences=max_sentences,
        )

    @overload
    def generate(
        self, prompt: RagPrompt, *, seed: int = 0, return_dict_in_generate: Literal[False] = False, **kwargs: Any
    ) -> Tensor: ...

    @overload
    def generate(
        self, prompt: RagPrompt, *, seed: int = 0, return_dict_in_generate: Literal[True], **kwargs: Any
    ) -> FODOutput: ...

    def generate(
        self,
        prompt: RagPrompt,
        *,
        seed: int = 0,
        return_dict_in_generate: bool = False,
        **kwargs: Any,
    ) -> Tensor | FODOutput:
        """Generate an answer.

        Parameters
        ----------
        prompt
            From ``monitor.prompt``; it must have a context.
        seed
            Of stage 2; the same seed gives the same answer.
        return_dict_in_generate
            Return a :class:`FODOutput` instead of the ids alone.
        **kwargs
            What ``model.generate`` takes. Stage 1 is greedy whatever ``do_sample`` says.

        Returns
        -------
        Tensor of shape (1, prompt + response), int64, or FODOutput
            Like ``model.generate``; an answer of which nothing passed is the prompt alone.

        Raises
        ------
        InputError
            If the prompt has no context, or for beam search, several sequences and streamers.
        PromptError
            If the prompt does not fit the model's window.
        """
        if not isinstance(prompt, RagPrompt):
            raise WrongTypeError(f"prompt must be a RagPrompt, from monitor.prompt(...); found {type(prompt).__name__}")
        if kwargs.get("streamer") is not None:
            raise InputError(
                "a streamer shows text that may still be taken back; leave it out and print the answer, or use "
                "monitor.stream for greedy decoding"
            )
        plan = _for_one_answer(prepare(self.monitor.model, prompt, **kwargs))
        output = self._run(prompt, plan, seed)
        return output if return_dict_in_generate else output.sequences

    def __call__(
        self,
        model: PreTrainedModel,
        input_ids: Tensor,
        logits_processor: LogitsProcessorList,
        stopping_criteria: StoppingCriteriaList,
        generation_config: GenerationConfig,
        prompt: RagPrompt | None = None,
        **model_kwargs: Any,  # noqa: ANN401 - what generate prepares for its own loop; the session has its own
    ) -> Tensor | FODOutput:
        """Serve ``model.generate(**prompt.inputs(), custom_generate=fod, prompt=prompt)``."""
        if prompt is None or model is not self.monitor.model:
            raise InputError("pass prompt=..., and call generate of the model the monitor watches")
        plan = _for_one_answer(plan_of(generation_config, logits_processor, stopping_criteria, None))
        if input_ids.tolist() != [list(prompt.with_context_ids)]:
            raise InputError("input_ids are not those of the prompt; pass **prompt.inputs()")
        output = self._run(prompt, plan, 0)
        return output if generation_config.return_dict_in_generate else output.sequences

    def _run(self, prompt: RagPrompt, plan: DecodingPlan, seed: int) -> FODOutput:
        if not prompt.has_context:
            raise InputError("faithfulness is to a context, but the prompt has none; pass passages that are not empty")
        started = time.perf_counter()
        generator = torch.Generator(device=self.monitor.model.device).manual_seed(seed)
        with self.monitor.session(prompt) as watched:
            propose = SentenceProposer(watched, plan, self.config, generator=generator)
            result = search(propose, self.config)
            report = propose.report(result.beam, stop=result.stop, seconds=time.perf_counter() - started)
        ids = [*prompt.with_context_ids, *propose.response_ids(result.beam)]
        sequences = torch.tensor([ids], device=self.monitor.model.device)
        return FODOutput(sequences=sequences, report=report, search=result, sampled_tokens=propose.sampled_tokens)


def _for_one_answer(plan: DecodingPlan) -> DecodingPlan:
    several = plan.config.num_return_sequences or 1
    if several > 1:
        raise InputError(f"num_return_sequences must be 1; found {several}. Call once for each answer, with its seed")
    return plan
