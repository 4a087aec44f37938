"""Labelled sets of measured sentences, and thresholds chosen on held-out ones."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.base.checks import check_choice, labels_found, real_numbers
from syncheck.base.errors import InputError, InsufficientDataError
from syncheck.base.printable import shortened
from syncheck.base.records import SHOWN
from syncheck.config import KEPT as KEPT
from syncheck.config import PRECISION as PRECISION
from syncheck.evaluation.metrics import FoldFeatures
from syncheck.labelling.responses import LabelledResponse, Rule
from syncheck.training.measured import MeasuredSentences

logger = logging.getLogger(__name__)

SetName = Literal["strict", "paper"]
"""``strict``: sentences with a letter, which are unfaithful if they overlap any span, even one that is true of the
world. ``paper``: all sentences, which are unfaithful if a span contains them or they contain it, unless it is marked as
true of the world. Responses without a context are in neither."""


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """N of M measured sentences, with their labels."""

    measured: MeasuredSentences
    labels: NDArray[np.int64]
    """(M,) int64: labels of all measured sentences, 1 faithful, 0 unfaithful."""
    used: NDArray[np.int64]
    """(N,) int64: indices of the sentences that count."""

    @classmethod
    def scored(cls, measured: MeasuredSentences, *, rule: Rule) -> LabelledSet:
        """Select the labelled sentences that can be checked, with their labels by a rule."""
        return cls(measured, measured.labels(rule=rule), np.flatnonzero(measured.checkable & measured.labelled))

    @property
    def data(self) -> tuple[FoldFeatures, NDArray[np.int64], NDArray[np.str_]]:
        """Features, labels and groups, as the functions of :mod:`syncheck.evaluation` take them."""
        return self.features, self.y, self.groups

    @property
    def y(self) -> NDArray[np.int64]:
        """Label of each sentence, (N,)."""
        return self.labels[self.used]

    @property
    def groups(self) -> NDArray[np.str_]:
        """Group of each sentence, (N,)."""
        return self.measured.groups[self.used]

    @property
    def records(self) -> list[LabelledResponse]:
        """The responses of these sentences."""
        return [self.measured.records[owner] for owner in np.unique(self.measured.owners[self.used])]

    def features(self, train: NDArray[np.int64]) -> NDArray[np.float64]:
        """Compute features (N, F) whose LID references are among the sentences ``train`` (indices below N)."""
        return self.measured.features(self.labels, self.used[train])[self.used]


def labelled_set(measured: MeasuredSentences, name: SetName) -> LabelledSet:
    """Select a benchmark set of measured sentences; see :data:`SetName`. An unknown name raises InputError."""
    check_choice(name, "the set", SetName)
    strict = name == "strict"
    labels = measured.labels(rule="overlap") if strict else measured.labels(rule="paper", implicit_true=False)
    used = measured.with_context & measured.labelled & (measured.with_letter | (not strict))
    return LabelledSet(measured, labels, np.flatnonzero(used))


HELD_OUT_FOLDS = 5
"""Number of folds on whose held-out scores a monitor's thresholds are chosen."""
MORE_LABELS = "Label responses to more questions"
_WHY = f"because the thresholds are chosen by cross-validation with {HELD_OUT_FOLDS} folds"


def check_questions(records: Sequence[LabelledResponse]) -> None:
    """Refuse, with an InputError, records with a context of fewer questions than folds."""
    groups = [record.group for record in records if record.has_context]
    if (count := len(set(groups))) < HELD_OUT_FOLDS:
        one = "Records of one group are one question; without groups, so are those with the same question and a passage"
        raise InputError(
            f"training needs at least {HELD_OUT_FOLDS} questions with a context, {_WHY}; found {count} in "
            f"{len(records)} records. {MORE_LABELS}{f'. {one} in common' if count < len(groups) else ''}"
        )


def check_enough(chosen: LabelledSet) -> None:
    """Refuse, with an InputError, fewer sentences of either label than folds, or as few questions."""
    faithful, unfaithful = int((chosen.y == 1).sum()), int((chosen.y == 0).sum())
    if min(faithful, unfaithful) < HELD_OUT_FOLDS:
        raise InputError(
            f"training needs at least {HELD_OUT_FOLDS} faithful and {HELD_OUT_FOLDS} unfaithful sentences, {_WHY}; "
            f"found {faithful} and {unfaithful}. {MORE_LABELS}"
        )
    check_questions(chosen.records)


def warn_of_one_label_each(chosen: LabelledSet) -> None:
    """Warn if each generator has sentences of one label only: what tells the generators apart would tell the labels."""
    names = chosen.measured.generators[chosen.used]
    found = {str(name): set(chosen.y[names == name].tolist()) for name in np.unique(names)}
    if len(found) > 1 and all(len(labels) == 1 for labels in found.values()):
        shown = ", ".join(f"{name} {'faithful' if 1 in labels else 'unfaithful'}" for name, labels in found.items())
        logger.warning(
            "the sentences of each generator, the model that wrote them, have one label only (%s): the monitor may "
            "learn to tell these models apart, and its figures would not show it. Label sentences of both kinds by at "
            "least one of them",
            shortened(shown, SHOWN),
        )


PRUNE_ALARMS = 2.5
"""Factor by which more faithful sentences may lie below tau_2, which prunes samples, than below tau_1, which costs a
search."""
LEAST_SUPPORTED = 10
"""Number of held-out sentences that must reach a threshold for their share of faithful ones to count."""
NEVER = 1.0
"""Threshold that P(faithful) stays below."""


class Thresholds(NamedTuple):
    """FOD's tau_1 and tau_2, ``backtrack <= prune``: scores below which a sentence is taken back, a sample dropped."""

    backtrack: float
    prune: float


def choose_thresholds(scores: ArrayLike, y: ArrayLike, *, kept: float = KEPT) -> Thresholds:
    """Choose both thresholds by the share of faithful sentences that stay above them.

    ``backtrack`` is the largest score of a faithful sentence that has at most ``1 - kept`` of the faithful sentences
    below it, and ``prune`` the same with 2.5 times that share.

    ``scores`` (N,) are P(faithful) of sentences that the aggregator was not trained on, and ``y`` (N,) their labels: 1
    faithful, 0 unfaithful. A sentence without a label may have a calibrated probability, in (0, 1), in its place.
    Different shapes, a value outside its range, (0, 1] for ``kept``, and a missing label raise InputError.
    """
    if not 0 < kept <= 1:
        raise InputError(f"the share of faithful sentences kept must be above 0 and at most 1; found {kept}")
    values, labels = _scores_and_labels(scores, y)
    order = np.argsort(values, kind="stable")
    order = order[labels[order] > 0]
    below = np.cumsum(labels[order]) - labels[order]
    alarms = np.minimum(np.array([1.0, PRUNE_ALARMS]) * round(1 - kept, 9), 1.0)
    places = np.searchsorted(below, alarms * labels.sum(), side="right") - 1
    return Thresholds(*values[order[places]].tolist())


class VerdictThresholds(NamedTuple):
    """Scores below which a sentence is called unsupported, and from which it is called supported.

    ``supported`` is None if the labels do not give the precision asked for; ``precision`` is then the largest of any.
    """

    unsupported: float
    supported: float | None
    precision: float


def choose_verdict_thresholds(scores: ArrayLike, y: ArrayLike, *, precision: float = PRECISION) -> VerdictThresholds:
    """Choose the thresholds of verdicts by the share of faithful sentences among those called supported.

    ``supported`` is the lowest threshold such that of the sentences that reach it, which must be ten or more, at least
    the share ``precision``, in (0, 1], is faithful. ``unsupported``, at most as high, is the threshold that leaves the
    fewest faithful sentences below it and unfaithful ones above it; of equals, the lowest. Thresholds lie midway
    between two scores. ``scores`` and ``y`` are as in :func:`choose_thresholds`, and so are the errors.
    """
    if not 0 < precision <= 1:
        raise InputError(f"the precision must be above 0 and at most 1; found {precision}")
    values, labels = _scores_and_labels(scores, y)
    order = np.argsort(values, kind="stable")
    distinct, firsts = np.unique(values[order], return_index=True)
    thresholds = np.append(distinct[0], distinct[:-1] + np.diff(distinct) / 2)  # midway, so that neither side is near
    below = np.append(0.0, np.cumsum(labels[order]))[firsts]  # faithful sentences below each threshold
    reach = len(values) - firsts
    good = labels.sum() - below
    shares = np.where(reach >= LEAST_SUPPORTED, good / reach, 0.0)
    precise = np.flatnonzero(shares >= precision)
    last = precise[0] if len(precise) else len(thresholds) - 1
    unsupported = float(thresholds[np.argmin((below + reach - good)[: last + 1])])
    if not len(precise):
        return VerdictThresholds(unsupported, None, float(shares.max()))
    return VerdictThresholds(unsupported, float(thresholds[last]), float(shares[last]))


def _scores_and_labels(scores: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values, labels = real_numbers(scores, "scores").astype(np.float64), real_numbers(y, "labels").astype(np.float64)
    if not ((labels >= 0) & (labels <= 1)).all() or not labels.any() or (labels == 1).all():
        raise InputError(
            f"thresholds need sentences of both labels, but found {labels_found(labels)}; hold out more sentences"
        )
    return values, labels


def thresholds_of(
    scores: ArrayLike,
    y: ArrayLike,
    *,
    precision: float = PRECISION,
    kept: float = KEPT,
    remedy: str = "name a lower precision (--precision)",
) -> dict[str, Any]:
    """Choose the decoder's thresholds and those of verdicts, as fields of a config.

    A warning, which ends with the ``remedy``, says if none is ``supported``.
    """
    decoder = choose_thresholds(scores, y, kept=kept)
    verdicts = choose_verdict_thresholds(scores, y, precision=precision)
    if verdicts.supported is None:
        logger.warning(
            "no sentence will be called supported: expected a threshold that %d or more held-out sentences reach, %.3g "
            "of them faithful, found at most %.3g; label more, or %s",
            LEAST_SUPPORTED,
            precision,
            verdicts.precision,
            remedy,
        )
    return {
        "backtrack_threshold": decoder.backtrack,
        "prune_threshold": decoder.prune,
        "unsupported_threshold": verdicts.unsupported,
        "supported_threshold": NEVER if verdicts.supported is None else verdicts.supported,
    }


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseCurve:
    """Shares of released sentences, and of faithful ones among them, by threshold."""

    thresholds: NDArray[np.float64]
    """(T,) float64: the distinct scores of the sentences, ascending."""
    good: NDArray[np.float64]
    """(T,) float64: share of faithful sentences among those that reach the threshold."""
    kept: NDArray[np.float64]
    """(T,) float64: share of all sentences that reach the threshold."""

    def threshold_for(self, share: float) -> float:
        """Find the lowest threshold at which at least this share, in (0, 1], of the released sentences is faithful.

        Another share raises InputError, and one that no threshold reaches InsufficientDataError.
        """
        if not 0 < share <= 1:
            raise InputError(f"the share of good sentences must be above 0 and at most 1; found {share}")
        reached = np.flatnonzero(self.good >= share)
        if not len(reached):
            raise InsufficientDataError(
                f"expected a threshold above which {share:g} of the sentences are faithful; found at most "
                f"{self.good.max():.3f}. Pass a smaller share, or use a monitor that separates them better"
            )
        return float(self.thresholds[reached[0]])


def release_curve(scores: ArrayLike, y: ArrayLike) -> ReleaseCurve:
    """Compute the shares of released sentences, and of faithful ones among them, by threshold.

    ``scores`` (N,) are P(faithful) of at least one held-out sentence; ``y`` (N,) is 1 for faithful, 0 for unfaithful.
    """
    values, labels = np.asarray(scores, np.float64), np.asarray(y, np.float64)
    thresholds, firsts = np.unique(np.sort(values), return_index=True)
    left = len(values) - firsts
    good = np.cumsum(labels[np.argsort(values, kind="stable")][::-1])[left - 1]
    return ReleaseCurve(thresholds, good / left, left / len(values))
