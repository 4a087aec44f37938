"""``syncheck features``, ``train`` and ``evaluate``: monitors from labelled responses."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from syncheck.alignment import load_aligner
from syncheck.commands.monitors import load_model, monitor_for, segmenter_of
from syncheck.config import MonitorConfig, SegmenterConfig, default_layers
from syncheck.errors import InputError, MismatchError
from syncheck.features import needs_lid
from syncheck.kit import kit_language_model
from syncheck.monitor import Monitor
from syncheck.training import (
    EvaluationTable,
    MeasuredSentences,
    auroc_table,
    benchmark_systems,
    fit_measured,
    load_records,
    measure,
    out_of_fold_scores,
    read_parquet,
    write_parquet,
)

__all__ = ["evaluate", "features", "train"]


def train(args: argparse.Namespace) -> int:
    """Train a monitor and save it; returns the exit code."""
    model, tokenizer = kit_language_model(args.device) if args.model is None else load_model(args.model, args.device)
    untrained = Monitor(
        model,
        tokenizer,
        config=_config(args, model.config.get_text_config().num_hidden_layers),
        aligner=load_aligner("bundled", device=args.device),
    )
    measured = _measured(untrained, Path(args.data))
    monitor = fit_measured(untrained, measured, kind=args.aggregator, random_state=args.seed)
    monitor.save_pretrained(args.output)
    sys.stderr.write(
        f"trained on {len(monitor.trained_on)} responses; backtrack threshold "
        f"{monitor.config.backtrack_threshold:.3f}, prune threshold {monitor.config.prune_threshold:.3f}; "
        f"saved to {args.output}\n"
    )
    return 0


def features(args: argparse.Namespace) -> int:
    """Measure labelled responses and write their features; returns the exit code."""
    measured = measure(monitor_for(args, "surrogate"), load_records(Path(args.data)))
    for name, reason in measured.left_out.items():
        sys.stderr.write(f"{name}: left out: {reason}\n")
    write_parquet(measured, args.output)
    return 2 if measured.left_out else 0


def evaluate(args: argparse.Namespace) -> int:
    """Print the AUROC table of the monitor's signals on labelled responses; returns the exit code."""
    if args.group not in ("source_id", "group"):
        raise InputError(f"--group must be 'source_id' or 'group', the question; found {args.group!r}")
    if args.output is not None and not Path(args.output).parent.is_dir():
        raise InputError(f"--output {args.output!r}: the folder does not exist; make it first")
    monitor = monitor_for(args, "surrogate")
    data = Path(args.data)
    if args.cv == 0:
        records = read_parquet(data).records if data.suffix == ".parquet" else load_records(data)
        _refuse_seen(monitor, [r.id for r in records], allow=args.allow_train)
    measured = _measured(monitor, data)
    if measured.left_out:
        sys.stderr.write(f"{len(measured.left_out)} responses do not fit the window\n")
    output: dict[str, object] = {"responses": len(measured.records), "left_out": dict(measured.left_out)}
    sets = {"strict": ("overlap", True), "paper": ("paper", False)}
    for name in sets if args.set == "both" else (args.set,):
        rule, implicit_true = sets[name]
        used = np.flatnonzero(measured.with_letter) if name == "strict" else np.arange(len(measured.texts))
        labels = measured.labels(rule=rule, implicit_true=implicit_true)  # type: ignore[arg-type]
        table = _table(monitor, measured, labels, used, args)
        sys.stdout.write(f"\n{name} set\n{table.to_text()}\n")
        output[name] = table.to_dict()
    if args.output is not None:
        Path(args.output).write_text(json.dumps(output, indent=2) + "\n", encoding="utf-8")
    return 0


def _table(
    monitor: Monitor,
    measured: MeasuredSentences,
    labels: np.ndarray,
    used: np.ndarray,
    args: argparse.Namespace,
) -> EvaluationTable:
    y, groups, generators = labels[used], measured.groups[used], measured.generators[used]
    if args.cv:
        names = measured.schema.names
        scores = out_of_fold_scores(
            lambda train: measured.features(labels, used[train])[used],
            y,
            groups,
            names=names,
            systems=benchmark_systems(names),
            kind=args.aggregator or (monitor.aggregator.kind if monitor.aggregator else "mlp"),
            folds=args.cv,
            repeats=args.repeats,
            seed=args.seed,
        )
    elif monitor.aggregator is None:
        raise InputError("--cv 0 evaluates a trained monitor as it is; pass --monitor DIR, or --cv 5 to train on folds")
    else:
        scores = {"monitor": monitor.aggregator.score(measured.values[used])[None]}
    return auroc_table(scores, y, groups, by={"generator": list(generators)}, seed=args.seed)


def _measured(monitor: Monitor, path: Path) -> MeasuredSentences:
    """Measure labelled responses, or read those that ``syncheck features`` measured."""
    if path.suffix != ".parquet":
        return measure(monitor, load_records(path))
    measured = read_parquet(path)
    if measured.segmenter != monitor.config.segmenter:
        raise MismatchError(
            f"{path} was cut with {measured.segmenter}; the monitor cuts with {monitor.config.segmenter}. "
            "Measure again, or pass the same segmentation options"
        )
    if measured.schema != monitor.schema:
        raise MismatchError(
            f"{path} holds features {measured.schema.version!r} {measured.schema.names}; the monitor reads "
            f"{monitor.schema.version!r} {monitor.schema.names}. Measure again with the same --model and --schema"
        )
    return measured


def _refuse_seen(monitor: Monitor, ids: list[str], *, allow: bool) -> None:
    seen = sorted(monitor.trained_on.intersection(ids))
    if seen and not allow:
        raise InputError(
            f"the monitor was trained on {len(seen)} of these records ({', '.join(seen[:3])}, ...), so its AUROC would "
            "flatter it; pass other data, --cv 5 to train on folds, or --allow-train"
        )


def _config(args: argparse.Namespace, blocks: int) -> MonitorConfig:
    layers = default_layers(blocks) if needs_lid(args.schema) else ()
    return MonitorConfig(schema=args.schema, layers=layers, segmenter=segmenter_of(args) or SegmenterConfig())
