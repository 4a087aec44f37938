"""``syncheck ablate`` and ``transfer``: quality without a signal, and on other data than that used for training."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import get_args

from syncheck import evaluation, training
from syncheck.aggregators.kinds import AggregatorKind
from syncheck.base.errors import InputError
from syncheck.cli.evaluate import SEEDS, add_tables, by_source, chosen_sets, folds_of, source_names, table_of, written
from syncheck.cli.labelled import NO_MONITOR, add_data, measured_by, measuring_monitor, panels_of
from syncheck.cli.options import Options, add_model, check_file, number, write_json
from syncheck.features.schemas import feature_groups
from syncheck.report.plots import IntervalPanel, plot_matrix

_several = number(int, lambda value: value >= 2, "a whole number of at least 2")


def ablate_options(add: Options) -> None:
    """Add the options of ``ablate``."""
    add_model(add, default=NO_MONITOR)
    add_data(add)
    _add_comparison(add)


def transfer_options(add: Options) -> None:
    """Add the options of ``transfer``."""
    add_model(add, default=NO_MONITOR)
    add_data(add, nargs="+")
    add(
        "--over generator|task|data|surrogate",
        "what distinguishes the parts (%(default)s); data: their file; surrogate: the model that measured one "
        "corpus, one file per model",
        default="generator",
    )
    add("--train-on GENERATOR", "with --over surrogate: train only on this generator's answers (all)")
    add("--without PART", "parts to leave out", nargs="+", default=[])
    _add_comparison(add)


def _add_comparison(add: Options) -> None:
    add("--schema SCHEMA")
    add(
        "--aggregator",
        "kind of aggregator (%(default)s, as in the paper)",
        choices=get_args(AggregatorKind),
        default="mlp",
    )
    add("--cv FOLDS", "number of folds (%(default)s)", type=_several, default=5)
    repeats = "number of times the folds are shuffled, instead of --seeds"
    add_tables(add, benchmark_set="strict", runs=(SEEDS, True), repeats=repeats)


def ablate(args: argparse.Namespace) -> int:
    """Print the AUROC without each signal in turn; returns the exit code."""
    check_file("--output", args.output)
    path = Path(args.data)
    measured = measured_by(measuring_monitor(args, [path]), args, path)
    names = measured.schema.names
    signals = feature_groups(names)
    systems = evaluation.ablation_systems(names, signals)
    folds = folds_of(args)
    output: dict[str, object] = {"aggregator": args.aggregator, "signals": {k: list(v) for k, v in signals.items()}}
    panels: list[IntervalPanel] = []
    for name in chosen_sets(args):
        chosen = training.labelled_set(measured, name)
        scores = evaluation.out_of_fold_scores(
            *chosen.data, names=names, systems=systems, aggregator=args.aggregator, **folds
        )
        table = table_of(scores, chosen, args, folds=evaluation.fold_numbers(chosen.y, chosen.groups, **folds))
        sys.stdout.write(f"\n{name} set\n{table.to_text()}\n")
        output[name] = table.to_dict()
        panels += panels_of(name, table)
    return written(args, output, panels, f"AUROC of {args.aggregator}")


def transfer(args: argparse.Namespace) -> int:
    """Print the matrix of each benchmark set; returns the exit code."""
    _check_transfer(args)
    paths = {Path(path).stem: Path(path) for path in args.data}
    monitor = measuring_monitor(args, list(paths.values()))
    measured = {name: measured_by(monitor, args, path) for name, path in paths.items()}
    output: dict[str, object] = {"over": args.over, "aggregator": args.aggregator}
    names = chosen_sets(args)
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
    source_names(args)
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


def _matrix(
    measured: dict[str, training.MeasuredSentences], name: training.SetName, args: argparse.Namespace
) -> evaluation.AurocMatrix:
    options = {"aggregator": args.aggregator, **folds_of(args)}
    if args.over == "surrogate":
        sets = {file: training.labelled_set(sentences, name) for file, sentences in measured.items()}
        return training.surrogate_matrix(sets, trained_on=args.train_on, **options)
    chosen, files = by_source(measured, name)
    parts = {"generator": chosen.generators, "task": chosen.tasks, "data": files}[args.over]
    return evaluation.transfer_matrix(
        *chosen.data, parts.tolist(), feature_names=chosen.measured.schema.names, without=args.without, **options
    )
