"""Train the bundled span models, and report how well they do on questions and languages they have not seen.

    python examples/starter_kit/train_spans.py --data DIR_OF_MU_SHROOM_VALIDATION --output syncheck/assets/spans

writes ``plain`` (schema spans.v1) and ``rarity`` (spans-rarity.v1, needs the extra ``rarity``). Without ``--output``
nothing is written.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from span_folds import held_out_labels
from tqdm import tqdm

from syncheck.spans import SpanRegressor, SpanSchema, load_span_items, score_spans

SCHEMAS: dict[str, SpanSchema] = {"plain": "spans.v1", "rarity": "spans-rarity.v1"}
LANGUAGES = ("ar", "de", "en", "es", "fi", "fr", "it", "sv")
"""Those of the validation set that MiKaNi was evaluated on too and that are written with spaces."""


def main() -> None:
    """Report, and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of labelled *.jsonl")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--schemas", choices=tuple(SCHEMAS), nargs="+", default=list(SCHEMAS))
    parser.add_argument("--by", choices=("question", "language"), nargs="*", default=["question", "language"])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    items = load_span_items(args.data)
    for name in args.schemas:
        schema = SCHEMAS[name]
        for by in args.by:
            with tqdm(desc=f"{schema}, by {by}", disable=None) as bar:
                labels = held_out_labels(items, by=by, schema=schema, seed=args.seed, on_fold=bar.update)
            print(f"\n{schema}, held out by {by}, all languages")
            print(score_spans(items, labels).to_text())
            eight = score_spans(items, labels, languages=LANGUAGES).mean
            print(
                f"mean of {', '.join(LANGUAGES)}: IoU {eight.iou:.3f} {eight.iou_interval}, "
                f"correlation {eight.correlation:.3f} {eight.correlation_interval}",
                flush=True,
            )
        if args.output is not None:
            SpanRegressor.fit(items, schema=schema, seed=args.seed).save(args.output / name)


if __name__ == "__main__":
    main()
