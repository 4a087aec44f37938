"""Numbers: sentences that change one number, unit, date or bound of a passage, and that write the same otherwise.

    python benchmarks/number_cases.py

Scores each claim of ``number_pairs.jsonl`` beside its passage, with the bundled verifier or a monitor saved in
``--monitor``. A claim with ``words`` changes what the passage says, and passes if its score reaches ``--threshold``;
the words that are set side by side must be these. A claim without is the same in other writing, or of another number
of the passage, and is kept if its score reaches the threshold. ``--show`` prints those that go wrong.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from syncheck import Verifier
from syncheck.evaluation.tables import aligned

PAIRS = Path(__file__).with_name("number_pairs.jsonl")


def main(words: Sequence[str] | None = None) -> None:
    """Score and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--monitor", type=Path, metavar="DIR", help="saved monitor; the bundled one without it")
    parser.add_argument("--threshold", type=float, default=0.5, help="(%(default)s)")
    parser.add_argument("--show", action="store_true", help="also print what goes wrong")
    args = parser.parse_args(words)
    verifier = Verifier() if args.monitor is None else Verifier.from_pretrained(args.monitor)
    counts: Counter[tuple[str, str]] = Counter()
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    for pair in pairs:
        report = verifier.check(pair["claim"], question="What do the passages say?", passages=[pair["passage"]])
        (sentence,) = report.sentences
        is_high = sentence.score is not None and sentence.score >= args.threshold
        said = [[one.sentence, one.evidence] for one in sentence.contrasts]
        if "words" in pair:
            outcomes = ["changed", *["passes"] * is_high, *["words"] * (pair["words"] in said)]
        else:
            outcomes = ["same", *["kept"] * is_high]
        counts.update((kind, outcome) for kind in (pair["kind"], "all") for outcome in outcomes)
        if args.show and outcomes not in (["same", "kept"], ["changed", "words"]):
            print(f"{sentence.score} {' '.join(outcomes)}: {pair['passage']} | {pair['claim']} {said}")
    rows = [["", "changed", "pass", "words shown", "the same", "kept"]]
    for kind in [*dict.fromkeys(pair["kind"] for pair in pairs), "all"]:
        rows.append([kind, *(str(counts[kind, name]) for name in ("changed", "passes", "words", "same", "kept"))])
    print(*aligned(rows), sep="\n")


if __name__ == "__main__":
    main()
