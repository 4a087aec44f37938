"""Tables of detection, in Markdown.

    python benchmarks/detection.py --data ragtruth-qa --output runs/detection

Measures labelled responses once with the kit's model, then runs ``syncheck evaluate`` on them: every system on both
sets of sentences, pooled and by generator; what each signal is worth; every kind of aggregator on each schema. What
was measured and found is kept in ``--output``; a file of features that is there already is taken as it is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from syncheck.aggregators.kinds import AggregatorKind
from syncheck.cli import main as syncheck
from syncheck.evaluation import aggregator_systems
from syncheck.training import SetName

GENERATORS = ("llama-2-7b-chat", "mistral-7B-instruct")
"""Whose figures the paper reports."""
EVERYTHING = "all features"
PERMUTED = "signals permuted"
SCHEMAS = ("the paper's features", "features of syncheck.v1", EVERYTHING)

Row = dict[str, Any]


def run(words: Sequence[str]) -> None:
    """Run a command of ``syncheck``; exit if it fails."""
    if syncheck(words):
        sys.exit(f"stopped: syncheck {words[0]} failed")


def found(args: argparse.Namespace, name: str, words: Sequence[str]) -> dict[str, Any]:
    """Return the tables of ``syncheck evaluate`` for the measured sentences."""
    output = args.output / f"{name}.json"
    features = args.output / "features.parquet"
    run(["evaluate", "--data", str(features), "--cv", str(args.cv), *words, "--output", str(output)])
    known: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return known


def systems_table(evaluated: dict[str, Any], generators: Sequence[str]) -> Iterator[str]:
    """Yield a line for each system: both sets, pooled with the interval, and each generator."""
    sets = [name for name in get_args(SetName) if name in evaluated]
    rows = {(name, row["system"], row["subset"]): row for name in sets for row in evaluated[name]["rows"]}
    columns = [(name, part) for name in sets for part in ("all", *generators)]
    parts = {part for _, _, part in rows}
    if missing := sorted(set(generators) - parts):
        sys.exit(
            f"stopped: no answers by {', '.join(missing)}; --generators may be {', '.join(sorted(parts - {'all'}))}"
        )
    yield f"| sentence AUROC | {' | '.join(f'{name} set, {_pooled(part)}' for name, part in columns)} |"
    yield f"| --- |{' --- |' * len(columns)}"
    for system in dict.fromkeys(system for _, system, _ in rows):
        cells = (_cell(rows[name, system, part], interval=part == "all") for name, part in columns)
        yield f"| {system} | {' | '.join(cells)} |"


def signals_table(evaluated: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each group of signals: the AUROC lost when it is permuted among held-out sentences."""
    sets = [name for name in get_args(SetName) if name in evaluated]
    gains = {name: {row["system"]: row["gain"] for row in evaluated[name][PERMUTED]["rows"]} for name in sets}
    yield f"| AUROC lost | {' | '.join(f'{name} set' for name in sets)} |"
    yield f"| --- |{' --- |' * len(sets)}"
    for system in gains[sets[0]]:
        if system != EVERYTHING:
            yield f"| {system} | {' | '.join(f'{-gains[name][system]:.3f}' for name in sets)} |"


def kinds_table(evaluated: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each kind of aggregator: strict set, pooled, on each schema that was measured."""
    rows = {
        kind: {row["system"]: row for row in known["strict"]["rows"] if row["subset"] == "all"}
        for kind, known in evaluated.items()
    }
    schemas = [schema for schema in SCHEMAS if all(schema in found for found in rows.values())]
    yield f"| strict set, pooled | {' | '.join(schemas)} |"
    yield f"| --- |{' --- |' * len(schemas)}"
    for kind, systems in rows.items():
        yield f"| {kind} | {' | '.join(_cell(systems[schema], interval=True) for schema in schemas)} |"


def _pooled(part: str) -> str:
    return "pooled" if part == "all" else part


def _cell(row: Row, *, interval: bool) -> str:
    if row["auroc"] is None:
        return "-"
    known = interval and row["low"] is not None
    return f"{row['auroc']:.3f}" + (f" [{row['low']:.3f}, {row['high']:.3f}]" if known else "")


def main(words: Sequence[str] | None = None) -> None:
    """Measure, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, metavar="PATH", help="what syncheck features takes")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--generators", nargs="+", default=GENERATORS, metavar="NAME", help="columns of their own")
    parser.add_argument("--aggregator", choices=get_args(AggregatorKind), default="ensemble", help="(%(default)s)")
    parser.add_argument("--cv", type=int, default=5, metavar="FOLDS")
    parser.add_argument("--repeats", type=int, default=5, help="shuffles of the folds (%(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="of the comparison of kinds (%(default)s)")
    args = parser.parse_args(words)
    args.output.mkdir(parents=True, exist_ok=True)
    if not (args.output / "features.parquet").exists():
        run(["features", "--data", args.data, "--output", str(args.output / "features.parquet")])
    options = ["--repeats", str(args.repeats), "--permute", "--set", "both", "--aggregator", args.aggregator]
    systems = found(args, "systems", options)
    kinds = {
        kind: found(args, kind, ["--seeds", str(args.seeds), "--set", "strict", "--aggregator", kind])
        for kind in (system.aggregator for system in aggregator_systems(()))
    }
    for table in (systems_table(systems, args.generators), signals_table(systems), kinds_table(kinds)):
        print("", *table, sep="\n")


if __name__ == "__main__":
    main()
