"""What 15, 30 and 60 labelled answers of one model are worth: training beside ``generic``, and as it was before.

    syncheck features --monitor generic-reader --data ragtruth-qa --output reader.parquet
    syncheck features --monitor generic-bundled --data ragtruth-qa --output bundled.parquet
    python benchmarks/few_labels.py --features reader.parquet --before bundled.parquet

Features of text alone. For each model whose answers have enough unfaithful sentences, and for each seed, a monitor is
trained on its answers to as many questions, and tested on its answers to the others. ``before`` is the kind with the
highest AUROC in cross-validation, whatever ``generic`` scores, on the features of the other file. Log loss is in nats;
``generic`` assumes even odds, and is shifted to the share of faithful sentences in training.

The aggregators of ``generic`` have seen labels of RAGTruth QA, and the strength of the pull was chosen here: the level
of ``generic`` and of what is pulled towards it is too high, their difference is not.
"""

from __future__ import annotations

import argparse
import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from syncheck import Aggregator, Verifier, load_kit
from syncheck.aggregators.kinds import AggregatorKind
from syncheck.base.errors import InputError
from syncheck.evaluation import aggregator_systems, auroc_table, out_of_fold_scores
from syncheck.evaluation.metrics import auroc
from syncheck.training import LabelledSet, MeasuredSentences, check_measured_by, read_parquet, train_measured

Floats = NDArray[np.float64]
SYSTEMS = ("generic", "shrunk", "best", "before")
LEAST_TESTED = 5
"""Unfaithful sentences that a test part must have."""


def part(measured: MeasuredSentences, records: Iterable[int]) -> MeasuredSentences:
    """Select the sentences of some records."""
    kept = sorted(records)
    chosen = np.flatnonzero(np.isin(measured.owners, kept))
    return replace(
        measured,
        values=measured.values[chosen],
        bounds=measured.bounds[chosen],
        texts=tuple(measured.texts[i] for i in chosen),
        owners=np.searchsorted(kept, measured.owners[chosen]),
        records=tuple(measured.records[i] for i in kept),
    )


def halves(measured: MeasuredSentences, generator: str, answers: int, seed: int) -> tuple[list[int], list[int]]:
    """Split the answers of a model by question: as many for training as asked, the others to test on."""
    own = [i for i, record in enumerate(measured.records) if record.generator == generator]
    shuffled = np.random.default_rng(seed).permutation(own).tolist()
    return shuffled[:answers], shuffled[answers:]


def scored(aggregator: Aggregator, tested: MeasuredSentences) -> tuple[Floats, NDArray[np.int64]]:
    """Score the labelled sentences of a test part; returns the scores and the labels."""
    chosen = LabelledSet.scored(tested, rule="overlap")
    columns = [tested.schema.names.index(name) for name in aggregator.schema.names]
    return aggregator.score(tested.values[chosen.used][:, columns]), chosen.y


def trained_before(measured: MeasuredSentences, seed: int) -> Aggregator:
    """Train the kind with the highest AUROC on folds, as training did when it was not compared with ``generic``."""
    chosen = LabelledSet.scored(measured, rule="overlap")
    names = measured.schema.names
    scores = out_of_fold_scores(*chosen.data, names=names, systems=aggregator_systems(names), repeats=1, seed=seed)
    table = auroc_table(scores, chosen.y, chosen.groups, draws=1, seed=seed)
    kind = cast(AggregatorKind, max(table.rows, key=lambda row: row.auroc).system)
    rows = chosen.features(np.arange(len(chosen.y)))
    return Aggregator.fit(rows, chosen.y, schema=measured.schema, kind=kind, seed=seed, allow_unmeasured=True)


def aggregators(
    verifier: Verifier, train: MeasuredSentences, before: MeasuredSentences, seed: int
) -> dict[str, tuple[Aggregator, str]]:
    """Train in each way; returns the aggregators and the kinds that were chosen."""
    faithful = float(np.mean(LabelledSet.scored(train, rule="overlap").y))
    assert verifier.aggregator is not None
    generic = replace(verifier.aggregator, prior=faithful)
    found = {kind: train_measured(verifier, train, aggregator=kind, seed=seed) for kind in ("shrunk", "best")}
    made = {
        name: (trained.monitor.aggregator or generic if trained.kind != "generic" else generic, trained.kind)
        for name, trained in found.items()
    }
    return {"generic": (generic, "generic"), **made, "before": (trained_before(before, seed), "before")}


def main() -> None:
    """Print AUROC, log loss and the precision of ``supported``, by number of labelled answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", required=True, help="features of the best aligner")
    parser.add_argument("--before", required=True, help="features of the aligner that was the default before")
    parser.add_argument("--answers", nargs="+", type=int, default=[15, 30, 60])
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    verifier, measured, before = load_kit("generic"), read_parquet(args.features), read_parquet(args.before)
    assert verifier.aggregator is not None
    check_measured_by(measured, verifier)
    for answers in args.answers:
        figures: dict[str, list[tuple[float, float]]] = defaultdict(list)
        kinds: dict[str, int] = defaultdict(int)
        for generator in sorted({record.generator for record in measured.records}):
            for seed in range(args.seeds):
                train, test = halves(measured, generator, answers, seed)
                tested = part(measured, test), part(before, test)
                if (scored(verifier.aggregator, tested[0])[1] == 0).sum() < LEAST_TESTED:
                    continue
                try:
                    made = aggregators(verifier, part(measured, train), part(before, train), seed)
                except InputError:  # fewer labels than training needs
                    continue
                kinds[made["best"][1]] += 1
                for name, (aggregator, _) in made.items():
                    scores, y = scored(aggregator, tested[name == "before"])
                    loss = -np.log(np.clip(np.where(y == 1, scores, 1 - scores), 1e-6, 1)).mean()
                    figures[name].append((auroc(scores, y), float(loss)))
        print(f"\n{answers} answers, {len(figures['best'])} splits; best: {dict(kinds)}")
        reference = np.array(figures["generic"])
        for name in SYSTEMS:
            rows = np.array(figures[name])
            gain = rows - reference
            low, high = gain[:, 0].min(), gain[:, 0].max()
            print(
                f"{name:<8} AUROC {rows[:, 0].mean():.3f} ({gain[:, 0].mean():+.3f}, {low:+.3f} to {high:+.3f})  "
                f"log loss {rows[:, 1].mean():.3f} ({gain[:, 1].mean():+.3f})"
            )


if __name__ == "__main__":
    main()
