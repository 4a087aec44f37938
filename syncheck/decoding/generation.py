"""Arguments of ``generate``, prepared once, and stopping criteria of a ``generate`` that is observed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers.generation import GenerationConfig, LogitsProcessorList, StoppingCriteriaList, StopStringCriteria

from syncheck.base.checks import check_choice as check_choice
from syncheck.base.checks import check_count as check_count
from syncheck.base.checks import check_share as check_share
from syncheck.base.errors import InputError, SyncheckError, WrongTypeError
from syncheck.decoding.rows import Sequences
from syncheck.results.types import RagPrompt
from syncheck.signals import check_one_encoding, check_window

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from transformers.generation.streamers import BaseStreamer

_NOT_COLLECTED = ("output_attentions", "output_hidden_states", "output_logits", "output_scores")
_OF_ANOTHER_LOOP = ("assistant_model", "past_key_values", "prompt_lookup_num_tokens")


@dataclass(frozen=True, slots=True)
class GenerationSetup:
    """The arguments of ``generate`` in prepared form."""

    processors: LogitsProcessorList
    """Applied in order to a float32 copy of the raw logits; signals do not depend on them."""
    criteria: StoppingCriteriaList
    """A response ends as soon as one of them says so."""
    config: GenerationConfig
    """The generation config, merged with the keyword arguments."""
    end_tokens: tuple[int, ...]
    """Token ids that end a response; may be empty."""
    streamer: BaseStreamer | None = None
    """Receives the ids of the prompt, then the id of each token."""

    @property
    def pad_token(self) -> int:
        """Id of the token that fills finished rows."""
        pad = self.config.pad_token_id
        return int(pad) if pad is not None else (self.end_tokens[0] if self.end_tokens else 0)

    def choose(self, scores: Tensor, generator: torch.Generator | None) -> Tensor:
        """Choose a token (B,) for each row of scores (B, V), as ``generate`` does."""
        if not self.config.do_sample:
            return scores.argmax(-1)
        return torch.multinomial(scores.softmax(-1), 1, generator=generator)[:, 0]

    def choosable(self, scores: Tensor, logits: Tensor) -> tuple[Tensor, list[bool]]:
        """Make scores (B, V) from which every row can choose a token, and tell for each row whether it is lost.

        A row is lost, and has to end, if its scores, which the processors made from the raw ``logits`` (B, V), have NaN
        or +inf, or exclude every token as the logits do. It is left one token that does not end the text, so that the
        token belongs to a sentence, which gets no score.
        """
        best = scores.amax(-1)  # NaN where there is one
        lost = ~best.isfinite() & ~(best.isneginf() & logits.amax(-1).isfinite())
        is_lost: list[bool] = lost.tolist()
        if any(is_lost):
            known = scores.nan_to_num(nan=math.inf, posinf=torch.finfo(scores.dtype).max)
            known[:, [token for token in self.end_tokens if token < scores.shape[-1]]] = -math.inf
            left = torch.full_like(scores, -math.inf).scatter_(-1, known.argmax(-1, keepdim=True), 0.0)
            scores = torch.where(lost[:, None], left, scores)
        return scores, is_lost


def generation_setup(
    generation_config: GenerationConfig,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    streamer: BaseStreamer | None,
) -> GenerationSetup:
    """Build a setup from the arguments with which ``generate`` calls a ``custom_generate`` callable.

    ``num_beams`` above 1, a ``cache_implementation`` other than ``"dynamic"``, or requested outputs that are not
    collected (attentions, hidden states, logits, scores) raise InputError.
    """
    beams = generation_config.num_beams
    if beams is not None and beams > 1:
        raise InputError(
            f"num_beams must be 1; found {beams}: beam search moves text between rows while it is being scored"
        )
    _check_cache(generation_config.cache_implementation)
    asked = [name for name in _NOT_COLLECTED if getattr(generation_config, name, False)]
    if asked:
        raise InputError(f"{' and '.join(asked)} must be left out: reports and ids are returned without them")
    end_tokens = _configured_ends(generation_config)
    return GenerationSetup(logits_processor, stopping_criteria, generation_config, end_tokens, streamer)


def meets_stop_string(criteria: StoppingCriteriaList, token_ids: Tensor) -> bool:
    """Tell whether a row of ids (1, n), prompt included, ends with a stop string of the criteria."""
    strings = (criterion for criterion in criteria if isinstance(criterion, StopStringCriteria))
    return any(bool(criterion(token_ids, None).any()) for criterion in strings)


def after_end(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, token_ids: Sequence[int]) -> str:
    """Decode the tokens after an end-of-text token, without the padding that generation puts there."""
    padding = model.generation_config.pad_token_id
    written = [token for token in token_ids if token != padding]
    return str(tokenizer.decode(written, skip_special_tokens=True)).strip() if written else ""


def end_tokens_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Collect the ids of the tokens that end a response, from the model's generation config and the tokenizer."""
    own = tokenizer.eos_token_id
    return frozenset((*_configured_ends(model.generation_config), *(() if own is None else (int(own),))))


def _configured_ends(generation_config: GenerationConfig) -> tuple[int, ...]:
    ends = generation_config.eos_token_id
    return () if ends is None else tuple(int(e) for e in (ends if isinstance(ends, list) else [ends]))


def _check_cache(implementation: str | None) -> None:
    if implementation not in (None, "dynamic"):
        raise InputError(
            f"cache_implementation must be left out; found {implementation!r}: decoding keeps its own caches, which "
            "grow without copies and can be cut back. To use another, attach the monitor to model.generate"
        )


def prepare_generation(
    model: PreTrainedModel,
    prompts: RagPrompt | Sequence[RagPrompt],
    *,
    streamer: BaseStreamer | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    stop_strings: str | list[str] | None = None,
    **kwargs: Any,  # noqa: ANN401
) -> GenerationSetup:
    """Build a setup from keyword arguments, which ``model.generate`` turns into processors, criteria and a config.

    Parameters
    ----------
    prompts
        A prompt, or those of a batch; ``max_length`` then counts from the longest, as in ``generate``.
    streamer
        Kept in the setup.
    tokenizer, stop_strings
        Strings that end a response, also those of a generation config, and the tokenizer to find them with.
    **kwargs
        Any other arguments of ``model.generate``.

    Raises
    ------
    InputError
        For ``num_beams`` above 1, a cache or an assistant model of your own, requested outputs that are not collected,
        ``stop_strings`` without ``tokenizer`` or without a string, a limit of tokens below 1, a temperature that is not
        finite and above 0 (0 may stand for greedy decoding), and an argument that ``model.generate`` does not know or
        whose value it refuses.
    PromptError
        If a prompt does not fit the model's window, or as in :func:`check_reach`.
    WrongTypeError
        If the temperature is no number, a limit of tokens no whole number, or a stop string no string.
    """
    prompts = [prompts] if isinstance(prompts, RagPrompt) else prompts
    check_window(model, max(len(prompt.with_context_ids) for prompt in prompts) + 1)  # before generate warns about it
    foreign = [name for name in _OF_ANOTHER_LOOP if kwargs.get(name) is not None]
    if foreign:
        raise InputError(
            f"{' and '.join(foreign)} must be left out: decoding keeps its own caches and drafts tokens itself. "
            "To use generate's own loop, attach the monitor to it"
        )
    config = kwargs.get("generation_config") or model.generation_config
    _check_cache(kwargs.get("cache_implementation", config.cache_implementation))  # before generate makes one
    _check_temperature(kwargs.get("temperature", config.temperature), kwargs.get("do_sample", config.do_sample))
    for name in {"max_new_tokens", "max_length"} & {name for name, value in kwargs.items() if value is not None}:
        check_count(kwargs[name], name)
    configured = config.stop_strings or model.generation_config.stop_strings
    if configured:
        kwargs["stop_strings"] = None
    stop_strings = configured if stop_strings is None else stop_strings
    if stop_strings is not None:
        # generate drops the tokenizer when it is given a callable, so the criterion is made here.
        if tokenizer is None:
            raise InputError("stop_strings need the tokenizer; pass tokenizer=..., as to model.generate")
        _check_stop_strings(stop_strings)
        given = kwargs.get("stopping_criteria") or ()
        kwargs["stopping_criteria"] = StoppingCriteriaList([*given, StopStringCriteria(tokenizer, stop_strings)])

    def capture(model: PreTrainedModel, input_ids: Tensor, **given: Any) -> GenerationSetup:  # noqa: ANN401
        chosen = given["generation_config"], given["logits_processor"], given["stopping_criteria"]
        return generation_setup(*chosen, streamer)

    sequences = Sequences([prompt.with_context_ids for prompt in prompts], model.device)
    try:
        plan: GenerationSetup = model.generate(
            input_ids=sequences.padded(), attention_mask=sequences.mask(), custom_generate=capture, **kwargs
        )
    except SyncheckError:
        raise
    except (TypeError, ValueError) as error:
        raise _refused(error, kwargs) from error
    check_reach(model, prompts, plan.config.max_length)
    return plan


def _refused(error: Exception, given: Iterable[str]) -> SyncheckError:
    """Say that ``model.generate`` does not know an argument, of those given, or refuses the value of one."""
    unknown = [name for name in given if repr(name) in str(error)] if "model_kwargs" in str(error) else []
    if unknown:
        return InputError(f"neither this method nor model.generate takes an argument {unknown[0]!r}")
    kind = WrongTypeError if isinstance(error, TypeError) else InputError
    return kind(f"model.generate refuses a value of {', '.join(given) or 'the generation config'}: {error}")


def _check_temperature(temperature: object, do_sample: object) -> None:
    """Refuse a temperature that generate would ignore or divide by."""
    if temperature is None:
        return
    if not isinstance(temperature, Real) or isinstance(temperature, bool):
        raise WrongTypeError(f"temperature must be a number above 0; found {temperature!r}")
    value = float(temperature)
    if not 0 <= value < math.inf or (value == 0 and do_sample):
        raise InputError(
            f"temperature must be finite and above 0; found {temperature}. For greedy decoding leave it out, with "
            "do_sample=False"
        )


def _check_stop_strings(given: object) -> None:
    """Refuse what is no string or list of them, and an empty list, of which generate could make no criterion."""
    strings = [given] if isinstance(given, str) else given
    if not isinstance(strings, Sequence) or not all(isinstance(string, str) for string in strings):
        raise WrongTypeError(f"stop_strings must be a string or a list of strings; found {given!r}")
    if not strings:
        raise InputError("stop_strings must hold at least one string; found an empty list. Leave them out for none")


_SEEDS = range(-(2**63), 2**64)
"""What torch takes."""


def seeded_generator(model: PreTrainedModel, seed: int) -> torch.Generator:
    """Make a source of randomness on the model's device.

    A seed with more than 64 bits raises InputError, and one that is no whole number WrongTypeError.
    """
    if not isinstance(seed, Integral) or isinstance(seed, bool):
        raise WrongTypeError(f"seed must be a whole number, such as 0; found {seed!r}")
    if int(seed) not in _SEEDS:
        raise InputError(f"seed must be from -2**63 to 2**64 - 1; found {seed}. Pass a number nearer to 0")
    return torch.Generator(device=model.device).manual_seed(int(seed))


def check_reach(model: PreTrainedModel, prompts: Sequence[RagPrompt], max_length: int) -> None:
    """Refuse, with a PromptError, responses that may grow past a length at which the model encodes every token again.

    Models with LongRoPE (such as Phi-3) do so past ``original_max_position_embeddings``; signals measured before that
    length are not valid after it. ``max_length`` limits prompt and response together, in tokens, for the longest
    prompt; both branches are checked.
    """
    room = max_length - max(len(prompt.with_context_ids) for prompt in prompts)
    for prompt in prompts:
        check_response(model, prompt, room)


def check_response(model: PreTrainedModel, prompt: RagPrompt, tokens: int) -> None:
    """Refuse, with a PromptError, a response of ``tokens`` tokens that crosses such a length in either branch."""
    for ids in (prompt.with_context_ids, *((prompt.without_context_ids,) if prompt.has_context else ())):
        check_one_encoding(model, len(ids), len(ids) + tokens)
