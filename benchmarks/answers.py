"""Gates for whole answers: the scale of answers, and what thresholds for sentences and for answers fail and catch.

    python benchmarks/answers.py --ragtruth ragtruth-qa --output runs/answers

Two sources: RAGTruth's answers, unfaithful if a span is marked; and answers made of the claims of
``examples/starter_kit/claims/unseen``, of which half have one unsupported claim. One half of the questions of each
fits and compares forms of the scale, in cross-validation, with equal weight for each source and label; the other half
has the tables, with 95 % intervals from a bootstrap over questions. Scores are kept in ``--output``.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from syncheck import Verifier, load_kit
from syncheck.aggregators.aggregator import ANSWER_SCALES, answer_scale_of
from syncheck.evaluation.metrics import BootstrapSamples, bootstrap_interval, with_interval
from syncheck.labelling import load_ragtruth
from syncheck.results.report import ANSWER_PRIOR

STARTER_KIT = Path(__file__).parents[1] / "examples" / "starter_kit"
sys.path.insert(0, str(STARTER_KIT))
from claim_files import load_written  # noqa: E402
from contrast_pairs import SUPPORTED  # noqa: E402

SOURCES = ("ragtruth", "made")
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FOLDS = 5
RESAMPLES = 1000


class Scored(NamedTuple):
    """An answer: its source, question and label, and the scores of its sentences."""

    source: str
    group: str
    faithful: bool
    scores: tuple[float, ...]


def log_odds(scores: Sequence[float]) -> np.ndarray:
    """Return the log-odds of scores in (0, 1)."""
    values = np.asarray(scores)
    return np.log(values) - np.log1p(-values)


def product(scores: Sequence[float], prior: float) -> float:
    """Return the logarithm of the product of scores that are moved from even odds to a share of faithful sentences."""
    return float(-np.logaddexp(0, -log_odds(scores) - math.log(prior / (1 - prior))).sum())


FORMS: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "lowest score": lambda p: [log_odds(p).min()],
    "lowest score, number of sentences": lambda p: [log_odds(p).min(), -math.log(len(p))],
    "mean of the lowest two": lambda p: [np.sort(log_odds(p))[:2].mean()],
    "mean of the lowest three, number": lambda p: [np.sort(log_odds(p))[:3].mean(), -math.log(len(p))],
    "product, at even odds": lambda p: [-math.log(-product(p, 0.5))],
    "product, at 94 % faithful": lambda p: [-math.log(-product(p, 0.94))],
    "root of the odds against, summed": lambda p: [-math.log(np.exp(-log_odds(p) / 2).sum())],
    "odds against, summed": lambda p: [-math.log(np.exp(-log_odds(p)).sum())],
}
"""Forms of the scale, each with the numbers that its logistic map reads."""


def scored(verifier: Verifier, ragtruth: Path) -> Iterator[Scored]:
    """Score the answers of both sources; those with a sentence that could not be checked are left out."""
    given = [
        (
            "ragtruth",
            record.group,
            not record.spans,
            {"answer": record.response, "passages": record.passages, "question": record.question},
        )
        for record in load_ragtruth(ragtruth)
    ]
    draw = random.Random(0)
    for group in load_written(STARTER_KIT / "claims" / "unseen"):
        good = [claim.text for claim in group.claims if claim.label == SUPPORTED]
        bad = [claim.text for claim in group.claims if claim.label != SUPPORTED]
        for most in (3, 6):
            clean = draw.sample(good, min(draw.randint(most - 2, most), len(good)))
            wrong = [*clean]
            wrong[draw.randrange(len(clean))] = draw.choice(bad)
            for claims in (clean, wrong):
                sentences = [f"{claim} " for claim in claims]
                asked = {"sentences": sentences, "passages": group.passages}
                given.append(("made", group.group or group.passages[0], claims is clean, asked))
    reports = verifier.check_many(asked for *_, asked in given)
    for (source, group, faithful, _), report in zip(given, reports, strict=True):
        if report.answer_score() is not None:
            scores = (s.score for s in report.sentences if s.score is not None)
            yield Scored(source, group, faithful, tuple(scores))


def part_of(group: str, parts: int) -> int:
    """Assign a question to a part by a checksum."""
    return int(sha256(group.encode()).hexdigest(), 16) % parts


def weights(answers: Sequence[Scored]) -> np.ndarray:
    """Return weights that sum to 1, the same for each source and label."""
    kinds = [(answer.source, answer.faithful) for answer in answers]
    return np.array([1 / kinds.count(kind) for kind in kinds]) / len(set(kinds))


def loss(parameters: np.ndarray, values: np.ndarray, answers: Sequence[Scored]) -> float:
    """Return the cross-entropy in nats: 0.693 for an even guess."""
    odds = parameters[0] + values @ parameters[1:]
    return float(weights(answers) @ (np.logaddexp(0, odds) - odds * [answer.faithful for answer in answers]))


def fitted(values: np.ndarray, answers: Sequence[Scored]) -> np.ndarray:
    """Fit the logistic map: offset, then slopes."""
    start = np.array([0.0, *[0.5] * values.shape[1]])
    return np.asarray(minimize(loss, start, (values, answers), method="BFGS").x)


def compare(answers: Sequence[Scored]) -> Iterator[str]:
    """Yield a line for each form of the scale: its loss in cross-validation, and its parameters."""
    fold = np.array([part_of(f"fold {answer.group}", FOLDS) for answer in answers])
    for name, form in FORMS.items():
        values = np.array([form(answer.scores) for answer in answers])
        losses = []
        for held in range(FOLDS):
            known, tested = ([a for a, f in zip(answers, fold, strict=True) if (f == held) == t] for t in (False, True))
            losses.append(loss(fitted(values[fold != held], known), values[fold == held], tested))
        found = ", ".join(f"{value:.3f}" for value in fitted(values, answers))
        yield f"| {name} | {np.mean(losses):.3f} | {found} |"


def gate_table(answers: Sequence[Scored], judged: dict[str, np.ndarray], seed: int) -> Iterator[str]:
    """Yield a line for each threshold: the share of faithful answers that each gate fails, and of others it catches."""
    draws = BootstrapSamples.of(np.array([answer.group for answer in answers]), draws=RESAMPLES, seed=seed)
    faithful = np.array([answer.faithful for answer in answers])
    for threshold in THRESHOLDS:
        cells = []
        for values in judged.values():
            for chosen in (faithful, ~faithful):
                below = chosen & (values < threshold)
                count = np.bincount(draws.group[below], minlength=draws.counts.shape[1])
                total = np.bincount(draws.group[chosen], minlength=draws.counts.shape[1])
                spread = bootstrap_interval((draws.counts @ count) / np.maximum(draws.counts @ total, 1))
                cells.append(with_interval(below.sum() / chosen.sum(), *spread, spec=".2f"))
        yield f"| {threshold:g} | {' | '.join(cells)} |"


def orders(answers: Sequence[Scored], judged: dict[str, np.ndarray], seed: int) -> Iterator[str]:
    """Yield the AUROC of each gate, and the difference of the second from the first."""
    draws = BootstrapSamples.of(np.array([answer.group for answer in answers]), draws=RESAMPLES, seed=seed)
    labels = np.array([int(answer.faithful) for answer in answers])
    found = {name: draws.auroc(values[None], labels, labels >= 0) for name, values in judged.items()}
    for name, (value, drawn) in found.items():
        yield f"AUROC of the {name}: {with_interval(value, *bootstrap_interval(drawn))}"
    (first, firsts), (second, seconds) = found.values()
    yield f"difference: {with_interval(second - first, *bootstrap_interval(seconds - firsts))}"


def reliability(answers: Sequence[Scored], values: np.ndarray) -> Iterator[str]:
    """Yield a line for each band of scores: mean score and share of faithful answers."""
    faithful = np.array([answer.faithful for answer in answers])
    for low, high in ((0, 0.5), (0.5, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1)):
        band = (values >= low) & (values < high)
        if band.any():
            yield f"| {low:g} to {high:g} | {band.sum()} | {values[band].mean():.2f} | {faithful[band].mean():.2f} |"


def main(words: Sequence[str] | None = None) -> None:
    """Score, fit, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ragtruth", type=Path, required=True, metavar="DIR")
    parser.add_argument("--monitor", choices=tuple(ANSWER_SCALES), default="generic-reader", help="(%(default)s)")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="where scores are kept")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (%(default)s)")
    args = parser.parse_args(words)
    verifier = load_kit(args.monitor)
    file = args.output / f"{args.monitor}.jsonl"
    if not file.exists():
        args.output.mkdir(parents=True, exist_ok=True)
        found = list(scored(verifier, args.ragtruth))
        file.write_text("".join(json.dumps(answer) + "\n" for answer in found), encoding="utf-8")
    answers = [Scored(*json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]
    print("\n| form | loss | offset and slopes |\n| --- | ---: | --- |")
    print(*compare([answer for answer in answers if part_of(answer.group, 2) == 0]), sep="\n")
    scale = answer_scale_of(verifier.name, verifier.aggregator)
    assert scale is not None
    for source in SOURCES:
        chosen = [answer for answer in answers if answer.source == source and part_of(answer.group, 2) == 1]
        prior = ANSWER_PRIOR if source == "ragtruth" else 0.5
        judged = {
            "lowest sentence": np.array([min(answer.scores) for answer in chosen]),
            "whole answer": np.array([scale.probability(answer.scores, prior=prior) for answer in chosen]),
        }
        clean = sum(answer.faithful for answer in chosen)
        print(f"\n{source}: {clean} clean and {len(chosen) - clean} bad answers, prior {prior:g}\n")
        print("| threshold |" + "".join(f" {name}: fails clean | catches bad |" for name in judged))
        print("| ---: |" + " --- |" * 2 * len(judged))
        print(*gate_table(chosen, judged, args.seed), sep="\n")
        print("", *orders(chosen, judged, args.seed), sep="\n")
        print("\n| score of the answer | answers | mean | faithful |\n| --- | ---: | ---: | ---: |")
        print(*reliability(chosen, judged["whole answer"]), sep="\n")


if __name__ == "__main__":
    main()
