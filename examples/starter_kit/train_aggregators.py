"""Train the bundled aggregators, which score any model's sentences from their text alone.

python examples/starter_kit/train_aggregators.py generic-bundled --ragtruth ragtruth-qa --pairs support-pairs \
    --output syncheck/assets

They are trained on RAGTruth QA and on those claims of DeFacto and FRANK that the aligner was not trained on;
``generic-reader`` also on written claims and claims about infoboxes, with the same weight for each source. Their kind,
features and prior weights were chosen by leaving one source out (``benchmarks/carry_over.py``). Measurements are kept
in ``--run``, where a run that was cut off continues.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from claim_files import WRITTEN, is_held_out, load_written
from contrast_pairs import SUPPORTED
from model_cards import write_section
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold
from support_pairs import SupportPair, load_pairs, part_of
from support_records import QUESTION

from syncheck import ENGLISH_ABBREVIATIONS, MonitorConfig, SegmenterConfig, Verifier, load_aligner
from syncheck.aggregators import Aggregator
from syncheck.aggregators.kinds import PRIOR_WEIGHT, PRIOR_WEIGHTS, AggregatorKind
from syncheck.aggregators.monotone import MonotoneLogisticRegression
from syncheck.config import GENERIC_BUNDLED, GENERIC_READER, VERDICT_THRESHOLDS
from syncheck.contrasts.contrast import packaged_ledger, speaks
from syncheck.evaluation import EvaluationTable, auroc_table, benchmark_systems, out_of_fold_scores
from syncheck.evaluation.metrics import with_interval
from syncheck.labelling import LabelledResponse, LabelledSentence, load_ragtruth
from syncheck.results.types import FeatureSchema
from syncheck.training import MeasuredSentences, choose_thresholds, fit_measured, measure, read_parquet, write_parquet

SEED = 11
HELD_OUT_SOURCES = ("defacto", "frank")
SCHEMA = "syncheck.v5"
KIND: AggregatorKind = "monotone"
ALIGNERS = {GENERIC_BUNDLED: "bundled", GENERIC_READER: "reader"}
READER_WEIGHT = 2.0
"""Chosen on the open half of ``benchmarks/first_tries.jsonl`` and six sources, each left out in turn."""
WRITTEN_STEP = 6
"""One in so many of the held-out contexts of written claims is read to train ``generic-reader``."""
INFOBOX_CLAIMS = 900
"""Claims about infoboxes (InfoTabS) of the same."""
ROWS_OF_EACH = 2000
"""Rows that each label of each source counts for in ``generic-reader``."""
EVEN_ODDS = 0.5
"""The backtracking threshold of ``generic``: below it a sentence is rather unfaithful than faithful."""


def untrained_verifier(purpose: str) -> Verifier:
    """Load the aligner, with no aggregator."""
    segmenter = SegmenterConfig(abbreviations=ENGLISH_ABBREVIATIONS, line_breaks="lists")
    return Verifier(load_aligner(ALIGNERS[purpose]), config=MonitorConfig(schema=SCHEMA, segmenter=segmenter))


def claims_as_responses(pairs: Sequence[SupportPair]) -> list[LabelledResponse]:
    """Return each claim as the answer to one question, of one labelled sentence."""
    return [
        LabelledResponse(
            id=f"{pair.source}-{i}",
            question=QUESTION,
            passages=pair.passages,
            response=pair.claim,
            group=f"{pair.source}-{pair.group}",
            generator=pair.source,
            sentences=(LabelledSentence(0, len(pair.claim), bool(pair.label)),),
            carry_labels=True,
        )
        for i, pair in enumerate(pairs)
    ]


def generic_responses(args: argparse.Namespace) -> list[LabelledResponse]:
    """Read the generic aggregator's training data: nothing that the aligner was trained on."""
    held_out = [p for s in HELD_OUT_SOURCES for p in load_pairs(args.pairs, s) if part_of(p.passages[0]) != "train"]
    if args.purpose == GENERIC_READER:
        groups = [group for group in load_written(WRITTEN) if is_held_out(group)][::WRITTEN_STEP]
        held_out += [
            SupportPair(group.passages, claim.text, int(claim.label == SUPPORTED), "written", group.group)
            for group in groups
            for claim in group.claims
        ]
        infoboxes = load_pairs(args.tables, "infotabs-train")[:INFOBOX_CLAIMS]
        held_out += [replace(pair, source="infoboxes") for pair in infoboxes]
    return load_ragtruth(args.ragtruth) + claims_as_responses(held_out)


def measured_responses(verifier: Verifier, args: argparse.Namespace) -> MeasuredSentences:
    """Measure the responses, or read the measurements of an earlier run."""
    table = args.run / f"{args.purpose}.parquet"
    if not table.exists():
        args.run.mkdir(parents=True, exist_ok=True)
        measured = measure(verifier, generic_responses(args), show_progress=True)
        temporary = table.with_suffix(".part")
        write_parquet(measured, temporary)
        temporary.replace(table)
    return read_parquet(table)


def reader_aggregator(schema: FeatureSchema) -> MonotoneLogisticRegression:
    """Return the kind ``monotone`` with a larger weight for the reader to be pulled towards."""
    weights = [
        READER_WEIGHT if name == "align_logit" else PRIOR_WEIGHTS.get(name, PRIOR_WEIGHT) for name in schema.names
    ]
    return MonotoneLogisticRegression(directions=schema.directions, prior_weights=weights)


def even_rows(labels: NDArray[np.int64], sources: NDArray[np.str_]) -> NDArray[np.int64]:
    """Draw rows so that each source has as much weight as another, and in each both labels have the same."""
    rng = np.random.default_rng(SEED)
    cells = [
        np.flatnonzero((sources == source) & (labels == label)) for source in np.unique(sources) for label in (0, 1)
    ]
    return np.concatenate([np.resize(rng.permutation(cell), ROWS_OF_EACH) for cell in cells])


def fit_evenly(
    measured: MeasuredSentences, used: NDArray[np.int64], sources: NDArray[np.str_]
) -> tuple[Aggregator, float]:
    """Train on all sources alike; return the aggregator, and the score that a quarter of RAGTruth's faithful miss.

    The score is that of folds of groups that the aggregator was not trained on.
    """
    labels = measured.labels()
    X, y, groups = measured.features(labels, used)[used], labels[used], measured.groups[used]

    def fitted(rows: NDArray[np.int64]) -> Aggregator:
        drawn = rows[even_rows(y[rows], sources[rows])]
        kind = reader_aggregator(measured.schema)
        return Aggregator.fit(X[drawn], y[drawn], schema=measured.schema, kind=kind, seed=SEED)

    held_out = np.empty(len(y))
    for train, test in GroupKFold(5).split(X, y, groups):
        held_out[test] = fitted(train).score(X[test])
    natural = sources == "ragtruth"
    return fitted(np.arange(len(y))), choose_thresholds(held_out[natural], y[natural]).prune


def train(purpose: str, verifier: Verifier, measured: MeasuredSentences, output: Path) -> None:
    """Train, save and write the figures of the model card."""
    started = time.monotonic()
    labels, used = measured.labels(), np.flatnonzero(measured.with_letter)
    names = measured.schema.names
    scores = out_of_fold_scores(
        lambda rows: measured.features(labels, used[rows])[used],
        labels[used],
        measured.groups[used],
        names=names,
        systems=benchmark_systems(names),
        aggregator=KIND,
        seed=SEED,
    )
    by = {"generator": list(measured.generators[used])}
    table = auroc_table(scores, labels[used], measured.groups[used], by=by, seed=SEED)
    trained = fit_measured(verifier, measured, aggregator=KIND, seed=SEED)
    if purpose == GENERIC_READER:
        of_answers = np.isin(measured.generators[used], [*HELD_OUT_SOURCES, "written", "infoboxes"], invert=True)
        sources = np.where(of_answers, "ragtruth", measured.generators[used])
        trained.aggregator, prune = fit_evenly(measured, used, sources)
        trained.config = replace(trained.config, prune_threshold=prune)
    prune = max(EVEN_ODDS, trained.config.prune_threshold)
    # Its verdicts are at even odds too, whatever the share of faithful sentences among these labels.
    verdicts: dict[str, None] = dict.fromkeys(VERDICT_THRESHOLDS)
    trained.config = replace(trained.config, backtrack_threshold=EVEN_ODDS, prune_threshold=prune, **verdicts)
    folder = output / f"monitor-{purpose}"
    trained.save_pretrained(folder)
    facts: dict[str, Any] = {
        "responses": len(measured.records),
        "left_out": len(measured.left_out),
        "sentences": int(measured.checkable.sum()),
        "unfaithful": int((labels[measured.checkable] == 0).sum()),
        "backtrack": trained.config.backtrack_threshold,
        "prune": trained.config.prune_threshold,
        "megabytes": sum(path.stat().st_size for path in folder.iterdir() if path.suffix != ".md") / 1e6,
        "seconds": time.monotonic() - started,
    }
    print(table.to_text(), json.dumps(facts, indent=2), sep="\n\n")
    write_section(folder / "README.md", "Figures", figures(facts, table))
    if purpose == GENERIC_READER:
        write_section(folder / "README.md", "Contrasts", ledger_table())


def figures(facts: Mapping[str, Any], table: EvaluationTable) -> str:
    """Write the figures of a model card in Markdown."""
    return f"""
- {facts["responses"]} responses ({facts["left_out"]} left out), {facts["sentences"]} sentences with a letter or digit,
  {facts["unfaithful"]} of them unfaithful.
- {facts["megabytes"]:.1f} MB, trained in {facts["seconds"]:.0f} seconds with seed {SEED}.
- Thresholds: backtrack {facts["backtrack"]:.3f}, prune {facts["prune"]:.3f}.

Cross-validation by group, with 95 % intervals over groups; AUPRC is of finding the unfaithful:

{figures_by_system(table)}

{figures_by_subset(table)}
"""


def figures_by_system(table: EvaluationTable) -> str:
    """Compare the systems on all sentences, in Markdown."""
    rows = [
        f"| {row.system} | {with_interval(row.auroc, row.low, row.high)} "
        f"| {with_interval(row.auprc, row.auprc_low, row.auprc_high)} | {row.ece:.3f} |"
        for row in table.rows
        if row.subset == "all"
    ]
    return "\n".join(["| all sentences | AUROC | AUPRC | calibration error |", "| --- | --- | --- | --- |", *rows])


def figures_by_subset(table: EvaluationTable) -> str:
    """Compare the first system with the last one, which reads all features, on each subset, in Markdown."""
    subsets = {row.subset: [other for other in table.rows if other.subset == row.subset] for row in table.rows}
    rows = [
        f"| {name} | {best.sentences}, {best.unfaithful} | {first.auroc:.3f} "
        f"| {with_interval(best.auroc, best.low, best.high)} |"
        for name, (first, *_, best) in subsets.items()
        if name != "all"
    ]
    header = f"| sentences of | all, unfaithful | {table.rows[0].system}: AUROC | {table.rows[-1].system}: AUROC |"
    return "\n".join([header, "| --- | --- | --- | --- |", *rows])


def ledger_table() -> str:
    """Write the ledger of contrasts, and where each rule speaks."""
    bands = ("below -1", "-1 to 1", "above 1")
    lines = [
        f"| {rule} | " + " | ".join(f"{one.true} / {one.false}" for one in hits) + f" | {_spoken(rule, bands)} |"
        for rule, hits in packaged_ledger().items()
    ]
    return f"""
True and false hits of each rule by the reader's log-odds of support, on half of the contexts of written claims, six
sources, infoboxes and copied sentences, and where the rule speaks
(`benchmarks/contrast_ledger.py --half chosen`; the other half is in `docs/benchmarks.md`):

| rule | {" | ".join(bands)} | speaks |
| --- | --- | --- | --- | --- |
{chr(10).join(lines)}
"""


def _spoken(rule: str, bands: Sequence[str]) -> str:
    spoken = [name for number, name in enumerate(bands) if speaks(rule, number)]
    return "always" if len(spoken) == len(bands) else ", ".join(spoken)


def main() -> None:
    """Train one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("purpose", choices=tuple(ALIGNERS))
    parser.add_argument("--ragtruth", type=Path)
    parser.add_argument("--pairs", type=Path, help="folder of <source>.jsonl.xz")
    parser.add_argument("--tables", type=Path, help="folder of claims about infoboxes, for generic-reader")
    parser.add_argument("--run", type=Path, default=Path("runs/aggregators"), help="where measurements are kept")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    verifier = untrained_verifier(args.purpose)
    train(args.purpose, verifier, measured_responses(verifier, args), args.output)


if __name__ == "__main__":
    main()
