"""Sentences that say that passages do not tell something, true and false ones.

    python benchmarks/absence.py --half closed

Each line of ``absence.jsonl`` has a question, passages, such a sentence, and 1 if it is true. Rules and numbers were
chosen on the half "open"; "closed" was scored once they were chosen, and some rules were mended after "second" was.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from syncheck import Verifier
from syncheck.evaluation.metrics import auroc


def main() -> None:
    """Print the score of each sentence of a half, and how well the scores tell true from false."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("open", "closed", "second"), default="closed")
    half = parser.parse_args().half
    verifier = Verifier()
    lines = (Path(__file__).parent / "absence.jsonl").read_text(encoding="utf-8").splitlines()
    records = [record for record in map(json.loads, lines) if record["half"] == half]
    scores = []
    for record in records:
        report = verifier.check(record["sentence"], question=record["question"], passages=record["passages"])
        scores.append(report.sentences[0].score or 0.0)
        print(f"{record['label']}  {scores[-1]:.2f}  {record['sentence']}")
    labels = [record["label"] for record in records]
    found, y = np.array(scores), np.array(labels)
    print(f"AUROC {auroc(found, y):.3f}, mean of true {found[y == 1].mean():.2f}, of false {found[y == 0].mean():.2f}")


if __name__ == "__main__":
    main()
