"""Tables of AUROC and other metrics of several systems on the same folds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.base.checks import check_both_labels, real_numbers
from syncheck.base.errors import InputError
from syncheck.base.printable import printable
from syncheck.evaluation.metrics import (
    BootstrapSamples,
    auprc,
    balanced_accuracy,
    bootstrap_interval,
    calibration_error,
    deviation,
    held_out_thresholds,
)
from syncheck.results.types import Floats


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Pad the cells of rows to the width of their column, leave out empty columns, and escape the text."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max((len(cell) for cell in column), default=0) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width).rstrip() for row in rows
    ]


def with_interval(value: float, low: float, high: float, spec: str = ".3f") -> str:
    """Write a value with its interval: ``-`` for a NaN value, ``[no interval]`` for a NaN interval."""
    if math.isnan(value):
        return "-"
    return f"{value:{spec}} [no interval]" if math.isnan(low) else f"{value:{spec}} [{low:{spec}}, {high:{spec}}]"


def json_number(value: object) -> object:
    """Convert a value to one that JSON can represent: NaN becomes None."""
    return None if isinstance(value, float) and math.isnan(value) else value


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """Metrics of one system on one subset of sentences: ``"all"``, a generator, a task, ...; with 95 % intervals.

    Values are NaN if a label is missing, and intervals also if a label occurs in only one group. ``gain`` is the AUROC
    minus that of the table's first system on the same resamples. ``deviation`` is the sample standard deviation of the
    AUROC over the repeats, NaN for a single one. ``auprc`` is the average precision of finding unfaithful sentences.
    ``balanced_accuracy`` is at a threshold chosen on other sentences, NaN if there is none. ``ece`` is the expected
    calibration error, NaN for scores outside [0, 1].
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

    def by_part(self) -> dict[str, list[tuple[str, EvaluationRow]]]:
        """Group the rows by subset, with the names of their systems."""
        return {part: [(r.system, r) for r in rows] for part, rows in groupby(self.rows, key=lambda row: row.subset)}

    def to_dict(self) -> dict[str, Any]:
        """Convert the rows for JSON; NaN becomes None."""
        return {"rows": [{key: json_number(value) for key, value in asdict(row).items()} for row in self.rows]}

    def to_text(self) -> str:
        """Write the table as plain text, with a block for each subset."""
        reference = self.rows[0].system
        header, *cells = aligned([_HEADER, *(_cells(row, reference) for row in self.rows)])
        lines, shown = [], iter(cells)
        for subset, rows in self.by_part().items():
            lines += ["", f"{subset}: {rows[0][1].sentences} sentences, {rows[0][1].unfaithful} unfaithful"]
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

    ``scores`` are (R, N) by name of the system, one row for each repeat: each metric is computed in each repeat and
    averaged. ``by`` has criteria of the subsets, such as ``{"generator": [...]}`` with N names. With ``folds``, from
    :func:`~syncheck.evaluation.metrics.fold_numbers`, the threshold of the balanced accuracy is chosen on the other
    folds; ``thresholds`` have one by name, or one for each repeat, if they are chosen already. Groups are resampled;
    resamples in which a subset lacks a label do not enter its interval.

    If a label is missing, a score is NaN, or the shapes do not fit, InputError is raised.
    """
    labels = real_numbers(y, "labels")
    check_both_labels(labels, "a comparison of systems needs sentences")
    resamples = BootstrapSamples.of(np.asarray(groups), draws=draws, seed=seed)
    cuts: dict[str, Floats | None] = {}
    for name, values in scores.items():
        if values.ndim != 2 or values.shape[1] != len(labels) or np.isnan(values).any():
            raise InputError(f"scores of {name!r} must be (R, {len(labels)}) without NaN, found {values.shape}")
        cuts[name] = _cut(name, values, labels, folds, thresholds or {})
    rows: list[EvaluationRow] = []
    for subset, chosen in _subsets(len(labels), by or {}):
        rows += _rows(scores, cuts, labels, resamples, subset, chosen)
    return EvaluationTable(tuple(rows))


def best_system(table: EvaluationTable) -> str:
    """Find the system with the highest AUROC on all sentences; of equals, the first."""
    rows = [row for row in table.rows if row.subset == "all"]
    return max(rows, key=lambda row: row.auroc).system


def _cells(row: EvaluationRow, reference: str) -> tuple[str, ...]:
    gain = "" if row.system == reference else with_interval(row.gain, row.gain_low, row.gain_high, "+.3f")
    return (
        row.system,
        with_interval(row.auroc, row.low, row.high),
        gain,
        with_interval(row.auprc, row.auprc_low, row.auprc_high),
        with_interval(row.balanced_accuracy, row.balanced_accuracy_low, row.balanced_accuracy_high),
        with_interval(row.ece, row.ece_low, row.ece_high),
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
    return held_out_thresholds(scores, y, folds)


def _rows(
    scores: Mapping[str, Floats],
    cuts: Mapping[str, Floats | None],
    y: NDArray[np.int64],
    resamples: BootstrapSamples,
    subset: str,
    chosen: NDArray[np.bool_],
) -> Iterator[EvaluationRow]:
    reference: tuple[float, Floats] | None = None
    for system, values in scores.items():
        value, resampled = resamples.auroc(values, y, chosen)
        reference = reference or (value, resampled)
        cut = cuts[system]
        accuracy = (np.nan, np.empty(0)) if cut is None else balanced_accuracy(resamples, values, cut, y, chosen)
        low, high = bootstrap_interval(resampled)
        figures = {"auroc": value, "low": low, "high": high, "deviation": deviation(values[:, chosen], y[chosen])}
        figures |= _named("gain", (value - reference[0], resampled - reference[1]))
        figures |= _named("auprc", auprc(resamples, values, y, chosen))
        figures |= _named("balanced_accuracy", accuracy)
        figures |= _named("ece", calibration_error(resamples, values, y, chosen))
        sentences, unfaithful = int(chosen.sum()), int((chosen & (y == 0)).sum())
        yield EvaluationRow(system, subset, sentences=sentences, unfaithful=unfaithful, **figures)


def _named(name: str, figure: tuple[float, Floats]) -> dict[str, float]:
    low, high = bootstrap_interval(figure[1])
    return {name: figure[0], f"{name}_low": low, f"{name}_high": high}


def _subsets(size: int, by: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    yield "all", np.ones(size, dtype=np.bool_)
    for what, values in by.items():
        if len(values) != size:
            raise InputError(f"{what!r} has {len(values)} names for {size} sentences")
        for value in sorted(set(values)):
            yield value, np.asarray(values) == value
