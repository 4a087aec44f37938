"""``syncheck evaluate``: what a monitor's signals are worth on labelled responses."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from syncheck.cli.labelled import (
    check_outputs,
    chosen_sentences,
    chosen_sets,
    folds_of,
    measured_by,
    panels_of,
    parts_of,
    refuse_measuring_options,
    report_left_out,
    runs_of,
    write_json,
)
from syncheck.cli.monitors import monitor_for
from syncheck.config import AggregatorKind
from syncheck.errors import InputError
from syncheck.evaluation import (
    EvaluationTable,
    System,
    aggregator_systems,
    auroc_table,
    benchmark_systems,
    best_aggregator,
    best_system,
    fold_numbers,
    held_out_scores,
    out_of_fold_scores,
    permuted_scores,
    training_thresholds,
)
from syncheck.labelling import LabelledResponse
from syncheck.monitor import Monitor
from syncheck.report.plots import IntervalPanel, plot_intervals
from syncheck.schemas import feature_groups
from syncheck.training import (
    LabelledSet,
    MeasuredSentences,
    SetName,
    against_references,
    joined,
    labelled_set,
    question_digests,
    refuse_seen,
)

__all__ = ["run"]


PERMUTED = "signals permuted"
AGGREGATORS = "aggregators"
"""Names of the tables that are made on request, in JSON as on the screen."""
FOLDS = 5
QUESTIONS = ("source_id", "group")
"""Both name the group that a record comes with; RAGTruth calls it source_id."""


def run(args: argparse.Namespace) -> int:
    """Print the tables of the monitor's signals on labelled responses; returns the exit code."""
    _check(args)
    args.cv = FOLDS if args.cv is None else args.cv
    files = [Path(path) for path in (args.data, args.train) if path is not None]
    alone = args.cv and args.aggregator is not None and args.model is None
    if alone and all(file.suffix == ".parquet" for file in files):
        refuse_measuring_options(args, [str(file) for file in files])
        monitor = None
    else:
        monitor = monitor_for(args, "surrogate")
    measured, *training = [_measured(monitor, args, path) for path in files]
    output: dict[str, object] = {"responses": len(measured.records), "left_out": dict(measured.left_out)}
    panels: list[IntervalPanel] = []
    for name in chosen_sets(args.set):
        table, more = _tables(monitor, measured, training, name, args)
        sys.stdout.write(f"\n{name} set\n{table.to_text()}\n")
        found = table.to_dict()
        for what, extra in more.items():
            best = {"best": best_system(extra)} if what == AGGREGATORS and not training else {}
            title = " ".join([what, *(f"(best by grouped cross-validation: {kind})" for kind in best.values())])
            sys.stdout.write(f"\n{name} set, {title}\n{extra.to_text()}\n")
            found[what] = extra.to_dict() | best
        output[name] = found
        panels += panels_of(name, table)
    write_json(args.output, output)
    if args.plot is not None:
        plot_intervals(panels, args.plot, label="AUROC, with 95 % intervals over groups")
    return 0


def _measured(monitor: Monitor | None, args: argparse.Namespace, path: Path) -> MeasuredSentences:
    if monitor is None:  # a file of features stands for itself
        measured = chosen_sentences(args, path)
        report_left_out(measured, path)
        return measured
    if args.cv:
        return measured_by(monitor, args, path)

    def check(records: Sequence[LabelledResponse]) -> None:
        if not args.allow_train:
            reason = "so its AUROC would flatter it; pass other data, --cv 5 to train on folds, or --allow-train"
            refuse_seen(monitor, records, reason=reason)

    return against_references(measured_by(monitor, args, path, check=check), monitor)


Tables = tuple[EvaluationTable, dict[str, EvaluationTable]]
"""The table of the systems, and those that are made on request, by name."""


def _tables(
    monitor: Monitor | None,
    measured: MeasuredSentences,
    training: Sequence[MeasuredSentences],
    name: SetName,
    args: argparse.Namespace,
) -> Tables:
    if training:
        return _trained_elsewhere(monitor, training[0], measured, name, args)
    chosen = labelled_set(_grouped(measured, args.group), name)
    if args.cv or monitor is None:
        return _cross_validated(monitor, chosen, name, args)
    return _as_it_is(monitor, chosen, args), {}


def _trained_elsewhere(
    monitor: Monitor | None,
    training: MeasuredSentences,
    measured: MeasuredSentences,
    name: SetName,
    args: argparse.Namespace,
) -> Tables:
    both = labelled_set(joined([training, measured]), name)
    train = both.used < len(training.texts)
    known, tested = (replace(both, used=both.used[part]) for part in (train, ~train))
    _refuse_shared(known, tested)
    names = measured.schema.names
    kind = args.aggregator or _kind_of(monitor)
    systems = {"systems": _benchmark(name, known, tested)}
    if args.compare_aggregators:
        systems[AGGREGATORS] = aggregator_systems(names)
    repeats, _ = runs_of(args)
    thresholds = _chosen_on(known, name, [s for compared in systems.values() for s in compared], kind, repeats, args)
    tables = {}
    for what, compared in systems.items():
        scores = held_out_scores(
            both.features,
            both.y,
            train,
            names=names,
            systems=compared,
            aggregator=kind,
            repeats=repeats,
            seed=args.seed,
        )
        tables[what] = auroc_table(
            scores, tested.y, tested.groups, by=parts_of(tested), thresholds=thresholds, seed=args.seed
        )
    return tables.pop("systems"), tables


def _chosen_on(
    known: LabelledSet,
    name: SetName,
    systems: Sequence[System],
    kind: AggregatorKind,
    repeats: int,
    args: argparse.Namespace,
) -> dict[str, NDArray[np.float64]]:
    """Return the thresholds of systems, chosen on the training file; none, which is said, where it is too small."""
    try:
        scores = out_of_fold_scores(
            known.features,
            known.y,
            known.groups,
            names=known.measured.schema.names,
            systems=systems,
            aggregator=kind,
            folds=FOLDS,
            repeats=repeats,
            seed=args.seed,
            same_folds=True,
        )
        return training_thresholds(scores, known.y)
    except InputError as error:
        sys.stderr.write(f"{name} set: no balanced accuracy, whose threshold is chosen on --train: {error}\n")
        return {}


def _benchmark(name: SetName, *parts: LabelledSet) -> tuple[System, ...]:
    """Return the systems to compare, without those that are one signal which a part has not measured; that is said."""
    names = parts[0].measured.schema.names
    kept = []
    for system in benchmark_systems(names):
        values = [part.measured.values[part.used, names.index(system.columns[0])] for part in parts]
        if not system.trained and any(np.isnan(column).all() for column in values):
            sys.stderr.write(f"{name} set: {system.name!r} is left out: {system.columns[0]} was never measured\n")
        else:
            kept.append(system)
    return tuple(kept)


def _cross_validated(monitor: Monitor | None, chosen: LabelledSet, name: SetName, args: argparse.Namespace) -> Tables:
    names = chosen.measured.schema.names
    kind = args.aggregator or _kind_of(monitor)
    folds = folds_of(args)
    data = (chosen.features, chosen.y, chosen.groups)
    numbers = fold_numbers(chosen.y, chosen.groups, **folds)
    scores = out_of_fold_scores(*data, names=names, systems=_benchmark(name, chosen), aggregator=kind, **folds)
    table = auroc_table(scores, chosen.y, chosen.groups, by=parts_of(chosen), folds=numbers, seed=args.seed)
    more = {}
    if args.permute:
        permuted = permuted_scores(*data, names=names, signals=feature_groups(names), aggregator=kind, **folds)
        more[PERMUTED] = auroc_table(permuted, chosen.y, chosen.groups, folds=numbers, seed=args.seed)
    if args.compare_aggregators:
        more[AGGREGATORS] = best_aggregator(*data, names=names, **folds)[1]
    return table, more


def _kind_of(monitor: Monitor | None) -> AggregatorKind:
    kind = "mlp" if monitor is None or monitor.aggregator is None else monitor.aggregator.kind
    if kind == "signal":
        raise InputError(
            "the monitor's score is one signal, which is not trained on folds; pass --aggregator, or --cv 0"
        )
    return kind


def _as_it_is(monitor: Monitor, chosen: LabelledSet, args: argparse.Namespace) -> EvaluationTable:
    if monitor.aggregator is None:
        raise InputError("--cv 0 evaluates a trained monitor as it is; pass --monitor DIR, or --cv 5 to train on folds")
    scores = {"monitor": monitor.aggregator.score(chosen.measured.values[chosen.used])[None]}
    # Chosen on held-out folds of its own training data.
    thresholds = {"monitor": monitor.config.backtrack_threshold}
    return auroc_table(scores, chosen.y, chosen.groups, by=parts_of(chosen), thresholds=thresholds, seed=args.seed)


def _grouped(measured: MeasuredSentences, by: str) -> MeasuredSentences:
    if by in QUESTIONS:
        return measured
    records = tuple(replace(record, group=getattr(record, by) or "unknown") for record in measured.records)
    return replace(measured, records=records)


def _check(args: argparse.Namespace) -> None:
    given = {
        "--cv": args.cv is not None,
        "--permute": args.permute,
        "--compare-aggregators": args.compare_aggregators,
        "--aggregator": args.aggregator is not None,
        "--repeats": args.repeats is not None,
        "--seeds": args.seeds is not None,
        "--group": args.group not in QUESTIONS,
    }
    if args.train is not None:
        _refuse([name for name in ("--cv", "--permute", "--group") if given[name]], "--train has no folds")
    if args.cv == 0:
        folds = ("--permute", "--compare-aggregators", "--aggregator", "--repeats", "--seeds")
        _refuse([name for name in folds if given[name]], "--cv 0 evaluates the monitor as it is, and trains nothing")
    elif args.allow_train:
        _refuse(["--allow-train"], "what is trained on folds has not seen the sentences it scores; it is for --cv 0")
    check_outputs(args)


def _refuse(options: Sequence[str], reason: str) -> None:
    if options:
        raise InputError(f"{', '.join(options)} would have no effect: {reason}. Leave out one or the other")


def _refuse_shared(training: LabelledSet, tested: LabelledSet) -> None:
    known = question_digests(_records(training))
    shared = sorted({r.group for r in _records(tested) if not known.isdisjoint(question_digests([r]))})
    if shared:
        raise InputError(
            f"--train and --data share {len(shared)} questions ({', '.join(shared[:3])}"
            f"{', ...' if len(shared) > 3 else ''}), so the AUROC would flatter the signals; pass files of different "
            "questions, or one file and --cv 5"
        )


def _records(chosen: LabelledSet) -> list[LabelledResponse]:
    return [chosen.measured.records[owner] for owner in np.unique(chosen.measured.owners[chosen.used])]
