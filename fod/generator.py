"""FOD as a generator: Algorithm 1 with the interface of ``model.generate``."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import torch

from fod.branch_proposer import BranchProposer, full_stop_of
from fod.config import REPAIR, SEARCH, FODConfig, RepairConfig, decoder_thresholds
from fod.drop_in import AnswerGenerator, GeneratorOutput, require_scores
from fod.proposers import SentenceProposer
from fod.repair import repair
from fod.reveal import VerifiedReveal, drawn
from fod.search import Progress, Returning, SearchResult, walk
from syncheck import Event, Monitor, NoticeEvent, RagPrompt
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.decoding import GenerationSetup, ScoredSession, require_rewindable, seeded_generator
from syncheck.results import TraceNode

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(repr=False)
class FODOutput(GeneratorOutput):
    """The result of ``generate(return_dict_in_generate=True)``; see :class:`fod.GeneratorOutput`."""

    search: SearchResult = field(default=None)  # type: ignore[assignment]
    """Course of the search: sentences that were taken back, and the samples of each round."""
    marked: tuple[int, ...] = field(default=None)  # type: ignore[arg-type]
    """Indices of the report's sentences that were kept although they did not pass (``on_exhausted="annotate"``)."""
    trace: tuple[TraceNode, ...] = field(default=None)  # type: ignore[arg-type]
    """The search as a tree, for :class:`syncheck.results.Answer`; see :func:`fod.trace_of`."""


class FODGenerator(AnswerGenerator[FODOutput]):
    """Decodes so that every released sentence reaches a score (paper, section 3.3, Algorithm 1).

    Stage 1 is greedy whatever ``do_sample`` says. Sampling has the temperature and nucleus of the config; those of
    ``generate`` have no effect, unless ``do_sample`` is true: they then come first.

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
        If the monitor has no aggregator.
    InputError
        If a parameter is outside its range, not one of the config, or contradicts another: ``propose`` the config, the
        model the monitor.
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
        backtrack_threshold: float | None = None,
        prune_threshold: float | None = None,
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

    def _told(self, prompt: RagPrompt, plan: GenerationSetup, seed: int) -> Generator[Event, None, FODOutput]:
        started = time.perf_counter()
        generator, show = seeded_generator(self.monitor.model, seed), VerifiedReveal()
        with self.monitor.session(prompt) as watched:
            propose, steps = self._searching(watched, plan, generator)
            for progress in steps:
                yield from show(progress)
            result = steps.value
            yield from show(Progress((result.beam,)))
            report = propose.report(result.beam, stop=result.stop, seconds=time.perf_counter() - started)
        ids, end = propose.response_ids(result.beam, self.tokenizer)
        text, stop = "", "abstained"
        is_stuck = result.stop == "nothing_passed" and result.beam.stop is None
        if is_stuck and self.config.on_exhausted == "abstain":
            text = self.config.message
        if not text and result.stop != "not_finite":
            text, stop = self.config.completion(report)
        message = None
        if text:
            message = text if not report.response else f" {text.lstrip()}"
            report = replace(report, response=report.response + message, stop=stop)
            added = self.tokenizer(message, add_special_tokens=False)["input_ids"]
            ids, end = [*ids, *added], None
            yield NoticeEvent(message, tuple(added))
        return FODOutput(
            sequences=self._sequences(prompt, ids if end is None else [*ids, end]),
            report=report,
            sampled_tokens=propose.sampled_tokens,
            dropped=result.dropped,
            message=message,
            thresholds=self.thresholds,
            search=result,
            marked=result.beam.marked,
            trace=drawn(result, self.config, self.thresholds),
        )

    def _searching(
        self, watched: ScoredSession, plan: GenerationSetup, generator: torch.Generator
    ) -> tuple[SentenceProposer | BranchProposer, Returning[Progress, SearchResult]]:
        """Make what proposes sentences, and the search or the repair of them."""
        config = self.config
        if isinstance(config, FODConfig):
            proposer = SentenceProposer(watched, plan, config, generator=generator)
            return proposer, Returning(walk(proposer, config, self.thresholds))
        stop = full_stop_of(self.tokenizer)
        branches = BranchProposer(watched, plan, config, full_stop=stop)
        return branches, Returning(repair(branches, config, self.thresholds))


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
        backtrack_threshold: float | None = None,
        max_sentences: int = SEARCH.max_sentences,
        message: str = SEARCH.message,
    ) -> None:
        config = FODConfig(backtrack_threshold=backtrack_threshold, max_sentences=max_sentences, message=message)
        super().__init__(model, tokenizer, monitor, config=config)
        self.thresholds = replace(self.thresholds, prune=None)
