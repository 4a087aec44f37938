"""``syncheck evaluate``, ``ablate`` and ``transfer``: quality of a monitor's signals on labelled responses."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from syncheck.aggregators.names import AggregatorKind
from syncheck.base.errors import InputError
from syncheck.cli.labelled import measured_by, measuring_monitor, panels_of, refuse_idle
from syncheck.cli.monitors import monitor_to_measure, scoring_monitor
from syncheck.cli.outputs import check_file, write_json
from syncheck.evaluation import (
    OVERLAPS,
    AurocMatrix,
    EvaluationTable,
    System,
    ablation_systems,
    aggregator_systems,
    auroc_table,
    benchmark_systems,
    best_aggregator,
    best_system,
    fold_numbers,
    held_out_scores,
    left_out_matrix,
    left_out_scores,
    out_of_fold_scores,
    permuted_scores,
    single_scores,
    training_thresholds,
    transfer_matrix,
    with_best,
)
from syncheck.features.schemas import feature_groups
from syncheck.labelling import LabelledResponse
from syncheck.monitor import Monitor
from syncheck.report.plots import IntervalPanel, plot_intervals, plot_matrix
from syncheck.training import (
    LabelledSet,
    MeasuredSentences,
    SetName,
    against_references,
    grouped_by_question,
    joined,
    labelled_set,
    question_digests,
    refuse_seen,
    surrogate_matrix,
)
from syncheck.verifier import Verifier

PERMUTED = "signals permuted"
AGGREGATORS = "aggregators"
"""Names of the tables that are made on request, in JSON and on the screen."""
FOLDS = 5
QUESTIONS = ("source_id", "group")
"""Names for the group that a record comes with; RAGTruth calls it source_id."""

Tables = tuple[EvaluationTable, dict[str, EvaluationTable]]
"""Table of the systems, and tables that are made on request, by name."""


def evaluate(args: argparse.Namespace) -> int:
    """Print the tables of the monitor's signals on labelled responses; returns the exit code."""
    _check_evaluation(args)
    if args.leave_one_source_out:
        return _leave_one_source_out(args)
    args.cv = FOLDS if args.cv is None else args.cv
    files = [Path(path) for path in (*args.data, args.train) if path is not None]
    if args.cv and args.aggregator is not None and args.model is None:
        monitor = measuring_monitor(args, files)
    else:
        monitor = monitor_to_measure(args) if args.cv else scoring_monitor(args, "generic")
    measured, *training = [_measured(monitor, args, path) for path in files]
    output: dict[str, object] = {"responses": len(measured.records), "left_out": dict(measured.left_out)}
    panels: list[IntervalPanel] = []
    for name in _chosen_sets(args):
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
    return _written(args, output, panels, "AUROC")


def _written(args: argparse.Namespace, output: dict[str, object], panels: list[IntervalPanel], label: str) -> int:
    """Write and plot the tables, if that is requested; returns the exit code."""
    write_json(args.output, output)
    if args.plot is not None:
        plot_intervals(panels, args.plot, label=f"{label}, with 95 % intervals over groups")
    return 0


def _check_evaluation(args: argparse.Namespace) -> None:
    given = {
        "--cv": args.cv is not None,
        "--permute": args.permute,
        "--compare-aggregators": args.compare_aggregators,
        "--aggregator": args.aggregator is not None,
        "--repeats": args.repeats is not None,
        "--seeds": args.seeds is not None,
        "--group": args.group not in QUESTIONS,
    }
    if args.leave_one_source_out:
        idle = given | {"--train": args.train is not None, "--allow-train": args.allow_train, "--aggregator": False}
        refuse_idle(
            idle, "--leave-one-source-out trains once for each source, on all others. Leave out one or the other"
        )
        _source_names(args)
        check_file("--output", args.output)
        return
    if len(args.data) > 1:
        raise InputError(
            f"evaluate takes one path in --data; found {len(args.data)}. Pass --leave-one-source-out to use each path "
            "as a source"
        )
    if args.train is not None:
        idle = {name: given[name] for name in ("--cv", "--permute", "--group")}
        refuse_idle(idle, "--train has no folds. Leave out one or the other")
    if args.cv == 0:
        idle = {name: given[name] for name in given if name not in ("--cv", "--group")}
        refuse_idle(idle, "--cv 0 evaluates the monitor as it is, and trains nothing. Leave out one or the other")
    else:
        reason = "a monitor trained on folds has not seen the sentences it scores. Pass --cv 0 too, or leave it out"
        refuse_idle({"--allow-train": args.allow_train}, reason)
    check_file("--output", args.output)


def _source_names(args: argparse.Namespace) -> list[str]:
    names = [Path(path).stem for path in args.data]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"files are distinguished by their names; found {', '.join(twice)} more than once in --data")
    return names


def _leave_one_source_out(args: argparse.Namespace) -> int:
    paths = dict(zip(_source_names(args), map(Path, args.data), strict=True))
    monitor = measuring_monitor(args, list(paths.values()))
    measured = {  # equal names of groups in two sources stay apart
        name: _regrouped(measured_by(monitor, args, path), partial("{}: {.group}".format, name))
        for name, path in paths.items()
    }
    kind = args.aggregator or _kind_of(monitor)
    output: dict[str, object] = {"aggregator": kind}
    panels: list[IntervalPanel] = []
    for name in _chosen_sets(args):
        chosen, sources = _by_source(measured, name)
        matrix = _left_out(chosen, sources, kind, seed=args.seed)
        sys.stdout.write(f"\n{name} set\n{matrix.to_text()}\n")
        output[name] = matrix.to_dict()
        for source in matrix.columns:
            cells = [matrix.cell(row, source) for row in matrix.rows]
            columns = (tuple(getattr(cell, part) for cell in cells) for part in ("auroc", "low", "high"))
            panels.append(IntervalPanel(f"{name} set, {source}", matrix.rows, *columns))
    return _written(args, output, panels, "AUROC on the source left out")


def _regrouped(measured: MeasuredSentences, group: Callable[[LabelledResponse], str]) -> MeasuredSentences:
    return replace(measured, records=tuple(replace(record, group=group(record)) for record in measured.records))


def _by_source(measured: Mapping[str, MeasuredSentences], name: SetName) -> tuple[LabelledSet, NDArray[np.str_]]:
    """Join files; returns a set, grouped by question, and the file of each of its sentences."""
    everything = joined(list(measured.values()))
    files = np.repeat(list(measured), [len(found.texts) for found in measured.values()])
    # Each file names its groups in its own way.
    chosen = labelled_set(replace(everything, records=grouped_by_question(everything.records)), name)
    return chosen, files[chosen.used]


def _left_out(chosen: LabelledSet, sources: NDArray[np.str_], kind: AggregatorKind, *, seed: int) -> AurocMatrix:
    """Compare an aggregator trained on the other sources with the aligner and the best overlap on each source."""
    places = {group: {str(source) for source in sources[chosen.groups == group]} for group in np.unique(chosen.groups)}
    if shared := [found for found in places.values() if len(found) > 1]:
        raise InputError(
            f"{len(shared)} questions are in several sources ({', '.join(sorted(shared[0]))}), so training would "
            "have seen them; leave them out of all but one"
        )
    schema = chosen.measured.schema
    alone = single_scores(chosen.measured.values[chosen.used], schema)
    features, y, groups = chosen.data
    trained = left_out_scores(features, y, sources.tolist(), aggregator=kind, names=schema.names, seed=seed)
    aligner = next((name for name in ("align_logit", "align_score") if name in alone), None)
    overlaps = [name for name in OVERLAPS if name in alone]
    systems = {f"{kind}, trained on the others": trained}
    systems |= {} if aligner is None else {"aligner alone": alone[aligner]}
    systems |= {name: alone[name] for name in overlaps}
    matrix = left_out_matrix(systems, y, groups, sources.tolist(), seed=seed)
    return with_best(matrix, overlaps, "best overlap") if overlaps else matrix


def _measured(monitor: Monitor | Verifier | None, args: argparse.Namespace, path: Path) -> MeasuredSentences:
    if monitor is None or args.cv:
        return measured_by(monitor, args, path)
    reason = "so its AUROC would flatter it; pass other data, --cv 5 to train on folds, or --allow-train"
    checks = {} if args.allow_train else {"check": partial(refuse_seen, monitor, reason=reason)}
    return against_references(measured_by(monitor, args, path, **checks), monitor)


def _tables(
    monitor: Monitor | Verifier | None,
    measured: MeasuredSentences,
    training: Sequence[MeasuredSentences],
    name: SetName,
    args: argparse.Namespace,
) -> Tables:
    if training:
        return _trained_elsewhere(monitor, training[0], measured, name, args)
    if args.group not in QUESTIONS:
        measured = _regrouped(measured, lambda record: getattr(record, args.group) or "unknown")
    chosen = labelled_set(measured, name)
    if args.cv or monitor is None:
        return _cross_validated(monitor, chosen, name, args)
    if monitor.aggregator is None:
        raise InputError("--cv 0 evaluates a trained monitor as it is; pass --monitor DIR, or --cv 5 to train on folds")
    scores = {"monitor": monitor.aggregator.score(chosen.measured.values[chosen.used])[None]}
    # Chosen on held-out folds of its own training data.
    thresholds = {"monitor": monitor.config.backtrack_threshold}
    return _table(scores, chosen, args, thresholds=thresholds), {}


def _trained_elsewhere(
    monitor: Monitor | Verifier | None,
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
    options = {"names": names, "aggregator": kind, "repeats": _runs(args)[0], "seed": args.seed}
    thresholds = _chosen_on(known, name, [s for compared in systems.values() for s in compared], options)
    tables = {}
    for what, compared in systems.items():
        scores = held_out_scores(both.features, both.y, train, systems=compared, **options)
        tables[what] = _table(scores, tested, args, thresholds=thresholds)
    return tables.pop("systems"), tables


def _chosen_on(
    known: LabelledSet, name: SetName, systems: Sequence[System], options: dict[str, Any]
) -> dict[str, NDArray[np.float64]]:
    """Return thresholds chosen on the training file, by system; none, with a note, if it is too small."""
    try:
        scores = out_of_fold_scores(*known.data, systems=systems, folds=FOLDS, same_folds=True, **options)
        return training_thresholds(scores, known.y)
    except InputError as error:
        sys.stderr.write(f"{name} set: no balanced accuracy, whose threshold is chosen on --train: {error}\n")
        return {}


def _refuse_shared(training: LabelledSet, tested: LabelledSet) -> None:
    known = question_digests(training.records)
    if shared := sorted({r.group for r in tested.records if not known.isdisjoint(question_digests([r]))}):
        raise InputError(
            f"--train and --data share {len(shared)} questions ({', '.join(shared[:3])}"
            f"{', ...' if len(shared) > 3 else ''}), so the AUROC would be too high; pass files with different "
            "questions, or one file and --cv 5"
        )


def _benchmark(name: SetName, *parts: LabelledSet) -> tuple[System, ...]:
    """Return the systems to compare; a single signal that a part has not measured is left out, with a note."""
    names = parts[0].measured.schema.names
    kept = []
    for system in benchmark_systems(names):
        values = [part.measured.values[part.used, names.index(system.columns[0])] for part in parts]
        if not system.trained and any(np.isnan(column).all() for column in values):
            sys.stderr.write(f"{name} set: {system.name!r} is left out: {system.columns[0]} was never measured\n")
        else:
            kept.append(system)
    return tuple(kept)


def _cross_validated(
    monitor: Monitor | Verifier | None, chosen: LabelledSet, name: SetName, args: argparse.Namespace
) -> Tables:
    names = chosen.measured.schema.names
    kind = args.aggregator or _kind_of(monitor)
    folds = _folds(args)
    numbers = fold_numbers(chosen.y, chosen.groups, **folds)
    scores = out_of_fold_scores(*chosen.data, names=names, systems=_benchmark(name, chosen), aggregator=kind, **folds)
    table = _table(scores, chosen, args, folds=numbers)
    more = {}
    if args.permute:
        permuted = permuted_scores(*chosen.data, names=names, signals=feature_groups(names), aggregator=kind, **folds)
        more[PERMUTED] = auroc_table(permuted, chosen.y, chosen.groups, folds=numbers, seed=args.seed)
    if args.compare_aggregators:
        more[AGGREGATORS] = best_aggregator(*chosen.data, names=names, **folds)[1]
    return table, more


def _kind_of(monitor: Monitor | Verifier | None) -> AggregatorKind:
    kind = "ensemble" if monitor is None or monitor.aggregator is None else monitor.aggregator.kind
    if kind == "signal" or kind == "estimator":
        raise InputError(
            f"the monitor's aggregator is {kind!r}, which no command trains on folds; pass --aggregator, or --cv 0"
        )
    return kind


def ablate(args: argparse.Namespace) -> int:
    """Print the AUROC without each signal in turn; returns the exit code."""
    check_file("--output", args.output)
    path = Path(args.data)
    measured = measured_by(measuring_monitor(args, [path]), args, path)
    names = measured.schema.names
    signals = feature_groups(names)
    systems = ablation_systems(names, signals)
    folds = _folds(args)
    output: dict[str, object] = {"aggregator": args.aggregator, "signals": {k: list(v) for k, v in signals.items()}}
    panels: list[IntervalPanel] = []
    for name in _chosen_sets(args):
        chosen = labelled_set(measured, name)
        scores = out_of_fold_scores(*chosen.data, names=names, systems=systems, aggregator=args.aggregator, **folds)
        table = _table(scores, chosen, args, folds=fold_numbers(chosen.y, chosen.groups, **folds))
        sys.stdout.write(f"\n{name} set\n{table.to_text()}\n")
        output[name] = table.to_dict()
        panels += panels_of(name, table)
    return _written(args, output, panels, f"AUROC of {args.aggregator}")


def transfer(args: argparse.Namespace) -> int:
    """Print the matrix of each benchmark set; returns the exit code."""
    _check_transfer(args)
    paths = {Path(path).stem: Path(path) for path in args.data}
    monitor = measuring_monitor(args, list(paths.values()))
    measured = {name: measured_by(monitor, args, path) for name, path in paths.items()}
    output: dict[str, object] = {"over": args.over, "aggregator": args.aggregator}
    names = _chosen_sets(args)
    for name in names:
        matrix = _matrix(measured, name, args)
        sys.stdout.write(f"\n{name} set\n{matrix.to_text()}\n")
        output[name] = matrix.to_dict()
        if args.plot is not None:
            path, (rows, columns) = Path(args.plot), matrix.corner.split(" \\ ")
            plot_matrix(
                matrix.values.tolist(),
                matrix.rows,
                matrix.columns,
                path.with_stem(f"{path.stem}-{name}") if len(names) > 1 else path,
                label="AUROC",
                row_label=rows,
                column_label=columns,
                title=f"{name} set",
            )
    write_json(args.output, output)
    return 0


def _check_transfer(args: argparse.Namespace) -> None:
    _source_names(args)
    if args.over == "surrogate" and not all(path.endswith(".parquet") for path in args.data):
        raise InputError(
            "--over surrogate compares the models that measured the answers; pass one file of `syncheck features` "
            "per model, named after the model"
        )
    if args.without and args.over == "surrogate":
        raise InputError(
            "--without excludes generators, tasks or files; with --over surrogate, omit the file from --data instead"
        )
    if args.train_on is not None and args.over != "surrogate":
        raise InputError(
            f"--train-on needs --over surrogate; with --over {args.over}, every part is trained on in turn"
        )
    if args.over == "data" and len(args.data) < 2:
        raise InputError("--over data needs two or more files in --data; found one")
    check_file("--output", args.output)


def _matrix(measured: dict[str, MeasuredSentences], name: SetName, args: argparse.Namespace) -> AurocMatrix:
    options = {"aggregator": args.aggregator, **_folds(args)}
    if args.over == "surrogate":
        sets = {file: labelled_set(found, name) for file, found in measured.items()}
        return surrogate_matrix(sets, trained_on=args.train_on, **options)
    chosen, files = _by_source(measured, name)
    parts = {"generator": chosen.generators, "task": chosen.tasks, "data": files}[args.over]
    return transfer_matrix(
        *chosen.data,
        parts.tolist(),
        feature_names=chosen.measured.schema.names,
        without=args.without,
        **options,
    )


def _chosen_sets(args: argparse.Namespace) -> tuple[SetName, ...]:
    return tuple(name for name in get_args(SetName) if args.set in (name, "both"))


def _table(
    scores: Mapping[str, NDArray[np.float64]], chosen: LabelledSet, args: argparse.Namespace, **options: Any
) -> EvaluationTable:
    """Return the AUROC of all sentences, by generator if one is known and, if there are several, by task."""
    tasks, generators = chosen.tasks.tolist(), chosen.generators.tolist()
    by = {"task": tasks} if len(set(tasks)) > 1 else {}
    by |= {"generator": generators} if set(generators) != {"unknown"} else {}
    return auroc_table(scores, chosen.y, chosen.groups, by=by, seed=args.seed, **options)


def _runs(args: argparse.Namespace) -> tuple[int, bool]:
    """Return the number of repeats, and True if ``--seeds`` asks for the same folds in all of them."""
    if args.repeats is not None:
        return args.repeats, False
    if args.seeds is not None:
        return args.seeds, True
    repeats, same_folds = args.default_runs
    return repeats, same_folds


def _folds(args: argparse.Namespace) -> dict[str, Any]:
    """Return the folds that the options ask for, as the functions of :mod:`syncheck.evaluation` take them."""
    repeats, same_folds = _runs(args)
    return {"folds": args.cv, "repeats": repeats, "seed": args.seed, "same_folds": same_folds}
