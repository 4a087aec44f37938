"""Faithfulness-oriented decoding: Algorithm 1 as a generator."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import torch

from fod.config import DEFAULTS, FODConfig
from fod.draft import ImmediateReveal, Reveal, VerifiedReveal, Writing
from fod.drop_in import AnswerGenerator
from fod.output import GeneratorOutput
from fod.thresholds import Threshold, Thresholds, search_thresholds
from fod.types import SearchResult
from syncheck import Event, Monitor, NoticeEvent, RagPrompt, Report, SentenceScore
from syncheck.decoding import GenerationSetup, require_rewindable
from syncheck.errors import InputError, NotReadyError, WrongTypeError
from syncheck.report import TraceNode

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["ABSTENTION", "FODGenerator", "FODOutput", "OnExhausted", "RetryRequest"]


ABSTENTION = "The passages do not let me say more."
"""What an abstaining answer ends with, or is."""


@dataclass(frozen=True, slots=True)
class RetryRequest:
    """What a caller is given who is asked to go on.

    Attributes
    ----------
    prompt : RagPrompt
        Under which nothing passed.
    report : Report
        The answer so far, all of which has been released.
    rejected : tuple of SentenceScore
        What was sampled last and did not reach tau_2.
    attempt : int
        How often this answer has been handed over before.
    """

    prompt: RagPrompt
    report: Report
    rejected: tuple[SentenceScore, ...]
    attempt: int


OnExhausted = Literal["stop", "abstain", "annotate"] | Callable[[RetryRequest], RagPrompt | str | None]
"""``stop``: the answer ends with what has passed. ``abstain``: it ends with a message. ``annotate``: the best of the
round is kept, marked, and decoding goes on. A callable returns a prompt, with new passages, under which the answer goes
on; a text that ends it, which is not scored; or None, which stops."""


@dataclass
class FODOutput(GeneratorOutput):
    """What ``generate(return_dict_in_generate=True)`` returns.

    Attributes
    ----------
    search : SearchResult
        How the answer came about: what was taken back and each round's samples. Of the last part, where the caller
        was asked to go on.
    marked : tuple of int
        Indices of the report's sentences that did not pass and were kept, ``on_exhausted="annotate"``.
    trace : tuple of TraceNode
        The search as a tree, see :func:`fod.trace_of`; for :class:`syncheck.report.Answer`.
    """

    search: SearchResult = field(default=None)  # type: ignore[assignment]
    marked: tuple[int, ...] = field(default=None)  # type: ignore[arg-type]
    trace: tuple[TraceNode, ...] = field(default=None)  # type: ignore[arg-type]


class FODGenerator(AnswerGenerator[FODOutput]):
    """Decodes so that every sentence it releases reaches a score (paper, section 3.3, Algorithm 1).

    Stage 1 is greedy whatever ``do_sample`` says.

    Parameters
    ----------
    model, tokenizer
        Those of the monitor.
    monitor
        A trained monitor.
    backtrack_threshold, prune_threshold
        tau_1 and tau_2 in [0, 1]; None takes those the monitor was saved with. ``"release"`` takes the score that
        ``syncheck calibrate --risk`` chose, and no sentence is then released below it; what this promises, and that
        the search of stage 2 is outside the promise, stands at :class:`fod.Thresholds`.
    beam_size, samples_per_step
        K and S.
    share_samples
        Whether a round of fewer than K beams samples S sentences all the same; the paper gives ceil(S / K) to each.
    temperature, top_p
        Sampling of stage 2.
    until
        ``any``: stop when a kept beam has ended, as the paper does; ``all``: when all have.
    max_sentences
        Most sentences of an answer.
    max_retries
        How often one answer may ask ``on_exhausted`` for another prompt, where that is a callable.
    on_exhausted
        What is done when no sample of a round reaches tau_2; see :data:`fod.OnExhausted`.
    message
        What an answer ends with that abstains.

    Raises
    ------
    NotReadyError
        If the monitor has no aggregator, or no release threshold where that is asked for.
    InputError
        If a parameter is outside its range, a threshold is below the promise that the other asks for,
        ``on_exhausted="annotate"`` would release sentences below it, or model and monitor do not belong together.
    UnsupportedModelError
        If the model's state cannot be rewound.

    Examples
    --------
    >>> fod = FODGenerator(model, tokenizer, monitor)  # doctest: +SKIP
    >>> ids = fod.generate(prompt, max_new_tokens=200, seed=0)  # doctest: +SKIP
    >>> tokenizer.decode(ids[0, len(prompt.with_context_ids):])  # doctest: +SKIP
    >>> for event in fod.stream(prompt, max_new_tokens=200):  # doctest: +SKIP
    ...     if event.type == "sentence":
    ...         print(event.sentence.text)
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        monitor: Monitor,
        *,
        backtrack_threshold: Threshold | None = None,
        prune_threshold: Threshold | None = None,
        beam_size: int = DEFAULTS.beam_size,
        samples_per_step: int = DEFAULTS.samples_per_step,
        share_samples: bool = DEFAULTS.share_samples,
        temperature: float = DEFAULTS.temperature,
        top_p: float = DEFAULTS.top_p,
        until: Literal["any", "all"] = DEFAULTS.until,
        max_sentences: int = DEFAULTS.max_sentences,
        max_retries: int = DEFAULTS.max_retries,
        on_exhausted: OnExhausted = "stop",
        message: str = ABSTENTION,
    ) -> None:
        super().__init__(model, tokenizer, monitor)
        if monitor.aggregator is None:
            raise NotReadyError("the monitor has no aggregator, so no sentence has a score; train one with Monitor.fit")
        require_rewindable(model)
        if not callable(on_exhausted) and on_exhausted not in ("stop", "abstain", "annotate"):
            raise InputError(
                f"on_exhausted must be 'stop', 'abstain', 'annotate' or a callable; found {on_exhausted!r}"
            )
        thresholds = search_thresholds(monitor, backtrack=backtrack_threshold, prune=prune_threshold)
        if thresholds.promise is not None and on_exhausted == "annotate":
            raise InputError(
                "on_exhausted='annotate' keeps sentences below the thresholds, and 'release' promises that there are "
                "none; choose another on_exhausted, or pass numbers as thresholds"
            )
        assert thresholds.prune is not None  # a search has both
        self.thresholds: Thresholds = thresholds
        self.config = FODConfig(
            backtrack_threshold=thresholds.backtrack,
            prune_threshold=thresholds.prune,
            beam_size=beam_size,
            samples_per_step=samples_per_step,
            share_samples=share_samples,
            temperature=temperature,
            top_p=top_p,
            until=until,
            max_sentences=max_sentences,
            max_retries=max_retries,
            annotate=on_exhausted == "annotate",
        )
        self.on_exhausted = on_exhausted
        self.message = message

    def stream(
        self,
        prompt: RagPrompt,
        *,
        seed: int = 0,
        reveal: Literal["verified", "immediate"] = "verified",
        **kwargs: Any,
    ) -> Iterator[Event]:
        """Generate an answer and yield its sentences.

        Closing the stream ends the generation and leaves nothing behind.

        Parameters
        ----------
        prompt, seed, **kwargs
            As in :meth:`generate`.
        reveal
            ``verified``: a sentence comes when it can no longer be taken back: in stage 1 after its score, in stage 2
            when all beams that are kept share it. ``immediate``: the best answer so far is shown after every step,
            and a :class:`syncheck.RetractEvent` takes back what is no longer part of it.

        Yields
        ------
        SentenceEvent, RetractEvent, NoticeEvent, EndEvent
        """
        if reveal not in ("verified", "immediate"):
            raise InputError(f"reveal must be 'verified' or 'immediate'; found {reveal!r}")
        make: Callable[[], Reveal] = VerifiedReveal if reveal == "verified" else ImmediateReveal
        return self._streamed(prompt, kwargs, lambda one, plan: self._told(one, plan, seed, make))

    def _told(
        self, prompt: RagPrompt, plan: GenerationSetup, seed: int, reveal: Callable[[], Reveal] = VerifiedReveal
    ) -> Generator[Event, None, FODOutput]:
        started = time.perf_counter()
        generator = torch.Generator(device=self.monitor.model.device).manual_seed(seed)
        writing = Writing(self.monitor, prompt, plan, self.config, generator)
        while True:
            result = yield from writing.next_part(reveal())
            report = writing.draft.report(stop=result.stop, seconds=time.perf_counter() - started)
            is_stuck = result.stop == "nothing_passed" and result.beam.stop is None
            reply = self._reply(writing, report) if is_stuck else None
            if not isinstance(reply, RagPrompt):
                break
            writing.prompt = reply
        ids, message = writing.response_ids, None
        if reply:
            report = replace(report, stop="abstained" if self.on_exhausted == "abstain" else "handed_over")
            message = reply if not report.response else f" {reply.lstrip()}"
            added = self.tokenizer(message, add_special_tokens=False)["input_ids"]
            ids = [*ids, *added]
            yield NoticeEvent(message, tuple(added))
        return FODOutput(
            sequences=self._sequences(prompt, ids),
            report=report,
            sampled_tokens=writing.sampled_tokens,
            dropped=tuple(writing.dropped),
            message=message,
            thresholds=self.thresholds,
            search=result,
            marked=tuple(writing.marked),
            trace=tuple(writing.trace),
        )

    def _reply(self, writing: Writing, report: Report) -> RagPrompt | str | None:
        """Return what is to follow an answer to which nothing could be added."""
        if self.on_exhausted == "abstain":
            return self.message
        if not callable(self.on_exhausted) or writing.is_full or writing.parts > self.config.max_retries:
            return None
        reply = self.on_exhausted(RetryRequest(writing.prompt, report, writing.rejected, writing.parts - 1))
        if reply is not None and not isinstance(reply, RagPrompt | str):
            raise WrongTypeError(
                f"on_exhausted must return a RagPrompt, a string or None; found {type(reply).__name__}"
            )
        if isinstance(reply, RagPrompt) and not reply.has_context:
            raise InputError("on_exhausted returned a prompt without passages; pass some, or return None to stop")
        return reply
