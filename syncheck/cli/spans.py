"""``syncheck spans`` finds the wrong characters of responses, ``syncheck spans-score`` scores predictions of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from syncheck import aligners, spans
from syncheck.base.errors import InputError
from syncheck.base.records import Record
from syncheck.cli.monitors import models_of
from syncheck.cli.options import Options, share, write_json
from syncheck.cli.record_runs import process
from syncheck.results import SpanDetector, SpanItem


def mark_options(add: Options) -> None:
    """Add the options of ``syncheck spans``."""
    add("--method = mikani", "method that marks the spans", choices=tuple(_DETECTORS))
    add("--input PATH", "Mu-SHROOM JSON Lines or a folder, or - for standard input", default="-")
    add("--output PATH", "JSON Lines file, or a folder if the input is one", default="-")
    add("--device cpu|cuda = cpu")
    add("--span-model DIR", "for mikani: 'bundled', 'bundled-rarity' or a folder", default="bundled")
    add("--model DIR_OR_ID", "for refind and hallurag: a causal language model (the kit's)")
    add("--threshold DELTA", "for refind: mark tokens with a context sensitivity ratio of at least DELTA")
    add("--encoder DIR_OR_ID", "for hallurag: a sentence encoder (letter trigrams)")
    group = add.group("an instruct model", "for hallurag: lists wrong spans")
    group("--llm DIR_OR_ID", "Hugging Face model")
    group("--endpoint URL", "URL of an OpenAI-compatible server, up to /v1")
    group("--endpoint-model NAME", "name of the model on the server")
    group("--api-key-variable VARIABLE", "environment variable that holds the server's API key")


def score_options(add: Options) -> None:
    """Add the options of ``syncheck spans-score``."""
    add("--reference PATH", "labelled JSON Lines, or a folder of them", required=True)
    add("--predictions PATH", "predicted labels, a file or folder", required=True)
    add("--refused error|nothing = error", "treat a refused item as an error, or as one in which nothing was marked")
    add("--languages CODE", "languages to score (all in the reference)", nargs="+")
    add("--draws N = 1000", "number of bootstrap resamples")
    add("--seed SEED = 0")
    add("--output FILE", "also write the table as JSON")
    add("--fail-under IOU", "exit with 1 if the mean IoU is below IOU (0 to 1)", type=share)


def mark(args: argparse.Namespace) -> int:
    """Write the labels of each item; returns the exit code."""
    pairs = _files(args.input, args.output)
    _check_asked(args)
    replay = spans.TokenReplay(*models_of(args)) if args.method in ("refind", "hallurag") else None
    detector = _DETECTORS[args.method](args, replay)

    def work(values: dict[str, Any]) -> dict[str, Any]:
        item = spans.span_item(Record(values))
        return spans.prediction_record(item, detector.detect(item)) | unread(item, replay)

    refused = [one for source, target in pairs for one in process(source, target, work)]
    return 2 if refused else 0


def score(args: argparse.Namespace) -> int:
    """Print IoU and correlation by language; returns the exit code."""
    items = spans.load_span_items(args.reference)
    predicted = spans.load_predictions(args.predictions, items, refused=args.refused)
    if refused := spans.refused_predictions(args.predictions):
        sys.stderr.write(f"{len(refused)} items were refused, {refused[0]!r} first; scored as if nothing was found\n")
    table = spans.score_spans(items, predicted, languages=args.languages, draws=args.draws, seed=args.seed)
    sys.stdout.write(f"{table.to_text()}\n")
    write_json(args.output, table.to_dict())
    return int(args.fail_under is not None and not table.mean.iou >= args.fail_under)


def unread(item: SpanItem, replay: spans.TokenReplay | None) -> dict[str, Any]:
    """Collect the fields of an item's record that name the texts which the language model did not read, if any."""
    if replay is None:
        return {}
    if not replay.fits(item):  # hallurag continues without it; refind has refused the item
        return {"signals": "not measured: the item does not fit the model's window"}
    left_out = replay.left_out(item)
    return {"left_out": list(left_out)} if left_out else {}


def _files(source: str, target: str) -> list[tuple[str, str]]:
    """Pair the files to read and write: one pair, or one for each file of a folder."""
    if source == "-" or not Path(source).is_dir():
        return [(source, target)]
    if target == "-" or Path(target).is_file():
        raise InputError(f"the input {source!r} is a folder; pass a folder as --output too, found {target!r}")
    files = sorted(Path(source).glob("*.jsonl"))
    if not files:
        raise InputError(f"{source} holds no *.jsonl file")
    Path(target).mkdir(parents=True, exist_ok=True)
    return [(str(file), str(Path(target) / file.name)) for file in files]


def _refind(args: argparse.Namespace, measure: spans.Measure) -> spans.RefindDetector:
    return spans.RefindDetector(measure, **({} if args.threshold is None else {"delta": args.threshold}))


def _hallurag(args: argparse.Namespace, measure: spans.Measure) -> spans.HalluRagDetector:
    name = args.encoder
    encoder = spans.LetterEncoder() if name is None else spans.CheckpointEncoder(name, device=args.device)
    asked: aligners.TextGenerator | None = None
    if args.endpoint is not None:
        variable = args.api_key_variable
        asked = aligners.EndpointTextGenerator(args.endpoint, args.endpoint_model, api_key_variable=variable)
    elif args.llm is not None:
        asked = aligners.LocalTextGenerator.load(args.llm, device=args.device)
    return spans.HalluRagDetector(measure, encoder=encoder, asked=asked)


_DETECTORS: dict[str, Callable[[argparse.Namespace, Any], SpanDetector]] = {
    "mikani": lambda args, _: spans.load_span_regressor(args.span_model),
    "refind": _refind,
    "hallurag": _hallurag,
}


def _check_asked(args: argparse.Namespace) -> None:
    """Refuse options that name two instruct models, an incomplete one, or one that the method does not use."""
    of_endpoint = any([args.endpoint, args.endpoint_model, args.api_key_variable])
    if args.llm is None and not of_endpoint:
        return
    if args.method != "hallurag":
        raise InputError(f"--method {args.method} does not use an instruct model; --llm and --endpoint need hallurag")
    if args.llm is not None and of_endpoint:
        raise InputError("--llm and --endpoint both name an instruct model; pass only one of them")
    if args.llm is None and not (args.endpoint and args.endpoint_model):
        raise InputError("an endpoint needs --endpoint URL and --endpoint-model NAME")
