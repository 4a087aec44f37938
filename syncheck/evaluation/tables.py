"""Systems to compare on the same folds, and tables of their AUROC and other metrics.

A system is a subset of features, a kind of aggregator, or all features but those of a signal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from typing import Any, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.aggregators.kinds import AggregatorKind, GivenKind, fit_model
from syncheck.base.checks import check_both_labels, real_numbers
from syncheck.base.errors import InputError
from syncheck.base.printable import aligned, printable
from syncheck.evaluation import metrics
from syncheck.features.schemas import SCHEMAS, TEXT_FEATURES
from syncheck.results.types import Floats

ALL_FEATURES = "all features"
"""Name of the system that reads every column."""

_LEXICAL = ("content_overlap", "bigram_overlap", "number_overlap", "log_tokens")


@dataclass(frozen=True, slots=True)
class System:
    """A way to score sentences from some of the columns; without training, by the value of the only one.

    ``aggregator`` is the kind to train, if it is not the one that is being evaluated.
    """

    name: str
    columns: tuple[str, ...]
    trained: bool = True
    aggregator: GivenKind | None = None


def benchmark_systems(names: Sequence[str]) -> tuple[System, ...]:
    """List the systems that the columns ``names`` allow, from content-word overlap, the cheapest, to all features."""
    published = set(SCHEMAS["paper.v1"])
    own = {name for schema in SCHEMAS.values() for name in schema} - published
    paper = tuple(name for name in names if name not in own)
    first = tuple(name for name in names if name in paper or name in SCHEMAS["syncheck.v1"])
    systems = (
        System("content-word overlap, untrained", ("content_overlap",), trained=False),
        System("overlap and length, MLP", _LEXICAL, aggregator="mlp"),
        System("least likely token (FLARE), untrained", ("min_prob",), trained=False),
        System("aligner, untrained", ("align_score",), trained=False),
        *([System("text alone", TEXT_FEATURES)] if set(TEXT_FEATURES) < set(names) else []),
        System("the paper's features", paper),
        *([System("features of syncheck.v1", first)] if len(first) < len(names) and set(first) - set(paper) else []),
        System(ALL_FEATURES, tuple(names)),
    )
    present = [system for system in systems if system.columns and set(system.columns) <= set(names)]
    return tuple(s for i, s in enumerate(present) if s.columns not in [t.columns for t in present[:i]])


def aggregator_systems(names: Sequence[str]) -> tuple[System, ...]:
    """Make a system with all columns for each kind of aggregator, the simplest first.

    ``monotone`` is left out: its probabilities do not hold at the share of faithful sentences in training.
    """
    return tuple(System(kind, tuple(names), aggregator=kind) for kind in get_args(AggregatorKind) if kind != "monotone")


def out_of_fold_scores(
    X: ArrayLike | metrics.FoldFeatures,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    names: Sequence[str],
    systems: Sequence[System],
    aggregator: AggregatorKind = "mlp",
    **folding: Unpack[metrics.Folding],
) -> dict[str, Floats]:
    """Score every sentence with every system, out of fold and on the same folds for trained ones.

    Parameters are those of :func:`~syncheck.evaluation.metrics.cross_validate`, with the names of the F columns.
    Returns scores (R, N) by name of the system; without training R is 1, and what was not measured gets the median.
    """
    labels = np.asarray(y)

    def trained(columns: metrics.FoldFeatures, system: System) -> Floats:
        kind = system.aggregator or aggregator
        return metrics.cross_validate(columns, labels, groups, aggregator=kind, names=system.columns, **folding)

    return _scores(X, np.arange(len(labels)), names, systems, trained)


def held_out_scores(
    X: ArrayLike | metrics.FoldFeatures,
    y: ArrayLike,
    train: NDArray[np.bool_],
    *,
    names: Sequence[str],
    systems: Sequence[System],
    aggregator: AggregatorKind = "mlp",
    repeats: int = 3,
    seed: int = 0,
) -> dict[str, Floats]:
    """Score the M sentences outside a training part with every system, (R, M), as in the paper's Table 1.

    The data are those of all sentences, as in :func:`out_of_fold_scores`; ``train`` (N,) is True for those on which
    systems are trained. Run ``r`` seeds the classifier with ``seed + r``; R is 1 without training. If there are no
    other sentences, or a system does not fit the columns, InputError is raised.
    """
    labels, inside, outside = np.asarray(y), np.flatnonzero(train), np.flatnonzero(~train)
    if not len(outside):
        raise InputError(f"all {len(labels)} sentences are for training; leave some to be scored")

    def trained(columns: metrics.FoldFeatures, system: System) -> Floats:
        rows, kind = columns(inside), system.aggregator or aggregator
        fitted = [
            fit_model(rows[inside], labels[inside], kind=kind, seed=seed + run, names=system.columns)
            for run in range(repeats)
        ]
        return np.stack([model.probability(rows[outside]) for model in fitted])

    return _scores(X, outside, names, systems, trained)


def _scores(
    X: ArrayLike | metrics.FoldFeatures,
    scored: NDArray[np.int64],
    names: Sequence[str],
    systems: Sequence[System],
    trained: Callable[[metrics.FoldFeatures, System], Floats],
) -> dict[str, Floats]:
    """Score some of the sentences, by a trained model or by the column of a system without training."""
    features_for = metrics.fold_features(X)
    scores = {}
    for system in systems:
        columns = partial(lambda places, train: features_for(train)[:, places], _places(system, names))
        if system.trained:
            scores[system.name] = trained(columns, system)
            continue
        column = columns(scored)[scored]
        if np.isnan(column).all():
            raise InputError(
                f"{system.name!r} has no score: {system.columns[0]} was never measured; leave the system out, or "
                "measure it"
            )
        scores[system.name] = np.where(np.isnan(column), np.nanmedian(column), column).T
    return scores


def _places(system: System, names: Sequence[str]) -> list[int]:
    if unknown := [column for column in system.columns if column not in names]:
        raise InputError(f"{system.name!r} names {', '.join(unknown)}; the columns are {', '.join(names)}")
    if not system.trained and len(system.columns) != 1:
        raise InputError(f"{system.name!r} is untrained, so it needs one column, not {len(system.columns)}")
    return [names.index(column) for column in system.columns]


def ablation_systems(names: Sequence[str], signals: Mapping[str, Sequence[str]]) -> tuple[System, ...]:
    """Make the system with all columns and, for each signal, the one without its columns, ``"without <signal>"``.

    ``signals`` are those of :func:`~syncheck.features.schemas.feature_groups`; fewer than two raise InputError.
    """
    if len(signals) < 2:
        raise InputError(
            f"an ablation needs columns of at least two signals; found {', '.join(signals) or 'none'}. Measure with a "
            "schema that has more"
        )
    left = {signal: tuple(name for name in names if name not in columns) for signal, columns in signals.items()}
    without = (System(f"without {signal}", columns) for signal, columns in left.items())
    return System(ALL_FEATURES, tuple(names)), *without


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """Metrics of one system on one subset of sentences: ``"all"``, a generator, a task, ...; with 95 % intervals.

    Values are NaN if a label is missing, and intervals also if a label occurs in only one group. ``gain`` is in AUROC
    over the table's first system on the same resamples, ``deviation`` the sample standard deviation of the AUROC over
    the repeats, NaN for one. ``auprc`` is of finding unfaithful sentences. ``balanced_accuracy`` is at a threshold
    chosen on other sentences, NaN without one. ``ece`` is NaN for scores outside [0, 1].
    """

    system: str
    subset: str
    auroc: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float
    sentences: int
    unfaithful: int
    deviation: float
    auprc: float
    auprc_low: float
    auprc_high: float
    balanced_accuracy: float
    balanced_accuracy_low: float
    balanced_accuracy_high: float
    ece: float
    ece_low: float
    ece_high: float


@dataclass(frozen=True, slots=True)
class EvaluationTable:
    """Rows by subset, then by system; gains are relative to the first system."""

    rows: tuple[EvaluationRow, ...]

    def by_subset(self) -> dict[str, list[EvaluationRow]]:
        """Group the rows by subset."""
        return {subset: list(rows) for subset, rows in groupby(self.rows, key=lambda row: row.subset)}

    def to_dict(self) -> dict[str, Any]:
        """Convert the rows for JSON; NaN becomes None."""
        return {"rows": [{key: metrics.json_number(value) for key, value in asdict(row).items()} for row in self.rows]}

    def to_text(self) -> str:
        """Write the table as plain text, with a block for each subset."""
        reference = self.rows[0].system
        header, *cells = aligned([_HEADER, *(_cells(row, reference) for row in self.rows)])
        lines, shown = [], iter(cells)
        for subset, rows in self.by_subset().items():
            lines += ["", f"{subset}: {rows[0].sentences} sentences, {rows[0].unfaithful} unfaithful"]
            lines += [f"  {next(shown)}" for _ in rows]
        note = f"95 % intervals over groups; gain: in AUROC over {reference}; AUPRC: of finding the unfaithful"
        return printable("\n".join([note, f"  {header}", *lines]))


_HEADER = ("system", "AUROC", "gain", "AUPRC", "balanced accuracy", "ECE", "deviation of AUROC")


def auroc_table(
    scores: Mapping[str, Floats],
    y: ArrayLike,
    groups: ArrayLike,
    *,
    by: Mapping[str, Sequence[str]] | None = None,
    folds: NDArray[np.int64] | None = None,
    thresholds: Mapping[str, float | Floats] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> EvaluationTable:
    """Compare systems by AUROC and other metrics, on all sentences and on subsets of them.

    ``scores`` are (R, N) by name of the system: each metric is averaged over the repeats. ``by`` has criteria of the
    subsets, such as ``{"generator": [...]}`` with N names. With ``folds``, those of
    :func:`~syncheck.evaluation.metrics.fold_numbers`, the threshold of the balanced accuracy is chosen on the other
    folds; ``thresholds`` have one by name, or one for each repeat, if they are chosen already. A missing label, a score
    of NaN and shapes that do not fit raise InputError.
    """
    labels = real_numbers(y, "labels")
    check_both_labels(labels, "a comparison of systems needs sentences")
    resamples = metrics.BootstrapSamples.of(np.asarray(groups), draws=draws, seed=seed)
    cuts: dict[str, Floats | None] = {}
    for name, values in scores.items():
        if values.ndim != 2 or values.shape[1] != len(labels) or np.isnan(values).any():
            raise InputError(f"scores of {name!r} must be (R, {len(labels)}) without NaN, found {values.shape}")
        cuts[name] = _cut(name, values, labels, folds, thresholds or {})
    parts = [("all", np.ones(len(labels), np.bool_))]
    for what, given in (by or {}).items():
        if len(given) != len(labels):
            raise InputError(f"{what!r} has {len(given)} names for {len(labels)} sentences")
        parts += [(subset, np.asarray(given) == subset) for subset in sorted(set(given))]
    return EvaluationTable(tuple(row for part in parts for row in _rows(scores, cuts, labels, resamples, *part)))


def _cells(row: EvaluationRow, reference: str) -> tuple[str, ...]:
    gain = "" if row.system == reference else metrics.with_interval(row.gain, row.gain_low, row.gain_high, "+.3f")
    return (
        row.system,
        metrics.with_interval(row.auroc, row.low, row.high),
        gain,
        metrics.with_interval(row.auprc, row.auprc_low, row.auprc_high),
        metrics.with_interval(row.balanced_accuracy, row.balanced_accuracy_low, row.balanced_accuracy_high),
        metrics.with_interval(row.ece, row.ece_low, row.ece_high),
        "-" if np.isnan(row.deviation) else f"{row.deviation:.3f}",
    )


def _cut(
    name: str,
    scores: Floats,
    y: NDArray[np.int64],
    folds: NDArray[np.int64] | None,
    given: Mapping[str, float | Floats],
) -> Floats | None:
    """Choose the thresholds (R, N) of a system's sentences; None if there are no data to choose them on."""
    if name in given:
        cuts = np.asarray(given[name])
        if cuts.shape not in ((), (len(scores),)):
            raise InputError(
                f"{name!r} has {len(scores)} runs; expected a threshold or one of each, found {cuts.shape}"
            )
        return np.full(scores.shape, cuts.reshape(-1, 1))
    if folds is None:
        return None
    if folds.shape[1] != scores.shape[1] or len(scores) not in (1, len(folds)):
        raise InputError(f"folds must have the shape of the scores of {name!r}, {scores.shape}; found {folds.shape}")
    return metrics.held_out_thresholds(scores, y, folds)


def _rows(
    scores: Mapping[str, Floats],
    cuts: Mapping[str, Floats | None],
    y: NDArray[np.int64],
    resamples: metrics.BootstrapSamples,
    subset: str,
    chosen: NDArray[np.bool_],
) -> Iterator[EvaluationRow]:
    reference: tuple[float, Floats] | None = None
    for system, values in scores.items():
        value, resampled = resamples.auroc(values, y, chosen)
        reference = reference or (value, resampled)
        accuracy: tuple[float, Floats] = np.nan, np.empty(0)
        if (cut := cuts[system]) is not None:
            accuracy = metrics.balanced_accuracy(resamples, values, cut, y, chosen)
        low, high = metrics.bootstrap_interval(resampled)
        deviation = metrics.deviation(values[:, chosen], y[chosen])
        figures = {"auroc": value, "low": low, "high": high, "deviation": deviation}
        figures |= _named("gain", (value - reference[0], resampled - reference[1]))
        figures |= _named("auprc", metrics.auprc(resamples, values, y, chosen))
        figures |= _named("balanced_accuracy", accuracy)
        figures |= _named("ece", metrics.calibration_error(resamples, values, y, chosen))
        sentences, unfaithful = int(chosen.sum()), int((chosen & (y == 0)).sum())
        yield EvaluationRow(system, subset, sentences=sentences, unfaithful=unfaithful, **figures)


def _named(name: str, figure: tuple[float, Floats]) -> dict[str, float]:
    low, high = metrics.bootstrap_interval(figure[1])
    return {name: figure[0], f"{name}_low": low, f"{name}_high": high}
