"""Faithfulness and informativeness of decoders over the same prompts, and their differences.

Every interval is 95 %, from a bootstrap over prompts; the same resamples serve all decoders, so that differences are
paired.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from decoding.answers import EvaluatedAnswer
from fod import is_near_repeat
from syncheck.base.errors import InputError
from syncheck.evaluation.metrics import BootstrapSamples, bootstrap_interval

__all__ = ["DecoderFigures", "Difference", "Estimate", "decoder_figures", "difference"]

RESAMPLES = 2000

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % interval; NaN where there is nothing to compute it from."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class DecoderFigures:
    """Means over the prompts (paper, section 4.3).

    Attributes
    ----------
    decoder : str
    prompts, empty, repeats : int
        How many there are, how many of the answers are empty, abstentions among them, and how many sentences nearly
        repeat an earlier one of their answer.
    faithfulness : Estimate
        Share of an answer's propositions that are supported, in [0, 1]; empty answers are left out.
    informativeness, supported : Estimate
        Propositions an answer, and those of them that are supported; an empty one has 0.
    faithfulness_at : tuple of Estimate
        Faithfulness of answers cut after L = 1, 2, ... sentences; shorter answers count whole, empty ones are left out.
    sentences, tokens, sampled_tokens, seconds, backtracked : Estimate
        Of an answer; ``backtracked`` is a share in [0, 1].
    """

    decoder: str
    prompts: int
    empty: int
    repeats: int
    faithfulness: Estimate
    informativeness: Estimate
    supported: Estimate
    faithfulness_at: tuple[Estimate, ...]
    sentences: Estimate
    tokens: Estimate
    sampled_tokens: Estimate
    seconds: Estimate
    backtracked: Estimate


@dataclass(frozen=True, slots=True)
class Difference:
    """Differences between two decoders over the same prompts.

    Attributes
    ----------
    decoder, baseline : str
    faithfulness : Estimate
        Of the decoder minus that of the baseline, each over its own answers that are not empty.
    faithfulness_relative : Estimate
        The same as a share of the baseline's: 0.15 is 15 % more faithful.
    faithfulness_where_both : Estimate
        Mean difference over the prompts that both answer, so that no decoder gains by leaving out hard ones.
    unfaithful_share : Estimate
        1 - faithfulness over that of the baseline: 0.5 is half as many unfaithful propositions.
    informativeness, informativeness_relative, supported : Estimate
    sentences_kept : Estimate
        Sentences of the decoder over those of the baseline; empty answers keep none.
    """

    decoder: str
    baseline: str
    faithfulness: Estimate
    faithfulness_relative: Estimate
    faithfulness_where_both: Estimate
    unfaithful_share: Estimate
    informativeness: Estimate
    informativeness_relative: Estimate
    supported: Estimate
    sentences_kept: Estimate


def decoder_figures(
    answers: Mapping[str, Sequence[EvaluatedAnswer]],
    *,
    longest: int = 5,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, DecoderFigures]:
    """Compute the figures of each decoder.

    Parameters
    ----------
    answers
        Of each decoder, to the same prompts in the same order.
    longest
        Largest L of faithfulness@L.
    resamples, seed
        Of the bootstrap.

    Raises
    ------
    InputError
        If there is no answer, or the decoders have answered different prompts.
    """
    sample = _Sample(answers, resamples, seed)
    return {
        name: DecoderFigures(
            decoder=name,
            prompts=len(given),
            empty=sum(each.answer.is_empty for each in given),
            repeats=sum(map(_repeats, given)),
            faithfulness=sample.mean(name, _faithfulness),
            informativeness=sample.mean(name, lambda each: each.informativeness),
            supported=sample.mean(name, _supported),
            faithfulness_at=tuple(sample.mean(name, _faithfulness_at(n)) for n in range(1, longest + 1)),
            sentences=sample.mean(name, _sentences),
            tokens=sample.mean(name, lambda each: each.answer.tokens),
            sampled_tokens=sample.mean(name, lambda each: each.answer.sampled_tokens),
            seconds=sample.mean(name, lambda each: each.answer.seconds),
            backtracked=sample.mean(name, lambda each: each.answer.backtracked),
        )
        for name, given in answers.items()
    }


def difference(
    decoder: str,
    baseline: str,
    answers: Mapping[str, Sequence[EvaluatedAnswer]],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Compare a decoder with another, both among ``answers``; otherwise as :func:`decoder_figures`."""
    missing = [name for name in (decoder, baseline) if name not in answers]
    if missing:
        raise InputError(f"expected answers of {decoder!r} and {baseline!r}; found none of {', '.join(missing)}")
    sample = _Sample({name: answers[name] for name in (decoder, baseline)}, resamples, seed)
    new, old = (sample.values(name, _faithfulness) for name in (decoder, baseline))
    facts = [(sample.drawn(sample.values(n, lambda each: each.informativeness))) for n in (decoder, baseline)]
    right = [sample.drawn(sample.values(n, _supported)) for n in (decoder, baseline)]
    lengths = [sample.drawn(sample.values(n, _sentences)) for n in (decoder, baseline)]
    means = [sample.drawn(new), sample.drawn(old)]
    return Difference(
        decoder=decoder,
        baseline=baseline,
        faithfulness=_estimate(means[0] - means[1]),
        faithfulness_relative=_estimate(_over(means[0] - means[1], means[1])),
        faithfulness_where_both=_estimate(sample.drawn(new - old)),
        unfaithful_share=_estimate(_over(1 - means[0], 1 - means[1])),
        informativeness=_estimate(facts[0] - facts[1]),
        informativeness_relative=_estimate(_over(facts[0] - facts[1], facts[1])),
        supported=_estimate(right[0] - right[1]),
        sentences_kept=_estimate(_over(lengths[0], lengths[1])),
    )


def _faithfulness(each: EvaluatedAnswer) -> float | None:
    return each.faithfulness


def _faithfulness_at(sentences: int) -> Callable[[EvaluatedAnswer], float | None]:
    return lambda each: each.faithfulness_at(sentences)


def _sentences(each: EvaluatedAnswer) -> int:
    return len(each.answer.scores)


def _supported(each: EvaluatedAnswer) -> int:
    return each.verdict.faithful


def _repeats(each: EvaluatedAnswer) -> int:
    starts = (0, *each.answer.sentence_ends)
    texts = [each.answer.response[start:end] for start, end in pairwise(starts)]
    return sum(any(is_near_repeat(text, earlier) for earlier in texts[:i]) for i, text in enumerate(texts))


class _Sample:
    """Answers of several decoders, and how often each prompt counts in each resample."""

    def __init__(self, answers: Mapping[str, Sequence[EvaluatedAnswer]], resamples: int, seed: int) -> None:
        prompts = {name: [each.prompt for each in given] for name, given in answers.items()}
        first = next(iter(prompts.values()), [])
        if not first:
            raise InputError("expected at least one answer; found none")
        for name, found in prompts.items():
            if found != first:
                raise InputError(
                    f"expected answers of {name!r} to the prompts of {next(iter(prompts))!r}, in their order; found "
                    f"{len(found)} of {len(first)}, or others. Let every decoder answer every prompt"
                )
        self._answers = answers
        counts = BootstrapSamples.of(np.arange(len(first)), draws=resamples, seed=seed).counts
        self._weights = np.vstack([np.ones(len(first)), counts])  # (1 + D, P)

    def values(self, name: str, figure: Callable[[EvaluatedAnswer], float | None]) -> Floats:
        """Return a figure of each answer, (P,); NaN where it has none."""
        found = [figure(each) for each in self._answers[name]]
        return np.array([np.nan if value is None else value for value in found], np.float64)

    def drawn(self, values: Floats) -> Floats:
        """Return the mean of the values that are not NaN, then that of each resample, (1 + D,)."""
        known = ~np.isnan(values)
        return _over(self._weights @ np.where(known, values, 0.0), self._weights @ known)

    def mean(self, name: str, figure: Callable[[EvaluatedAnswer], float | None]) -> Estimate:
        return _estimate(self.drawn(self.values(name, figure)))


def _over(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; NaN where there is nothing to divide by."""
    quotient: Floats = np.divide(numerator, denominator, out=np.full(len(numerator), np.nan), where=denominator != 0)
    return quotient


def _estimate(drawn: Floats) -> Estimate:
    return Estimate(float(drawn[0]), *bootstrap_interval(drawn[1:]))
