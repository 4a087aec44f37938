"""``syncheck spans`` finds the wrong characters of responses, ``syncheck spans-score`` scores what was found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from syncheck.alignment import LocalTextGenerator
from syncheck.cli.outputs import write_json
from syncheck.cli.record_runs import process
from syncheck.cli.span_sources import asked_model, check_asked, retrieved, retriever_of, unread, word_sources
from syncheck.errors import InputError, RecordError
from syncheck.kit import kit_language_model
from syncheck.labelling.responses import Record
from syncheck.pretrained import load_model
from syncheck.report import SpanAnswer, SpanReport
from syncheck.spans import (
    CheckpointEncoder,
    FavaDetector,
    HalluRagDetector,
    LetterEncoder,
    MarkAll,
    MarkNone,
    Measure,
    RefindDetector,
    SpanDetector,
    SpanItem,
    Thresholds,
    TokenClassifierDetector,
    TokenReplay,
    choose_thresholds,
    load_predictions,
    load_span_items,
    load_span_regressor,
    prediction_record,
    reads_signals,
    refused_predictions,
    score_spans,
    span_item,
)

__all__ = ["score", "spans"]


def spans(args: argparse.Namespace) -> int:
    """Write the labels of each item; returns the exit code."""
    pairs = _files(args.input, args.output)
    check_asked(args)
    if args.method != "mikani" and (args.classifier, args.tagger) != (None, None):
        raise InputError(f"--classifier and --tagger are of --method mikani; found {args.method}")
    retriever, replay = retriever_of(args), _replay(args)
    detector = _DETECTORS[args.method](args, replay)
    answers: list[SpanAnswer] = []

    def work(values: dict[str, Any]) -> dict[str, Any]:
        given = _read(values)
        item = retrieved(given, retriever)
        labels, notes = detector.detect(item), unread(item, replay)
        if args.html is not None:
            answers.append(SpanAnswer(item, labels, tuple(f"{key}: {value}" for key, value in notes.items())))
        found = {} if item is given else {"retrieved_context": list(item.passages)}
        return prediction_record(item, labels) | found | notes

    refused = [one for source, target in pairs for one in process(source, target, work)]
    if args.html is not None:
        Path(args.html).write_text(SpanReport(answers, detector.name, refused).to_html(), encoding="utf-8")
    return 2 if refused else 0


def score(args: argparse.Namespace) -> int:
    """Print IoU and correlation by language; returns the exit code."""
    items = load_span_items(args.reference)
    found = load_predictions(args.predictions, items, refused=args.refused)
    if refused := refused_predictions(args.predictions):
        sys.stderr.write(f"{len(refused)} items were refused, {refused[0]!r} first; scored as if nothing was found\n")
    table = score_spans(items, found, languages=args.languages, draws=args.draws, seed=args.seed)
    sys.stdout.write(f"{table.to_text()}\n")
    write_json(args.output, table.to_dict())
    if args.html is not None:
        answers = [SpanAnswer(item, found[item.id]) for item in items]
        Path(args.html).write_text(SpanReport(answers, "the predictions").to_html(), encoding="utf-8")
    return int(args.fail_under is not None and not table.mean.iou >= args.fail_under)


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


def _replay(args: argparse.Namespace) -> TokenReplay | None:
    """Return what measures responses with a language model, None for a method that needs none."""
    if args.method not in ("refind", "hallurag") and not (args.method == "mikani" and reads_signals(args.span_model)):
        return None
    models = kit_language_model(args.device) if args.model is None else load_model(args.model, args.device)
    return TokenReplay(*models, too_long="leave_out" if args.too_long == "leave-out" else "refuse")


def _refind(args: argparse.Namespace, measure: Measure) -> RefindDetector:
    if args.threshold is not None and args.fit_thresholds is not None:
        raise InputError("--threshold and --fit-thresholds are two ways to say one thing; pass one of them")
    thresholds = None
    if args.threshold is not None:
        thresholds = Thresholds(args.threshold)
    if args.fit_thresholds is not None:
        items = load_span_items(args.fit_thresholds)
        detector = RefindDetector(measure, form=args.form)
        thresholds = choose_thresholds(items, {item.id: detector.ratios(item) for item in items})
    return RefindDetector(measure, thresholds=thresholds, form=args.form)


def _hallurag(args: argparse.Namespace, measure: Measure) -> HalluRagDetector:
    encoder = LetterEncoder() if args.encoder is None else CheckpointEncoder(args.encoder, device=args.device)
    return HalluRagDetector(measure, encoder=encoder, asked=asked_model(args))


def _fava(args: argparse.Namespace) -> FavaDetector:
    return FavaDetector(asked_model(args) or LocalTextGenerator.load(_checkpoint(args), device=args.device))


def _checkpoint(args: argparse.Namespace) -> str:
    if args.model is None:
        raise InputError(f"--method {args.method} needs the checkpoint, as --model DIR_OR_ID")
    return str(args.model)


_DETECTORS: dict[str, Callable[[argparse.Namespace, Any], SpanDetector]] = {
    "mikani": lambda args, measure: load_span_regressor(args.span_model, sources=word_sources(args, measure)),
    "refind": _refind,
    "hallurag": _hallurag,
    "classifier": lambda args, _: TokenClassifierDetector(
        _checkpoint(args), wrong=args.wrong_class, device=args.device
    ),
    "fava": lambda args, _: _fava(args),
    "mark-all": lambda args, _: MarkAll(),
    "mark-none": lambda args, _: MarkNone(),
}
