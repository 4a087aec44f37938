"""``syncheck ablate``."""

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from syncheck.cli.labelled import check_outputs, chosen_sets, measured_files, parts_of, runs_of, write_json
from syncheck.evaluation import EvaluationTable, ablation_systems, auroc_table, fold_numbers, out_of_fold_scores
from syncheck.report.plots import IntervalPanel, plot_intervals
from syncheck.schemas import feature_groups
from syncheck.training import labelled_set

__all__ = ["panels_of", "run"]


def panels_of(name: str, table: EvaluationTable) -> list[IntervalPanel]:
    """Return one panel of AUROC for each subset of a table; ``name`` is that of the set."""
    panels = []
    for subset, grouped in groupby(table.rows, key=lambda row: row.subset):
        rows = list(grouped)
        panels.append(
            IntervalPanel(
                f"{name} set, {subset}",
                tuple(row.system for row in rows),
                tuple(row.auroc for row in rows),
                tuple(row.low for row in rows),
                tuple(row.high for row in rows),
            )
        )
    return panels


def run(args: argparse.Namespace) -> int:
    """Print the AUROC without each signal in turn; returns the exit code."""
    check_outputs(args)
    measured = measured_files(args, [args.data])[Path(args.data).stem]
    names = measured.schema.names
    signals = feature_groups(names)
    systems = ablation_systems(names, signals)
    repeats, same_folds = runs_of(args)
    folds: dict[str, Any] = {"folds": args.cv, "repeats": repeats, "seed": args.seed, "same_folds": same_folds}
    output: dict[str, object] = {"aggregator": args.aggregator, "signals": {k: list(v) for k, v in signals.items()}}
    panels: list[IntervalPanel] = []
    for name in chosen_sets(args.set):
        chosen = labelled_set(measured, name)
        y, groups = chosen.y, chosen.groups
        scores = out_of_fold_scores(
            chosen.features, y, groups, names=names, systems=systems, aggregator=args.aggregator, **folds
        )
        numbers = fold_numbers(y, groups, **folds)
        table = auroc_table(scores, y, groups, by=parts_of(chosen), folds=numbers, seed=args.seed)
        sys.stdout.write(f"\n{name} set\n{table.to_text()}\n")
        output[name] = table.to_dict()
        panels += panels_of(name, table)
    write_json(args.output, output)
    if args.plot is not None:
        plot_intervals(panels, args.plot, label=f"AUROC of {args.aggregator}, with 95 % intervals over groups")
    return 0
