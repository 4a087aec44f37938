"""``syncheck calibrate``: probabilities that are what they say, and a threshold with a promise."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from syncheck.aggregators import RiskControlledThreshold
from syncheck.cli.labelled import check_folder, measured_by
from syncheck.cli.monitors import monitor_for
from syncheck.errors import InputError
from syncheck.evaluation import reliability_bins
from syncheck.evaluation.reliability import save_reliability_diagram
from syncheck.monitor import Monitor
from syncheck.report.plots import check_plot
from syncheck.training import Calibrated, MeasuredSentences, calibrate_monitor, refuse_seen

__all__ = ["run"]


CONFIDENCE = 0.9


def run(args: argparse.Namespace) -> int:
    """Calibrate a monitor on held-out labelled responses and save it; returns the exit code."""
    _check(args)
    monitor = monitor_for(args, "surrogate")
    if monitor.aggregator is None:
        raise InputError("--model has no scores to calibrate without a trained --monitor DIR")
    measured = _held_out(monitor, args)
    found = calibrate_monitor(
        monitor,
        measured,
        method=args.method,
        risk=args.risk,
        confidence=CONFIDENCE if args.confidence is None else args.confidence,
        rule=args.labels,
        every_sentence=args.every_sentence,
        seed=args.seed,
    )
    sys.stdout.write(_table(found, questions=len(np.unique(measured.groups))))
    if args.plot is not None:
        bins = {"before": reliability_bins(found.raw, found.y), "after": reliability_bins(found.out_of_fold, found.y)}
        save_reliability_diagram(args.plot, bins)
    if args.output is not None:
        found.monitor.save_pretrained(args.output)
        sys.stderr.write(f"saved to {args.output}\n")
    return 0


def _check(args: argparse.Namespace) -> None:
    given = {"--confidence": args.confidence is not None, "--every-sentence": args.every_sentence}
    idle = [name for name in given if given[name]]
    if args.risk is None and idle:
        raise InputError(
            f"{', '.join(idle)} would have no effect: --risk none chooses no threshold. Leave out one or the other"
        )
    if args.output is not None:
        check_folder(args.output)
    if args.plot is not None:
        check_plot(args.plot)


def _held_out(monitor: Monitor, args: argparse.Namespace) -> MeasuredSentences:
    """Measure labelled responses that the monitor has not seen, or read those that ``syncheck features`` measured."""
    return measured_by(monitor, args, Path(args.data), check=lambda records: refuse_seen(monitor, records))


def _table(found: Calibrated, *, questions: int) -> str:
    rows = [
        ("held-out sentences", f"{len(found.y)} of {questions} questions, {(found.y == 0).mean():.3f} unfaithful"),
        ("ECE before", f"{found.ece_before:.3f}"),
        ("ECE after", f"{found.ece_after:.3f}, each question by a calibration fitted on the others"),
        *(_promise(found.threshold) if found.threshold is not None else [("calibrated threshold", "none, as asked")]),
    ]
    return "".join(f"{name:<20} {value}\n" for name, value in rows)


def _promise(promise: RiskControlledThreshold) -> list[tuple[str, str]]:
    share = promise.released / promise.sentences
    drawn = ", one of each question" if promise.one_per_question else ", taken to be independent of each other"
    return [
        ("calibrated threshold", f"{promise.threshold!r}, chosen on {promise.sentences} sentences{drawn}"),
        ("released", f"{share:.3f}, {promise.released} of {promise.sentences} sentences"),
        ("unfaithful of these", f"{promise.observed:.4f}, {promise.unfaithful} of {promise.released} sentences"),
        ("upper bound", f"{promise.bound:.4f} with confidence {promise.confidence:g}; allowed: {promise.risk:g}"),
    ]
