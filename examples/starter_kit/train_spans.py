"""Train the bundled span models, and report how well they do on questions and languages they have not seen.

    python examples/starter_kit/train_spans.py --data DIR_OF_MU_SHROOM_VALIDATION --output syncheck/assets/spans

writes ``plain`` (schema spans.v1) and ``rarity`` (spans-rarity.v1, needs the extra ``rarity``). Without ``--output``
nothing is written. With ``--model DIR_OR_ID``, or ``--model bundled``, the signals of a causal language model are read
too, in which every response is replayed. The folders are named after what is read: ``plain-signals``, ``rarity``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from span_folds import held_out_labels
from tqdm import tqdm

from syncheck.base.pretrained import load_model
from syncheck.kit import kit_language_model
from syncheck.results import SpanItem
from syncheck.results.types import TokenSignals
from syncheck.spans import (
    SpanRegressor,
    SpanSchema,
    TokenReplay,
    load_span_items,
    score_spans,
)

SCHEMAS: dict[str, SpanSchema] = {"plain": "spans.v1", "rarity": "spans-rarity.v1"}
LANGUAGES = ("ar", "de", "en", "es", "fi", "fr", "it", "sv")
"""Those of the validation set that MiKaNi was evaluated on too and that are written with spaces."""


def main() -> None:
    """Report, and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of labelled *.jsonl")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--schemas", choices=tuple(SCHEMAS), nargs="+", default=list(SCHEMAS))
    parser.add_argument(
        "--model", metavar="DIR_OR_ID", help="read the signals of this language model too, or 'bundled'"
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--by", choices=("question", "language"), nargs="*", default=["question", "language"])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    items = load_span_items(args.data)
    replay = _replay(items, args)
    measure, more = (None, "") if replay is None else (Kept(replay), "-signals")
    for name in args.schemas:
        schema = SCHEMAS[name]
        for by in args.by:
            with tqdm(desc=f"{schema}, by {by}", disable=None) as bar:
                labels = held_out_labels(
                    items,
                    by=by,
                    schema=schema,
                    seed=args.seed,
                    measure=measure,
                    on_fold=bar.update,
                )
            print(f"\n{schema}{more}, held out by {by}, all languages")
            print(score_spans(items, labels).to_text())
            eight = score_spans(items, labels, languages=LANGUAGES).mean
            print(
                f"mean of {', '.join(LANGUAGES)}: IoU {eight.iou:.3f} {eight.iou_interval}, "
                f"correlation {eight.correlation:.3f} {eight.correlation_interval}",
                flush=True,
            )
        if args.output is not None:
            fitted = SpanRegressor.fit(items, schema=schema, seed=args.seed, measure=measure)
            fitted.save(args.output / f"{name}{more}")


def _replay(items: Sequence[SpanItem], args: argparse.Namespace) -> TokenReplay | None:
    """Return the replay of every response with the language model; print how many do not fit its window."""
    if args.model is None:
        return None
    models = kit_language_model(args.device) if args.model == "bundled" else load_model(args.model, args.device)
    replay = TokenReplay(*models)
    fitting = [item for item in items if replay.fits(item)]
    shortened = sum(bool(replay.left_out(item)) for item in fitting)
    print(f"{len(items) - len(fitting)} responses do not fit the window, {shortened} only without some of their texts")
    return replay


@dataclass(frozen=True)
class Kept:
    """Measures every response once for all folds."""

    replay: TokenReplay
    values: dict[str, TokenSignals] = field(default_factory=dict)

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """Of the model."""
        return self.replay.fingerprint

    def __call__(self, item: SpanItem) -> TokenSignals:
        """Return the signals, measured at first use."""
        if item.id not in self.values:
            self.values[item.id] = self.replay(item)
        return self.values[item.id]


if __name__ == "__main__":
    main()
