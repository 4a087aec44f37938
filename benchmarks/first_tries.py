"""First tries of a newcomer: two sentences about the same passages, one with support and one without.

    python benchmarks/first_tries.py --half open

Scores both sentences of each hand-written pair of ``first_tries.jsonl`` as the whole answer to its question, with the
bundled verifier, one saved in ``--monitor``, or an ``--aligner`` alone. A pair is ordered
rightly if the supported sentence has the higher score; a tie counts one half. A supported sentence is on the right
side from the threshold upwards, an unsupported one below it. A sentence without a score is never right. Intervals are
95 %, from a bootstrap over contexts. The closed half is for the last measurement alone: nothing may be chosen on it.
``--data first_tries_second.jsonl --half closed`` takes pairs of other authors, written when all else was settled.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from machine import describe_machine
from numpy.typing import NDArray

from syncheck import Verifier
from syncheck.aligners import load_aligner
from syncheck.base.errors import InputError, SyncheckError
from syncheck.base.records import Record, read_records
from syncheck.evaluation.metrics import BootstrapSamples, bootstrap_interval, with_interval
from syncheck.evaluation.tables import aligned

DATA = Path(__file__).with_name("first_tries.jsonl")
THRESHOLD = 0.5
RESAMPLES = 2000

Half = Literal["open", "closed"]
Relation = Literal["contradicted", "not_stated"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences about the same passages, one of which they support.

    Attributes
    ----------
    id, context_id, domain, question : str
    kind : str
        What sets the two apart: a number, a negation, ...
    context : tuple of str
        The passages.
    supported, unsupported : str
    relation : str
        What the passages say of the unsupported one.
    half : str
        The same for all pairs of a context.
    """

    id: str
    context_id: str
    domain: str
    kind: str
    question: str
    context: tuple[str, ...]
    supported: str
    unsupported: str
    relation: Relation
    half: Half


def load_pairs(path: Path, half: Half | Literal["both"] = "both") -> list[Pair]:
    """Read the pairs of one half, or of both.

    Raises
    ------
    InputError
        If a field is missing, of another type or has an unknown value, or no pair is left.
    """
    pairs = []
    for record in read_records(path):
        pair = _pair(record)
        if half in (pair.half, "both"):
            pairs.append(pair)
    if not pairs:
        raise InputError(f"expected pairs of half {half!r}; found none in {path}")
    return pairs


def _pair(record: Record) -> Pair:
    kinds = {"half": Half, "relation": Relation}
    texts = {name: record.get(name, str) for name in Pair.__slots__ if name not in ("context", *kinds)}
    context = record.strings("context")
    if not context:
        raise record.error("expected passages, found none", "context")
    return Pair(**texts, **{name: record.choice(name, known) for name, known in kinds.items()}, context=context)


def score_pairs(verifier: Verifier, pairs: Sequence[Pair]) -> Floats:
    """Return the scores of the supported and the unsupported sentences, (P, 2); NaN for one without a score."""
    records = (
        {"question": p.question, "passages": p.context, "sentences": [getattr(p, column)]}
        for column in ("supported", "unsupported")
        for p in pairs
    )
    reports = verifier.check_many(records)
    found = [next((s.score for s in report.sentences), None) for report in reports]
    return np.array([np.nan if score is None else score for score in found]).reshape(2, -1).T


@dataclass(frozen=True, slots=True)
class Judged:
    """Correct judgements, by pair.

    Attributes
    ----------
    ordered : ndarray of shape (P,), float64
        1 if the supported sentence scored higher, 0.5 for a tie, else 0; 0 if one has no score.
    sides : ndarray of shape (P, 2), float64
        1 where the supported, the unsupported sentence is on the right side of the threshold.
    unscored : ndarray of shape (P,), int64
        Sentences of the pair without a score, 0 to 2.
    """

    ordered: Floats
    sides: Floats
    unscored: NDArray[np.int64]


def judge(scores: Floats, threshold: float) -> Judged:
    """Judge scores of shape (P, 2), the supported sentences' first."""
    good, bad = scores.T  # comparisons with NaN are false
    ordered = (good > bad) + 0.5 * (good == bad)
    sides = np.stack([good >= threshold, bad < threshold], axis=1).astype(np.float64)
    return Judged(ordered.astype(np.float64), sides, np.isnan(scores).sum(axis=1))


def table(pairs: Sequence[Pair], judged: Judged, *, seed: int) -> list[str]:
    """Write the shares by kind, in the order of the file, and overall."""
    draws = BootstrapSamples.of(np.array([p.context_id for p in pairs]), draws=RESAMPLES, seed=seed)
    kinds = np.array([p.kind for p in pairs])
    rows = [["kind", "pairs", "ordered rightly", "right side", "supported", "unsupported", "without a score"]]
    parts = {kind: kinds == kind for kind in dict.fromkeys(kinds.tolist())}
    for name, chosen in (parts | {"all": np.ones(len(pairs), dtype=bool)}).items():
        supported, unsupported = judged.sides.T
        figures = (judged.ordered, judged.sides.mean(axis=1), supported, unsupported)
        cells = [_share(draws, figure, chosen) for figure in figures]
        rows.append([name, str(chosen.sum()), *cells, str(judged.unscored[chosen].sum())])
    return aligned(rows)


def _share(draws: BootstrapSamples, right: Floats, chosen: NDArray[np.bool_]) -> str:
    """Write the mean of the chosen pairs with its interval; pairs of a single context say nothing about others."""
    groups = draws.counts.shape[1]
    pairs = np.bincount(draws.group[chosen], minlength=groups)
    sizes, hits = draws.counts @ pairs, draws.counts @ np.bincount(draws.group[chosen], right[chosen], groups)
    known = (sizes > 0) & (np.count_nonzero(pairs) > 1)
    resampled = np.divide(hits, sizes, out=np.full(len(sizes), np.nan), where=known)
    return with_interval(float(right[chosen].mean()), *bootstrap_interval(resampled))


def wrong(pairs: Sequence[Pair], scores: Floats, judged: Judged) -> list[str]:
    """Write the pairs in the wrong order, with both scores."""
    return [
        f"{p.id} {p.kind}: {good:.2f} {p.supported} | {bad:.2f} {p.unsupported}"
        for p, (good, bad), ordered in zip(pairs, scores, judged.ordered, strict=True)
        if ordered < 1
    ]


def _verifier(saved: Path | None, aligner: str | None) -> Verifier:
    if saved is None:
        return Verifier(None if aligner is None else load_aligner(aligner))
    return Verifier.from_pretrained(saved, aligner=load_aligner(aligner or "bundled"))


def main(words: Sequence[str] | None = None) -> None:
    """Score the pairs and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=(*get_args(Half), "both"), default="open", help="(%(default)s)")
    parser.add_argument("--monitor", type=Path, metavar="DIR", help="saved verifier; the bundled one without it")
    parser.add_argument("--aligner", metavar="NAME", help="the monitor's, or with that bundled for it, or alone")
    parser.add_argument("--threshold", type=float, default=THRESHOLD, help="(%(default)s)")
    parser.add_argument("--data", type=Path, default=DATA, metavar="FILE", help="other pairs (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (%(default)s)")
    parser.add_argument("--wrong", action="store_true", help="also print the pairs that are not ordered rightly")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the scores of each pair, JSON Lines")
    args = parser.parse_args(words)
    try:
        pairs = load_pairs(args.data, args.half)
        verifier = _verifier(args.monitor, args.aligner)
        scores = score_pairs(verifier, pairs)
    except SyncheckError as error:
        sys.exit(f"stopped: {error}")
    judged = judge(scores, args.threshold)
    known = describe_machine("cpu", torch.get_num_threads(), "wall-clock")
    contexts, relations = len({p.context_id for p in pairs}), Counter(p.relation for p in pairs)
    print(", ".join(known[name] for name in ("date", "chip", "threads", "versions")))
    name = args.monitor or verifier.name or f"aligner {args.aligner}"
    print(f"monitor {name}; half {args.half}: {len(pairs)} pairs, {contexts} contexts")
    print(", ".join(f"{count} {name}" for name, count in relations.items()), end="; ")
    print(f"threshold {args.threshold:g}; {RESAMPLES} resamples of contexts, seed {args.seed}\n")
    print(*table(pairs, judged, seed=args.seed), sep="\n")
    if args.wrong:
        print("", *wrong(pairs, scores, judged), sep="\n")
    if args.output is not None:
        args.output.write_text("".join(_lines(pairs, scores)), encoding="utf-8")


def _lines(pairs: Sequence[Pair], scores: Floats) -> list[str]:
    names = ("supported_score", "unsupported_score")
    values = [dict(zip(names, (None if np.isnan(s) else float(s) for s in row), strict=True)) for row in scores]
    return [json.dumps({"id": p.id, "kind": p.kind, **value}) + "\n" for p, value in zip(pairs, values, strict=True)]


if __name__ == "__main__":
    main()
