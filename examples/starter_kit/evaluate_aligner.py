r"""Calibrate the trained aligner, pack it, and measure what was packed.

    python examples/starter_kit/evaluate_aligner.py --run runs/aligner --encoder all-MiniLM-L6-v2 \
        --pairs support-pairs --output syncheck/assets/aligner

Writes the packaged files and ``measured.json``: AUROC and accuracy by source with bootstrap intervals over
contexts, beside the signal ``content_overlap``, which needs no training. The transfer sources took no part in
training or calibration. Without ``--run``, what is packed in ``--output`` is measured as it is. ``--ragtruth`` and
``--mushroom`` measure it on sentences of theirs too.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from contrast_pairs import SUPPORTED
from numpy.typing import NDArray
from safetensors.torch import load_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from support_pairs import SupportPair, load_pairs, mushroom_pairs, part_of, ragtruth_pairs
from tokenizers import Tokenizer
from tqdm import tqdm
from train_aligner import SUPPORT_SOURCES, WRITTEN, encoder_config, is_held_out, load_written

from syncheck.alignment import BundledAligner
from syncheck.alignment.packed import EncoderConfig, save_packed
from syncheck.evaluation import expected_calibration_error
from syncheck.lexical import ContextLexicon, lexical_shares
from syncheck.types import Support

CALIBRATION_SOURCES = ("defacto", "frank", "written")
"""Errors that systems made, and those that people try first."""
TRANSFER_SOURCES = ("wice", "expertqa", "begin")
TRANSFER_PAIRS = 1500
RESAMPLES = 400

Array = NDArray[np.float64]


def supports_of(aligner: BundledAligner, pairs: Sequence[SupportPair]) -> list[Support]:
    """Ask about pairs, those of one context together; the order of ``pairs`` is kept."""
    order = sorted(range(len(pairs)), key=lambda i: pairs[i].passages)
    found: dict[int, Support] = {}
    for passages, rows in groupby(tqdm(order, mininterval=5), key=lambda i: pairs[i].passages):
        indices = list(rows)
        found |= zip(indices, aligner.align(passages, [pairs[i].claim for i in indices]), strict=True)
    return [found[i] for i in range(len(pairs))]


def support_scores(aligner: BundledAligner, pairs: Sequence[SupportPair]) -> Array:
    """Return the supports of pairs, (N,)."""
    return np.array([support.score for support in supports_of(aligner, pairs)])


def written_pairs(folder: Path) -> list[SupportPair]:
    """Return the hand-written claims that the training leaves out."""
    return [
        SupportPair(group.passages, claim.text, int(claim.label == SUPPORTED), "written", group.passages[0])
        for group in load_written(folder)
        if is_held_out(group)
        for claim in group.claims
    ]


def fit_calibration(log_odds: Array, pairs: Sequence[SupportPair]) -> dict[str, float]:
    """Fit P(supported) to log-odds, where as many claims are supported as not; every source weighs the same."""
    counts = {(p.source, p.label): 0 for p in pairs}
    for pair in pairs:
        counts[pair.source, pair.label] += 1
    weights = np.array([1000 / counts[p.source, p.label] for p in pairs])
    fitted = LogisticRegression(C=1e6).fit(log_odds[:, None], [p.label for p in pairs], sample_weight=weights)
    return {"scale": float(fitted.coef_[0, 0]), "shift": float(fitted.intercept_[0])}


def overlap_scores(pairs: Sequence[SupportPair]) -> Array:
    """Return ``content_overlap`` of each claim; one without content words has the median, as in ``evaluate``."""
    lexicons = {p.passages: ContextLexicon.from_passages(p.passages) for p in pairs}
    scores = np.array([lexical_shares(p.claim, lexicons[p.passages]).content_overlap for p in pairs])
    return np.where(np.isnan(scores), np.nanmedian(scores), scores)


def measure(pairs: Sequence[SupportPair], scores: Array) -> dict[str, Any]:
    """Figures of one source; the interval is of the AUROC, 95 %, over resampled contexts."""
    labels = np.array([pair.label for pair in pairs])
    overlap = overlap_scores(pairs)
    low, high = _interval(pairs, labels, scores)
    return {
        "pairs": len(pairs),
        "contexts": len({pair.group for pair in pairs}),
        "supported": round(float(labels.mean()), 3),
        "auroc": round(float(roc_auc_score(labels, scores)), 3),
        "auroc_interval": [round(low, 3), round(high, 3)],
        "auroc_overlap": round(float(roc_auc_score(labels, overlap)), 3),
        "accuracy": round(float(accuracy_score(labels, scores >= 0.5)), 3),
        "balanced_accuracy": round(float(balanced_accuracy_score(labels, scores >= 0.5)), 3),
        "calibration_error": round(expected_calibration_error(scores, labels), 3),
    }


def _interval(pairs: Sequence[SupportPair], labels: NDArray[np.int64], scores: Array) -> tuple[float, float]:
    groups: dict[str, list[int]] = {}
    for i, pair in enumerate(pairs):
        groups.setdefault(pair.group, []).append(i)
    members = list(groups.values())
    if not 0 < labels.sum() < len(labels):
        raise SystemExit(f"a source has pairs of one label only ({len(labels)} pairs); give it more")
    rng = np.random.default_rng(0)
    values = []
    while len(values) < RESAMPLES:
        rows = [i for g in rng.integers(len(members), size=len(members)) for i in members[g]]
        if 0 < labels[rows].sum() < len(rows):
            values.append(roc_auc_score(labels[rows], scores[rows]))
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def held_out(folder: Path, written: Path) -> dict[str, list[SupportPair]]:
    """Pairs to measure on: the test part of each training source, and the sources that had no part in it."""
    rng = random.Random(0)
    sets = {s: [p for p in load_pairs(folder, s) if part_of(p.passages[0]) == "test"] for s in SUPPORT_SOURCES}
    sets["written"] = [p for p in written_pairs(written) if part_of(p.passages[0]) != "calibrate"]
    for source in TRANSFER_SOURCES:
        pairs = load_pairs(folder, source)
        sets[source] = rng.sample(pairs, min(len(pairs), TRANSFER_PAIRS))
    return sets


def pack(run: Path, config: EncoderConfig, output: Path, **calibration: float) -> BundledAligner:
    """Write the packaged files from a training run, and load them."""
    tokenizer = Tokenizer.from_file(str(run / "tokenizer.json"))
    save_packed(output, config, load_file(run / "average.safetensors"), tokenizer, **calibration)
    return BundledAligner.load(output)


def calibrated(run: Path, config: EncoderConfig, folder: Path, written: Path, output: Path) -> dict[str, Any]:
    """Calibrate and pack a training run; returns what is known of its making."""
    pairs = [p for s in CALIBRATION_SOURCES if s != "written" for p in load_pairs(folder, s)] + written_pairs(written)
    pairs = [p for p in pairs if part_of(p.passages[0]) == "calibrate"]
    log_odds = [support.log_odds for support in supports_of(pack(run, config, output), pairs)]
    calibration = fit_calibration(np.array(log_odds, np.float64), pairs)
    pack(run, config, output, **calibration)
    return {
        "training": json.loads((run / "progress.json").read_text()),
        "seed": json.loads((run / "run.json").read_text())["seed"],
        "calibration": {"pairs": len(pairs), **calibration},
    }


def milliseconds(aligner: BundledAligner, sets: Mapping[str, Sequence[SupportPair]]) -> float:
    """Median wall time of one claim of DeFacto, scored alone by torch's threads, index included."""
    times = []
    for pair in sets["defacto"][:60]:
        started = time.perf_counter()
        aligner.align(pair.passages, [pair.claim])
        times.append(1000 * (time.perf_counter() - started))
    return round(float(np.median(times)), 1)


def main() -> None:
    """Calibrate, pack, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="output folder of train_aligner.py")
    parser.add_argument("--encoder", type=Path, help="where the run began; goes with --run")
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--written", type=Path, default=WRITTEN, help="folder of hand-written claims (%(default)s)")
    parser.add_argument("--output", type=Path, required=True, help="the packed aligner")
    parser.add_argument("--ragtruth", type=Path, help="measure on the sentences of this folder too")
    parser.add_argument(
        "--mushroom", type=Path, help="measure on the sentences of this file of Mu-SHROOM too: en.jsonl"
    )
    args = parser.parse_args()
    if (args.run is None) != (args.encoder is None):
        parser.error("--run and --encoder go together")
    if args.run:
        made = calibrated(args.run, encoder_config(args.encoder), args.pairs, args.written, args.output)
    else:
        made = json.loads((args.output / "measured.json").read_text())
    aligner = BundledAligner.load(args.output)
    sets = held_out(args.pairs, args.written)
    if args.ragtruth:
        sets["ragtruth"] = ragtruth_pairs(args.ragtruth)
    if args.mushroom:
        sets["mushroom"] = mushroom_pairs(args.mushroom)
    report = made | {
        "threads": torch.get_num_threads(),
        "milliseconds_per_claim": milliseconds(aligner, sets),
        "sources": {s: measure(held, support_scores(aligner, held)) for s, held in sets.items()},
    }
    (args.output / "measured.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
