"""Base of the decoders: called like ``model.generate``, by themselves, through ``model.generate``, or as a stream."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers.generation import (
    ExponentialDecayLengthPenalty,
    ForcedEOSTokenLogitsProcessor,
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    MaxLengthCriteria,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    StoppingCriteriaList,
    SuppressTokensAtBeginLogitsProcessor,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)
from transformers.utils import ModelOutput

from fod.config import Thresholds
from fod.search import Returning, drain
from syncheck import EndEvent, Event, Monitor, NoticeEvent, RagPrompt, Report, SentenceEvent, SentenceScore
from syncheck.base.errors import InputError, NotReadyError, WrongTypeError
from syncheck.decoding import GenerationSetup, Row, check_reach, generation_setup, prepare_generation

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from transformers.generation.streamers import BaseStreamer


@dataclass(repr=False)
class GeneratorOutput(ModelOutput):  # type: ignore[misc]
    """The result of ``generate(return_dict_in_generate=True)``."""

    # ModelOutput allows one field without a default; all but the last two are always set.
    sequences: Tensor
    """Token ids of prompt and response, (1, prompt + response) int64."""
    report: Report = field(default=None)  # type: ignore[assignment]
    """The response with its scores; ``report.stop`` says why it ended."""
    sampled_tokens: int = field(default=None)  # type: ignore[assignment]
    """Number of tokens decoded, including those that were discarded."""
    dropped: tuple[SentenceScore, ...] = field(default=None)  # type: ignore[arg-type]
    """Sentences that were written and taken back, with the positions where they began."""
    message: str | None = None
    """Text at the end of the response, ids included, that the model did not write and that is in no sentence."""
    thresholds: Thresholds | None = None
    """The scores that the report's sentences reach; None for a decoder without thresholds."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.report!r}>"

    @property
    def response_ids(self) -> list[int]:
        """The token ids after those of the prompt."""
        ids: list[int] = self._parts[1].tolist()
        return ids

    @property
    def _parts(self) -> tuple[Tensor, ...]:
        """The token ids of the prompt, and those after it."""
        assert isinstance(self.report.prompt, RagPrompt)  # an answer that a decoder wrote has one
        return self.sequences[0].tensor_split([len(self.report.prompt.with_context_ids)])


def padded(outputs: Sequence[GeneratorOutput], *, pad_token: int, prompts: Tensor | None = None) -> Tensor:
    """Pad the ids of answers as ``generate`` does, (B, W + response); ``prompts`` (B, W) are padded already."""
    pad = partial(pad_sequence, batch_first=True, padding_value=pad_token)
    own, responses = map(list, zip(*(out._parts for out in outputs), strict=True))
    prompts = pad(own, padding_side="left") if prompts is None else prompts
    return torch.cat([prompts, pad(responses).to(prompts.device)], dim=1)


O = TypeVar("O", bound=GeneratorOutput)  # noqa: E741 - of the output
Told = Generator[Event, None, O]
"""Generator that yields the events for a reader and returns the output."""


@dataclass(eq=False, repr=False)
class AnswerGenerator(ABC, Generic[O]):
    """Base of the decoders: a drop-in for ``model.generate`` that answers a monitor's prompts.

    A value outside its range, or a model that is not the monitor's, raises InputError; a wrong type, WrongTypeError.
    """

    model: PreTrainedModel
    """The monitor's model."""
    tokenizer: PreTrainedTokenizerBase
    """Its tokenizer."""
    monitor: Monitor
    """Scores the sentences."""

    def __post_init__(self) -> None:
        if not isinstance(self.monitor, Monitor):
            raise WrongTypeError(
                f"monitor must be a Monitor, as load_kit('generation') returns; found {type(self.monitor).__name__}"
            )
        if self.model is not self.monitor.model:
            raise InputError("model must be the one the monitor watches; pass monitor.model")

    @overload
    def generate(
        self,
        prompts: RagPrompt | Sequence[RagPrompt],
        *,
        return_dict_in_generate: Literal[False] = False,
        **kwargs: Any,
    ) -> Tensor: ...

    @overload
    def generate(self, prompts: RagPrompt, *, return_dict_in_generate: Literal[True], **kwargs: Any) -> O: ...

    @overload
    def generate(
        self, prompts: Sequence[RagPrompt], *, return_dict_in_generate: Literal[True], **kwargs: Any
    ) -> list[O]: ...

    def generate(
        self,
        prompts: RagPrompt | Sequence[RagPrompt],
        *,
        seed: int = 0,
        return_dict_in_generate: bool = False,
        streamer: BaseStreamer | None = None,
        **kwargs: Any,
    ) -> Tensor | O | list[O]:
        """Generate answers.

        Parameters
        ----------
        prompts
            From ``monitor.prompt``, with a context. Those of a list are answered one after another, each as alone.
        seed
            Seed of all sampling, a whole number; the same seed gives the same answer.
        return_dict_in_generate
            True returns the output with its report instead of the ids alone; a list of outputs for a list of prompts.
        streamer
            Receives the prompt's ids, then each sentence when it can no longer be taken back; only for one prompt.
        **kwargs
            Other arguments of ``model.generate``, such as ``max_new_tokens``.

        Returns
        -------
        Tensor of shape (B, prompt + response), int64, or GeneratorOutput, or list of GeneratorOutput
            Ids as ``model.generate`` returns them: short prompts are padded on the left, short responses on the right.

        Raises
        ------
        InputError
            If a prompt has no context, for a streamer with several prompts, for beam search or several sequences, and
            for a seed or temperature outside its range.
        PromptError
            If a prompt does not fit the model's window.
        WrongTypeError
            If a prompt is not a RagPrompt, a seed no whole number, or a temperature no number.
        """
        given = prompts_of(prompts)
        if streamer is not None and len(given) > 1:
            raise InputError(f"a streamer shows one answer; found {len(given)} prompts. Call once for each")
        plan = self._plan(given, kwargs)
        outputs = self._outputs(given, plan, seed, streamer)
        if return_dict_in_generate:
            return outputs[0] if isinstance(prompts, RagPrompt) else outputs
        return padded(outputs, pad_token=plan.pad_token)

    def __call__(
        self,
        model: PreTrainedModel,
        input_ids: Tensor,
        logits_processor: LogitsProcessorList,
        stopping_criteria: StoppingCriteriaList,
        generation_config: GenerationConfig,
        prompt: RagPrompt | Sequence[RagPrompt] | None = None,
        seed: int = 0,
        **model_kwargs: Any,  # noqa: ANN401 - prepared by generate for its own loop; the session has its own
    ) -> Tensor | O | list[O]:
        """Serve ``model.generate(**prompt.inputs(), custom_generate=self, prompt=prompt, seed=0)``.

        For a batch, ``prompt`` is the list of its prompts. Errors are as in :meth:`generate`, and InputError if
        ``prompt`` is missing or the ids are not its own.

        Notes
        -----
        Do not pass a streamer to that call: ``model.generate`` writes the prompt to it but does not pass it on to a
        callable, so the reader of a ``TextIteratorStreamer`` waits for ever. This cannot be detected here. Pass the
        streamer to :meth:`generate`, or read :meth:`stream`.
        """
        if prompt is None or model is not self.monitor.model:
            raise InputError("pass prompt=..., and call generate of the model the monitor watches")
        plan = _for_one_answer(generation_setup(generation_config, logits_processor, stopping_criteria, None))
        given = prompts_of(prompt)
        asked = model_kwargs.get("attention_mask")
        kept = torch.ones_like(input_ids) if asked is None else asked
        ids = [row[mask.bool()].tolist() for row, mask in zip(input_ids, kept, strict=True)]
        if ids != [list(one.with_context_ids) for one in given]:
            raise InputError("input_ids are not those of the prompt; pass **prompt.inputs()")
        check_reach(model, given, plan.config.max_length)
        outputs = self._outputs(given, plan, seed, None)
        if generation_config.return_dict_in_generate:
            return outputs[0] if isinstance(prompt, RagPrompt) else outputs
        return padded(outputs, pad_token=plan.pad_token, prompts=input_ids)

    def stream(self, prompt: RagPrompt, *, seed: int = 0, **kwargs: Any) -> Iterator[Event]:
        """Generate an answer and yield its sentences, each when it can no longer be taken back.

        Arguments are as in :meth:`generate`. Closing the stream ends the generation.

        Yields
        ------
        SentenceEvent, NoticeEvent, EndEvent
            One :class:`syncheck.EndEvent`, the last, with the ``output``.
        """
        (one,) = prompts_of([prompt])
        if kwargs.pop("streamer", None) is not None:
            raise InputError(
                "a stream takes no streamer, since its caller reads it; leave it out, or pass it to generate"
            )
        plan = self._plan([one], kwargs)

        def events() -> Iterator[Event]:
            output = yield from self._told(one, plan, seed)
            yield EndEvent(output.report, output)

        return events()

    def _plan(self, prompts: Sequence[RagPrompt], kwargs: dict[str, Any]) -> GenerationSetup:
        return _for_one_answer(
            prepare_generation(self.monitor.model, prompts, **{"tokenizer": self.tokenizer, **kwargs})
        )

    @abstractmethod
    def _told(self, prompt: RagPrompt, plan: GenerationSetup, seed: int) -> Told[O]:
        """Answer one prompt: yield the events and return the output."""

    def _outputs(
        self, prompts: Sequence[RagPrompt], plan: GenerationSetup, seed: int, streamer: BaseStreamer | None
    ) -> list[O]:
        lengths = [len(prompt.with_context_ids) for prompt in prompts]
        plans = [plan_within(plan, plan.config.max_length - max(lengths) + length) for length in lengths]
        return [_heard(self._told(one, own, seed), streamer, one) for one, own in zip(prompts, plans, strict=True)]

    def _sequences(self, prompt: RagPrompt, response_ids: Sequence[int]) -> Tensor:
        return torch.tensor([[*prompt.with_context_ids, *response_ids]], device=self.monitor.model.device)


_COUNTED: dict[type, str] = {
    ExponentialDecayLengthPenalty: "regulation_start",
    ForcedEOSTokenLogitsProcessor: "max_length",
    MinLengthLogitsProcessor: "min_length",
    MinNewTokensLengthLogitsProcessor: "prompt_length_to_skip",
    SuppressTokensAtBeginLogitsProcessor: "begin_index",
}
"""Processors of transformers that count from the prompt's first token, with the attribute that holds their limit."""


def plan_within(plan: GenerationSetup, max_length: int) -> GenerationSetup:
    """Copy the plan for a prompt that is longer by so many tokens as this limit on prompt and response together."""
    longer = max_length - plan.config.max_length
    if not longer:
        return plan
    config = copy.deepcopy(plan.config)
    config.max_length = max_length
    processors = LogitsProcessorList(_moved(processor, longer) for processor in plan.processors)
    criteria = StoppingCriteriaList(
        MaxLengthCriteria(max_length) if isinstance(criterion, MaxLengthCriteria) else criterion
        for criterion in plan.criteria
    )
    return replace(plan, processors=processors, criteria=criteria, config=config)


def _moved(processor: LogitsProcessor, tokens: int) -> LogitsProcessor:
    if (name := _COUNTED.get(type(processor))) is not None:
        processor = copy.copy(processor)
        setattr(processor, name, getattr(processor, name) + tokens)
    return processor


def _heard(told: Told[O], streamer: BaseStreamer | None, prompt: RagPrompt) -> O:
    """Run a generation to its end and return its output; a streamer receives the released text."""
    if streamer is None:
        return drain(told)
    streamer.put(torch.tensor([prompt.with_context_ids]))
    put, events = 0, Returning(told)
    for event in events:
        if isinstance(event, SentenceEvent | NoticeEvent) and event.token_ids:
            streamer.put(torch.tensor(event.token_ids))
            put += len(event.token_ids)
    output = events.value
    if output.response_ids[put:]:  # an end-of-text token, or white space that belongs to no sentence
        streamer.put(torch.tensor(output.response_ids[put:]))
    streamer.end()
    return output


def require_scores(monitor: Monitor) -> None:
    """Refuse, with a NotReadyError, a monitor without an aggregator."""
    if monitor.aggregator is None:
        raise NotReadyError("the monitor has no aggregator, so no sentence has a score; train one with Monitor.fit")


def prompts_of(prompts: RagPrompt | Sequence[RagPrompt]) -> list[RagPrompt]:
    """Make a list of one or several prompts; an empty list or a prompt without a context raises InputError."""
    given: list[Any] = list(prompts) if isinstance(prompts, list | tuple) else [prompts]
    if not given:
        raise InputError("expected at least one prompt; found an empty list")
    for prompt in given:
        if not isinstance(prompt, RagPrompt):
            raise WrongTypeError(f"prompt must be a RagPrompt, from monitor.prompt(...); found {type(prompt).__name__}")
        if not prompt.has_context:
            raise InputError("the prompt has no context to be faithful to; pass passages that are not empty")
    return given


def _for_one_answer(plan: GenerationSetup) -> GenerationSetup:
    if (several := plan.config.num_return_sequences or 1) > 1:
        raise InputError(f"num_return_sequences must be 1; found {several}. Call once for each answer, with its seed")
    return plan


def sampling(plan: GenerationSetup, *, temperature: float, top_p: float) -> GenerationSetup:
    """Copy the plan, with sampling from a nucleus after its own processors."""
    config = copy.deepcopy(plan.config)
    config.do_sample = True
    warpers = [TemperatureLogitsWarper(temperature), TopPLogitsWarper(top_p)]
    return replace(plan, config=config, processors=LogitsProcessorList([*plan.processors, *warpers]))


def ids_of(row: Row) -> list[int]:
    """Collect a row's tokens, with the end-of-text token that ended it."""
    return [*row.token_ids, *(() if row.end_token is None else (row.end_token,))]


def event_of(sentence: SentenceScore, row: Row) -> SentenceEvent:
    """Make the event of a sentence of a row."""
    return SentenceEvent.of(sentence, row.token_ids, row.text)
