"""Calibration of a trained monitor on held-out sentences, and thresholds with a guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.aggregators import Aggregator, CalibrationMethod, RiskControlledThreshold, fit_calibration
from syncheck.base.checks import check_choice, scores_with_labels
from syncheck.base.errors import InputError, InsufficientDataError
from syncheck.config import VERDICT_THRESHOLDS, MonitorConfig
from syncheck.evaluation.metrics import cross_fitted_calibration, expected_calibration_error
from syncheck.features.schemas import is_of_paper
from syncheck.labelling.responses import Rule
from syncheck.model_monitor import ModelMonitor
from syncheck.results.types import Floats
from syncheck.training.measured import MeasuredSentences, against_references, check_measured_by
from syncheck.training.provenance import question_digests, refuse_seen
from syncheck.training.sets import MORE_LABELS, ReleaseCurve, release_curve, thresholds_of
from syncheck.verifier import Verifier

Thresholding = Literal["carried", "chosen"]
THRESHOLDS = ("backtrack_threshold", "prune_threshold", *VERDICT_THRESHOLDS)


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A calibrated monitor, and the quality of its scores on the held-out sentences."""

    monitor: ModelMonitor | Verifier
    """Its aggregator has a ``calibration`` and, if requested, a ``calibrated_threshold``; FOD's are on that scale."""
    raw: NDArray[np.float64]
    out_of_fold: NDArray[np.float64]
    """(N,) float64: scores after calibration (``raw``: before), by maps fitted without the question of the sentence."""
    y: NDArray[np.int64]
    """(N,) int64: 1 faithful, 0 unfaithful."""
    curve: ReleaseCurve
    """Shares by threshold on the calibrated scores."""

    @property
    def threshold(self) -> RiskControlledThreshold | None:
        """The threshold with its guarantee; None if none was requested."""
        assert self.monitor.aggregator is not None
        return self.monitor.aggregator.calibrated_threshold

    @property
    def ece_before(self) -> float:
        """Expected calibration error of the raw scores, in [0, 1]."""
        return expected_calibration_error(self.raw, self.y)

    @property
    def ece_after(self) -> float:
        """Expected calibration error of the calibrated scores ``out_of_fold``, in [0, 1]."""
        return expected_calibration_error(self.out_of_fold, self.y)


def calibrate_monitor(
    monitor: ModelMonitor | Verifier,
    measured: MeasuredSentences,
    *,
    method: CalibrationMethod = "isotonic",
    risk: float | None = 0.05,
    confidence: float = 0.9,
    every_sentence: bool = False,
    thresholds: Thresholding = "carried",
    good_share: float | None = None,
    rule: Rule = "overlap",
    seed: int = 0,
) -> Calibrated:
    """Calibrate a monitor on held-out questions, and choose the score from which sentences may be shown.

    An existing calibration is replaced, and the questions of ``measured``, held-out sentences as this monitor measured
    them, are then among those that it has seen; LID is measured against its own references. Sentences without a score,
    or labelled as claiming nothing, do not count. If some have no label, the labelled ones may have been chosen by
    their scores: the share of faithful sentences is then the one that the calibration expects over all, and no
    guarantee is possible. ``method`` is as in :func:`syncheck.aggregators.fit_calibration`, ``rule`` as in
    :func:`syncheck.labelling.label_sentences`.

    ``risk`` and ``confidence`` are as in :func:`choose_risk_controlled_threshold`; a risk of None calibrates without a
    threshold. The calibration is fitted to all sentences, the threshold chosen on one random sentence of each question,
    drawn with ``seed``; ``every_sentence`` chooses it on all as if they were independent, which those of one question
    are not, so that the guarantee may fail more often than stated.

    ``thresholds`` of FOD and of the verdicts are ``carried`` over to the calibrated scores, where they separate the
    same sentences, or ``chosen`` again by the rules of :func:`train_measured`, with the calibrated scores of sentences
    without a label. ``good_share``, in (0, 1], sets tau_1, which FOD, backtracking and abstention use, to the lowest
    score from which this share of sentences is faithful, and tau_2 to no less; None leaves it. Choose it on answers of
    the decoder that it is for, whose choices change the scores.

    A monitor without an aggregator or that has seen a question (:func:`seen_records`), sentences that cannot be
    calibrated on, and missing labels where a guarantee or a share is requested raise InputError; sentences that do not
    support the guarantee InsufficientDataError; and those of another model, aligner or configuration MismatchError.
    """
    aggregator = monitor.aggregator
    if aggregator is None:
        raise InputError("the monitor has no aggregator, so it has no scores to calibrate; train it first")
    refuse_seen(monitor, measured.records)
    check_measured_by(measured, monitor)
    measured = against_references(measured, monitor)
    check_choice(thresholds, "thresholds", Thresholding)
    counted = measured.checkable if is_of_paper(measured.schema.version) else measured.claims
    scored = np.flatnonzero(counted & ~measured.no_claim)
    labelled = measured.labelled[scored]
    used = scored[labelled]
    if (risk is not None or good_share is not None) and not labelled.all():
        raise InputError(
            "a threshold that controls the share of unfaithful sentences needs a label for every sentence; found "
            f"{int((~labelled).sum())} of {len(scored)} without. Sentences that were chosen, for example by their "
            "scores, are not a random sample: label whole answers that were drawn at random, or calibrate without "
            "such a threshold (risk=None, --risk none, without --good-share)"
        )
    y, groups = measured.labels(rule=rule)[used], measured.groups[used]
    uncalibrated = replace(aggregator, calibration=None, calibrated_threshold=None, prior=None)
    raw_of_all = uncalibrated.score(measured.values[scored])
    raw = raw_of_all[labelled]
    calibration = fit_calibration(raw, y, method=method)
    scores = calibration.probability(raw)
    of_all = calibration.probability(raw_of_all)
    expected = np.array(of_all)
    expected[labelled] = y
    threshold = None
    if risk is not None:
        drawn_from = None if every_sentence else groups
        threshold = _guaranteed(scores, y, groups=drawn_from, risk=risk, confidence=confidence, seed=seed)
    calibrated = replace(
        uncalibrated, calibration=calibration, calibrated_threshold=threshold, base_rate=float(expected.mean())
    )
    if thresholds == "chosen":
        moved = thresholds_of(of_all, expected, remedy="keep the monitor's thresholds (--thresholds carried)")
    else:
        moved = _carried(monitor.config, aggregator, calibrated)
    config = replace(monitor.config, **moved)
    counts = len(np.unique(groups)), int((y == 1).sum()), int((y == 0).sum())
    if min(counts) < 2:
        raise InputError(
            "the error of a calibration is measured on held-out questions, which needs at least two questions, two "
            f"faithful and two unfaithful sentences; found {counts[0]}, {counts[1]} and {counts[2]}. {MORE_LABELS}"
        )
    curve = release_curve(scores, y)
    if good_share is not None:
        tau_1 = curve.threshold_for(good_share)
        config = replace(config, backtrack_threshold=tau_1, prune_threshold=max(config.prune_threshold, tau_1))
    return Calibrated(
        monitor.replaced(
            config=config,
            aggregator=calibrated,
            trained_on=monitor.trained_on | question_digests(measured.records),
            name=None,
        ),
        raw=raw,
        out_of_fold=cross_fitted_calibration(raw, y, groups, method=method, folds=min(FOLDS, *counts), seed=seed),
        y=y,
        curve=curve,
    )


def _guaranteed(scores: Floats, y: NDArray[np.int64], **options: Any) -> RiskControlledThreshold:
    try:
        return choose_risk_controlled_threshold(scores, y, **options)
    except InsufficientDataError as error:
        raise InsufficientDataError(
            f"{error}; or calibrate without the guarantee (risk=None, --risk none), if you like with a threshold by "
            "the share of faithful sentences (good_share=0.9, --good-share 0.9)"
        ) from error


def _carried(config: MonitorConfig, before: Aggregator, after: Aggregator) -> dict[str, Any]:
    """Carry thresholds on the old scores over to the new scale, so that they separate the same sentences."""
    assert after.calibration is not None
    given = {name: value for name in THRESHOLDS if (value := getattr(config, name)) is not None}
    at_base = replace(before, base_rate=before.prior, prior=before.base_rate) if before.prior is not None else before
    held = at_base.at_prior(list(given.values()))
    raw = held if before.calibration is None else before.calibration.raw(held)
    return dict(zip(given, after.calibration.probability(raw).tolist(), strict=True))


FOLDS = 5
"""Largest number of folds for the calibration error."""
FIRST_TOLERATED = 2
"""Number of unfaithful sentences, which may be annotation errors, that the strictest threshold tolerates."""
FIRST_SHARE = 0.1
"""Least share of sentences above the strictest threshold, so that more data do not make it stricter."""
STEPS = 100
"""Each later threshold releases another hundredth of the sentences, or one more."""


def choose_risk_controlled_threshold(
    scores: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None,
    risk: float = 0.05,
    confidence: float = 0.9,
    seed: int = 0,
) -> RiskControlledThreshold:
    """Choose the lowest threshold that keeps the share of unfaithful sentences among those released small.

    ``scores`` (N,) are P(faithful) in [0, 1] of sentences that the aggregator was not trained on, of which only the
    order matters, ``y`` (N,) their labels, 1 faithful and 0 unfaithful, and ``groups`` (N,) their questions, of each of
    which one random sentence counts; None counts every sentence and assumes that they are independent. Of the sentences
    with a score of at least the threshold, at most the share ``risk`` is unfaithful, with probability ``confidence``;
    both are in (0, 1). Fix ``seed``, that of the draw from each question, beforehand: trying seeds until one pleases
    breaks the guarantee.

    Other shapes and values raise InputError. If not even the strictest threshold satisfies the guarantee,
    InsufficientDataError says how many sentences are above it, how many of them are unfaithful, and how many sentences
    with so many unfaithful ones the guarantee needs.

    Notes
    -----
    Fixed sequence testing (Learn-then-Test, Angelopoulos et al., 2021). Only the ranks of the scores decide which
    thresholds are tried: above the first are 10 % of the sentences, and enough to tolerate two unfaithful ones (105 for
    5 % and 90 %); each later one has another hundredth above it, and the last releases all. From the strictest down,
    each is tested by the exact binomial bound (Clopper-Pearson), and the first failure ends the search; so the number
    of thresholds needs no correction.

    The guarantee holds over the draw of these sentences, for new ones drawn in the same way: with the same questions,
    retriever, generators and annotators. It is exact if the share of unfaithful sentences above a threshold crosses
    ``risk`` only once as the threshold falls, as it does if scores rise with faithfulness; otherwise approximate.
    """
    values, labels = scores_with_labels(scores, y)
    for name, value in (("risk", risk), ("confidence", confidence)):
        if not 0 < value < 1:
            raise InputError(f"{name} must be above 0 and below 1; found {value}")
    if one_per_question := groups is not None:
        names = np.asarray(groups)
        if names.shape != values.shape:
            raise InputError(f"groups must be {values.shape}, one for each sentence; found {names.shape}")
        drawn = one_of_each_group(names, seed=seed)
        values, labels = values[drawn], labels[drawn]
    chosen = None
    for threshold in _sequence(values, risk, confidence):
        kept = values >= threshold
        released, unfaithful = int(kept.sum()), int((labels[kept] == 0).sum())
        bound = unfaithful_bound(unfaithful, released, confidence=confidence)
        if bound > risk:
            break
        counts = (len(values), released, unfaithful)
        chosen = RiskControlledThreshold(threshold, risk, confidence, *counts, bound, one_per_question)
    if chosen is None:
        each = ", one of each question" if one_per_question else ""
        needed = sentences_needed(unfaithful, risk=risk, confidence=confidence)
        raise InsufficientDataError(
            f"no threshold keeps the guarantee of at most {risk:.3g} unfaithful with {confidence:.3g} confidence: of "
            f"the {released} held-out sentences with the highest scores, out of {len(values)}{each}, {unfaithful} are "
            f"unfaithful; with {unfaithful} unfaithful it needs {needed}. Label more, or allow a higher risk or "
            "a lower confidence"
        )
    return chosen


def unfaithful_bound(unfaithful: int, released: int, *, confidence: float) -> float:
    """Compute the Clopper-Pearson upper bound on the share of unfaithful sentences, in [0, 1].

    At it, ``unfaithful`` or fewer among ``released`` have probability ``1 - confidence``; 1 if all are unfaithful.
    """
    from scipy.special import betaincinv

    if unfaithful == released:
        return 1.0
    return float(betaincinv(unfaithful + 1, released - unfaithful, confidence))


def one_of_each_group(groups: ArrayLike, *, seed: int) -> NDArray[np.int64]:
    """Draw one random sentence of each group, as indices in ascending order."""
    names = np.asarray(groups)
    order = np.random.default_rng(seed).permutation(len(names))
    _, first = np.unique(names[order], return_index=True)
    return np.sort(order[first]).astype(np.int64)


def _sequence(values: Floats, risk: float, confidence: float) -> Iterator[float]:
    """Yield the thresholds to test, from the strictest down; sentences with equal scores are not separated."""
    falling = np.sort(values)[::-1]
    count = len(values)
    above = max(math.ceil(FIRST_SHARE * count), sentences_needed(FIRST_TOLERATED, risk=risk, confidence=confidence))
    while above < count:
        above = int(np.searchsorted(-falling, -falling[above - 1], side="right"))
        if above < count:
            # Just over the next score: what is released is what was tested, whatever lies between the two.
            yield float(np.nextafter(falling[above], np.inf))
            above += max(1, count // STEPS)
    yield 0.0


def sentences_needed(unfaithful: int = 0, *, risk: float = 0.05, confidence: float = 0.9) -> int:
    """Count the fewest sentences above a threshold, ``unfaithful`` of them unfaithful, that guarantee ``risk``."""
    from scipy.stats import nbinom

    return int(unfaithful + 1 + nbinom.ppf(confidence, unfaithful + 1, risk))
