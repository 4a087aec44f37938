"""Tables of detection, in Markdown.

    python benchmarks/detection.py --data ragtruth-qa --output runs/detection

Measures labelled responses once with the kit's model, then evaluates on them: every system on both sets of sentences,
pooled and by generator; what each signal is worth; every kind of aggregator on each schema. What was measured and what
``syncheck evaluate`` found is kept in ``--output``; a file of features that is there already is taken as it is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.aggregators.kinds import AggregatorKind, fit_model
from syncheck.cli import main as syncheck
from syncheck.evaluation import aggregator_systems, auroc_table, fold_numbers
from syncheck.evaluation.metrics import FoldFeatures, Folding, fold_features
from syncheck.features.schemas import feature_groups
from syncheck.training import SetName, labelled_set, read_parquet

GENERATORS = ("llama-2-7b-chat", "mistral-7B-instruct")
"""Whose figures the paper reports."""
EVERYTHING = "all features"
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


def permuted_scores(
    X: ArrayLike | FoldFeatures,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    names: Sequence[str],
    signals: Mapping[str, Sequence[str]],
    aggregator: AggregatorKind = "mlp",
    **folding: Unpack[Folding],
) -> dict[str, NDArray[np.float64]]:
    """Score every sentence out of fold, as it is and with each signal taken from another sentence of its fold.

    Nothing is trained again, so the drop in AUROC shows how much the aggregator uses the signal, whereas an ablation
    shows how much the others can replace it. The columns of a signal are permuted together, once for each fold and
    repeat, drawn with ``seed + repeat`` (permutation importance, Breiman, 2001). The result has P(faithful),
    (repeats, N), by ``"all features"`` and ``"<signal> permuted"``.
    """
    places = {signal: [names.index(column) for column in columns] for signal, columns in signals.items()}
    labels, features_for = np.asarray(y), fold_features(X)
    numbers, seed = fold_numbers(labels, groups, **folding), folding.get("seed", 0)
    scores = {
        name: np.full(numbers.shape, np.nan) for name in (EVERYTHING, *(f"{signal} permuted" for signal in signals))
    }
    for repeat, number in enumerate(numbers):
        randomness = np.random.default_rng(seed + repeat)
        for left_out in np.unique(number):
            train, test = np.flatnonzero(number != left_out), np.flatnonzero(number == left_out)
            rows = features_for(train)
            model = fit_model(rows[train], labels[train], kind=aggregator, seed=seed + repeat, names=names)
            rows = rows[test]
            scores[EVERYTHING][repeat, test] = model.probability(rows)
            for signal, columns in places.items():
                exchanged = rows.copy()
                exchanged[:, columns] = rows[randomness.permutation(len(rows))][:, columns]
                scores[f"{signal} permuted"][repeat, test] = model.probability(exchanged)
    return scores


def signals_table(args: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each group of signals: the AUROC lost when it is permuted among held-out sentences."""
    measured, sets = read_parquet(args.output / "features.parquet"), get_args(SetName)
    names, lost = measured.schema.names, {}
    for name in sets:
        chosen = labelled_set(measured, name)
        scores = permuted_scores(
            *chosen.data,
            names=names,
            signals=feature_groups(names),
            aggregator=args.aggregator,
            folds=args.cv,
            repeats=args.repeats,
        )
        table = auroc_table(scores, chosen.y, chosen.groups, draws=1)
        lost[name] = {row.system: -row.gain for row in table.rows if row.system != EVERYTHING}
    yield f"| AUROC lost | {' | '.join(f'{name} set' for name in sets)} |"
    yield f"| --- |{' --- |' * len(sets)}"
    for system in lost[sets[0]]:
        yield f"| {system} | {' | '.join(f'{lost[name][system]:.3f}' for name in sets)} |"


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
    options = ["--repeats", str(args.repeats), "--set", "both", "--aggregator", args.aggregator]
    systems = found(args, "systems", options)
    kinds = {
        kind: found(args, kind, ["--seeds", str(args.seeds), "--set", "strict", "--aggregator", kind])
        for kind in (system.aggregator for system in aggregator_systems(()))
    }
    for table in (systems_table(systems, args.generators), signals_table(args), kinds_table(kinds)):
        print("", *table, sep="\n")


if __name__ == "__main__":
    main()
