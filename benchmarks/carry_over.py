"""What tells supported from unsupported sentences on a source that took no part in the training.

    python benchmarks/carry_over.py --ragtruth ragtruth-qa --attribution attribution-pairs --support support-pairs

Leaves out RAGTruth QA, HAGRID, Stanford GenSearch, AttrScore, DeFacto and FRANK in turn, trains on the other five, and
prints the AUROC on the one left out with 95 % bootstrap intervals over questions or contexts. Of DeFacto and FRANK only
the contexts count that the bundled aligner was not trained on. The aligner's logits are kept in ``--cache``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from machine import describe_machine
from numpy.typing import NDArray
from tqdm import tqdm

from syncheck.aggregators.monotone import MonotoneLogisticRegression
from syncheck.alignment import BundledAligner
from syncheck.alignment.evidence import EvidenceIndex
from syncheck.alignment.int8_encoder import Int8CrossEncoder
from syncheck.alignment.packed import read_packed
from syncheck.evaluation.left_out import left_out_matrix, left_out_scores
from syncheck.features.groundedness import BEST_CHUNKS, ContextChunks
from syncheck.features.rarity import packaged_rarity
from syncheck.features.stated import statement
from syncheck.features.text import TEXT_FEATURES, TextFeature, text_features
from syncheck.lexical import ContextLexicon

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "starter_kit"))
from support_pairs import SupportPair, load_pairs, part_of, ragtruth_pairs  # noqa: E402

Floats = NDArray[np.float64]

ATTRIBUTION = ("hagrid", "stanfordgensearch", "attrscoregensearch")
HELD_OUT = ("defacto", "frank")
OVERLAPS = ("content_overlap", "pair_overlap", "copied_run", "rarity_nearby", "pieces_2", "stems_2", "missing_rarity")
"""Measures of overlap, of which a source has its best."""
NEITHER = 0.8
"""Score of a sentence without anything to count."""


def load_sources(ragtruth: Path, attribution: Path, support: Path) -> list[SupportPair]:
    """Read the six sources; citation marks are no part of a claim."""
    pairs = ragtruth_pairs(ragtruth)
    for source in ATTRIBUTION:
        pairs += [replace(p, claim=statement(p.claim)) for p in load_pairs(attribution, source)]
    for source in HELD_OUT:
        pairs += [p for p in load_pairs(support, source) if part_of(p.passages[0]) != "train"]
    return pairs


def raw_logits(pairs: Sequence[SupportPair], cache: Path | None) -> Floats:
    """Return the bundled network's logits, to which no measure of wording is added."""
    packed = read_packed(files("syncheck") / "assets" / "aligner")
    aligner = BundledAligner(Int8CrossEncoder(packed.config, packed.arrays), packed.tokenizer)
    known: dict[str, float] = json.loads(cache.read_text()) if cache is not None and cache.exists() else {}
    own = str(aligner.weights_sha256())
    found = []
    for pair in tqdm(pairs, desc="aligner", mininterval=5):
        key = sha256("\0".join([own, *pair.passages, pair.claim]).encode()).hexdigest()
        if key not in known:
            score = np.float64(aligner.align(pair.passages, [pair.claim])[0].score)
            known[key] = float(np.log(np.clip(score, 1e-7, 1 - 1e-7)) - np.log1p(-np.clip(score, 1e-7, 1 - 1e-7)))
        found.append(known[key])
    if cache is not None:
        cache.write_text(json.dumps(known))
    return np.array(found)


def measured(pairs: Sequence[SupportPair], logits: Floats) -> tuple[Floats, Floats]:
    """Return the text features (N, F), and the packaged aligner's log-odds (N,)."""
    calibration = read_packed(files("syncheck") / "assets" / "aligner").calibration
    rarity = packaged_rarity()
    rows, packaged = [], []
    contexts: dict[tuple[str, ...], tuple[EvidenceIndex, ContextChunks, ContextLexicon]] = {}
    for pair, logit in zip(tqdm(pairs, desc="features", mininterval=5), logits, strict=True):
        if pair.passages not in contexts:
            index = EvidenceIndex(pair.passages)
            chunks = ContextChunks.from_texts([chunk.text for chunk in index.chunks])
            contexts = {pair.passages: (index, chunks, ContextLexicon.from_passages(pair.passages))}
        index, chunks, lexicon = contexts[pair.passages]
        best = index.best(pair.claim, BEST_CHUNKS)
        found = text_features(pair.claim, logit=logit, chunks=chunks, best=best, lexicon=lexicon, rarity=rarity).values
        rows.append(list(found.values()))
        wording = (
            calibration["coverage"] * index.coverage(pair.claim) + calibration["novel_pairs"] * found["novel_pairs"]
        )
        packaged.append(calibration["scale"] * logit + wording + calibration["shift"])
    return np.array(rows), np.array(packaged)


def estimator_of(features: Sequence[TextFeature], *, strength: float = 0.3) -> MonotoneLogisticRegression:
    """Return the untrained default for some features."""
    return MonotoneLogisticRegression(
        directions=[feature.direction for feature in features],
        prior_weights=[feature.prior_weight for feature in features],
        strength=strength,
    )


def systems_of(X: Floats, packaged: Floats, y: NDArray[np.int64], sources: Sequence[str]) -> Mapping[str, Floats]:
    """Return the scores (N,) of each system."""
    names = [feature.name for feature in TEXT_FEATURES]
    signs = {feature.name: feature.direction for feature in TEXT_FEATURES}
    alone = {name: np.where(np.isnan(X[:, i]), NEITHER, X[:, i]) * signs[name] for i, name in enumerate(names)}
    found = {name: alone[name] for name in OVERLAPS}
    found |= {"aligner, packaged": packaged, "aligner, raw logit": alone["align_logit"]}
    without = [i for i, name in enumerate(names) if not name.startswith("contrast_") and name != "agreement"]
    agreeing = [i for i, name in enumerate(names) if not name.startswith("contrast_")]
    network_free = [i for i, name in enumerate(names) if name != "align_logit"]
    parts = {"counting": without, "and agreement": agreeing, "and contrasts": list(range(len(names)))}
    for name, columns in (parts | {"the same without the network": network_free}).items():
        estimator = estimator_of([TEXT_FEATURES[i] for i in columns])
        found[name] = left_out_scores(X[:, columns], y, sources, estimator=estimator)
    equal = estimator_of(TEXT_FEATURES, strength=1e6)
    return found | {"weights not fitted": left_out_scores(X, y, sources, estimator=equal)}


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print the matrix."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ragtruth", type=Path, required=True, metavar="DIR")
    parser.add_argument("--attribution", type=Path, required=True, metavar="DIR")
    parser.add_argument("--support", type=Path, required=True, metavar="DIR")
    parser.add_argument("--cache", type=Path, metavar="FILE", help="logits by pair, read and written")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (%(default)s)")
    parser.add_argument("--resamples", type=int, default=1000, help="(%(default)s)")
    args = parser.parse_args(words)
    pairs = load_sources(args.ragtruth, args.attribution, args.support)
    X, packaged = measured(pairs, raw_logits(pairs, args.cache))
    y, sources = np.array([pair.label for pair in pairs]), [pair.source for pair in pairs]
    groups = np.array([pair.group for pair in pairs])
    known = describe_machine("cpu", torch.get_num_threads(), "wall-clock")
    print(", ".join(known[name] for name in ("date", "chip", "threads", "versions")))
    print(f"{len(pairs)} pairs, {args.resamples} resamples, seed {args.seed}\n")
    matrix = left_out_matrix(
        systems_of(X, packaged, y, sources), y, groups, sources, draws=args.resamples, seed=args.seed
    )
    print(matrix.to_text())
    print("\nmean over the sources")
    for system, row in zip(matrix.rows, matrix.values, strict=True):
        print(f"{row.mean():.4f}  {system}")


if __name__ == "__main__":
    main()
