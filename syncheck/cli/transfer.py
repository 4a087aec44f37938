"""``syncheck transfer``: trained on one part of the data and tested on another, or models compared as surrogates."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from syncheck.cli.labelled import check_outputs, chosen_sets, folds_of, measured_files, write_json
from syncheck.errors import InputError
from syncheck.evaluation import AurocMatrix, transfer_matrix
from syncheck.report.plots import plot_matrix
from syncheck.training import MeasuredSentences, SetName, grouped_by_question, joined, labelled_set, surrogate_matrix

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print the matrix of each benchmark set; returns the exit code."""
    _check(args)
    measured = measured_files(args, args.data)
    output: dict[str, object] = {"over": args.over, "aggregator": args.aggregator}
    names = chosen_sets(args.set)
    for name in names:
        matrix = _matrix(measured, name, args)
        sys.stdout.write(f"\n{name} set\n{matrix.to_text()}\n")
        output[name] = matrix.to_dict()
        if args.plot is not None:
            _plot(matrix, name, _path_of(args.plot, name, several=len(names) > 1))
    write_json(args.output, output)
    return 0


def _matrix(measured: dict[str, MeasuredSentences], name: SetName, args: argparse.Namespace) -> AurocMatrix:
    options = {"aggregator": args.aggregator, **folds_of(args)}
    if args.over == "surrogate":
        sets = {file: labelled_set(found, name) for file, found in measured.items()}
        return surrogate_matrix(sets, trained_on=args.train_on, **options)
    everything = joined(list(measured.values()))
    # Files name their groups each in its own way.
    chosen = labelled_set(replace(everything, records=grouped_by_question(everything.records)), name)
    parts = {"generator": chosen.generators, "task": chosen.tasks, "data": _files(measured)[chosen.used]}[args.over]
    return transfer_matrix(
        chosen.features,
        chosen.y,
        chosen.groups,
        parts.tolist(),
        feature_names=chosen.measured.schema.names,
        without=args.without,
        **options,
    )


def _files(measured: dict[str, MeasuredSentences]) -> np.ndarray:
    """Return the file of each sentence of all files."""
    return np.array([name for name, found in measured.items() for _ in found.texts])


def _plot(matrix: AurocMatrix, name: str, path: Path) -> None:
    rows, columns = matrix.corner.split(" \\ ")
    plot_matrix(
        matrix.values.tolist(),
        matrix.rows,
        matrix.columns,
        path,
        label="AUROC",
        row_label=rows,
        column_label=columns,
        title=f"{name} set",
    )


def _path_of(plot: str, name: str, *, several: bool) -> Path:
    path = Path(plot)
    return path.with_name(f"{path.stem}-{name}{path.suffix}") if several else path


def _check(args: argparse.Namespace) -> None:
    if args.over == "surrogate" and not all(path.endswith(".parquet") for path in args.data):
        raise InputError(
            "--over surrogate compares models by what each measured; pass one file of `syncheck features` for each, "
            "named after its model"
        )
    if args.without and args.over == "surrogate":
        raise InputError("--without leaves out generators, tasks or files; with --over surrogate leave the file out")
    if args.train_on is not None and args.over != "surrogate":
        raise InputError(
            f"--train-on is for --over surrogate; with --over {args.over} every part is trained on in its row"
        )
    if args.over == "data" and len(args.data) < 2:
        raise InputError("--over data needs two or more files in --data; found one")
    check_outputs(args)
