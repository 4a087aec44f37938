"""``syncheck spans`` finds the wrong characters of responses, ``syncheck spans-score`` scores what was found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from syncheck.alignment import LocalEvaluator
from syncheck.commands.labelled import write_json
from syncheck.commands.monitors import load_model
from syncheck.detectors import (
    CheckpointEncoder,
    FavaDetector,
    HalluRagDetector,
    LetterEncoder,
    MarkAll,
    MarkNone,
    RefindDetector,
    SpanDetector,
    Thresholds,
    TokenClassifierDetector,
    TokenReplay,
    choose_thresholds,
    load_predictions,
    load_span_items,
    load_span_regressor,
    prediction_record,
    score_spans,
    span_item,
)
from syncheck.errors import InputError, RecordError
from syncheck.jsonlines import process
from syncheck.kit import kit_language_model
from syncheck.spans import SpanItem
from syncheck.training.records import Record

__all__ = ["score", "spans"]


def spans(args: argparse.Namespace) -> int:
    """Write the labels of each item; returns the exit code."""
    pairs = _files(args.input, args.output)
    detector = _DETECTORS[args.method](args)

    def work(values: dict[str, Any]) -> dict[str, Any]:
        item = _read(values)
        return prediction_record(item, detector.detect(item))

    return 2 if sum(process(source, target, work) for source, target in pairs) else 0


def score(args: argparse.Namespace) -> int:
    """Print IoU and correlation by language; returns the exit code."""
    items = load_span_items(args.reference)
    found = load_predictions(args.predictions, items)
    table = score_spans(items, found, languages=args.languages, draws=args.draws, seed=args.seed)
    sys.stdout.write(f"{table.to_text()}\n")
    write_json(args.output, table.to_dict())
    return int(args.fail_under is not None and table.mean.iou < args.fail_under)


def _files(source: str, target: str) -> list[tuple[str, str]]:
    """Return the pairs of files to read and write: one, or one for each file of a folder."""
    if source == "-" or not Path(source).is_dir():
        return [(source, target)]
    if target == "-" or Path(target).is_file():
        raise InputError(f"the input {source!r} is a folder; pass a folder as --output too, found {target!r}")
    files = sorted(Path(source).glob("*.jsonl"))
    if not files:
        raise InputError(f"{source} holds no *.jsonl file")
    Path(target).mkdir(parents=True, exist_ok=True)
    return [(str(file), str(Path(target) / file.name)) for file in files]


def _read(values: dict[str, Any]) -> SpanItem:
    try:
        return span_item(Record(values, "", 0))
    except RecordError as error:  # file and line are added by who reads them
        raise InputError(str(error).removeprefix(":0").lstrip(",: ")) from error


def _replay(args: argparse.Namespace) -> TokenReplay:
    if args.model is None:
        return TokenReplay(*kit_language_model(args.device))
    return TokenReplay(*load_model(args.model, args.device))


def _refind(args: argparse.Namespace) -> RefindDetector:
    if args.threshold is not None and args.fit_thresholds is not None:
        raise InputError("--threshold and --fit-thresholds are two ways to say one thing; pass one of them")
    measure, thresholds = _replay(args), None
    if args.threshold is not None:
        thresholds = Thresholds(args.threshold)
    if args.fit_thresholds is not None:
        items = load_span_items(args.fit_thresholds)
        detector = RefindDetector(measure, form=args.form)
        thresholds = choose_thresholds(items, {item.id: detector.ratios(item) for item in items})
    return RefindDetector(measure, thresholds=thresholds, form=args.form)


def _hallurag(args: argparse.Namespace) -> HalluRagDetector:
    encoder = LetterEncoder() if args.encoder is None else CheckpointEncoder(args.encoder, device=args.device)
    asked = None if args.asked is None else LocalEvaluator.load(args.asked, device=args.device)
    return HalluRagDetector(_replay(args), encoder=encoder, asked=asked)


def _checkpoint(args: argparse.Namespace) -> str:
    if args.model is None:
        raise InputError(f"--method {args.method} needs the checkpoint, as --model DIR_OR_ID")
    return str(args.model)


_DETECTORS: dict[str, Callable[[argparse.Namespace], SpanDetector]] = {
    "mikani": lambda args: load_span_regressor(args.span_model),
    "refind": _refind,
    "hallurag": _hallurag,
    "classifier": lambda args: TokenClassifierDetector(_checkpoint(args), wrong=args.wrong_class, device=args.device),
    "fava": lambda args: FavaDetector(LocalEvaluator.load(_checkpoint(args), device=args.device)),
    "mark-all": lambda args: MarkAll(),
    "mark-none": lambda args: MarkNone(),
}
