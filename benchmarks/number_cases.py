"""The simplest error: a sentence of the passage with one number, unit or bound changed, or a denied question affirmed.

    python benchmarks/number_cases.py

Scores each sentence as it is in the passage, and changed, with the bundled generic monitor or one saved in
``--monitor``, and prints both with the words that the monitor sets side by side. A changed sentence passes if its score
reaches ``--threshold``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from syncheck import Monitor
from syncheck.aligners import load_aligner
from syncheck.kit import kit_language_model, load_kit

CASES = (
    ("The mill was built in 1803 by the monks of Arden.", "The mill was built in {}.", "1803", "1903"),
    ("The recommended dose is 0.5 mg a day for adults.", "The recommended dose is {} a day.", "0.5 mg", "0.05 mg"),
    ("Revenue rose to $890M last year.", "Revenue rose to {} dollars last year.", "890 million", "890 billion"),
    ("Each account gets 500 MB of storage.", "Each account gets {} of storage.", "500 MB", "500 GB"),
    ("The crossing from Lund takes 1.5 hours.", "The crossing takes {} hours.", "1.5", "15"),
    ("The stadium has 16,181 seats, all of them covered.", "The stadium has {} seats.", "16,181", "16,811"),
    ("Visitors must be at least 18 years old.", "Visitors must be {} 18 years old.", "at least", "at most"),
    ("Is parking free? No. It costs 2 euros.", "Parking is {}.", "not free", "free"),
    ("The shop opens at 9 a.m. on weekdays.", "The shop opens at {} on weekdays.", "9 a.m.", "9 p.m."),
    ("The lease ends on 12 March 2025.", "The lease ends on {} 2025.", "12 March", "21 March"),
    ("Keep the vaccine at 8 °C.", "Keep the vaccine at {}.", "8 °C", "8 °F"),
    ("The train reaches speeds between 80 and 90 km/h.", "The train reaches speeds of {} km/h.", "85", "95"),
    ("A day ticket costs $40 in summer.", "A day ticket costs {} in summer.", "$40", "€40"),
    ("The loan bears interest of 4.5 % a year.", "The loan bears interest of {} percent a year.", "4.5", "45"),
    ("Take the tablets twice a day with water.", "Take the tablets {} a day.", "twice", "five times"),
)
"""Passage, sentence with a gap, what the passage says in its place, and what it does not say."""


def scored(monitor: Monitor, passage: str, sentence: str) -> tuple[float, str]:
    """Return the score of a sentence and the words that stand side by side."""
    prompt = monitor.prompt(question="What do the passages say?", context=[passage])
    (found,) = monitor.explain(monitor.score(prompt, sentences=[sentence])).sentences
    words = "; ".join(f"{one.sentence!r} for {one.evidence!r}" for one in found.contrasts)
    return float("nan") if found.score is None else found.score, words


def main(words: Sequence[str] | None = None) -> None:
    """Score and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--monitor", type=Path, metavar="DIR", help="saved monitor; that of the kit without it")
    parser.add_argument("--aligner", default="reader", metavar="NAME", help="of the saved monitor (%(default)s)")
    parser.add_argument("--threshold", type=float, default=0.5, help="(%(default)s)")
    args = parser.parse_args(words)
    monitor = load_kit("generic")
    if args.monitor is not None:
        model, tokenizer = kit_language_model()
        aligner = load_aligner(args.aligner)
        monitor = Monitor.from_pretrained(args.monitor, model=model, tokenizer=tokenizer, aligner=aligner)
    rows = []
    for passage, gap, right, wrong in CASES:
        (good, _), (bad, said) = (scored(monitor, passage, gap.format(value)) for value in (right, wrong))
        rows.append((good, bad))
        print(f"{good:.2f}  {bad:.2f}  {gap.format(wrong)}  [{said}]")
    passed = sum(bad >= args.threshold for _, bad in rows)
    kept = sum(good >= args.threshold for good, _ in rows)
    print(f"\nat {args.threshold:g}: {passed} of {len(rows)} changed sentences pass; {kept} of the unchanged ones")


if __name__ == "__main__":
    main()
