"""FOD as a generator: Algorithm 1 with the interface of ``model.generate``."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from fod.config import REPAIR, SEARCH, FODConfig, RepairConfig, RetryRequest, Threshold, decoder_thresholds
from fod.draft import Reveal, VerifiedReveal, Writing, reveal_of
from fod.drop_in import AnswerGenerator, GeneratorOutput, require_scores
from fod.search import SearchResult
from syncheck import Event, Monitor, NoticeEvent, RagPrompt, Report
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.decoding import GenerationSetup, require_rewindable, seeded_generator
from syncheck.results import TraceNode

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(repr=False)
class FODOutput(GeneratorOutput):
    """The result of ``generate(return_dict_in_generate=True)``; see :class:`fod.GeneratorOutput`."""

    search: SearchResult = field(default=None)  # type: ignore[assignment]
    """Course of the search: sentences that were taken back, and the samples of each round. If ``on_exhausted``
    continued the answer, that of its last part."""
    marked: tuple[int, ...] = field(default=None)  # type: ignore[arg-type]
    """Indices of the report's sentences that were kept although they did not pass (``on_exhausted="annotate"``)."""
    trace: tuple[TraceNode, ...] = field(default=None)  # type: ignore[arg-type]
    """The search as a tree, for :class:`syncheck.results.Answer`; see :func:`fod.trace_of`."""


class FODGenerator(AnswerGenerator[FODOutput]):
    """Decodes so that every released sentence reaches a score (paper, section 3.3, Algorithm 1).

    Stage 1 is greedy whatever ``do_sample`` says, unless ``config.sample_first`` asks for sampling. All sampling has
    the temperature and nucleus of the config; those of ``generate`` have no effect, unless ``do_sample`` is true: they
    then come first.

    Parameters
    ----------
    model, tokenizer, monitor
        A trained monitor, with its model and tokenizer.
    config
        What follows a greedy sentence below tau_1: a :class:`fod.FODConfig` searches over sampled sentences until the
        answer ends; a :class:`fod.RepairConfig` rewrites the sentence, or hides it.
    propose
        ``"sample"`` and ``"branch"`` stand for the default config of the search and of repair.
    backtrack_threshold, prune_threshold, beam_size, samples_per_step
        Replace those of the config; None keeps them.

    Attributes
    ----------
    config : FODConfig or RepairConfig
    thresholds : Thresholds
        The thresholds with this monitor, as numbers.

    Raises
    ------
    NotReadyError
        If the monitor has no aggregator, or no calibrated threshold where one is requested.
    InputError
        If a parameter is outside its range, not one of the config, or contradicts another: ``propose`` the config, a
        threshold or ``on_exhausted="annotate"`` the guarantee that the other threshold requests, the model the monitor.
    WrongTypeError, UnsupportedModelError
        If a parameter has the wrong type, or the model's state cannot be rewound.

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
        config: FODConfig | RepairConfig | None = None,
        propose: Literal["sample", "branch"] | None = None,
        backtrack_threshold: Threshold | None = None,
        prune_threshold: Threshold | None = None,
        beam_size: int | None = None,
        samples_per_step: int | None = None,
    ) -> None:
        super().__init__(model, tokenizer, monitor)
        if not isinstance(config, FODConfig | RepairConfig | None):
            raise WrongTypeError(f"config must be a FODConfig, a RepairConfig or None; found {type(config).__name__}")
        require_scores(monitor)
        require_rewindable(model)
        named: dict[str, Any] = dict(backtrack_threshold=backtrack_threshold, prune_threshold=prune_threshold)
        named |= dict(beam_size=beam_size, samples_per_step=samples_per_step)
        given = {name: value for name, value in named.items() if value is not None}
        if propose not in (None, "sample", "branch"):
            raise InputError(f"propose must be 'sample' or 'branch'; found {propose!r}")
        default = REPAIR if propose == "branch" else SEARCH
        if propose is not None and not isinstance(config, type(default) | None):
            raise InputError(f"propose={propose!r} contradicts a {type(config).__name__}; leave one of them out")
        chosen = config or default
        if foreign := [name for name in given if not hasattr(chosen, name)]:
            raise InputError(
                f"{' and '.join(foreign)} must be left out with a {type(chosen).__name__}: repair keeps one answer and "
                "samples no candidates"
            )
        self.config = replace(chosen, **given)
        self.thresholds = decoder_thresholds(monitor, self.config)

    def stream(
        self, prompt: RagPrompt, *, seed: int = 0, reveal: Literal["verified", "immediate"] = "verified", **kwargs: Any
    ) -> Iterator[Event]:
        """Generate an answer and yield its sentences; arguments as in :meth:`generate`.

        With ``reveal="verified"``, a sentence comes when it can no longer be taken back: in stage 1 after it is scored,
        in stage 2 when all beams share it. With ``"immediate"``, the best answer so far is shown after every step, and
        a :class:`syncheck.RetractEvent` takes back sentences that are no longer part of it; any other ``reveal`` raises
        InputError. Closing the stream ends the generation.

        Yields
        ------
        SentenceEvent, RetractEvent, NoticeEvent, EndEvent
            One :class:`syncheck.EndEvent`, the last, with the ``output``.
        """
        make = reveal_of(reveal)
        return self._streamed(prompt, kwargs, lambda one, plan: self._told(one, plan, seed, make))

    def _told(
        self, prompt: RagPrompt, plan: GenerationSetup, seed: int, reveal: Callable[[], Reveal] = VerifiedReveal
    ) -> Generator[Event, None, FODOutput]:
        started = time.perf_counter()
        generator = seeded_generator(self.monitor.model, seed)
        writing = Writing(self.monitor, prompt, plan, self.config, self.thresholds, generator)
        while True:
            result = yield from writing.next_part(reveal())
            report = writing.report(stop=result.stop, seconds=time.perf_counter() - started)
            is_stuck = result.stop == "nothing_passed" and result.beam.stop is None
            reply = self._reply(writing, report) if is_stuck else None
            if not isinstance(reply, RagPrompt):
                break
            writing.current = reply
        ids, message = writing.response_ids, None
        stop = "handed_over" if callable(self.config.on_exhausted) and reply else "abstained"
        if not reply and result.stop != "not_finite":
            reply, stop = self.config.completion(report)
        if reply:
            message = reply if not report.response else f" {reply.lstrip()}"
            report = replace(report, response=report.response + message, stop=stop)
            added = self.tokenizer(message, add_special_tokens=False)["input_ids"]
            ids = [*writing.token_ids, *added]  # without an end-of-text token before the message
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
        """Choose what continues an answer after which no continuation passed."""
        asked = self.config.on_exhausted
        if asked == "abstain":
            return self.config.message
        if not callable(asked) or writing.is_full or writing.parts > self.config.max_retries:
            return None
        reply = asked(RetryRequest(writing.current, report, writing.rejected, writing.parts - 1))
        if reply is not None and not isinstance(reply, RagPrompt | str):
            raise WrongTypeError(
                f"on_exhausted must return a RagPrompt, a string or None; found {type(reply).__name__}"
            )
        if isinstance(reply, RagPrompt) and not reply.has_context:
            raise InputError("on_exhausted returned a prompt without passages; pass some, or return None to stop")
        return reply


class BacktrackGenerator(FODGenerator):
    """Decodes greedily and ends before the first sentence below tau_1: FOD (BT) of the paper's Table 2.

    Parameters are as in :class:`fod.FODConfig`, and the errors as in :class:`fod.FODGenerator`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        monitor: Monitor,
        *,
        backtrack_threshold: Threshold | None = None,
        max_sentences: int = SEARCH.max_sentences,
        message: str = SEARCH.message,
    ) -> None:
        config = FODConfig(backtrack_threshold=backtrack_threshold, max_sentences=max_sentences, message=message)
        super().__init__(model, tokenizer, monitor, config=config)
        self.thresholds = replace(self.thresholds, prune=None)
