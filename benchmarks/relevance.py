"""Relevance: how well the counts of ``syncheck.features.relevance`` tell which sentences answer the question.

    python benchmarks/relevance.py --wikipedia articles.jsonl.xz --ragtruth ragtruth-qa

The sentences are those of ``benchmarks/kit_answers/candidates.jsonl``: greedy ones of the kit's model with their
branches. A language model read each twice for whether it gives something of what was asked (2), is about that (1), or
is not (0); sentences that claim nothing are left out. Prints the AUROC of each count and of weights fitted by logistic
regression in ten folds of sets of passages, with a bootstrap over sets, on the first question of each set, the weights
fitted on all of these, and the AUROC of the weights in the package on the second questions.

``quotations.jsonl`` names, by their digests, the parts of the passages that are of use to who asked three questions
about each set, wholly or in part; a language model read them once. Printed is how often what
:func:`syncheck.closest_evidence` quotes, one to three parts, has one of these.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from kit_answers import FOLDER, QuestionSet, digest, load_questions
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from syncheck import closest_evidence
from syncheck.evaluation.metrics import with_interval
from syncheck.features.relevance import WEIGHTS, Asked
from syncheck.reading.evidence import Context, EvidenceIndex
from syncheck.results.types import Query

COUNTS = [name for name in WEIGHTS if name]
DRAWS = 2000
ANSWERS, ABOUT = 1.5, 0.75
"""Mean rating from which a sentence gives something of what was asked, and from which it is about that."""


def main() -> None:
    """Measure and fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wikipedia", type=Path, required=True)
    parser.add_argument("--ragtruth", type=Path, required=True)
    args = parser.parse_args()
    sets = {one.name: one for one in load_questions(args.wikipedia, args.ragtruth)}
    read: dict[tuple[str, int, str], tuple[list[float], float]] = {}
    strengths: dict[tuple[str, int], int] = {}
    for entry in map(json.loads, (FOLDER / "candidates.jsonl").read_text(encoding="utf-8").splitlines()):
        own = sets[entry["set"]]
        place = entry["set"], entry["question"]
        strengths[place] = strengths.get(place, 0) + 1  # only the first questions have candidates of several
        asked = Asked(Context(Query(own.questions[entry["question"]], own.passages)))
        for each in (candidate for step in entry["rounds"] for candidate in step):
            if each["relevance"] and "N" not in each["labels"]:
                counts = asked.counts(each["text"])
                row = [counts[name] for name in COUNTS]
                read[*place, each["text"]] = row, float(np.mean(each["relevance"]))
    is_first = np.array([strengths[name, question] > 1 for name, question, _ in read])
    every = np.array([name for name, *_ in read])
    all_rows, all_ratings = (np.array(column) for column in zip(*read.values(), strict=True))
    groups, rows, ratings = every[is_first], all_rows[is_first], all_ratings[is_first]
    print(f"{len(rows)} sentences of first questions, {len(set(groups))} sets")
    answers = ratings >= ANSWERS
    scores = np.zeros(len(rows))
    for train, test in GroupKFold(10).split(rows, answers, groups):
        scores[test] = LogisticRegression().fit(rows[train], answers[train]).decision_function(rows[test])
    _compare(groups, ratings, {**dict(zip(COUNTS, rows.T, strict=True)), "all": scores})
    fitted = LogisticRegression().fit(rows, answers)
    print({name: round(float(w), 2) for name, w in zip(COUNTS, fitted.coef_[0], strict=True)}, fitted.intercept_)
    packaged = all_rows[~is_first] @ [WEIGHTS[name] for name in COUNTS]
    print(f"\n{len(packaged)} sentences of second questions, with the weights in the package")
    _compare(every[~is_first], all_ratings[~is_first], {"all": packaged})
    for count in (1, 2, 3):
        _quotations(sets, count)


def _quotations(sets: Mapping[str, QuestionSet], count: int) -> None:
    """Print how often quotations of so many parts are of use, with intervals over the sets."""
    groups, found = [], []
    for entry in map(json.loads, (FOLDER / "quotations.jsonl").read_text(encoding="utf-8").splitlines()):
        own = sets[entry["set"]]
        question, passages = own.questions[entry["question"]], own.passages
        index = Context(Query(question, passages)).index
        quoted = "\n".join(one.text for one in closest_evidence(question, passages, count=count))
        held = {digest(part) for part in (_part(index, n) for n in range(len(index.chunks))) if part in quoted}
        groups.append(entry["set"])
        found.append([not held.isdisjoint(entry[use]) for use in ("useful", "partly")])
    is_useful, is_partly = np.array(found).T
    for name, values in (("useful", is_useful), ("useful or partly", is_useful | is_partly)):
        members = [np.flatnonzero(np.array(groups) == one) for one in dict.fromkeys(groups)]
        rng = np.random.default_rng(0)
        drawn = [
            values[np.concatenate([members[n] for n in rng.integers(0, len(members), len(members))])].mean()
            for _ in range(DRAWS)
        ]
        low, high = np.quantile(drawn, (0.025, 0.975))
        print(f"\n{len(found)} quotations of {count} {name}: {with_interval(float(values.mean()), low, high)}")


def _part(index: EvidenceIndex, number: int) -> str:
    """Quote a chunk alone, without the object or header that it stands in."""
    chunk = index.chunks[number]
    if chunk.place is None:
        return index.quoted(number)
    quote = index.passages[chunk.passage][slice(*chunk.place)].strip()
    return chunk.text if chunk.text in quote else quote


def _compare(
    groups: NDArray[np.str_], ratings: NDArray[np.float64], columns: Mapping[str, NDArray[np.float64]]
) -> None:
    """Print how well columns order sentences, with intervals over the groups."""
    members = [np.flatnonzero(groups == name) for name in dict.fromkeys(groups)]
    rng = np.random.default_rng(0)
    draws = [np.concatenate([members[n] for n in rng.integers(0, len(members), len(members))]) for _ in range(DRAWS)]
    for level, wanted in (("gives something of what was asked", ratings >= ANSWERS), ("is about it", ratings >= ABOUT)):
        print(f"\n{level}: {wanted.mean():.2f} of the sentences")
        for name, column in columns.items():
            drawn = [roc_auc_score(wanted[draw], column[draw]) for draw in draws]
            low, high = np.quantile(drawn, (0.025, 0.975))
            print(f"{name:<12} {with_interval(roc_auc_score(wanted, column), low, high)}")


if __name__ == "__main__":
    main()
