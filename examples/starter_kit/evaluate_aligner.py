r"""Calibrate the trained aligner, pack it, and measure the result.

    python examples/starter_kit/evaluate_aligner.py --run runs/aligner --pairs support-pairs \
        --articles articles.jsonl.xz --output syncheck/assets/aligner

Writes the packaged files and ``measured.json``: AUROC and accuracy by source with bootstrap intervals over
contexts, beside the signal ``content_overlap``, which needs no training. The transfer sources took no part in
training or calibration, and neither did those that training went ``--without``. With ``--packed`` in place of
``--run``, an aligner that is packed already is measured (after it was calibrated anew with ``--calibrate``), and its
``measured.json`` written anew. ``--ragtruth`` and ``--mushroom`` measure it on sentences of theirs too.
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
from cross_encoder import save_packed
from numpy.typing import NDArray
from safetensors.torch import load_file
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from support_pairs import SupportPair, load_pairs, mushroom_pairs, part_of, ragtruth_pairs
from tokenizers import Tokenizer
from tqdm import tqdm
from train_aligner import TRAINING_SOURCES, packed_model, start_model
from wikipedia_articles import Substitution, load_articles
from wikipedia_pairs import WikipediaPairs

from syncheck.aligners import BundledAligner
from syncheck.aligners.bundled import Int8CrossEncoder, read_packed
from syncheck.evaluation import expected_calibration_error
from syncheck.reading.evidence import FUNCTION_WORDS, distinct_words
from syncheck.text.words import ContextLexicon, lexical_shares, novel_pairs

CALIBRATION_SOURCES = ("defacto", "frank")
"""Errors that systems made; the other sources edit one claim in many ways, so coverage says little there."""
COVERAGE, NOVEL_PAIRS = 4.0, -0.75
"""Weight of wording relative to a logit. A fit would weigh the network by what it was trained on,
where it does best; sources that were left out are served alike by 3.3 to 6 and -0.5 to -1."""
TRANSFER_SOURCES = ("wice", "expertqa", "begin")
TRANSFER_PAIRS = 1500
WIKIPEDIA_PAIRS = 800
RESAMPLES = 400

Array = NDArray[np.float64]


def support_scores(aligner: BundledAligner, pairs: Sequence[SupportPair]) -> Array:
    """Score pairs, those of one context together; the order of ``pairs`` is kept."""
    order = sorted(range(len(pairs)), key=lambda i: pairs[i].passages)
    scores = np.zeros(len(pairs))
    for passages, rows in groupby(tqdm(order, mininterval=5), key=lambda i: pairs[i].passages):
        indices = list(rows)
        for i, support in zip(indices, aligner.align(passages, [pairs[i].claim for i in indices]), strict=True):
            scores[i] = support.score
    return scores


def overlap_scores(pairs: Sequence[SupportPair]) -> Array:
    """Return ``content_overlap`` of each claim; one without content words has the median, as in ``evaluate``."""
    lexicons = {p.passages: ContextLexicon.from_passages(p.passages) for p in pairs}
    scores = np.array([lexical_shares(p.claim, lexicons[p.passages]).content_overlap for p in pairs])
    return np.where(np.isnan(scores), np.nanmedian(scores), scores)


def coverages(pairs: Sequence[SupportPair]) -> Array:
    """Share of each claim's distinct content words that its context holds, as the aligner counts it; 0 without any."""
    scores = []
    for pair in pairs:
        held = set(distinct_words(" ".join(pair.passages)))
        words = [word for word in distinct_words(pair.claim) if word not in FUNCTION_WORDS]
        scores.append(sum(word in held for word in words) / max(1, len(words)))
    return np.array(scores)


def novel_pair_counts(pairs: Sequence[SupportPair]) -> Array:
    """For each claim ln(1 + pairs of neighbouring content words that are near each other in no passage)."""
    lexicons = {p.passages: ContextLexicon.from_passages(p.passages) for p in pairs}
    return np.array([novel_pairs(p.claim, lexicons[p.passages]) for p in pairs])


def fit_calibration(scores: Array, pairs: Sequence[SupportPair]) -> dict[str, float]:
    """Fit P(supported) to the logits and the wording together, by scale and shift; every source weighs the same."""
    counts = {s: sum(p.source == s for p in pairs) for s in {p.source for p in pairs}}
    weights = np.array([1000 / counts[p.source] for p in pairs])
    wording = COVERAGE * coverages(pairs) + NOVEL_PAIRS * novel_pair_counts(pairs)
    inputs = (logit(scores.clip(1e-6, 1 - 1e-6)) + wording)[:, None]
    fitted = LogisticRegression(C=1e6).fit(inputs, [p.label for p in pairs], sample_weight=weights)
    scale, shift = float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
    return {"scale": scale, "coverage": scale * COVERAGE, "novel_pairs": scale * NOVEL_PAIRS, "shift": shift}


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


def held_out(folder: Path, articles: Path, *, without: Sequence[str]) -> dict[str, list[SupportPair]]:
    """Pairs to measure on: the test part of each training source, Wikipedia, and the sources left out of it."""
    trained = [source for source in TRAINING_SOURCES if source not in without]
    sets = {s: [p for p in load_pairs(folder, s) if part_of(p.passages[0]) == "test"] for s in trained}
    unseen = load_articles(articles, "heldout")
    maker, rng = WikipediaPairs(unseen, Substitution(unseen)), random.Random(0)
    sets["wikipedia"] = [maker.draw(rng) for _ in range(WIKIPEDIA_PAIRS)]
    for source in (*TRANSFER_SOURCES, *without):
        pairs = load_pairs(folder, source)
        sets[source] = rng.sample(pairs, min(len(pairs), TRANSFER_PAIRS))
    return sets


def pack(run: Path, output: Path, calibration: Mapping[str, float]) -> BundledAligner:
    """Write the packaged files from a training run, and load them."""
    start = json.loads((run / "run.json").read_text())
    model = packed_model(Path(start["packed"])) if start["packed"] else start_model(Path(start["encoder"]), seed=0)
    model.load_state_dict(load_file(run / "weights.safetensors"))
    tokenizer = Tokenizer.from_file(str(run / "tokenizer.json"))
    save_packed(output, model, tokenizer, **calibration)
    return BundledAligner.load(output)


def calibrated(run: Path, folder: Path, output: Path) -> dict[str, Any]:
    """Calibrate and pack a training run; return the facts about how it was made."""
    settings = json.loads((run / "run.json").read_text())
    sources = [source for source in CALIBRATION_SOURCES if source not in settings["without"]]
    calibration = calibrate(pack(run, output, {}), folder, sources)
    pack(run, output, {name: calibration[name] for name in ("scale", "coverage", "novel_pairs", "shift")})
    return {
        "training": json.loads((run / "progress.json").read_text()),
        "seed": settings["seed"],
        "without": settings["without"],
        "went_on_from_a_packed_aligner": settings["packed"] is not None,
        "calibration": calibration,
    }


def calibrate(raw: BundledAligner, folder: Path, sources: Sequence[str]) -> dict[str, float]:
    """Fit the calibration of a network on the calibration part of sources."""
    pairs = [p for s in sources for p in load_pairs(folder, s) if part_of(p.passages[0]) == "calibrate"]
    return {"pairs": len(pairs), **fit_calibration(support_scores(raw, pairs), pairs)}


def calibrated_anew(folder: Path, pairs: Path) -> dict[str, Any]:
    """Calibrate a packed aligner again; return the facts about it with the new calibration."""
    made: dict[str, Any] = json.loads((folder / "measured.json").read_text())
    packed = read_packed(folder)
    raw = BundledAligner(Int8CrossEncoder(packed.sizes, packed.arrays), packed.tokenizer)
    sources = [source for source in CALIBRATION_SOURCES if source not in made["without"]]
    made["calibration"] = calibrate(raw, pairs, sources)
    config = json.loads((folder / "config.json").read_text())
    config["calibration"] = {n: made["calibration"][n] for n in ("scale", "coverage", "novel_pairs", "shift")}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    return made


def milliseconds(aligner: BundledAligner, sets: Mapping[str, Sequence[SupportPair]]) -> float:
    """Median wall time of one claim of a Wikipedia pair, scored alone by torch's threads, index included."""
    times = []
    for pair in sets["wikipedia"][:60]:
        started = time.perf_counter()
        aligner.align(pair.passages, [pair.claim])
        times.append(1000 * (time.perf_counter() - started))
    return round(float(np.median(times)), 1)


def main() -> None:
    """Calibrate, pack, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--run", type=Path, help="output folder of train_aligner.py")
    given.add_argument("--packed", type=Path, help="a packed aligner to measure as it is")
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--articles", type=Path, required=True)
    parser.add_argument("--output", type=Path, help="where to pack what --run has trained")
    parser.add_argument("--calibrate", action="store_true", help="calibrate what is packed anew")
    parser.add_argument("--ragtruth", type=Path, help="measure on the sentences of this folder too")
    parser.add_argument(
        "--mushroom", type=Path, help="measure on the sentences of this file of Mu-SHROOM too: en.jsonl"
    )
    args = parser.parse_args()
    if (args.run is None) != (args.output is None):
        parser.error("--run and --output go together")
    if args.calibrate and args.run:
        parser.error("--calibrate is for what is packed; what --run has trained is calibrated in any case")

    output = args.packed or args.output
    if args.run:
        made = calibrated(args.run, args.pairs, output)
    elif args.calibrate:
        made = calibrated_anew(output, args.pairs)
    else:
        made = json.loads((output / "measured.json").read_text())
    aligner = BundledAligner.load(output)
    sets = held_out(args.pairs, args.articles, without=made["without"])
    if args.ragtruth:
        sets["ragtruth"] = ragtruth_pairs(args.ragtruth)
    if args.mushroom:
        sets["mushroom"] = mushroom_pairs(args.mushroom)
    report = made | {
        "threads": torch.get_num_threads(),
        "milliseconds_per_claim": milliseconds(aligner, sets),
        "sources": {s: measure(held, support_scores(aligner, held)) for s, held in sets.items()},
    }
    (output / "measured.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
