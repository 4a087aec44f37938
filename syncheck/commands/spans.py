"""``syncheck spans`` finds the wrong characters of responses, ``syncheck spans-score`` scores what was found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from syncheck.commands.labelled import write_json
from syncheck.detectors import (
    MarkAll,
    MarkNone,
    SpanDetector,
    load_predictions,
    load_span_items,
    load_span_regressor,
    prediction_record,
    score_spans,
    span_item,
)
from syncheck.errors import InputError, RecordError
from syncheck.jsonlines import process
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


_DETECTORS: dict[str, Callable[[argparse.Namespace], SpanDetector]] = {
    "mikani": lambda args: load_span_regressor(args.span_model),
    "mark-all": lambda args: MarkAll(),
    "mark-none": lambda args: MarkNone(),
}
