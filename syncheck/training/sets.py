"""Benchmark sets of measured sentences, and models compared as surrogates on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators.kinds import AggregatorKind
from syncheck.base.checks import check_choice
from syncheck.base.errors import InputError
from syncheck.evaluation.metrics import BootstrapSamples, FoldFeatures, Folding, cross_validate
from syncheck.evaluation.transfer import PAPER_RUNS, AurocMatrix, Cell, cell
from syncheck.labelling.responses import LabelledResponse, Rule
from syncheck.training.measured import MeasuredSentences

SetName = Literal["strict", "paper"]
"""``strict``: sentences with a letter, which are unfaithful if they overlap any span, even one that is true of the
world. ``paper``: all sentences, which are unfaithful if a span contains them or they contain it, unless it is marked as
true of the world. Neither has sentences of responses without a context, which get no score."""


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
        """Select the labelled sentences that get a score, with their labels by a rule."""
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
    def generators(self) -> NDArray[np.str_]:
        """Model that wrote each sentence, (N,)."""
        return self.measured.generators[self.used]

    @property
    def tasks(self) -> NDArray[np.str_]:
        """Task of each sentence, (N,); ``"unknown"`` if the file does not say."""
        return self.measured.tasks[self.used]

    @property
    def records(self) -> list[LabelledResponse]:
        """The responses of these sentences."""
        return [self.measured.records[owner] for owner in np.unique(self.measured.owners[self.used])]

    @property
    def ids(self) -> set[str]:
        """Ids of the responses that were measured."""
        return {record.id for record in self.measured.records}

    def features(self, train: NDArray[np.int64]) -> NDArray[np.float64]:
        """Compute features (N, F) whose LID references are among the sentences ``train`` (indices below N)."""
        return self.measured.features(self.labels, self.used[train])[self.used]

    def of(self, ids: Collection[str]) -> LabelledSet:
        """Keep only the sentences of the responses with these ids."""
        kept = [self.measured.records[owner].id in ids for owner in self.measured.owners[self.used]]
        return replace(self, used=self.used[np.array(kept, np.bool_)])


def labelled_set(measured: MeasuredSentences, name: SetName) -> LabelledSet:
    """Select a benchmark set of measured sentences; see :data:`SetName`. An unknown name raises InputError."""
    check_choice(name, "the set", SetName)
    if name == "strict":
        used = np.flatnonzero(measured.with_letter & measured.with_context & measured.labelled)
        return LabelledSet(measured, measured.labels(rule="overlap"), used)
    labels = measured.labels(rule="paper", implicit_true=False)
    return LabelledSet(measured, labels, np.flatnonzero(measured.with_context & measured.labelled))


EVERY_GENERATOR = "all"
"""Name of the column for the sentences of all generators."""


def surrogate_matrix(
    measured: Mapping[str, LabelledSet],
    *,
    trained_on: str | None = None,
    aggregator: AggregatorKind = "mlp",
    draws: int = 1000,
    **folding: Unpack[Folding],
) -> AurocMatrix:
    """Compare models as surrogates on the same labelled responses, measured with each of them.

    ``measured`` has sets by name of the surrogate; a response that one of them could not measure counts for none.
    Aggregators are trained on the sentences of the generator ``trained_on``, as the paper trains on those of the
    surrogate itself, or on all; folds are over groups either way, so that no question is on both sides. Rows are
    surrogates in the given order; columns are generators, sorted, and all together. If the sets have no response in
    common, or different ones under the same id, or no sentence is by ``trained_on``, InputError is raised.
    """
    folding = PAPER_RUNS | folding
    _check_same(measured)
    common = set.intersection(*(own.ids for own in measured.values())) if measured else set()
    if not common:
        raise InputError(f"expected files of the same responses; found no id that all have of {_listed(measured)}")
    cells: dict[tuple[str, str], Cell] = {}
    columns: set[str] = set()
    for name, everything in measured.items():
        own = everything.of(common)
        features, y, groups = own.data
        generators = own.generators
        train_on = None if trained_on is None else generators == trained_on
        if train_on is not None and not train_on.any():
            raise InputError(f"no sentence is by {trained_on!r}; the generators are {_listed(generators)}")
        scores = cross_validate(
            features,
            y,
            groups,
            aggregator=aggregator,
            train_on=train_on,
            names=everything.measured.schema.names,
            **folding,
        )
        resamples = BootstrapSamples.of(groups, draws=draws, seed=folding.get("seed", 0))
        columns |= set(generators.tolist())
        for column in set(generators.tolist()):
            cells[name, column] = cell(scores, y, resamples, generators == column)
        cells[name, EVERY_GENERATOR] = cell(scores, y, resamples, np.ones(len(y), np.bool_))
    return AurocMatrix("surrogate \\ generator", tuple(measured), (*sorted(columns), EVERY_GENERATOR), cells)


def _check_same(measured: Mapping[str, LabelledSet]) -> None:
    seen: dict[str, tuple[str, object]] = {}
    for name, own in measured.items():
        for record in own.measured.records:
            first, other = seen.setdefault(record.id, (name, record))
            if other != record:
                raise InputError(
                    f"expected the same labelled responses in {first!r} and {name!r}; found another response, prompt "
                    f"or label under the id {record.id!r}. Measure one file with both models"
                )


def _listed(names: Iterable[object]) -> str:
    return ", ".join(sorted({str(name) for name in names}))


HELD_OUT_FOLDS = 5
"""Number of folds on whose held-out scores a monitor's thresholds are chosen: training needs at least as many
questions, faithful sentences and unfaithful sentences."""

MORE_LABELS = "Label responses to more questions"
"""Remedy for responses that people labelled."""
_WHY = f"because the thresholds are chosen by cross-validation with {HELD_OUT_FOLDS} folds"


def check_questions(records: Sequence[LabelledResponse], *, remedy: str) -> None:
    """Refuse, with an InputError that ends in ``remedy``, records with a context of fewer questions than folds."""
    groups = [record.group for record in records if record.has_context]
    if (count := len(set(groups))) < HELD_OUT_FOLDS:
        one = "Records of one group are one question; without groups, so are those with the same question and a passage"
        raise InputError(
            f"training needs at least {HELD_OUT_FOLDS} questions with a context, {_WHY}; found {count} in "
            f"{len(records)} records. {remedy}{f'. {one} in common' if count < len(groups) else ''}"
        )


def check_labels(faithful: int, unfaithful: int, *, remedy: str) -> None:
    """Refuse, with an InputError that ends in ``remedy``, fewer sentences of either label than folds."""
    if min(faithful, unfaithful) < HELD_OUT_FOLDS:
        raise InputError(
            f"training needs at least {HELD_OUT_FOLDS} faithful and {HELD_OUT_FOLDS} unfaithful sentences, {_WHY}; "
            f"found {faithful} and {unfaithful}. {remedy}"
        )


def check_enough(chosen: LabelledSet, *, remedy: str) -> None:
    """Check the measured sentences that are trained on, in both ways."""
    check_labels(int((chosen.y == 1).sum()), int((chosen.y == 0).sum()), remedy=remedy)
    check_questions(chosen.records, remedy=remedy)
