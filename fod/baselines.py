"""Baselines, all called in the same way: abstention, context-aware decoding and best of N."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from dataclasses import KW_ONLY, dataclass, field
from numbers import Real
from typing import Literal

from fod.config import ABSTENTION, SEARCH, Thresholds, check_sampling, check_strength
from fod.drop_in import AnswerGenerator, GeneratorOutput, event_of, ids_of, require_scores, sampling
from fod.proposers import contrasting
from fod.search import passes
from syncheck import Event, NoticeEvent, RagPrompt, Report
from syncheck.base.errors import InputError, NotReadyError, WrongTypeError
from syncheck.decoding import (
    GenerationSetup,
    ScoredAnswer,
    Transcript,
    check_count,
    check_share,
    seeded_generator,
)


@dataclass(eq=False, repr=False)
class AbstainGenerator(AnswerGenerator[GeneratorOutput]):
    """Gives an answer only if each of its sentences reaches the threshold (paper, section 4.3).

    Decoding stops at the first that does not: ``report.stop`` is then ``"abstained"``, the report has the message and
    no sentence, and ``dropped`` those that were written. A monitor without an aggregator raises NotReadyError.
    """

    _: KW_ONLY
    threshold: float | None = None
    """In [0, 1]; None takes the monitor's tau_1. The paper uses 0.7."""
    message: str = ABSTENTION
    """Text that is given instead; may be empty."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_scores(self.monitor)
        if self.threshold is not None:
            check_share(self.threshold, "threshold")
        own = self.monitor.config.backtrack_threshold
        self.thresholds = Thresholds(own if self.threshold is None else self.threshold)

    def _told(self, prompt: RagPrompt, plan: GenerationSetup, seed: int) -> Generator[Event, None, GeneratorOutput]:
        started = time.perf_counter()
        generator = seeded_generator(self.monitor.model, seed)
        with self.monitor.session(prompt) as watched:
            is_given = all(
                passes(sentence, self.thresholds.backtrack)
                for (sentences,) in watched.decode(plan, generator=generator)
                for sentence in sentences
            )
            seconds = time.perf_counter() - started
            (row,), (answer,) = watched.decoding.rows, watched.answers
            if is_given:
                (report,) = watched.reports(seconds=seconds)
                ids, message = ids_of(row), None
            else:
                empty = ScoredAnswer(watched.scorer)
                report = empty.report(Transcript(self.message, ()), stop="abstained", seconds=seconds)
                ids = self.tokenizer(self.message, add_special_tokens=False)["input_ids"] if self.message else []
                message = self.message or None
        if message is not None:
            yield NoticeEvent(message, tuple(ids))
        for sentence in report.sentences:
            yield event_of(sentence, row)
        return GeneratorOutput(
            sequences=self._sequences(prompt, ids),
            report=report,
            sampled_tokens=len(row.token_ids),
            dropped=() if is_given else tuple(answer.sentences),
            message=message,
            thresholds=self.thresholds,
        )


@dataclass(eq=False, repr=False)
class CADGenerator(AnswerGenerator[GeneratorOutput]):
    """Decodes from a contrast of the distributions with and without the context (Shi et al., 2024).

    The monitor scores the sentences, by the raw logits with the context as everywhere, and changes nothing.
    """

    _: KW_ONLY
    alpha: float = 0.5
    """Strength of the contrast, at least 0; see :func:`fod.contrast_scores`."""
    plausibility: float = 0.0
    """Plausibility constraint, in [0, 1]; see :func:`fod.contrast_scores`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_strength(self.alpha, "alpha")
        check_share(self.plausibility, "plausibility")

    def _told(self, prompt: RagPrompt, plan: GenerationSetup, seed: int) -> Generator[Event, None, GeneratorOutput]:
        started = time.perf_counter()
        generator = seeded_generator(self.monitor.model, seed)
        with self.monitor.session(prompt) as watched:
            (row,) = watched.decoding.rows
            adjust = contrasting(watched.decoding, alpha=self.alpha, plausibility=self.plausibility)
            for (sentences,) in watched.decode(plan, generator=generator, adjust=adjust):
                for sentence in sentences:
                    yield event_of(sentence, row)
            (report,) = watched.reports(seconds=time.perf_counter() - started)
        return GeneratorOutput(
            sequences=self._sequences(prompt, ids_of(row)), report=report, sampled_tokens=len(row.token_ids), dropped=()
        )


Reward = Callable[[Report], float | None]
"""Function that returns the reward of an answer; higher is better, and None, as for an empty answer, is the worst."""

RewardName = Literal["mean", "lowest"]
"""``mean``: mean score of an answer's sentences. ``lowest``: the lowest of their scores."""


@dataclass(repr=False)
class BestOfNOutput(GeneratorOutput):
    """The result of ``generate(return_dict_in_generate=True)``; see :class:`fod.GeneratorOutput`."""

    samples: tuple[Report, ...] = field(default=None)  # type: ignore[arg-type]
    """All answers that were sampled, in order."""
    rewards: tuple[float | None, ...] = field(default=None)  # type: ignore[arg-type]
    """Reward of each answer."""
    chosen: int = field(default=None)  # type: ignore[assignment]
    """Index of the answer that was returned; the first of those with equal rewards."""


@dataclass(eq=False, repr=False)
class BestOfNGenerator(AnswerGenerator[BestOfNOutput]):
    """Samples N answers as one batch and returns the one with the highest reward.

    With the mean score it is the reranking of the paper (section 4.3 and appendix D.1), which has six samples (note
    under Table 2). A reward that is requested by name raises NotReadyError if the monitor has no aggregator.
    """

    _: KW_ONLY
    reward: Reward | RewardName = "mean"
    """Function that returns the reward of an answer, or the name of one."""
    samples: int = SEARCH.samples_per_step
    """N: number of answers to choose from."""
    temperature: float = SEARCH.temperature
    """Temperature of the sampling, above 0; by default that of FOD's stage 2."""
    top_p: float = SEARCH.top_p
    """Nucleus of the sampling, in (0, 1]; by default that of FOD's stage 2."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.samples, "samples")
        check_sampling(temperature=self.temperature, top_p=self.top_p)
        if callable(self.reward):
            return
        if self.reward not in _REWARDS:
            raise InputError(f"reward must be a callable or one of {', '.join(_REWARDS)}; found {self.reward!r}")
        if self.monitor.aggregator is None:
            raise NotReadyError(
                "the monitor has no aggregator, so no sentence has a score; train one, or choose another reward"
            )
        self.reward = _REWARDS[self.reward]

    def _told(self, prompt: RagPrompt, plan: GenerationSetup, seed: int) -> Generator[Event, None, BestOfNOutput]:
        started = time.perf_counter()
        generator = seeded_generator(self.monitor.model, seed)
        sampled = sampling(plan, temperature=self.temperature, top_p=self.top_p)
        with self.monitor.session([prompt] * self.samples) as watched:
            for _ in watched.decode(sampled, generator=generator):
                pass
            rows = watched.decoding.rows
            reports = watched.reports(seconds=time.perf_counter() - started)
        assert callable(self.reward)
        rewards = tuple(_checked(self.reward(report)) for report in reports)
        worth = [-math.inf if reward is None else reward for reward in rewards]
        chosen = worth.index(max(worth))
        for sentence in reports[chosen].sentences:
            yield event_of(sentence, rows[chosen])
        return BestOfNOutput(
            sequences=self._sequences(prompt, ids_of(rows[chosen])),
            report=reports[chosen],
            sampled_tokens=sum(len(row.token_ids) for row in rows),
            dropped=(),
            samples=tuple(reports),
            rewards=rewards,
            chosen=chosen,
        )


def _checked(reward: float | None) -> float | None:
    if reward is not None and (not isinstance(reward, Real) or math.isnan(reward)):
        raise WrongTypeError(f"reward must return a number, or None for the worst; found {reward!r}")
    return None if reward is None else float(reward)


_REWARDS: dict[str, Reward] = {
    "mean": lambda report: report.faithfulness,
    "lowest": lambda report: None if report.lowest is None else report.lowest.score,
}
