"""All span methods by language, on labelled items: the table of docs/spans.md.

    python benchmarks/span_methods.py --data DIR_OF_MU_SHROOM_VALIDATION --output runs/spans.json

Nothing is scored on a question that it was trained on, or whose threshold was chosen on it. ``--svr`` adds MiKaNi's own
regression, which takes long. With ``--model`` REFIND and HalluRAG measure with another causal language model than the
bundled one. An item that does not fit the model's window counts as one in which nothing was found; how many there were
is printed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from tqdm import tqdm

from syncheck.commands.monitors import load_model
from syncheck.detectors import (
    HalluRagDetector,
    LetterEncoder,
    MarkAll,
    MarkNone,
    RefindDetector,
    SpanScores,
    TokenReplay,
    choose_thresholds,
    held_out_folds,
    held_out_labels,
    load_span_items,
    marked_from,
    score_spans,
)
from syncheck.errors import PromptError
from syncheck.kit import kit_language_model
from syncheck.spans import SpanItem, SpanLabels
from syncheck.types import TokenSignals

EIGHT = ("AR", "DE", "EN", "ES", "FI", "FR", "IT", "SV")
"""Languages of the validation set whose mean is the headline figure."""

Labels = dict[str, SpanLabels]
NOTHING = SpanLabels((), ())


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", help="causal language model of REFIND and HalluRAG; the bundled one without it")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rarity", action="store_true", help="also the model that needs wordfreq")
    parser.add_argument("--svr", action="store_true")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    items = load_span_items(args.data)
    replay = TokenReplay(*(load_model(args.model, args.device) if args.model else kit_language_model(args.device)))
    table: dict[str, dict[str, object]] = {}
    methods = [*_trained(items, args), *_untrained(items, replay)]
    print("| method | " + " | ".join(sorted({i.lang.upper() for i in items})) + " | mean of 8, IoU | correlation |")
    print("| --- |" + " --- |" * (len({i.lang.upper() for i in items}) + 2))
    for name, found in methods:
        scores = score_spans(items, found)
        eight = score_spans(items, found, languages=EIGHT)
        print(_row(name, scores, eight), flush=True)
        table[name] = {"all": scores.to_dict(), "eight": eight.to_dict()["mean"]}
    if args.output is not None:
        args.output.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


def _trained(items: Sequence[SpanItem], args: argparse.Namespace) -> list[tuple[str, Labels]]:
    wanted = [("word risks", "spans.v1", "xgb")]
    wanted += [("word risks with rarity", "spans-rarity.v1", "xgb")] if args.rarity else []
    wanted += [("MiKaNi's regression (SVR)", "spans.v1", "svr")] if args.svr else []
    return [
        (f"{name}, held out by {by}", held_out_labels(items, by=by, schema=schema, kind=kind))
        for name, schema, kind in wanted
        for by in ("question", "language")
    ]


def _untrained(items: Sequence[SpanItem], replay: TokenReplay) -> list[tuple[str, Labels]]:
    signals: dict[str, TokenSignals] = {}
    for item in tqdm(items, desc="replay", disable=None):
        try:
            signals[item.id] = replay(item)
        except PromptError:
            continue
    print(f"{len(items) - len(signals)} of {len(items)} items do not fit the window\n")
    measured = [item for item in items if item.id in signals]

    def labels(detect: Callable[[SpanItem], SpanLabels]) -> Labels:
        return {item.id: detect(item) if item.id in signals else NOTHING for item in items}

    found = [(d.name, {item.id: d.detect(item) for item in items}) for d in (MarkAll(), MarkNone())]
    for form in ("replay", "mixed"):
        detector = RefindDetector(lambda item: signals[item.id], form=form)
        found.append((f"REFIND, {form}, delta 0.2", labels(detector.detect)))
        ratios = {item.id: detector.ratios(item) for item in measured}
        adaptive: Labels = {item.id: NOTHING for item in items}
        for train, held in held_out_folds(measured, by="question"):
            thresholds = choose_thresholds([measured[i] for i in train], ratios)
            for item in (measured[i] for i in held):
                adaptive[item.id] = marked_from(ratios[item.id], thresholds.of(item.lang))
        found.append((f"REFIND, {form}, delta by language", adaptive))
    words, letters = HalluRagDetector(lambda item: signals[item.id]), HalluRagDetector(encoder=LetterEncoder())
    both = HalluRagDetector(lambda item: signals[item.id], encoder=LetterEncoder())
    found.append(("HalluRAG, unlikely words", labels(words.detect)))
    found.append(("HalluRAG, far sentences (letters)", {item.id: letters.detect(item) for item in items}))
    found.append(("HalluRAG, both", labels(both.detect)))
    return found


def _row(name: str, scores: SpanScores, eight: SpanScores) -> str:
    cells = [f"{row.iou:.3f}" for row in scores.languages]
    low, high = eight.mean.iou_interval
    mean = f"{eight.mean.iou:.3f} [{low:.3f}, {high:.3f}]"
    return f"| {name} | " + " | ".join([*cells, mean, f"{eight.mean.correlation:.3f}"]) + " |"


if __name__ == "__main__":
    main()
