"""What each effort of the reader is worth, and takes, on every set of claims that it was not trained on.

    python benchmarks/efforts.py
    python benchmarks/efforts.py --tables table-pairs --ragtruth ragtruth-qa --attribution attribution-pairs \
        --support support-pairs

Sets in the repository are first tries, exam passages and trials, long contexts, written claims, and the answers of
``other_answers.jsonl``, of eight sentences each: 14 about documents of a new user, 14 about transcripts of meetings, 14
about news that is hard to judge, and 16 about notices, which are lists, forms, price lists, timetables and records. A
language model wrote these before anything was scored; half of the sentences are not supported, and but for the notices
the share of known words does not tell them apart. It read the 464 sentences anew, without the labels, and gave them the
same ones. Nothing is chosen on them.

The figures are AUROC of ``generic-reader`` and of the reader alone, with 95 % intervals from a bootstrap over
contexts, and milliseconds for a sentence, passages included. Of sets with more claims, so many of each label are drawn.
``generic-reader`` was trained on natural claims, so that only the reader is told of these.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

import carry_over
import first_tries
import long_contexts
import numpy as np
import torch
from machine import describe_machine
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from support_pairs import SupportPair, load_pairs
from tqdm import tqdm

from syncheck import Verifier
from syncheck.aligners import load_aligner
from syncheck.evaluation.tables import aligned
from syncheck.results.types import EFFORTS

HERE = Path(__file__).parent
NATURAL = "natural: "
DRAWN = 50

Floats = NDArray[np.float64]


class Asked(NamedTuple):
    """Sentences of one answer, or a claim, about passages."""

    group: str
    question: str
    passages: Sequence[str]
    sentences: Sequence[str]
    labels: Sequence[int]


def answers(path: Path, half: str = "closed") -> dict[str, list[Asked]]:
    """Read the answers of a half by the kind of their text."""
    sets: dict[str, list[Asked]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        asked = json.loads(line)
        sentences, labels = zip(*((s["text"] + " ", s["label"]) for s in asked["answer"]), strict=True)
        if asked["half"] == half:
            one = Asked(asked["id"], asked["question"], asked["passages"], sentences, labels)
            sets.setdefault(asked["kind"], []).append(one)
    return sets


def pairs(path: Path, half: first_tries.Half | Literal["both"]) -> list[Asked]:
    """Read pairs as two claims each."""
    return [
        Asked(pair.context_id, pair.question, pair.context, [text], [label])
        for pair in first_tries.load_pairs(path, half)
        for text, label in ((pair.supported, 1), (pair.unsupported, 0))
    ]


def claims(found: Sequence[SupportPair]) -> dict[str, list[Asked]]:
    """Draw claims of each label of each source."""
    sets: dict[str, list[Asked]] = {}
    for pair in carry_over.sampled(found, DRAWN):
        sets.setdefault(pair.source, []).append(Asked(pair.group, "", pair.passages, [pair.claim], [pair.label]))
    return sets


def infoboxes(folder: Path) -> list[SupportPair]:
    """Read claims about infoboxes as JSON; those about lines come from ``carry_over.load_written_sources``."""
    with lzma.open(folder / "infotabs-alpha1.jsonl.xz", "rt", encoding="utf-8") as lines:
        tables = [json.dumps(json.loads(line)["table"], ensure_ascii=False) for line in lines]
    found = zip(load_pairs(folder, "infotabs-alpha1"), tables, strict=True)
    return [replace(pair, passages=(table,), source="infoboxes as JSON") for pair, table in found]


def load_sets(args: argparse.Namespace) -> dict[str, list[Asked]]:
    """Read all sets whose files are at hand."""
    reasoning = pairs(HERE / "reasoning.jsonl", "both")
    exams = {
        pair.context_id for pair in first_tries.load_pairs(HERE / "reasoning.jsonl") if pair.kind.startswith("exam")
    }
    sets = {
        "first tries, closed half": pairs(HERE / "first_tries.jsonl", "closed"),
        "second set": pairs(HERE / "first_tries_second.jsonl", "closed"),
        "exam passages": [asked for asked in reasoning if asked.group in exams],
        "trials": [asked for asked in reasoning if asked.group not in exams],
        "long contexts, closed half": list(chain(*answers(HERE / "long_contexts.jsonl").values())),
        **answers(HERE / "other_answers.jsonl"),
    }
    if args.tables:
        written = [p for p in carry_over.load_written_sources(args.tables) if p.source != "long contexts"]
        sets |= claims([*written, *infoboxes(args.tables)])
    if args.ragtruth and args.attribution and args.support:
        natural = claims(carry_over.load_sources(args.ragtruth, args.attribution, args.support))
        sets |= {NATURAL + source: asked for source, asked in natural.items()}
    return sets


def figures(verifier: Verifier, asked: Sequence[Asked]) -> tuple[Floats, Floats, float]:
    """Score sentences, (N,), with the reader's log-odds, (N,), and the milliseconds for each."""
    started = time.perf_counter()
    records = [{"question": a.question, "passages": a.passages, "sentences": a.sentences} for a in asked]
    reports = list(verifier.check_many(records))
    seconds = time.perf_counter() - started
    found = [sentence for report in reports for sentence in report.sentences]
    scores = np.array([np.nan if s.score is None else s.score for s in found])
    odds = np.array([s.features["align_logit"] for s in found], dtype=np.float64)
    return np.nan_to_num(scores, nan=0.5), np.nan_to_num(odds), 1e3 * seconds / len(found)


def main(words: Sequence[str] | None = None) -> None:
    """Measure each effort on each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tables", "ragtruth", "attribution", "support"):
        parser.add_argument(f"--{name}", type=Path, metavar="DIR", help="see above")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="only sets with one of these in their names")
    parser.add_argument("--efforts", nargs="+", choices=EFFORTS, default=EFFORTS, help="(all)")
    args = parser.parse_args(words)
    sets = {name: asked for name, asked in load_sets(args).items() if any(only in name for only in args.only or [""])}
    verifiers = {effort: Verifier(load_aligner("reader"), effort=effort) for effort in args.efforts}
    known = describe_machine("cpu", torch.get_num_threads(), "wall-clock")
    print(", ".join(known[name] for name in ("date", "chip", "threads", "versions")), end="\n\n")
    rows = [["set", "sentences", "effort", "generic-reader", "balanced at 0.5", "the reader alone", "ms a sentence"]]
    for name, asked in tqdm(sets.items(), desc="sets", mininterval=5):
        good = np.array([label == 1 for a in asked for label in a.labels])
        groups = np.array([a.group for a in asked for _ in a.labels])
        for effort, verifier in verifiers.items():
            scores, odds, taken = figures(verifier, asked)
            cells = [long_contexts.interval(roc_auc_score, good, values, groups) for values in (scores, odds)]
            even = long_contexts.interval(long_contexts.balanced, good, scores, groups)
            if name.startswith(NATURAL):
                cells[0] = even = ""
            rows.append([name, str(len(good)), effort, cells[0], even, cells[1], f"{taken:.0f}"])
            tqdm.write("; ".join(rows[-1]))
    print("\n".join(aligned(rows)))


if __name__ == "__main__":
    main()
