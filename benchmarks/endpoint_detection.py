"""Value of an inference server's signals: sentence AUROC of endpoint.v1 beside the full schema.

    python benchmarks/endpoint_detection.py --data ragtruth-qa --model my-model --output runs/endpoint.parquet

Measures labelled responses once with a model (the kit's) and all of syncheck.v3, unless ``--output`` is there already,
and trains on the columns of each schema, out of fold and on the same folds. The difference is that of the second system
to the first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from syncheck.aggregators.kinds import AggregatorKind
from syncheck.cli import main as syncheck
from syncheck.evaluation import System, auroc_table, fold_numbers, out_of_fold_scores
from syncheck.features.schemas import FEATURE_GROUPS, beyond_endpoints
from syncheck.training import labelled_set, read_parquet


def main(words: Sequence[str] | None = None) -> None:
    """Measure, train on folds, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="PATH", help="what syncheck features takes; not needed with a measured file")
    parser.add_argument("--model", metavar="DIR_OR_ID", help="causal language model (the kit's)")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="measured sentences, Parquet")
    parser.add_argument("--generator", nargs="+", metavar="NAME", help="whose answers (all)")
    parser.add_argument("--aggregator", choices=get_args(AggregatorKind), default="ensemble", help="(%(default)s)")
    parser.add_argument("--folds", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="shuffles of the folds (%(default)s)")
    args = parser.parse_args(words)
    if not args.output.exists():
        generators = ["--generator", *args.generator] if args.generator else []
        data = ["--data", str(args.data), *(["--model", args.model] if args.model else [])]
        if syncheck(["features", *data, "--schema", "syncheck.v3", "--output", str(args.output), *generators]):
            sys.exit("stopped: syncheck features failed")
    chosen = labelled_set(read_parquet(args.output), "strict")
    names = chosen.measured.schema.names
    beyond = beyond_endpoints(names)
    signals = {name for group in ("likelihood", "entropy", "context influence") for name in FEATURE_GROUPS[group]}
    systems = (
        System("syncheck.v3", names),
        System("endpoint.v1", tuple(name for name in names if name not in beyond)),
        System("no language model", tuple(name for name in names if name not in {*beyond, *signals})),
    )
    folding = {"folds": args.folds, "repeats": args.repeats}
    scores = out_of_fold_scores(
        chosen.features,
        chosen.y,
        chosen.groups,
        names=names,
        systems=systems,
        aggregator=args.aggregator,
        **folding,
    )
    folds = fold_numbers(chosen.y, chosen.groups, **folding)
    print(auroc_table(scores, chosen.y, chosen.groups, folds=folds).to_text())


if __name__ == "__main__":
    main()
