"""Claims that a language model wrote about passages: how many an aligner orders and names rightly.

    python benchmarks/written_claims.py --aligner reader

The packaged reader was not trained on the claims of ``examples/starter_kit/claims/unseen``. Of the claims
of one context each supported one is compared with each other one; neighbouring claims of which one is supported mostly
differ in one thing. A supported claim is on the right side if its log-odds of support are above 0, another one if they
are not. Intervals are 95 %, from a bootstrap over contexts; twins, the same passages with some facts changed, are one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from machine import describe_machine
from numpy.typing import NDArray
from tqdm import tqdm

from syncheck.aligners import Aligner, IndexedAligner, load_aligner
from syncheck.evaluation.metrics import BootstrapSamples, bootstrap_interval, with_interval
from syncheck.evaluation.tables import aligned
from syncheck.reading.evidence import EvidenceIndex
from syncheck.results.types import Support
from syncheck.text.sentences import ENGLISH_ABBREVIATIONS, SentenceCutter

STARTER_KIT = Path(__file__).parents[1] / "examples" / "starter_kit"
sys.path.insert(0, str(STARTER_KIT))
from claim_files import load_written  # noqa: E402
from contrast_pairs import CONTRADICTED, NOT_STATED, SUPPORTED, ContrastGroup  # noqa: E402

UNSEEN = STARTER_KIT / "claims" / "unseen"
RESAMPLES = 1000


def judged(groups: Sequence[ContrastGroup], aligner: Aligner) -> list[list[Support]]:
    """Ask the aligner for the claims of each context."""
    found = []
    for group in tqdm(groups, desc="contexts", mininterval=5):
        claims = [claim.text for claim in group.claims]
        if isinstance(aligner, IndexedAligner):
            index = EvidenceIndex(group.passages, cut=SentenceCutter(ENGLISH_ABBREVIATIONS).texts)
            found.append(aligner.align_indexed(index, claims))
        else:
            found.append(aligner.align(group.passages, claims))
    return found


def measured(group: ContrastGroup, supports: Sequence[Support]) -> dict[str, list[float]]:
    """Return the hits of a context by figure, each a list of 0, 0.5 or 1."""
    odds = [_log_odds(support) for support in supports]
    good = [claim.label == SUPPORTED for claim in group.claims]
    places = range(len(odds))
    crossed = [_above(odds[i], odds[j]) for i in places if good[i] for j in places if not good[j]]
    beside = [
        _above(odds[i], odds[j]) if good[i] else _above(odds[j], odds[i])
        for i, j in pairwise(places)
        if good[i] != good[j]
    ]
    sides = [float((value > 0) == supported) for value, supported in zip(odds, good, strict=True)]
    named = [float(_named(s) == claim.label) for s, claim in zip(supports, group.claims, strict=True)]
    has_three = all(support.contradicted is not None for support in supports)
    return {"ordered": crossed, "neighbours": beside, "right side": sides, "named of three": named if has_three else []}


def _log_odds(support: Support) -> float:
    if support.log_odds is not None:
        return support.log_odds
    score = min(max(support.score, 1e-6), 1 - 1e-6)
    return float(np.log(score) - np.log1p(-score))


def _above(supported: float, other: float) -> float:
    return (supported > other) + 0.5 * (supported == other)


def _named(support: Support) -> int:
    against = support.contradicted or 0.0
    shares = {SUPPORTED: support.score, CONTRADICTED: against, NOT_STATED: 1 - support.score - against}
    return max(shares, key=lambda label: shares[label])


def table(groups: Sequence[ContrastGroup], hits: Sequence[dict[str, list[float]]], *, seed: int) -> list[str]:
    """Write the figures by letter and overall."""
    samples = BootstrapSamples.of(np.array([group.group for group in groups]), draws=RESAMPLES, seed=seed)
    letters = np.array([group.claims[0].kind for group in groups])
    figures = list(hits[0])
    rows = [["files", "contexts", "claims", *figures]]
    parts = {letter: letters == letter for letter in sorted(set(letters.tolist()))}
    for name, chosen in (parts | {"all": np.ones(len(groups), dtype=bool)}).items():
        claims = sum(len(groups[i].claims) for i in np.flatnonzero(chosen))
        cells = [_share(samples, [hit[figure] for hit in hits], chosen) for figure in figures]
        rows.append([name, str(len(np.unique(samples.group[chosen]))), str(claims), *cells])
    return aligned(rows)


def _share(samples: BootstrapSamples, hits: Sequence[Sequence[float]], chosen: NDArray[np.bool_]) -> str:
    groups = samples.counts.shape[1]
    counts = np.bincount(samples.group[chosen], [len(hits[i]) for i in np.flatnonzero(chosen)], groups)
    sums = np.bincount(samples.group[chosen], [sum(hits[i]) for i in np.flatnonzero(chosen)], groups)
    if not counts.sum():
        return "-"
    sizes = samples.counts @ counts
    resampled = np.divide(samples.counts @ sums, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)
    return with_interval(float(sums.sum() / counts.sum()), *bootstrap_interval(resampled))


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=Path, default=UNSEEN, metavar="DIR", help="(%(default)s)")
    parser.add_argument("--aligner", default="reader", metavar="NAME", help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (%(default)s)")
    args = parser.parse_args(words)
    aligner = load_aligner(args.aligner)
    if aligner is None:
        parser.error("--aligner none answers nothing")
    groups = load_written(args.claims)
    known = describe_machine("cpu", torch.get_num_threads(), "wall-clock")
    hits = [measured(*found) for found in zip(groups, judged(groups, aligner), strict=True)]
    print(", ".join(known[name] for name in ("date", "chip", "threads", "versions")))
    print(f"aligner {args.aligner}; {RESAMPLES} resamples of contexts, seed {args.seed}\n")
    print(*table(groups, hits, seed=args.seed), sep="\n")


if __name__ == "__main__":
    main()
