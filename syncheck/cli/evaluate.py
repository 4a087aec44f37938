"""``syncheck evaluate`` and ``ablate``: quality of a monitor's signals on labelled responses."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from syncheck import evaluation, training
from syncheck.aggregators.kinds import AggregatorKind
from syncheck.base.errors import InputError
from syncheck.cli import monitors
from syncheck.cli.options import IN_FORMAT, Options, add_model, check_file, number, write_json
from syncheck.features.schemas import feature_groups
from syncheck.report.plots import IntervalPanel, plot_intervals

FOLDS = 5
SEEDS = 3  # runs in the paper's Figure 3
QUESTIONS = ("source_id", "group")  # the group that a record comes with, which RAGTruth calls source_id

if TYPE_CHECKING:
    from syncheck.evaluation import EvaluationTable, System
    from syncheck.training import LabelledSet, MeasuredSentences, SetName

_several = number(int, lambda value: value >= 2, "a whole number of at least 2")
_no_or_several = number(int, lambda value: value == 0 or value >= 2, "0, or a whole number of at least 2")


def evaluate_options(add: Options) -> None:
    """Add the options of ``evaluate``."""
    add_model(add, default=f"{monitors.NO_MONITOR}; with --cv 0, 'generic'")
    monitors.add_data(add)
    add("--schema SCHEMA")
    add("--train PATH", "train on all of PATH and test on all of --data, instead of cross-validating")
    add("--aggregator", "kind of aggregator (the monitor's own, or ensemble)", choices=get_args(AggregatorKind))
    add("--cv FOLDS", "number of folds; 0 evaluates the monitor as it is (5)", type=_no_or_several)
    _add_tables(add, benchmark_set="both", runs=(5, False), repeats="number of times the folds are shuffled (5)")
    add(
        "--group source_id|group|generator|task = source_id",
        "answers that stay on the same side of a fold and are resampled together for the intervals: those to one "
        "question (source_id or group), by one model (generator), or for one task",
    )
    add("--allow-train", "with --cv 0: allow questions that the monitor was trained on")


def ablate_options(add: Options) -> None:
    """Add the options of ``ablate``."""
    add_model(add, default=monitors.NO_MONITOR)
    monitors.add_data(add)
    add("--schema SCHEMA")
    add("--aggregator = mlp", "kind of aggregator (%(default)s, as in the paper)", choices=get_args(AggregatorKind))
    add("--cv FOLDS = 5", "number of folds", type=_several)
    repeats = "number of times the folds are shuffled, instead of --seeds"
    _add_tables(add, benchmark_set="strict", runs=(SEEDS, True), repeats=repeats)


def _add_tables(add: Options, *, benchmark_set: str, runs: tuple[int, bool], repeats: str) -> None:
    """Add the options for repeats, sets and output of tables; ``runs`` are the number of repeats and same folds."""
    group = Options(add.parser.add_mutually_exclusive_group())
    group("--repeats N", repeats)
    group("--seeds N", f"number of runs on the same folds with different seeds; the paper uses {SEEDS}")
    add.parser.set_defaults(default_runs=runs)
    add("--set strict|paper|both", default=benchmark_set)
    add("--output FILE", "also write the tables as JSON")
    add("--plot FILE", f"plot the AUROC with intervals{IN_FORMAT}")


def evaluate(args: argparse.Namespace) -> int:
    """Print the tables of the monitor's signals on labelled responses; returns the exit code."""
    _check_evaluation(args)
    args.cv = FOLDS if args.cv is None else args.cv
    files = [Path(path) for path in (args.data, args.train) if path is not None]
    if args.cv and args.aggregator is not None and args.model is None:
        monitor = monitors.measuring_monitor(args, files)
    else:
        monitor = monitors.monitor_to_measure(args) if args.cv else monitors.scoring_monitor(args, "generic")
    measured, *train_on = [_measured(monitor, args, path) for path in files]
    if args.cv:
        args.aggregator = args.aggregator or _kind_of(monitor)
    output = {"responses": len(measured.records), "left_out": dict(measured.left_out)}
    made = partial(_trained_elsewhere, train_on[0]) if train_on else partial(_tables, monitor)
    return _written(args, output, lambda name: made(measured, name, args), "AUROC")


def ablate(args: argparse.Namespace) -> int:
    """Print the AUROC without each signal in turn; returns the exit code."""
    check_file("--output", args.output)
    path = Path(args.data)
    measured = monitors.measured_by(monitors.measuring_monitor(args, [path]), args, path)
    signals = feature_groups(measured.schema.names)
    systems = evaluation.ablation_systems(measured.schema.names, signals)
    output = {"aggregator": args.aggregator, "signals": {k: list(v) for k, v in signals.items()}}

    def compared(name: SetName) -> EvaluationTable:
        return _out_of_fold(training.labelled_set(measured, name), systems, args)

    return _written(args, output, compared, f"AUROC of {args.aggregator}")


def _written(
    args: argparse.Namespace, output: dict[str, Any], made: Callable[[SetName], EvaluationTable], label: str
) -> int:
    """Print what is made of each set that ``--set`` asks for, write and plot it if asked; returns the exit code."""
    panels: list[IntervalPanel] = []
    for name in get_args(training.SetName):
        if args.set not in (name, "both"):
            continue
        table = made(name)
        panels += monitors.panels_of(name, table)
        sys.stdout.write(f"\n{name} set\n{table.to_text()}\n")
        output[name] = table.to_dict()
    write_json(args.output, output)
    if args.plot is not None:
        plot_intervals(panels, args.plot, label=f"{label}, with 95 % intervals over groups")
    return 0


def _check_evaluation(args: argparse.Namespace) -> None:
    if args.train is not None:
        monitors.refuse_idle(_given(args, "cv", "group"), "--train has no folds. Leave out one or the other")
    if args.cv == 0:
        reason = "--cv 0 evaluates the monitor as it is, and trains nothing. Leave out one or the other"
        monitors.refuse_idle(_given(args, "aggregator", "repeats", "seeds"), reason)
    else:
        reason = "a monitor trained on folds has not seen the sentences it scores. Pass --cv 0 too, or leave it out"
        monitors.refuse_idle(_given(args, "allow_train"), reason)
    check_file("--output", args.output)


def _given(args: argparse.Namespace, *names: str) -> list[str]:
    """List the options that were given a value that is not the default."""
    return [n for n in names if getattr(args, n) is not False and getattr(args, n) not in (None, *QUESTIONS)]


def _measured(monitor: monitors.Scorer | None, args: argparse.Namespace, path: Path) -> MeasuredSentences:
    if monitor is None or args.cv:
        return monitors.measured_by(monitor, args, path)
    reason = "so its AUROC would flatter it; pass other data, --cv 5 to train on folds, or --allow-train"
    checks = {} if args.allow_train else {"check": partial(training.refuse_seen, monitor, reason=reason)}
    return training.against_references(monitors.measured_by(monitor, args, path, **checks), monitor)


def _tables(
    monitor: monitors.Scorer | None, measured: MeasuredSentences, name: SetName, args: argparse.Namespace
) -> EvaluationTable:
    if args.group not in QUESTIONS:
        records = (replace(record, group=getattr(record, args.group) or "unknown") for record in measured.records)
        measured = replace(measured, records=tuple(records))
    chosen = training.labelled_set(measured, name)
    if args.cv or monitor is None:
        return _out_of_fold(chosen, _benchmark(name, chosen), args)
    if monitor.aggregator is None:
        raise InputError("--cv 0 evaluates a trained monitor as it is; pass --monitor DIR, or --cv 5 to train on folds")
    scores = {"monitor": monitor.aggregator.score(chosen.measured.values[chosen.used])[None]}
    thresholds = {"monitor": monitor.config.backtrack_threshold}  # chosen on held-out folds of its training data
    return _table_of(scores, chosen, args, thresholds=thresholds)


def _trained_elsewhere(
    train_on: MeasuredSentences, measured: MeasuredSentences, name: SetName, args: argparse.Namespace
) -> EvaluationTable:
    both = training.labelled_set(training.joined([train_on, measured]), name)
    train = both.used < len(train_on.texts)
    known, tested = (replace(both, used=both.used[part]) for part in (train, ~train))
    _refuse_shared(known, tested)
    options = {
        "names": measured.schema.names,
        "systems": _benchmark(name, known, tested),
        "aggregator": args.aggregator,
        "repeats": _folds_of(args)["repeats"],
        "seed": args.seed,
    }
    thresholds = _chosen_on(known, name, options)
    scores = evaluation.held_out_scores(both.features, both.y, train, **options)
    return _table_of(scores, tested, args, thresholds=thresholds)


def _chosen_on(known: LabelledSet, name: SetName, options: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Choose thresholds on the training file, by system; none, with a note, if it is too small."""
    try:
        scores = evaluation.out_of_fold_scores(*known.data, folds=FOLDS, same_folds=True, **options)
        return {s: np.array([evaluation.best_threshold(run, known.y) for run in runs]) for s, runs in scores.items()}
    except InputError as error:
        sys.stderr.write(f"{name} set: no balanced accuracy, whose threshold is chosen on --train: {error}\n")
        return {}


def _refuse_shared(train_on: LabelledSet, tested: LabelledSet) -> None:
    known = training.question_digests(train_on.records)
    if shared := sorted({r.group for r in tested.records if not known.isdisjoint(training.question_digests([r]))}):
        raise InputError(
            f"--train and --data share {len(shared)} questions ({', '.join(shared[:3])}"
            f"{', ...' if len(shared) > 3 else ''}), so the AUROC would be too high; pass files with different "
            "questions, or one file and --cv 5"
        )


def _benchmark(name: SetName, *parts: LabelledSet) -> tuple[System, ...]:
    """List the systems to compare; a single signal that a part has not measured is left out, with a note."""
    names = parts[0].measured.schema.names
    systems = evaluation.benchmark_systems(names)
    never = [name for i, name in enumerate(names) if any(np.isnan(p.measured.values[p.used, i]).all() for p in parts)]
    left_out = [system for system in systems if not system.trained and system.columns[0] in never]
    for system in left_out:
        sys.stderr.write(f"{name} set: {system.name!r} is left out: {system.columns[0]} was never measured\n")
    return tuple(system for system in systems if system not in left_out)


def _out_of_fold(chosen: LabelledSet, systems: Sequence[System], args: argparse.Namespace) -> EvaluationTable:
    names, folds = chosen.measured.schema.names, _folds_of(args)
    scores = evaluation.out_of_fold_scores(
        *chosen.data, names=names, systems=systems, aggregator=args.aggregator, **folds
    )
    return _table_of(scores, chosen, args, folds=evaluation.fold_numbers(chosen.y, chosen.groups, **folds))


def _kind_of(monitor: monitors.Scorer | None) -> AggregatorKind:
    kind = "ensemble" if monitor is None or monitor.aggregator is None else monitor.aggregator.kind
    if kind == "signal":
        instead = "which no command trains on folds; pass --aggregator, or --cv 0"
        raise InputError(f"the monitor's aggregator is {kind!r}, {instead}")
    return kind


def _table_of(
    scores: Mapping[str, NDArray[np.float64]], chosen: LabelledSet, args: argparse.Namespace, **options: Any
) -> EvaluationTable:
    """Compute the AUROC of all sentences, by generator if one is known and, if there are several, by task."""
    tasks, generators = (of[chosen.used].tolist() for of in (chosen.measured.tasks, chosen.measured.generators))
    by = {"task": tasks} if len(set(tasks)) > 1 else {}
    by |= {"generator": generators} if set(generators) != {"unknown"} else {}
    return evaluation.auroc_table(scores, chosen.y, chosen.groups, by=by, seed=args.seed, **options)


def _folds_of(args: argparse.Namespace) -> dict[str, Any]:
    """Collect the folds that the options ask for; with ``--seeds`` they are the same in all repeats."""
    repeats, same_folds = args.default_runs
    if args.repeats is not None or args.seeds is not None:
        repeats, same_folds = args.repeats or args.seeds, args.repeats is None
    return {"folds": args.cv, "repeats": repeats, "seed": args.seed, "same_folds": same_folds}
