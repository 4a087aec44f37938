"""``syncheck train``, ``features`` and ``calibrate``: monitors and files of features from responses."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

import syncheck
from syncheck import evaluation, training
from syncheck.aggregators.kinds import AggregatorKind
from syncheck.base.errors import InputError
from syncheck.cli import monitors
from syncheck.cli.options import IN_FORMAT, Options, add_model, check_file, check_folder, named, positive_share
from syncheck.config import DEFAULT_SCHEMA, KEPT, PRECISION
from syncheck.corpus.store import PART_SIZE
from syncheck.report.plots import plot_curve, plot_intervals, save_reliability_diagram

if TYPE_CHECKING:
    from syncheck.training.provenance import UnloadedMonitor

BATCH_SIZES = {"cpu": 1, "cuda": 16}
"""Number of responses replayed at once: on a CPU, padding costs more than a larger batch saves."""


def train_options(add: Options) -> None:
    """Add the options of ``train``."""
    add_model(add, monitor=False)
    monitors.add_data(add)
    add("--labels overlap|paper = overlap")
    add(
        "--aggregator = best",
        "kind of aggregator; 'best' chooses one by grouped cross-validation, or keeps 'generic' if none is better; "
        "'shrunk' is pulled towards 'generic', with few labels more than with many",
        choices=("best", "shrunk", *get_args(AggregatorKind), "generic"),
    )
    add(
        f"--precision SHARE = {PRECISION}",
        "share of faithful sentences among those that get the verdict 'supported'; if the labels do not give it, none "
        "does",
        type=positive_share,
    )
    add(
        f"--kept SHARE = {KEPT}",
        "share of the faithful sentences that stay above the backtrack threshold; 2.5 times as many of them may lie "
        "below the prune threshold",
        type=positive_share,
    )
    add("--schema SCHEMA", f"feature schema ({DEFAULT_SCHEMA}, or that of a file of features)")
    add("--plot FILE", f"plot the AUROC of each kind on held-out folds{IN_FORMAT}")
    add("--output DIR", "folder for the monitor", required=True)
    add("--overwrite", "replace the monitor that --output holds (refused)")


def features_options(add: Options) -> None:
    """Add the options of ``features``."""
    add_model(add, default=monitors.NO_MONITOR)
    add("--data PATH", "RAGTruth folder, or labelled JSON Lines", required=True)
    add("--schema SCHEMA")
    add("--output FILE", "Parquet file with one row per sentence", required=True)
    monitors.add_selection(add)
    add("--batch-size N", "number of responses replayed at once (cpu 1, cuda 16)")
    add("--part-size N")


def calibrate_options(add: Options) -> None:
    """Add the options of ``calibrate``."""
    add_model(add)
    monitors.add_data(add)
    add("--labels overlap|paper = overlap")
    add(
        "--method isotonic|platt|shift = isotonic",
        "calibration method: isotonic needs hundreds of labels, platt and shift about 50, for platt at all scores",
    )
    add(
        "--thresholds carried|chosen = carried",
        "keep the monitor's thresholds, moved to the calibrated scale (carried), or choose new ones by the rule "
        "of train (chosen)",
    )
    add(
        "--risk RISK = 0.05",
        "largest share of released sentences that may be unfaithful (%(default)s); 'none' chooses no threshold",
    )
    add("--confidence CONFIDENCE", "probability that --risk is not exceeded (0.9)")
    add(
        "--every-sentence",
        "choose the threshold on all sentences, which must then be independent, instead of one random sentence "
        "per question",
    )
    add(
        "--good-share SHARE",
        "set the backtrack threshold to the lowest score above which this share of the sentences is faithful; "
        "calibrate on answers of the decoder that will use it (as --thresholds says)",
        type=positive_share,
    )
    add("--curve FILE", "plot the share of faithful sentences against the share kept, over all thresholds")
    add("--plot FILE", f"plot a reliability diagram{IN_FORMAT}")
    add("--output DIR", "folder for the calibrated monitor")


def train(args: argparse.Namespace) -> int:
    """Train a monitor, print its figures beside those of ``generic``, and save it; returns the exit code."""
    from syncheck import checkpoint

    check_folder(args.output)
    if not args.overwrite and Path(args.output, checkpoint.CONFIG).exists():
        raise InputError(
            f"--output {args.output!r} holds a monitor, which would be lost; pass another --output, or --overwrite"
        )
    untrained, measured = _measured(args, Path(args.data))
    options = named(args, "aggregator seed precision kept")
    trained = training.train_measured(untrained, measured, rule=args.labels, **options)
    how = "best by grouped cross-validation" if args.aggregator == "best" else "trained"
    sys.stdout.write(f"held-out sentences\n{trained.table.to_text()}\n{how}: {trained.kind}\n")
    if trained.table.rows[0].system != "generic":
        sys.stderr.write(
            "no row for generic, which needs an aligner that it was trained with, the reader or the bundled one, and a "
            f"schema with its features, such as {DEFAULT_SCHEMA}\n"
        )
    if trained.doubt is not None:
        sys.stderr.write(f"{trained.doubt}\n")
    if args.plot is not None:
        panels = monitors.panels_of("training", trained.table)
        plot_intervals(panels, args.plot, label="AUROC, with 95 % intervals over groups")
    trained.monitor.save_pretrained(args.output)
    responses, config = len(set(measured.owners[measured.checkable & measured.labelled])), trained.monitor.config
    lower, upper = config.verdict_thresholds
    sys.stderr.write(
        f"trained on {responses} responses; backtrack threshold {config.backtrack_threshold:.3f}, prune threshold "
        f"{config.prune_threshold:.3f}; supported from {upper:.3f}, unsupported below {lower:.3f}; saved to "
        f"{args.output}\n"
    )
    return 0


def _measured(
    args: argparse.Namespace, path: Path
) -> tuple[monitors.Scorer | UnloadedMonitor, training.MeasuredSentences]:
    """Measure labelled responses, or read a file of features, with the monitor that they are of."""
    from syncheck.training.provenance import UnloadedMonitor
    from syncheck.training.sets import check_questions

    if path.suffix != ".parquet":
        monitor = monitors.monitor_to_measure(args)
        return monitor, monitors.measured_by(monitor, args, path, check=check_questions)
    measured = monitors.measured_by(None, args, path, check=check_questions)
    monitors.check_options(args, measured, path)
    model = None if args.model is None else monitors.models_of(args)
    untrained = training.monitor_of(
        measured, aligner=monitors.aligner_of(args, measured, path), model=model, source=path, kind=syncheck.Monitor
    )
    assert isinstance(untrained, syncheck.Monitor | syncheck.Verifier | UnloadedMonitor)
    return untrained, measured


def features(args: argparse.Namespace) -> int:
    """Measure labelled responses and write their features; returns the exit code."""
    if not args.output.endswith(".parquet"):
        raise InputError(
            f"--output {args.output!r}: the name must end in .parquet, so that other commands recognise a file of "
            "features"
        )
    check_file("--output", args.output)
    if args.data.endswith(".parquet"):
        instead = "pass the RAGTruth folder or JSON Lines to measure"
        raise InputError(f"--data {args.data!r} is already a file of features; {instead}")
    records = monitors.chosen_responses(args, Path(args.data))  # the data are read before a model is loaded
    monitor = monitors.monitor_to_measure(args)
    measured = training.measure_to_parquet(
        monitor,
        records,
        args.output,
        batch_size=args.batch_size or BATCH_SIZES[args.device],
        part_size=args.part_size or PART_SIZE,
    )
    monitors.report_left_out(measured, Path(args.data))
    return 2 if measured.left_out else 0


def calibrate(args: argparse.Namespace) -> int:
    """Calibrate a monitor on held-out labelled responses and save it; returns the exit code."""
    if args.risk is None:
        idle = [name for name in ("confidence", "every_sentence") if getattr(args, name)]
        monitors.refuse_idle(idle, "--risk none chooses no threshold. Leave out one or the other")
    check_folder(args.output)
    monitor = monitors.scoring_monitor(args, "generic")
    if monitor.aggregator is None:
        raise InputError("--model has no scores to calibrate without a trained --monitor DIR")
    measured = monitors.measured_by(monitor, args, Path(args.data), check=partial(training.refuse_seen, monitor))
    calibrated = training.calibrate_monitor(
        monitor,
        measured,
        confidence=0.9 if args.confidence is None else args.confidence,
        rule=args.labels,
        **named(args, "method risk every_sentence thresholds good_share seed"),
    )
    sys.stdout.write(_table(calibrated, questions=len(np.unique(measured.groups))))
    if args.plot is not None:
        scores = {"before": calibrated.raw, "after": calibrated.out_of_fold}
        bins = {when: evaluation.reliability_bins(of, calibrated.y) for when, of in scores.items()}
        save_reliability_diagram(args.plot, bins)
    if args.curve is not None:
        kept, good = calibrated.curve.kept.tolist(), calibrated.curve.good.tolist()
        plot_curve(kept, good, args.curve, labels=("share of the sentences kept", "share of good ones among them"))
    if args.output is not None:
        calibrated.monitor.save_pretrained(args.output)
        sys.stderr.write(f"saved to {args.output}\n")
    return 0


def _table(calibrated: training.Calibrated, *, questions: int) -> str:
    aggregator, config = calibrated.monitor.aggregator, calibrated.monitor.config
    assert aggregator is not None and aggregator.base_rate is not None
    unfaithful = (calibrated.y == 0).mean()
    rows = [
        ("held-out sentences", f"{len(calibrated.y)} of {questions} questions, {unfaithful:.3f} unfaithful"),
        ("expected faithful", f"{aggregator.base_rate:.3f} of all sentences"),
        ("thresholds", f"backtrack {config.backtrack_threshold:.3f}, prune {config.prune_threshold:.3f}"),
        ("ECE before", f"{calibrated.ece_before:.3f}"),
        ("ECE after", f"{calibrated.ece_after:.3f}, each question by a calibration fitted on the others"),
    ]
    if (known := calibrated.threshold) is None:
        rows.append(("calibrated threshold", "none, as asked"))
    else:
        drawn = "one of each question" if known.one_per_question else "taken to be independent of each other"
        share = known.released / known.sentences
        rows += [
            ("calibrated threshold", f"{known.threshold!r}, chosen on {known.sentences} sentences, {drawn}"),
            ("released", f"{share:.3f}, {known.released} of {known.sentences} sentences"),
            ("unfaithful of these", f"{known.observed:.4f}, {known.unfaithful} of {known.released} sentences"),
            ("upper bound", f"{known.bound:.4f} with confidence {known.confidence:g}; allowed: {known.risk:g}"),
        ]
    return "".join(f"{name:<20} {value}\n" for name, value in rows)
