"""Evidence: how often the evidence of a sentence is what decides it.

    python benchmarks/evidence.py --part second
    python benchmarks/evidence.py --part second --aligner bundled

``evidence.jsonl`` names what decides each sentence of the open half of ``long_contexts.jsonl``: words of a passage that
support it or say otherwise, none for what no passage states. A language model named them by reading the passages,
before any evidence was looked at. Evidence is right if it is in the passage of such words, and if it has some of them.
The figures are shares of the sentences that something decides, with 95 % intervals from a bootstrap over questions. How
evidence is chosen was decided on the first part, every other question, and is reported on the second.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from long_contexts import interval, load_questions
from machine import describe_machine
from numpy.typing import NDArray

from syncheck import Verifier
from syncheck.aligners import load_aligner
from syncheck.evaluation.tables import aligned
from syncheck.results.events import located
from syncheck.results.types import EFFORTS, Evidence

DATA = Path(__file__).with_name("evidence.jsonl")
PARTS = ("first", "second", "both")


class Words(NamedTuple):
    """Words that decide: the index of their passage, and their characters in it, half-open."""

    passage: int
    start: int
    end: int


def load_deciding(questions: Sequence[dict[str, Any]]) -> list[list[Words]]:
    """Read what decides each sentence of these questions, in order."""
    passages = {question["id"]: question["passages"] for question in questions}
    deciding: dict[tuple[str, int], list[Words]] = {}
    for line in DATA.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["id"] not in passages:
            continue
        named = deciding[record["id"], record["sentence"] - 1] = []
        for one in record["decides"]:
            start = passages[record["id"]][one["passage"] - 1].index(one["quote"])
            named.append(Words(one["passage"] - 1, start, start + len(one["quote"])))
    return [deciding[question["id"], place] for question in questions for place in range(len(question["answer"]))]


def of_part(questions: Sequence[dict[str, Any]], part: str) -> Sequence[dict[str, Any]]:
    """Take every other question, or all."""
    return questions if part == "both" else questions[PARTS.index(part) :: 2]


def is_right(evidence: Evidence | None, passages: Sequence[str], deciding: Sequence[Words]) -> tuple[bool, bool]:
    """Tell whether evidence is in a passage that decides, and whether it has words that decide."""
    if evidence is None:
        return False, False
    own = [words for words in deciding if words.passage == evidence.passage]
    place = located(evidence, passages)
    if place.start is None or place.end is None:
        raise ValueError(f"the evidence is not in passage {evidence.passage + 1}: {evidence.text!r}")
    return bool(own), any(place.start < words.end and words.start < place.end for words in own)


def measured(verifier: Verifier, questions: Sequence[dict[str, Any]]) -> NDArray[np.float64]:
    """Tell for each sentence whether its evidence is in the right passage and has deciding words, (N, 2).

    NaN for sentences that nothing decides.
    """
    deciding, rows = iter(load_deciding(questions)), []
    for question in questions:
        passages = question["passages"]
        texts = [sentence["text"] + " " for sentence in question["answer"]]
        report = verifier.check(question=question["question"], passages=passages, sentences=texts)
        for sentence in report.sentences:
            named = next(deciding)
            rows.append(is_right(sentence.evidence, passages, named) if named else (np.nan, np.nan))
    return np.array(rows, dtype=np.float64)


def main(words: Sequence[str] | None = None) -> None:
    """Score the answers and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, required=True)
    parser.add_argument("--aligner", help="an aligner alone, or the one whose bundled verifier is taken")
    parser.add_argument("--effort", choices=EFFORTS, help="of the reader (its own)")
    args = parser.parse_args(words)
    questions = of_part(load_questions("open"), args.part)
    verifier = Verifier(None if args.aligner is None else load_aligner(args.aligner), effort=args.effort)
    started = time.perf_counter()
    rows = measured(verifier, questions)
    seconds = time.perf_counter() - started
    labels = np.array([sentence["label"] == 1 for question in questions for sentence in question["answer"]])
    groups = np.array([question["id"] for question in questions for _ in question["answer"]])
    known = describe_machine("cpu", torch.get_num_threads(), "wall-clock")
    print(", ".join(known[name] for name in ("date", "chip", "threads", "versions")))
    print(f"{verifier.name}, effort {getattr(verifier.aligner, 'effort', 'none')}, part {args.part}:")
    print(f"{len(questions)} questions, {1e3 * seconds / len(rows):.0f} ms a sentence\n")
    decided = ~np.isnan(rows[:, 0])
    table = [["sentences", "", "in the right passage", "with deciding words"]]
    for name, chosen in (("all", decided), ("supported", decided & labels), ("unsupported", decided & ~labels)):
        shares = [
            interval(lambda _, right: float(right.mean()), labels[chosen], column[chosen], groups[chosen])
            for column in rows.T
        ]
        table.append([name, str(chosen.sum()), *shares])
    print("\n".join(aligned(table)))


if __name__ == "__main__":
    main()
