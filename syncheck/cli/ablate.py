"""``syncheck ablate``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from syncheck.cli.labelled import check_outputs, chosen_sets, folds_of, measured_files, panels_of, parts_of, write_json
from syncheck.evaluation import ablation_systems, auroc_table, fold_numbers, out_of_fold_scores
from syncheck.report.plots import IntervalPanel, plot_intervals
from syncheck.schemas import feature_groups
from syncheck.training import labelled_set

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print the AUROC without each signal in turn; returns the exit code."""
    check_outputs(args)
    measured = measured_files(args, [args.data])[Path(args.data).stem]
    names = measured.schema.names
    signals = feature_groups(names)
    systems = ablation_systems(names, signals)
    folds = folds_of(args)
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
