"""Make labelled records of support pairs, to train an aggregator without RAGTruth and test it there.

    python examples/starter_kit/support_records.py --pairs support-pairs --per-source 400 --output support.jsonl
    syncheck features --data support.jsonl --output support.parquet
    syncheck features --data ragtruth --output ragtruth.parquet
    syncheck evaluate --train support.parquet --data ragtruth.parquet --aggregator lr

A claim becomes the answer to the same question in all records, since the pairs have none: unlike the opening sentence
that RAGTruth's summaries keep without their article, it gives away nothing of the context. Claims of several sentences
are left out, whose label does not say which of them is wrong. So are, without ``--parts``, the contexts that the
bundled aligner was fitted on: its support of those is better than of any others, and an aggregator would trust it too
much. ``syncheck features`` names the records that do not fit the model's window.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from nltk.tokenize.punkt import PunktSentenceTokenizer
from support_pairs import Part, load_pairs, part_of

SOURCES = ("defacto", "frank", "bump", "summedits")
PARTS: tuple[Part, ...] = ("calibrate", "test")
QUESTION = "What does the text say?"


def support_records(
    folder: Path, *, per_source: int, sources: Sequence[str] = SOURCES, parts: Sequence[Part] = PARTS, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield records for :func:`syncheck.labelling.load_jsonl`, source by source, in the order of the files.

    Parameters
    ----------
    folder
        Has ``<source>.jsonl.xz``.
    per_source
        Most pairs that are drawn of each source; all where it has no more.
    sources
    parts
        Of the aligner's split of the contexts; see :func:`support_pairs.part_of`.
    seed
        Of the draw, which for one source does not depend on the others.

    Yields
    ------
    dict
        ``generator`` is the source, ``group`` the context within it.
    """
    for source in sources:
        pairs = load_pairs(folder, source)
        usable = [
            i for i, pair in enumerate(pairs) if part_of(pair.passages[0]) in parts and _is_one_sentence(pair.claim)
        ]
        drawn = random.Random(f"{seed} {source}").sample(usable, min(per_source, len(usable)))
        for index in sorted(drawn):
            pair = pairs[index]
            yield {
                "id": f"{source}-{index}",
                "group": f"{source}-{pair.group}",
                "generator": source,
                "task": "Support",
                "question": QUESTION,
                "context": list(pair.passages),
                "sentences": [pair.claim],
                "labels": [pair.label],
            }


def _is_one_sentence(claim: str) -> bool:
    return len(list(PunktSentenceTokenizer().span_tokenize(claim))) == 1


def main() -> int:
    """Write the records and print how many there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, metavar="DIR", help="folder with <source>.jsonl.xz")
    parser.add_argument("--sources", nargs="+", default=SOURCES, metavar="NAME")
    parser.add_argument("--per-source", type=int, default=400, metavar="N", help="most pairs of each (%(default)s)")
    parser.add_argument("--parts", nargs="+", choices=get_args(Part), default=PARTS, help="of the aligner's split")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="JSON Lines")
    args = parser.parse_args()
    records = list(
        support_records(args.pairs, per_source=args.per_source, sources=args.sources, parts=args.parts, seed=args.seed)
    )
    args.output.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")
    for source in args.sources:
        labels = [r["labels"][0] for r in records if r["generator"] == source]
        sys.stdout.write(f"{source}: {len(labels)} records, {labels.count(0)} not supported\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
