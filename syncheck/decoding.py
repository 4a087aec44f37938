"""How the next token is chosen: the arguments of ``model.generate``, prepared by ``model.generate`` itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.generation import (
    GenerationConfig,
    LogitsProcessorList,
    StoppingCriteriaList,
    StopStringCriteria,
)
from transformers.generation.streamers import BaseStreamer

from syncheck.errors import InputError
from syncheck.session import DecodingSession
from syncheck.types import RagPrompt

__all__ = ["DecodingPlan", "StopReason", "decode", "end_tokens_of", "plan_of", "prepare"]

StopReason = Literal["end_of_text", "length", "criteria", "window"]
"""An end-of-text token, ``max_new_tokens``, another stopping criterion, or a full window."""


@dataclass(frozen=True, slots=True)
class DecodingPlan:
    """What ``generate`` made of its arguments.

    Attributes
    ----------
    processors
        Applied to a float32 copy of the raw logits, in order; the signals never see their output.
    criteria
        Any that fires ends the response.
    config
        The merged generation config.
    end_tokens
        Token ids that end a response; may be empty.
    streamer
        Is given the prompt's ids, then each token's; None for none.
    """

    processors: LogitsProcessorList
    criteria: StoppingCriteriaList
    config: GenerationConfig
    end_tokens: tuple[int, ...]
    streamer: BaseStreamer | None = None

    @property
    def pad_token(self) -> int:
        """Id that fills finished rows."""
        pad = self.config.pad_token_id
        return int(pad) if pad is not None else (self.end_tokens[0] if self.end_tokens else 0)

    def choose(self, sequences: Tensor, logits: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Choose a token for each row, as ``generate`` does.

        Returns
        -------
        token_ids : Tensor of shape (B,)
        scores : Tensor of shape (B, V), float32
            What the processors made of the logits.
        """
        scores: Tensor = self.processors(sequences, logits.to(torch.float32, copy=True))
        if not self.config.do_sample:
            return scores.argmax(-1), scores
        return torch.multinomial(scores.softmax(-1), 1, generator=generator)[:, 0], scores


def plan_of(
    generation_config: GenerationConfig,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    streamer: BaseStreamer | None,
) -> DecodingPlan:
    """Check what ``generate`` hands to a custom decoding callable and wrap it.

    Raises
    ------
    InputError
        For beam search and several sequences, which this decoder does not do.
    """
    for name in ("num_beams", "num_return_sequences"):
        value = getattr(generation_config, name, None)
        if value is not None and value > 1:
            raise InputError(f"{name} must be 1 here; found {value}. Call once for each response, with its own seed")
    end_tokens = _configured_ends(generation_config)
    return DecodingPlan(logits_processor, stopping_criteria, generation_config, end_tokens, streamer)


def end_tokens_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Return the tokens that end a response of this model, by its generation config and its tokenizer."""
    own = tokenizer.eos_token_id
    return frozenset((*_configured_ends(model.generation_config), *(() if own is None else (int(own),))))


def _configured_ends(generation_config: GenerationConfig) -> tuple[int, ...]:
    ends = generation_config.eos_token_id
    return () if ends is None else tuple(int(e) for e in (ends if isinstance(ends, list) else [ends]))


def prepare(
    model: PreTrainedModel,
    prompt: RagPrompt,
    *,
    streamer: BaseStreamer | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    stop_strings: str | list[str] | None = None,
    **kwargs: Any,  # noqa: ANN401
) -> DecodingPlan:
    """Let ``model.generate`` turn keyword arguments into processors, criteria and a config.

    Parameters
    ----------
    model
        The model that will decode.
    prompt
        Its prompt.
    streamer
        Kept in the plan.
    tokenizer, stop_strings
        Strings that end a response, and the tokenizer to find them with.
    **kwargs
        Anything ``model.generate`` takes.

    Raises
    ------
    InputError
        For ``num_beams`` or ``num_return_sequences`` above 1, and for ``stop_strings`` without ``tokenizer``.
    """
    if stop_strings is not None:
        # generate drops the tokenizer when it is given a callable, so the criterion is made here.
        if tokenizer is None:
            raise InputError("stop_strings need the tokenizer; pass tokenizer=..., as to model.generate")
        given = kwargs.get("stopping_criteria") or ()
        kwargs["stopping_criteria"] = StoppingCriteriaList([*given, StopStringCriteria(tokenizer, stop_strings)])

    def capture(
        model: PreTrainedModel,
        input_ids: Tensor,
        logits_processor: LogitsProcessorList,
        stopping_criteria: StoppingCriteriaList,
        generation_config: GenerationConfig,
        **_: Any,  # noqa: ANN401
    ) -> DecodingPlan:
        return plan_of(generation_config, logits_processor, stopping_criteria, streamer)

    plan: DecodingPlan = model.generate(**prompt.inputs(model.device), custom_generate=capture, **kwargs)
    return plan


def decode(
    session: DecodingSession, plan: DecodingPlan, *, generator: torch.Generator | None = None
) -> Iterator[tuple[int, str, StopReason | None]]:
    """Decode one row token by token.

    Pauses after each token, before it is fed to the model: whoever iterates can look at
    ``session.rows[0].closed`` and measure a sentence before the next step costs anything.

    Yields
    ------
    token_id : int
    text : str
        What the token completed; empty for an end-of-text token.
    stop : StopReason or None
        Set on the last token.
    """
    row = session.rows[0]
    if plan.streamer is not None:
        plan.streamer.put(session.sequences().cpu())
    stop: StopReason | None = None
    while stop is None:
        token, scores = plan.choose(session.sequences(), session.next_logits, generator)
        (text,) = session.push(token, end_tokens=plan.end_tokens)
        if plan.streamer is not None:
            plan.streamer.put(token.cpu())
        if row.ended:
            stop = "end_of_text"
        elif bool(plan.criteria(session.sequences(), scores).any()):
            stop = "length" if session.sequences().shape[1] >= plan.config.max_length else "criteria"
        elif session.room is not None and session.room <= 0:
            stop = "window"
        if stop is not None:
            row.end()
        yield int(token), text, stop
    if plan.streamer is not None:
        plan.streamer.end()
