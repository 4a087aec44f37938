"""Reranking: the best of several sampled answers by the monitor's scores, or by one signal alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from fod.baselines.best_of_n import BestOfNGenerator, Reward, mean_score
from fod.config import DEFAULTS
from syncheck import Monitor, Report
from syncheck.errors import InputError, NotReadyError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["RerankBy", "RerankGenerator"]

RerankBy = Literal["syncheck", "likelihood", "aligner"]


class RerankGenerator(BestOfNGenerator):
    """Samples answers and returns the best (paper, section 4.3 and appendix D.1).

    Parameters
    ----------
    model, tokenizer
        Those of the monitor.
    monitor
        Scores the sentences.
    by
        ``syncheck``: mean score of the sentences; ``likelihood``: mean log-probability of the tokens; ``aligner``: mean
        ``align_score`` of the sentences.
    samples
        Answers to choose from (paper: 6, note under Table 2).
    temperature, top_p
        Of the sampling; by default those of FOD's stage 2.

    Raises
    ------
    InputError
        If a parameter is outside its range, or model and monitor do not belong together.
    NotReadyError
        If the monitor lacks the aggregator or the aligner to rerank by.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        monitor: Monitor,
        *,
        by: RerankBy = "syncheck",
        samples: int = DEFAULTS.samples_per_step,
        temperature: float = DEFAULTS.temperature,
        top_p: float = DEFAULTS.top_p,
    ) -> None:
        if by not in get_args(RerankBy):
            raise InputError(f"by must be one of {', '.join(get_args(RerankBy))}; found {by!r}")
        if by == "syncheck" and monitor.aggregator is None:
            raise NotReadyError("the monitor has no aggregator, so no sentence has a score; rerank by another signal")
        if by == "aligner" and monitor.aligner is None:
            raise NotReadyError("the monitor has no aligner; pass one to it, or rerank by another signal")
        super().__init__(
            model,
            tokenizer,
            monitor,
            reward=_REWARDS[by],
            samples=samples,
            temperature=temperature,
            top_p=top_p,
        )
        self.by = by


def _likelihood(report: Report) -> float | None:
    return float(report.tokens.log_prob.mean()) if len(report.tokens) else None


def _support(report: Report) -> float | None:
    found = [s.features.get("align_score") for s in report.sentences]
    supports = [support for support in found if support is not None]
    return sum(supports) / len(supports) if supports else None


_REWARDS: dict[RerankBy, Reward] = {"syncheck": mean_score, "likelihood": _likelihood, "aligner": _support}
