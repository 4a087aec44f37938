"""The decoders of the comparison, each as a function of a prompt; those of Table 2 and appendix D of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from decoding.answers import DecodedAnswer
from decoding.verified import require_verified
from fod.baselines import AbstainGenerator, BestOfNGenerator, CADGenerator, Reward, RewardName
from fod.config import REPAIR, SEARCH, RepairConfig
from fod.generator import BacktrackGenerator, FODGenerator
from syncheck import Monitor, RagPrompt, Report
from syncheck.base.errors import InputError

__all__ = [
    "ABSTAIN",
    "BACKTRACK",
    "CAD",
    "Decode",
    "DecodingLimits",
    "FOD",
    "FOD_BRANCH",
    "GREEDY",
    "RERANKINGS",
    "branching_key",
    "branching_name",
    "branching_over_thresholds",
    "candidates_for",
    "compared_decoders",
    "reranking",
    "swept_decoders",
    "swept_name",
]

Decode = Callable[[RagPrompt, str], list[DecodedAnswer]]
"""Answers a prompt, whose id is given for errors, under one name or, from one sampling, under several."""

FOD_BRANCH = "FOD (branch)"
GREEDY, CAD, ABSTAIN, BACKTRACK, FOD = "Greedy", "CAD", "Abstention", "FOD (BT)", "FOD (Full)"


def _likelihood(report: Report) -> float | None:
    """Return the mean log-probability of an answer's tokens."""
    return float(report.tokens.log_prob.mean()) if len(report.tokens) else None


def _support(report: Report) -> float | None:
    """Return the mean support of an answer's sentences."""
    values = [s.features.get("align_score") for s in report.sentences]
    supports = [support for support in values if support is not None]
    return sum(supports) / len(supports) if supports else None


RERANKINGS: dict[str, RewardName | Reward] = {
    "Reranking": "mean",
    "Reranking (Likelihood)": _likelihood,
    "Reranking (Aligner)": _support,
}
"""Names as in the paper's Tables 2 and 6, with the signal that chooses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingLimits:
    """Model, monitor and limits that all decoders of a comparison share."""

    max_new_tokens: int = 160
    """Longest answer, in tokens."""
    seed: int = 0
    """Of all sampling."""
    backtrack_threshold: float | None = None
    """tau_1, also that of abstention; None takes the monitor's."""
    prune_threshold: float | None = None
    """tau_2; None takes the monitor's."""
    branch_threshold: float | None = None
    """tau of FOD that branches; None takes the monitor's."""
    branch_thresholds: tuple[float, ...] = (0.7, 0.8)
    """Others that it is measured at, for the curve."""
    beam_size: int = SEARCH.beam_size
    """K of FOD."""
    samples_per_step: int = SEARCH.samples_per_step
    """S of FOD."""
    best_of: int = SEARCH.samples_per_step
    """Answers sampled by best of N, chosen by the mean score: the paper's "Reranking" has 6 (note under Table 2)."""

    @property
    def best_of_name(self) -> str:
        """The name of best of N in a table."""
        return f"Best of {self.best_of}"


def compared_decoders(monitor: Monitor, limits: DecodingLimits) -> dict[str, Decode]:
    """Return the decoders whose work does not depend on that of others, by name.

    Raises
    ------
    NotReadyError
        If the monitor has no aggregator.
    """
    models = (monitor.model, monitor.tokenizer, monitor)
    tau_1 = limits.backtrack_threshold

    def greedy(prompt: RagPrompt, _: str) -> list[DecodedAnswer]:
        report = monitor.generate(prompt, do_sample=False, max_new_tokens=limits.max_new_tokens)
        return [DecodedAnswer.of(GREEDY, report, sampled_tokens=len(report.tokens))]

    def plain(name: str, generator: AbstainGenerator | BestOfNGenerator | CADGenerator) -> Decode:
        def decode(prompt: RagPrompt, _: str) -> list[DecodedAnswer]:
            out = generator.generate(prompt, return_dict_in_generate=True, **_arguments(limits))
            return [DecodedAnswer.of(name, out.report, sampled_tokens=out.sampled_tokens)]

        return decode

    best_of_n = BestOfNGenerator(*models, reward=lambda report: report.faithfulness, samples=limits.best_of)
    backtrack = BacktrackGenerator(*models, backtrack_threshold=tau_1)
    own: dict[str, Any] = {"beam_size": limits.beam_size, "samples": limits.samples_per_step}
    return {
        GREEDY: greedy,
        CAD: plain(CAD, CADGenerator(*models)),
        ABSTAIN: plain(ABSTAIN, AbstainGenerator(*models, threshold=tau_1)),
        limits.best_of_name: plain(limits.best_of_name, best_of_n),
        BACKTRACK: _verified(BACKTRACK, backtrack, limits),
        FOD: _verified(FOD, _fod(monitor, limits, **own), limits),
        FOD_BRANCH: _verified(FOD_BRANCH, _branching(monitor, threshold=limits.branch_threshold), limits),
    }


def swept_decoders(monitor: Monitor, limits: DecodingLimits, *, pairs: Sequence[tuple[int, int]]) -> dict[str, Decode]:
    """Return FOD with each pair of K and S, in place of those in ``limits`` (paper, Figures 6 and 7)."""
    return {
        swept_name(k, s): _verified(swept_name(k, s), _fod(monitor, limits, beam_size=k, samples=s), limits)
        for k, s in pairs
    }


def swept_name(beam_size: int, samples: int) -> str:
    """Return the name of FOD with this K and S."""
    return f"FOD K={beam_size} S={samples}"


def candidates_for(fod_tokens: Sequence[int], answer_tokens: Sequence[float]) -> int:
    """Return how many answers to sample for each prompt so that at least as many tokens are decoded as by FOD.

    Parameters
    ----------
    fod_tokens
        Tokens that FOD decoded for each prompt, thrown away or not; at least one prompt.
    answer_tokens
        Tokens of one sampled answer to each prompt, on average.

    Returns
    -------
    int
        At least 1; the same for all prompts, so that it is the sums that match.

    Raises
    ------
    InputError
        If no answer has a token.
    """
    if not any(answer_tokens):
        raise InputError("expected answers with tokens to match; found none")
    wanted, mean = sum(fod_tokens) / len(fod_tokens), sum(answer_tokens) / len(answer_tokens)
    return max(1, math.ceil(wanted / mean))


def reranking(monitor: Monitor, limits: DecodingLimits, *, candidates: int) -> Decode:
    """Return a decoder that samples answers once and lets each signal of :data:`RERANKINGS` choose among them."""
    models = (monitor.model, monitor.tokenizer, monitor)
    rankers = {name: BestOfNGenerator(*models, reward=by, samples=candidates) for name, by in RERANKINGS.items()}
    sampler, *_ = rankers.values()

    def decode(prompt: RagPrompt, _: str) -> list[DecodedAnswer]:
        out = sampler.generate(prompt, return_dict_in_generate=True, **_arguments(limits))
        chosen = {name: _best(out.samples, ranker) for name, ranker in rankers.items()}
        return [DecodedAnswer.of(name, each, sampled_tokens=out.sampled_tokens) for name, each in chosen.items()]

    return decode


def _best(samples: Sequence[Report], ranker: BestOfNGenerator) -> Report:
    """Choose as the ranker does: the first answer with the highest reward."""
    rewards = [ranker.reward(report) for report in samples]
    return max(zip(rewards, samples, strict=True), key=lambda pair: -math.inf if pair[0] is None else pair[0])[1]


def branching_key(alpha: float) -> str:
    """Name of FOD that branches under this contrast, at all ``branch_thresholds``, for jobs and the log."""
    return f"{FOD_BRANCH} alpha={alpha:g}"


def branching_name(alpha: float, threshold: float) -> str:
    """Name of FOD that branches under this contrast at one threshold."""
    return f"{branching_key(alpha)} tau={threshold:g}"


def branching_over_thresholds(monitor: Monitor, limits: DecodingLimits, *, alpha: float) -> Decode:
    """Return a decoder that branches at each of ``limits.branch_thresholds``.

    It decodes at the highest first; at a lower one only where some sentence tried so far scored between the two, since
    nothing else lets the answer differ.
    """
    generators = {tau: _branching(monitor, alpha=alpha, threshold=tau) for tau in limits.branch_thresholds}

    def decode(prompt: RagPrompt, prompt_name: str) -> list[DecodedAnswer]:
        found: list[DecodedAnswer] = []
        scores: list[float] = []
        above = math.inf
        for tau in sorted(generators, reverse=True):
            if not found or any(tau <= score < above for score in scores):
                out = generators[tau].generate(prompt, return_dict_in_generate=True, **_arguments(limits))
                require_verified(out.report, generators[tau].thresholds, prompt=prompt_name)
                answer = DecodedAnswer.of(
                    "", out.report, sampled_tokens=out.sampled_tokens, backtracked=out.search.backtracked
                )
                tried = [s.score for each in out.search.rounds for c in each.candidates for s in c.sentences]
                scores = [score for score in tried if score is not None]
            else:
                answer = found[-1]
            found.append(replace(answer, decoder=branching_name(alpha, tau)))
            above = tau
        return found

    return decode


def _branching(monitor: Monitor, *, alpha: float = REPAIR.alpha, threshold: float | None) -> FODGenerator:
    config = RepairConfig(backtrack_threshold=threshold, alpha=alpha)
    return FODGenerator(monitor.model, monitor.tokenizer, monitor, config=config)


def _fod(monitor: Monitor, limits: DecodingLimits, *, beam_size: int, samples: int) -> FODGenerator:
    return FODGenerator(
        monitor.model,
        monitor.tokenizer,
        monitor,
        backtrack_threshold=limits.backtrack_threshold,
        prune_threshold=limits.prune_threshold,
        beam_size=beam_size,
        samples_per_step=samples,
    )


def _verified(name: str, generator: FODGenerator, limits: DecodingLimits) -> Decode:
    def decode(prompt: RagPrompt, prompt_name: str) -> list[DecodedAnswer]:
        out = generator.generate(prompt, return_dict_in_generate=True, **_arguments(limits))
        require_verified(out.report, generator.thresholds, prompt=prompt_name)
        tokens = out.sampled_tokens
        return [DecodedAnswer.of(name, out.report, sampled_tokens=tokens, backtracked=out.search.backtracked)]

    return decode


def _arguments(limits: DecodingLimits) -> dict[str, Any]:
    return {"seed": limits.seed, "do_sample": False, "max_new_tokens": limits.max_new_tokens}
