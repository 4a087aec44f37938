"""All span methods by language, on labelled items: the table of docs/spans.md.

    python benchmarks/span_methods.py --data DIR_OF_MU_SHROOM_VALIDATION --output runs/spans.json

Nothing is scored on a question that it was trained on, or whose threshold was chosen on it. ``--svr`` adds MiKaNi's own
regression, fitted on a sample of the words. With ``--model`` REFIND and HalluRAG measure with another causal language
model than the kit's. Retrieved texts that do not fit the model's window are left out; an item of which none fits, or
that is too long without them, counts as one in which nothing was found, unless a method has another way to look at it.
How many there were of both is printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from syncheck.base.errors import PromptError
from syncheck.base.pretrained import load_model
from syncheck.kit import kit_language_model
from syncheck.results import SpanItem, SpanLabels
from syncheck.results.spans import labels_of
from syncheck.results.types import Floats, TokenSignals
from syncheck.spans import (
    HalluRagDetector,
    LetterEncoder,
    Measure,
    RefindDetector,
    SpanSchema,
    SpanScores,
    TokenReplay,
    load_span_items,
    marked_from,
    score_spans,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "starter_kit"))
from span_folds import RegressorKind, SpanFolds, held_out_folds, held_out_labels  # noqa: E402

EIGHT = ("AR", "DE", "EN", "ES", "FI", "FR", "IT", "SV")
"""Languages of the validation set whose mean is the headline figure."""

FOLDS: tuple[SpanFolds, ...] = ("question", "language")
Labels = dict[str, SpanLabels]
NOTHING = SpanLabels((), ())
"""Labels of the shared task's baseline that marks nothing."""


def marked_whole(item: SpanItem) -> SpanLabels:
    """Mark every character of a response, with risk 1, as the shared task's other baseline."""
    size = len(item.response)
    return labels_of(np.ones(size), np.ones(size, dtype=np.bool_))


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", help="causal language model of REFIND and HalluRAG; the kit's without it")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rarity", action="store_true", help="also the model that needs wordfreq")
    parser.add_argument("--svr", action="store_true", help="also MiKaNi's regression")
    parser.add_argument("--trained-only", action="store_true", help="only what is trained on the items")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    items = load_span_items(args.data)
    untrained = [] if args.trained_only else _untrained(items, _replayed(items, args))
    table: dict[str, dict[str, object]] = {}
    methods = [*_trained(items, args), *untrained]
    print("| method | " + " | ".join(sorted({i.lang.upper() for i in items})) + " | mean of 8, IoU | correlation |")
    print("| --- |" + " --- |" * (len({i.lang.upper() for i in items}) + 2))
    for name, found in methods:
        scores = score_spans(items, found)
        eight = score_spans(items, found, languages=EIGHT)
        print(_row(name, scores, eight), flush=True)
        table[name] = {"all": scores.to_dict(), "eight": eight.to_dict()["mean"]}
    if args.output is not None:
        args.output.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


def _replayed(items: Sequence[SpanItem], args: argparse.Namespace) -> dict[str, TokenSignals]:
    models = load_model(args.model, args.device) if args.model else kit_language_model(args.device)
    replay = TokenReplay(*models)
    fitting = [item for item in items if replay.fits(item)]
    shortened = sum(bool(replay.left_out(item)) for item in fitting)
    print(f"{len(items) - len(fitting)} of {len(items)} items do not fit the window, {shortened} without some texts\n")
    return {item.id: replay(item) for item in tqdm(fitting, desc="replay", disable=None)}


def _trained(items: Sequence[SpanItem], args: argparse.Namespace) -> list[tuple[str, Labels]]:
    wanted: list[tuple[str, SpanSchema, RegressorKind]] = [("word risks", "spans.v1", "xgb")]
    wanted += [("word risks with rarity", "spans-rarity.v1", "xgb")] if args.rarity else []
    wanted += [("MiKaNi's regression (SVR)", "spans.v1", "svr")] if args.svr else []
    return [
        (f"{name}, held out by {by}", held_out_labels(items, by=by, schema=schema, kind=kind))
        for name, schema, kind in wanted
        for by in FOLDS
    ]


def _measure(signals: dict[str, TokenSignals]) -> Measure:
    """Return the function that looks up an item's signals."""

    def measure(item: SpanItem) -> TokenSignals:
        if item.id not in signals:
            raise PromptError(f"item {item.id!r} does not fit the window")
        return signals[item.id]

    return measure


def _untrained(items: Sequence[SpanItem], signals: dict[str, TokenSignals]) -> list[tuple[str, Labels]]:
    measure, measured = _measure(signals), [item for item in items if item.id in signals]

    def labels(detect: Callable[[SpanItem], SpanLabels]) -> Labels:
        return {item.id: detect(item) if item.id in signals else NOTHING for item in items}

    found = [("mark-all", {item.id: marked_whole(item) for item in items})]
    found.append(("mark-none", dict.fromkeys((item.id for item in items), NOTHING)))
    detector = RefindDetector(measure)
    found.append(("REFIND, delta 0.2", labels(detector.detect)))
    ratios = {item.id: detector.ratios(item) for item in measured}
    adaptive: Labels = {item.id: NOTHING for item in items}
    for train, held in held_out_folds(measured, by="question"):
        by_language, default = chosen_deltas([measured[i] for i in train], ratios)
        for item in (measured[i] for i in held):
            delta = by_language.get(item.lang.upper(), default)
            adaptive[item.id] = marked_from(ratios[item.id], delta)
    found.append(("REFIND, delta by language", adaptive))
    words, letters = HalluRagDetector(measure), HalluRagDetector(encoder=LetterEncoder())
    both = HalluRagDetector(measure, encoder=LetterEncoder())
    found.append(("HalluRAG, unlikely words", labels(words.detect)))
    found.append(("HalluRAG, far sentences (letters)", {item.id: letters.detect(item) for item in items}))
    found.append(("HalluRAG, both", {item.id: both.detect(item) for item in items}))
    return found


_CANDIDATES = 60


def chosen_deltas(items: Sequence[SpanItem], ratios: Mapping[str, Floats]) -> tuple[dict[str, float], float]:
    """Choose REFIND's delta with the best mean IoU for each language, and by the mean over languages for all others.

    ``ratios`` are results of ``RefindDetector.ratios``, by id.
    """
    pooled = np.concatenate([ratios[item.id] for item in items])
    deltas = np.unique([0.0, *np.quantile(pooled, np.linspace(0, 1, _CANDIDATES))])  # (K,)
    overlaps: dict[str, list[Floats]] = {}
    for item in items:
        assert item.labels is not None
        wrong = item.labels.marked(len(ratios[item.id]))
        marked = ratios[item.id] >= deltas[:, None]  # (K, C)
        both, union = (marked & wrong).sum(axis=1), (marked | wrong).sum(axis=1)
        overlap = np.divide(both, union, out=np.ones(len(deltas)), where=union > 0)
        overlaps.setdefault(item.lang.upper(), []).append(overlap)
    means = {lang: np.mean(values, axis=0) for lang, values in overlaps.items()}  # (K,) each
    default = float(deltas[np.argmax(np.mean(list(means.values()), axis=0))])
    return {lang: float(deltas[np.argmax(values)]) for lang, values in means.items()}, default


def _row(name: str, scores: SpanScores, eight: SpanScores) -> str:
    cells = [f"{row.iou:.3f}" for row in scores.languages]
    low, high = eight.mean.iou_interval
    mean = f"{eight.mean.iou:.3f} [{low:.3f}, {high:.3f}]"
    return f"| {name} | " + " | ".join([*cells, mean, f"{eight.mean.correlation:.3f}"]) + " |"


if __name__ == "__main__":
    main()
