"""``syncheck train`` and ``features``: labelled responses to a monitor, or to a file of features."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from syncheck.alignment import load_aligner
from syncheck.commands.labelled import measured_by
from syncheck.commands.monitors import load_model, monitor_for, segmenter_of
from syncheck.config import AggregatorKind, MonitorConfig, SegmenterConfig, default_layers
from syncheck.features import needs_lid
from syncheck.kit import kit_language_model
from syncheck.monitor import Monitor
from syncheck.training import (
    MeasuredSentences,
    Shard,
    best_aggregator,
    fit_measured,
    labelled_set,
    load_records,
    measure_to_parquet,
)

__all__ = ["features", "train"]

BATCH_SIZES = {"cpu": 1, "cuda": 16}
"""Responses replayed at once: padding costs a CPU more than a larger batch saves."""


def train(args: argparse.Namespace) -> int:
    """Train a monitor and save it; returns the exit code."""
    model, tokenizer = kit_language_model(args.device) if args.model is None else load_model(args.model, args.device)
    untrained = Monitor(
        model,
        tokenizer,
        config=_config(args, model.config.get_text_config().num_hidden_layers),
        aligner=load_aligner("bundled", device=args.device),
    )
    measured = measured_by(untrained, Path(args.data))
    kind = _best(measured, args.seed) if args.aggregator == "best" else args.aggregator
    monitor = fit_measured(untrained, measured, kind=kind, random_state=args.seed)
    monitor.save_pretrained(args.output)
    sys.stderr.write(
        f"trained on {len(monitor.trained_on)} responses; backtrack threshold "
        f"{monitor.config.backtrack_threshold:.3f}, prune threshold {monitor.config.prune_threshold:.3f}; "
        f"saved to {args.output}\n"
    )
    return 0


def features(args: argparse.Namespace) -> int:
    """Measure labelled responses and write their features; returns the exit code."""
    number, count = args.shard
    records = load_records(Path(args.data))
    measured = measure_to_parquet(
        monitor_for(args, "surrogate"),
        records,
        args.output,
        batch_size=args.batch_size or BATCH_SIZES[args.device],
        part_size=args.part_size,
        shard=Shard(number, count),
    )
    if measured is None:
        sys.stderr.write(
            f"shard {number} of {count} is measured; parts of others are missing yet in {args.output}.parts. The last "
            "shard joins them, and so does any that is run again\n"
        )
        return 0
    for name, reason in measured.left_out.items():
        sys.stderr.write(f"{name}: left out: {reason}\n")
    return 2 if measured.left_out else 0


def _best(measured: MeasuredSentences, seed: int) -> AggregatorKind:
    chosen = labelled_set(measured, "strict")
    names = measured.schema.names
    kind, table = best_aggregator(chosen.features, chosen.y, chosen.groups, names=names, repeats=1, seed=seed)
    sys.stderr.write(f"{table.to_text()}\nbest by grouped cross-validation: {kind}\n")
    return kind


def _config(args: argparse.Namespace, blocks: int) -> MonitorConfig:
    layers = default_layers(blocks) if needs_lid(args.schema) else ()
    return MonitorConfig(schema=args.schema, layers=layers, segmenter=segmenter_of(args) or SegmenterConfig())
