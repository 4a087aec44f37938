"""Answers of eight sentences about long passages: how well a verifier tells the sentences apart.

    python benchmarks/long_contexts.py --half open
    python benchmarks/long_contexts.py --half open --effort thorough

``long_contexts.jsonl`` has 64 questions with four or five passages of 100 to 200 words each, policies, manuals,
minutes, chats, tables and JSON among them, and an answer whose sentences were labelled as they were written: half are
not supported, and the share of known words does not tell them apart. A language model wrote them; when it read all 512
sentences anew, without the labels, it gave them the same ones. Each answer is scored as a whole. The figures are AUROC
and, for the threshold 0.5, the mean of the shares of supported sentences that reach it and of the others that do not,
with 95 % intervals from a bootstrap over questions. A sentence without a score counts as 0.5. The closed half is for
the last measurement alone.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import describe_machine
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from syncheck import Verifier
from syncheck.aligners import load_aligner
from syncheck.evaluation.metrics import with_interval
from syncheck.evaluation.tables import aligned
from syncheck.results.types import EFFORTS
from syncheck.text.words import ContextLexicon, lexical_shares

DATA = Path(__file__).with_name("long_contexts.jsonl")
RESAMPLES, SEED = 1000, 0

Floats = NDArray[np.float64]


def load_questions(half: str) -> list[dict[str, Any]]:
    """Read the questions of a half, or of both."""
    questions = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    return [question for question in questions if half in (question["half"], "both")]


def scores_of(verifier: Verifier, questions: Sequence[dict[str, Any]]) -> Floats:
    """Score each sentence of each answer, (N,); NaN for one without a score."""
    reports = (
        verifier.check(
            question=question["question"],
            passages=question["passages"],
            sentences=[sentence["text"] + " " for sentence in question["answer"]],
        )
        for question in questions
    )
    return np.array([np.nan if s.score is None else s.score for report in reports for s in report.sentences])


def known_words(questions: Sequence[dict[str, Any]]) -> Floats:
    """Compute the share of each sentence's content words that its passages have, (N,)."""
    shares = []
    for question in questions:
        lexicon = ContextLexicon.from_passages(question["passages"])
        shares += [lexical_shares(sentence["text"], lexicon).content_overlap for sentence in question["answer"]]
    return np.array(shares)


def balanced(good: NDArray[np.bool_], scores: Floats) -> float:
    """Compute the mean of the shares of each label on the right side of 0.5."""
    right = (scores >= 0.5) == good
    return float((right[good].mean() + right[~good].mean()) / 2)


def interval(
    figure: Callable[[NDArray[np.bool_], Floats], float], good: NDArray[np.bool_], scores: Floats, groups: NDArray[Any]
) -> str:
    """Write a figure with its interval over groups."""
    rng, numbers = np.random.default_rng(SEED), np.unique(groups)
    rows = {group: np.flatnonzero(groups == group) for group in numbers}
    drawn = [np.concatenate([rows[group] for group in rng.choice(numbers, len(numbers))]) for _ in range(RESAMPLES)]
    low, high = np.quantile([figure(good[chosen], scores[chosen]) for chosen in drawn], [0.025, 0.975])
    return with_interval(figure(good, scores), low, high)


def main(words: Sequence[str] | None = None) -> None:
    """Score the answers and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("open", "closed", "both"), required=True)
    parser.add_argument("--aligner", help="an aligner alone, or the one whose bundled verifier is taken")
    parser.add_argument("--effort", choices=EFFORTS, help="of the reader (its own)")
    args = parser.parse_args(words)
    questions = load_questions(args.half)
    verifier = Verifier(None if args.aligner is None else load_aligner(args.aligner), effort=args.effort)
    sentences = [sentence for question in questions for sentence in question["answer"]]
    good = np.array([sentence["label"] == 1 for sentence in sentences])
    groups = np.array([question["id"] for question in questions for _ in question["answer"]])
    kinds = np.array([sentence["kind"] for sentence in sentences])
    started = time.perf_counter()
    measured = scores_of(verifier, questions)
    seconds = time.perf_counter() - started
    known = describe_machine("cpu", torch.get_num_threads(), "wall-clock")
    print(", ".join(known[name] for name in ("date", "chip", "threads", "versions")))
    print(f"{verifier.name}, effort {getattr(verifier.aligner, 'effort', 'none')}, half {args.half}: {len(questions)}")
    print(
        f"questions, {len(good)} sentences, {1e3 * seconds / len(good):.0f} ms a sentence, {np.isnan(measured).sum()}"
    )
    print("without a score\n")
    rows = [["", "AUROC", "balanced at 0.5"]]
    for name, scores in (
        (str(verifier.name), np.nan_to_num(measured, nan=0.5)),
        ("known words", known_words(questions)),
    ):
        figures = [interval(figure, good, scores, groups) for figure in (roc_auc_score, balanced)]
        rows.append([name, *figures])
    print("\n".join(aligned(rows)), end="\n\n")
    rows = [["kind", "supported", "reach 0.5", "unsupported", "below 0.5"]]
    for kind in np.unique(kinds):
        cells = [str(kind)]
        for label in (True, False):
            own = measured[(kinds == kind) & (good == label)]
            cells += [str(len(own)), f"{((own >= 0.5) == label).mean():.2f}" if len(own) else ""]
        rows.append(cells)
    print("\n".join(aligned(rows)))


if __name__ == "__main__":
    main()
